"""Inferring a whole net before there is data."""

import numpy as np
import pytest

from seqflow import LodError, Net, NetError, OpError, TensorSpec, run
from seqflow.signature import Described, OwnRows

RECORD = OwnRows("the record")
SPECS = {
    "doc.lengths": TensorSpec("int64", "{rows:0..256}", RECORD),
    "doc.values": TensorSpec("int32", "{sum(doc.lengths)}", Described("doc.lengths")),
    "tag.lengths": TensorSpec("int64", "{rows:0..256}", RECORD),
    "tag.values": TensorSpec("int32", "{sum(tag.lengths)}", Described("tag.lengths")),
}


def test_every_tensor_gets_dtype_shape_and_rows():
    net = Net(
        "ids, n = truncate(doc.values, doc.lengths, max_length=512)\nx, mask = pad(ids, n, max_length=512)\nreturn x, mask"
    )
    inferred = net.infer(SPECS)
    assert str(inferred.specs["x"]) == "int32{rows:0..256,512}"
    assert inferred.specs["x"].rows is RECORD
    assert inferred.specs["x"].byte_bound == 256 * 512 * 4
    assert inferred.guards == []
    assert inferred.byte_bound is None


def test_the_net_prints_with_its_specs_beside_it():
    text = str(Net("ids, _ = truncate(doc.values, doc.lengths, max_length=512)").infer(SPECS))
    assert text.splitlines() == [
        "# doc.values: int32{sum(doc.lengths)} ≤ ?",
        "# doc.lengths: int64{rows:0..256} ≤ 2.0 KiB",
        "ids, _ = truncate(doc.values, doc.lengths, max_length=512)    # ids int32{sum(_0.1):0..131072} ≤ 512.0 KiB",
        "# all tensors ≤ ?",
    ]


def test_values_of_one_column_with_lengths_of_another_are_refused_with_the_statement():
    with pytest.raises(
        LodError, match=r"data holds the rows that doc.lengths describes, but lengths is tag.lengths"
    ) as error:
        Net("y = lengths_sum(doc.values, tag.lengths)").infer(SPECS)
    assert "line 1: y = lengths_sum(doc.values, tag.lengths)" in error.value.__notes__[0]


def test_constants_have_rows_of_their_own():
    net = Net("y = sparse_lengths_sum(table, doc.values, doc.lengths)").bind(
        table=np.zeros((10, 4), np.float32)
    )
    assert str(net.infer(SPECS).specs["y"]) == "float32{rows:0..256,4}"


def test_what_is_neither_proved_nor_refused_is_a_guard_that_names_the_line():
    net = Net("y = lengths_sum(values, n)")
    inferred = net.infer({"values": TensorSpec("float32", "{?}"), "n": TensorSpec("int64", "{?}")})
    (guard,) = inferred.guards
    assert str(guard) == "sum(n) == values.shape[0] (lengths_sum, line 1: sum(lengths) and data.shape[0])"
    assert "# guard: sum(n) == values.shape[0]" in str(inferred)


def test_a_dtype_an_op_does_not_take_is_refused_before_any_data_is_read():
    with pytest.raises(OpError, match="gather: indices is float32, expected integers"):
        Net("y = gather(doc.values, i)").infer({**SPECS, "i": TensorSpec("float32", "{?}")})


def test_a_missing_spec_names_the_nearest():
    with pytest.raises(NetError, match=r"nothing assigns 'doc.value'.*did you mean 'doc.values'"):
        Net("y = lengths_sum(doc.value, doc.lengths)").infer(SPECS)


def test_a_net_of_200_statements_is_inferred():
    lines = ["x0 = lengths_to_offsets(doc.lengths)"]
    lines += [f"x{i} = gather(x{i - 1}, [0, 0, 0])" for i in range(1, 200)]
    assert str(Net("\n".join(lines)).infer(SPECS).specs["x199"]) == "int64{3}"


def test_same_lengths_unifies_two_columns_wherever_it_stands():
    net = Net("y = lengths_sum(doc.values, tag.lengths)\nsame_lengths(doc.lengths, tag.lengths)\nreturn y")
    assert str(net.infer(SPECS).specs["y"]) == "int64{rows:0..256}"


def test_masks_of_other_widths_are_other_values():
    net = Net("m = lengths_to_mask(n, max_length=1)\nw = lengths_to_mask(n)\nreturn m, w")
    found = net.infer({"n": TensorSpec("int64", "{3}")})
    assert not found.guards
    assert run(net, {"n": np.array([1, 0, 3])})["w"].shape == (3, 3)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("z = reshape(v, shape=concat([lengths_to_shape(n), [4]]))", ",4}"),
        ("z = reshape(v, shape=concat([[3], lengths_to_shape(n)]))", "{3,"),
        ("s = concat([lengths_to_shape(n), [4]])\nz = reshape(v, shape=concat([s, [2]]))", ",4,2}"),
    ],
)
def test_sizes_that_are_joined_are_known_as_far_as_their_parts_are(text, shape):
    specs = {"n": TensorSpec("int64", "{?}"), "v": TensorSpec("float32", "{?}")}
    found = str(Net(f"{text}\nreturn z").infer(specs).specs["z"].shape)
    assert found.startswith(shape) or found.endswith(shape)


def test_integers_that_are_no_sizes_are_joined_as_well():
    found = Net("z = concat([n, m])\nreturn z").bind(m=[-7, 3]).infer({"n": TensorSpec("int64", "{2}")})
    assert str(found.specs["z"]) == "int64{4}"
