"""Static inference from the signature: sizes, row spaces, guards."""

import pytest

import seqflow as sf
from seqflow import TensorSpec, registry
from seqflow.errors import OpTypeError, ShapeError
from seqflow.shape import Equalities
from seqflow.signature import Described, OwnRows

RECORD = OwnRows("the record")


def infer(op, attributes=None, **specs):
    return registry.get(op).infer(specs, attributes)


def spec(text, rows=None):
    dtype, _, shape = text.partition("{")
    return TensorSpec(dtype, "{" + shape, rows)


def test_names_sums_and_attributes_become_sizes():
    data, lengths = spec("int32{?,4}"), spec("int32{B}")
    padded, mask = infer("pad", data=data, lengths=lengths).outputs
    assert str(padded) == "int32{B,max(lengths),4}"
    assert str(mask) == "bool{B,max(lengths)}"
    padded, _ = infer("pad", {"max_length": 512}, data=data, lengths=lengths).outputs
    assert str(padded) == "int32{B,512,4}"
    padded, _ = infer("pad", {"max_length": 10, "multiple_of": 8}, data=data, lengths=lengths).outputs
    assert str(padded) == "int32{B,10,4}"


def test_output_lengths_describe_output_rows():
    values, lengths, counts = infer(
        "split_sequences",
        {"chunk": 4, "stride": 2},
        data=spec("uint8{?}", Described("lengths")),
        lengths=spec("int64{B}", RECORD),
    ).outputs
    assert str(values) == "uint8{sum(split_sequences.lengths)}"
    assert values.rows == Described("split_sequences.lengths")
    assert lengths.rows == Described("split_sequences.counts")
    assert counts.rows is RECORD


def test_what_cannot_be_proved_is_a_guard():
    inferred = infer("lengths_sum", data=spec("float32{7,4}"), lengths=spec("int64{3}"))
    (guard,) = inferred.guards
    assert str(guard) == "sum(lengths) == 7 (sum(lengths) and data.shape[0])"
    assert guard.left.evaluate({"sum(lengths)": 6}) == 6


def test_dtypes_follow_the_rules():
    assert infer("lengths_mean", data=spec("int8{?}"), lengths=spec("int64{B}")).outputs[0].dtype == "float64"
    assert (
        infer("lengths_sum", data=spec("float16{?}"), lengths=spec("int64{B}")).outputs[0].dtype == "float32"
    )


def test_values_of_one_column_with_the_lengths_of_another_are_refused_before_any_data_is_read():
    tokens = spec("int32{?}", Described("tokens.lengths"))
    labels = spec("int64{B}", RECORD)
    names = {"data": "tokens.values", "lengths": "labels.lengths"}
    op = registry.get("lengths_sum")
    with pytest.raises(
        sf.LodError,
        match=r"lengths_sum: data holds the rows that tokens.lengths describes, but lengths is labels.lengths",
    ):
        op.infer({"data": tokens, "lengths": labels}, names=names)
    known = Equalities()
    lengths = [known.terms.value(name) for name in ("labels.lengths", "tokens.lengths")]
    known.unite(*lengths, "they are said to be equal")
    op.infer({"data": tokens, "lengths": labels}, names=names, equalities=known)


def test_rows_of_two_origins_do_not_meet():
    with pytest.raises(
        sf.LodError, match="lengths holds the rows of another batch, but padded the rows of the record"
    ):
        infer("unpad", padded=spec("int32{?,8}", RECORD), lengths=spec("int64{?}", OwnRows("another batch")))


