"""Running a net on a record."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow import LodError, Net, NetError, ShapeError, op, registry
from seqflow.executor import empty_result, row_numbers, run
from seqflow.record import Record

RECORD = Record(
    {"x.lengths": np.array([2, 0, 1]), "x.values": np.array([5, 6, 7]), "label": np.array([1, 2, 3])},
    {"x.lengths": None, "x.values": "x.lengths", "label": None},
    3,
    None,
)


def test_outputs_are_named_by_return_and_keep_their_lengths():
    result = run(Net("y, n = append_token(x.values, x.lengths, token=9)\nreturn y, n, label"), RECORD)
    assert list(result) == ["y", "n", "label"]
    assert result["y"].tolist() == [5, 6, 9, 9, 7, 9]
    assert result.parents == {"y": "n", "n": None, "label": None}
    assert result.num_rows == 3


def test_without_return_everything_assigned_and_everything_unused_comes_out():
    result = run(Net("total = lengths_sum(x.values, x.lengths)"), RECORD)
    assert list(result) == ["label", "total"]
    assert result["total"].tolist() == [11, 0, 7]


def test_values_whose_lengths_are_not_returned_are_rows_of_their_own():
    result = run(Net("y, n = append_token(x.values, x.lengths, token=9)\nreturn y"), RECORD)
    assert result.parents == {"y": None}


def test_levels_nest_as_the_signatures_say():
    net = Net("y, m, k = split_sequences(x.values, x.lengths, chunk=1)\nreturn y, m, k")
    assert run(net, RECORD).parents == {"y": "m", "m": "k", "k": None}


def test_groups_constants_and_literals_reach_the_ops():
    net = Net(
        "t = truncate(x.values, x.lengths, max_length=1)\ny = gather(table, t.values)\nreturn y, t.lengths"
    )
    result = run(net.bind(table=np.arange(10) * 10), RECORD)
    assert result["y"].tolist() == [50, 70]
    assert result.parents == {"y": "t.lengths", "t.lengths": None}
    assert run(Net("y = gather(x.values, [0, 2])\nreturn y"), RECORD)["y"].tolist() == [5, 7]


def test_an_op_may_be_used_for_its_check_alone():
    net = Net("_ = lengths_sum(x.values, x.lengths)\nreturn label")
    assert list(run(net, RECORD)) == ["label"]


def test_an_exception_keeps_its_type_and_notes_the_statement():
    with pytest.raises(LodError, match="sum\\(lengths\\) is 3 but data has 9 rows") as error:
        run(Net("y = lengths_sum(big, n)\nreturn y"), {"big": np.ones((9, 2)), "n": [2, 0, 1]})
    assert error.value.__notes__ == [
        "in the net, line 1: y = lengths_sum(big, n)\n  given data float64[9, 2], lengths int64[3]"
    ]


def test_a_tensor_the_record_has_not_is_an_error_that_lists_what_it_has():
    with pytest.raises(
        NetError,
        match=r"nothing assigns 'x.value'.*did you mean 'x.values'(.*\n)+  given are x.lengths, x.values, label",
    ):
        run(Net("y = lengths_sum(x.value, x.lengths)"), RECORD)


def test_expressions_are_computed_and_keep_the_rows_of_their_operands():
    result = run(Net("y = x.values % 2 + 10\nreturn y, x.lengths"), RECORD)
    assert result["y"].tolist() == [11, 10, 11]
    assert result.parents == {"y": "x.lengths", "x.lengths": None}


def test_rows_of_different_sequences_are_refused_before_anything_runs():
    with pytest.raises(
        LodError, match=r"the rows of the record, but .* the rows that x.lengths describes"
    ) as error:
        run(Net("y = x.values + label"), RECORD)
    assert "line 1: y = x.values + label" in error.value.__notes__[0]


def test_one_row_of_a_constant_is_repeated_and_others_are_said_to_be_rows():
    net = Net("y = label * weight\nreturn y")
    assert run(net.bind(weight=np.array([10])), RECORD)["y"].tolist() == [10, 20, 30]
    with pytest.raises(LodError, match=r"same_rows\(label, weight\)"):
        run(net.bind(weight=np.array([1, 2, 3])), RECORD)
    net = Net("same_rows(label, weight)\ny = label * weight\nreturn y")
    assert run(net.bind(weight=np.array([1, 2, 3])), RECORD)["y"].tolist() == [1, 4, 9]
    with pytest.raises(ShapeError, match=r"same_rows"):
        run(net.bind(weight=np.ones(2)), RECORD)


@pytest.mark.parametrize("rows", [3, 1])
def test_rows_do_not_broadcast_along_a_size_of_1_whoever_gives_it(rows):
    """The weight is in the mapping, so that its rows are unknown."""
    given = {"x": np.ones((rows, 2)), "w": np.ones((1, 2)), "labels": np.ones(3)}
    with pytest.raises(LodError, match=r"holds the rows of labels, but .* has 2 axes: rows do not broadcast"):
        run("y = fc(x, w) - labels", given)
    assert run("y = fc(x, w) - labels", {**given, "labels": np.ones(1)})["y"].shape == (rows, 1)


def test_sizes_that_were_taken_to_be_equal_are_checked_when_they_are_known():
    """NumPy would repeat the one row of `some`."""
    some = np.ones(1)

    def first(ctx):
        ctx.set_output(0, "{?}", rows=None)

    if "rows_of_unknown_origin" not in registry.names():
        op("x[*_] -> some[*_]", shape=first)(rows_of_unknown_origin)
    try:
        net = Net("some = rows_of_unknown_origin(w)\nsame_rows(label, x)\ny = x * some").bind(w=some)
        with pytest.raises(ShapeError, match=r"but some.shape\[0\] is 1, expected equal sizes"):
            run(net, {"label": [1, 2, 3], "x": [1, 2, 3]})
    finally:
        registry.unregister("rows_of_unknown_origin")


def rows_of_unknown_origin(x):
    """What it is given."""
    return x


def test_lists_of_tensors_go_in_and_come_out():
    tensors = {"a": np.array([1, 2]), "b": np.array([3, 4])}
    record = Record(tensors, {"a": None, "b": None}, 2)
    if "swapped_for_test" not in registry.names():
        op("{pair[*_]}+ -> {swapped[*_]}*count")(swapped_for_test)
    result = run(
        Net(
            "x, y = swapped_for_test([a * 10, b], count=2)\np = swapped_for_test([a, b], count=2)\nreturn x, y, p.0"
        ),
        record,
    )
    assert {name: array.tolist() for name, array in result.items()} == {
        "x": [3, 4],
        "y": [10, 20],
        "p.0": [3, 4],
    }


def swapped_for_test(pair, *, count: int):
    """The last first."""
    return pair[::-1]


def test_a_record_has_dictionaries_and_types_of_the_columns_that_pass_through():
    table = pa.table(
        {"d": pa.array(["a", "b"]).dictionary_encode(), "t": pa.array([1, 2], pa.timestamp("s")), "x": [1, 2]}
    )
    record = sf.from_arrow(table)
    assert (
        sf.to_arrow(sf.run(sf.Net("return d, t"), record)).to_pydict() == table.select(["d", "t"]).to_pydict()
    )
    renamed = sf.run(sf.Net("d = x - 1\nt = x * 2\nreturn d, t"), record)
    assert sf.to_arrow(renamed).to_pydict() == {"d": [0, 1], "t": [2, 4]}


def test_prepare_may_leave_out_a_column_with_a_dictionary():
    table = pa.table({"d": pa.array(["a", "b"]).dictionary_encode(), "x": [1, 2]})
    (batch,) = sf.Loader(pa.concat_tables([table] * 2), prepare="y = x * 2\nreturn y", shuffle=True)
    assert sorted(batch["y"].tolist()) == [2, 2, 4, 4]


@pytest.mark.parametrize(
    ("others", "told"),
    [([2, 1], r"m\[0\] is 2 but n\[0\] is 1"), ([1, 1, 1], "m has 3 lengths but n has 2")],
)
def test_lengths_that_nobody_could_compare_before_are_compared_on_the_data(others, told):
    net = Net(
        "a = sequence(x, n)\nb = sequence(z, m)\nc = lengths_sum(a)\nd = lengths_sum(b)\n"
        "e = a * b\nf = lengths_sum(e)\nreturn f"
    )
    tensors = {"x": np.arange(3), "z": np.arange(3), "n": np.array([1, 2])}
    with pytest.raises(LodError, match=f"{told}, expected the same lengths"):
        run(net, {**tensors, "m": np.array(others)})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return label", [0, 1, 2]),
        ("ids, n = bytes_to_tokens(text.values, text.lengths, end=256)\nreturn ids, n", [0, 1, 2]),
        ("kept, _ = boolean_mask(label, label > 1)\nreturn kept", [1, 2]),
        ("return text.values", [0, 0, 0, 1, 1, 1, 1, 1]),
        ("a, b, _ = split_sequences(text.values, text.lengths, chunk=2)\nreturn a, b", [0, 0, 1, 1, 1]),
        ("k, _ = boolean_mask(label, label > 1)\nv, _ = boolean_mask(k, k > 2)\nreturn v", [2]),
        ("u = unique(label)\nreturn u.unique", None),
    ],
)
def test_the_rows_that_results_come_from_are_followed(text, expected):
    record = sf.from_arrow(pa.table({"text": ["abc", "defgh", ""], "label": [1, 2, 3]}))
    found = row_numbers(Net(text), record)
    assert (None if found is None else found.tolist()) == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.list_(pa.int32())], ids=str)
@pytest.mark.parametrize(
    "selection",
    ["filter_sequences(x.values, ok, x.lengths)", "gather_sequences(x.values, at.positions, x.lengths)"],
)
def test_selected_sequences_have_the_type_of_their_column(kind, selection):
    rows = [[1], [2, 2], [], [4]] if pa.types.is_list(kind) else ["a", "é", "", "d"]
    record = sf.from_arrow(pa.table({"x": pa.array(rows, kind), "id": [0, 1, 2, 3]}))
    net = f"ok = id > 0\nat = boolean_mask(id, ok)\ny.values, y.lengths = {selection}\n"
    again = "more = y.lengths > 0\nz.values, z.lengths = filter_sequences(y.values, more, y.lengths)\n"
    expected = pa.array(rows, kind).to_pylist()[1:]
    found = sf.to_arrow(sf.run(net + "return y.values, y.lengths", record))
    assert (found["y"].type, found["y"].to_pylist()) == (kind, expected)
    twice = sf.to_arrow(sf.run(net + again + "return z.values, z.lengths", record))
    assert (twice["z"].type, twice["z"].to_pylist()) == (kind, [one for one in expected if one])
    empty = sf.to_arrow(empty_result(sf.Net(net + again + "return z.values, z.lengths"), record))
    assert empty.schema.types == [kind]


def test_cut_and_changed_texts_are_bytes():
    record = sf.from_arrow(pa.table({"x": ["é", "ab"], "y": ["a", "b"]}))
    cut = "z.values, z.lengths = truncate(x.values, x.lengths, max_length=1)\nreturn z.values, z.lengths"
    mixed = "ok = x.lengths > 0\nz.values, n = filter_sequences(x.values, ok, x.lengths)\nreturn z.values, n"
    for net in (cut, mixed):
        (kind,) = sf.to_arrow(sf.run(net, record)).schema.types
        assert kind == pa.list_(pa.uint8())


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1))))
def test_lists_in_place_of_lengths_and_values(rows):
    net = Net(
        "y = values + 0\nn = lengths + 0\nreturn y, n".replace("values", "x.values").replace(
            "lengths", "x.lengths"
        )
    )
    found = run(net, {"x": rows})
    assert found["y"].tolist() == [one for row in rows for one in row]
    assert found["n"].tolist() == [len(row) for row in rows]
    assert {found["y"].dtype, found["n"].dtype} == {np.dtype(np.int64)}


def test_lists_of_lists_of_texts_have_two_levels_and_their_bytes():
    net = Net("return x.lengths, x.values.lengths, x.values.values")
    found = run(net, {"x": [["a", "bü"], []]})
    assert [found[name].tolist() for name in net.inputs] == [[2, 0], [1, 3], [97, 98, 195, 188]]
    assert run("return x.lengths, x.values", {"x": "ab"})["x.lengths"].tolist() == [2]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([1, 2], "x has rows of int, expected only lists or only texts: the net takes x.lengths, x.values"),
        ([[1], "a"], "x has rows of list, str, expected"),
        ([[1], None], "x has rows of NoneType, list, expected"),
        ([[1, None]], "x.values holds Python objects, expected an array of one dtype"),
        ([[1, "a"]], "x.values"),
    ],
)
def test_lists_that_do_not_fit_are_named(value, says):
    with pytest.raises(sf.OpError, match=says):
        run("return x.lengths, x.values", {"x": value})


def test_ragged_lists_for_a_dense_input_are_an_error():
    with pytest.raises(sf.OpError, match="x is not rectangular"):
        run("y = x + 1", {"x": [[1], [2, 3]]})