@pytest.mark.parametrize(
    ("op", "specs", "kind", "message"),
    [
        ("lengths_sum", {"data": "float32{7}", "lengths": "float32{3}"}, OpTypeError, "lengths is float32, expected integers"),
        ("lengths_sum", {"data": "float32{7}", "lengths": "int64{3,1}"}, sf.ShapeError, "lengths has shape {3,1}, expected 1 dimensions"),
        ("lengths_sum", {"data": "float32{}", "lengths": "int64{3}"}, sf.ShapeError, "data has shape {}, expected 1 or more"),
        ("unpad", {"padded": "int32{4,8}", "lengths": "int64{3}"}, sf.ShapeError, "lengths.shape[0] is 3, but padded.shape[0] is 4"),
        ("sparse_lengths_sum", {"table": "str{5}", "indices": "int64{2}", "lengths": "int64{1}"}, OpTypeError, "table is <U0, expected numbers"),
    ],
)  # fmt: skip
def test_what_cannot_fit_is_refused_with_both_places(op, specs, kind, message):
    with pytest.raises(kind) as error:
        infer(op, **{name: spec(text) for name, text in specs.items()})
    assert f"{op}: " in str(error.value)
    assert message in str(error.value)


GATES = {"rnn": 1, "gru": 3, "lstm": 4}


@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("name", ["w_ih", "w_hh", "h0"])
@pytest.mark.parametrize("both", [False, True])
def test_rows_and_weights_of_two_dtypes_are_refused_before_data(cell, name, both):
    gates, states = GATES[cell] * 4, 8 if both else 4
    shapes = {"w_ih": f"{{{gates},2}}", "w_hh": f"{{{gates},4}}"}
    if both:
        shapes |= {f"{weight}_reverse": shape for weight, shape in shapes.items()}
    shapes["h0"] = f"{{3,{states}}}"
    specs = {one: spec(("float64" if one == name else "float32") + shape) for one, shape in shapes.items()}
    with pytest.raises(OpTypeError, match=f"{name} is float64 but x is float32.*\n.*cast"):
        infer(
            f"bidirectional_{cell}" if both else cell,
            x=spec("float32{7,2}"),
            lengths=spec("int64{3}"),
            **specs,
        )


@pytest.mark.parametrize(
    ("op", "lists", "more"),
    [
        ("concat", "tensors", {}),
        ("boolean_unmask", "values", {"mask": "bool{9}"}),
        ("concat_sequences", "data", {"lengths": "int64{3}"}),
        ("interleave", "data", {"lengths": "int64{3}"}),
    ],
)
def test_a_list_of_two_dtypes_is_refused_before_data(op, lists, more):
    given = {lists: [spec("float32{7}"), spec("float64{7}")]}
    given |= {name: [spec(text), spec(text)] for name, text in more.items()}
    with pytest.raises(OpTypeError, match=rf"{lists}\[1\] is float64 but {lists}\[0\] is float32"):
        infer(op, **given)


def test_a_failed_inference_leaves_no_trace():
    known = Equalities()
    with pytest.raises(sf.ShapeError):
        registry.get("unpad").infer(
            {"padded": spec("int32{A,8,2}"), "lengths": spec("int64{B,1}")}, equalities=known
        )
    left, right = (spec(f"int32{{{name}}}").shape[0] for name in "AB")
    assert known.compare(left, right).value == "unknown"


@pytest.mark.parametrize(
    ("q", "k", "out"),
    [
        ("float32{?,4,3}", "float32{?,2,3}", "float32{sum(lengths),4,3}"),
        ("float32{?,H,3}", "float32{?,2,3}", "float32{sum(lengths),H,3}"),
        ("float32{?,4,3}", "float32{?,?,3}", "float32{sum(lengths),4,3}"),
        ("float32{?,H,3}", "float32{?,?,3}", "float32{sum(lengths),H,3}"),
    ],
)
def test_a_product_with_an_unknown_name_keeps_the_size_it_has(q, k, out):
    found, lse = infer("attention_within", q=spec(q), lengths=spec("int64{?}"), k=spec(k), v=spec(k)).outputs
    assert str(found) == out
    assert found.shape[1] == lse.shape[1]


def test_a_size_that_is_not_a_multiple_is_refused():
    with pytest.raises(ShapeError, match=r"q.shape\[1\] is 4, expected G\*R for some R"):
        infer(
            "attention_within", q=spec("float32{?,4,3}"), lengths=spec("int64{?}"), k=spec("float32{?,3,3}"),
            v=spec("float32{?,3,3}"),
        )  # fmt: skip
