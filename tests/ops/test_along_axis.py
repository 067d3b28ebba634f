"""Joining, repeating and cutting along axes: calls and inference agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inferring import OTHER, ROWS, check_kept, check_lost, check_refused, infer, rows, shape, spec
from strategies.shaping import SHAPING

from seqflow import Dimension, ops
from seqflow.errors import LodError, OpError, OpIndexError, OpTypeError, ShapeError
from seqflow.signature import Described

# Against NumPy


@pytest.mark.slow
@given(SHAPING["concat"]())
def test_concat_is_numpys(call):
    inputs, attributes = call
    np.testing.assert_array_equal(
        ops.concat(**inputs, **attributes), np.concatenate(*inputs.values(), **attributes)
    )


@given(SHAPING["split"]())
def test_concat_undoes_split(call):
    inputs, attributes = call
    pieces = ops.split(**inputs, **attributes)
    np.testing.assert_array_equal(ops.concat(pieces, axis=attributes["axis"]), inputs["x"])
    parts = attributes["parts"]
    sizes = [piece.shape[attributes["axis"]] for piece in pieces]
    assert sizes == list(parts) if isinstance(parts, tuple) else len(set(sizes)) == 1 and len(sizes) == parts


@given(SHAPING["tile"]())
def test_tile_is_numpys(call):
    inputs, attributes = call
    np.testing.assert_array_equal(
        ops.tile(**inputs, **attributes), np.tile(inputs["x"], attributes["repeats"])
    )


def test_tile_makes_no_rows_on_the_way_that_no_count_leaves():
    assert ops.tile(np.zeros((2, 3)), repeats=[10**9, 0]).shape == (2 * 10**9, 0)
    with pytest.raises(OpError, match="too big"):
        ops.tile(np.zeros(2), repeats=[32768, 2**62, 0])


@given(SHAPING["slice_axes"]())
def test_slice_axes_is_numpys(call):
    inputs, attributes = call
    x, count = inputs["x"], len(attributes["starts"])
    index = [slice(None)] * x.ndim
    steps, axes = attributes.get("steps", [1] * count), attributes.get("axes", range(count))
    for axis, start, stop, step in zip(axes, attributes["starts"], attributes["stops"], steps, strict=True):
        index[axis] = slice(start, stop, step)
    np.testing.assert_array_equal(ops.slice_axes(x, **attributes), x[tuple(index)])


@given(SHAPING["gather_axis"]())
def test_gather_axis_is_numpys_take(call):
    inputs, attributes = call
    expected = np.take(inputs["data"], inputs["indices"], attributes["axis"])
    np.testing.assert_array_equal(ops.gather_axis(**inputs, **attributes), expected)


# What is kept of the rows


KEPT = [
    ("tile", "{N,2}", {"attributes": {"repeats": (3,)}}, "{N,6}"),
    ("tile", "{N,2}", {"attributes": {"repeats": (1, 2)}}, "{N,4}"),
    ("slice_axes", "{N,5}", {"attributes": {"starts": (1,), "stops": (3,), "axes": (1,)}}, "{N,2}"),
    ("slice_axes", "{N,5}", {"attributes": {"starts": (0,), "stops": (2**63 - 1,)}}, "{N,5}"),
    ("slice_axes", "{4,5}", {"attributes": {"starts": (0,), "stops": (9,)}}, "{4,5}"),
    ("split", "{N,6}", {"attributes": {"parts": 2, "axis": 1}}, "{N,3}"),
]  # fmt: skip
LOST = [
    ("tile", "{N,2}", {"attributes": {"repeats": (2, 1)}}, "{2*N,2}"),
    ("tile", "{N,2}", {"attributes": {"repeats": (1, 1, 2)}}, "{1,N,4}"),
    ("slice_axes", "{5,2}", {"attributes": {"starts": (0,), "stops": (3,)}}, "{3,2}"),
    ("slice_axes", "{5,2}", {"attributes": {"starts": (-1,), "stops": (-9,), "steps": (-1,)}}, "{5,2}"),
    ("slice_axes", "?", {"attributes": {"starts": (0,), "stops": (3,)}}, "?"),
    ("split", "{6,2}", {"attributes": {"parts": (4, 2)}}, "{4,2}"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "options", "expected"), KEPT)
def test_rows_that_stay_rows_are_said_to(name, x, options, expected):
    check_kept(name, x, options, expected)


@pytest.mark.parametrize(("name", "x", "options", "expected"), LOST)
def test_rows_that_moved_are_not(name, x, options, expected):
    check_lost(name, x, options, expected)


def test_concat_keeps_rows_beside_each_other_only():
    one, other = spec("{N,2}", ROWS), spec("{N,3}", ROWS)
    assert rows("concat", {"tensors": [one, other]}, {"axis": 1}) == ROWS
    with pytest.raises(LodError, match=r"tensors\[1\] is a plain size N"):
        infer("concat", {"tensors": [one, spec("{N,1}")]}, {"axis": 1})
    assert shape("concat", {"tensors": [one, other]}, {"axis": -1}) == "{N,5}"
    assert not isinstance(rows("concat", {"tensors": [one, one]}, {"axis": 0}), Described)
    assert shape("concat", {"tensors": [one, one]}, {"axis": 0}) == "{2*N,2}"
    with pytest.raises(LodError, match="holds the rows that"):
        infer("concat", {"tensors": [one, spec("{N,3}", OTHER)]}, {"axis": 1})


def test_gathered_rows_are_those_of_data_or_of_the_indices():
    data, indices = spec("{N,5}", ROWS), spec("{M,2}", OTHER, "int64")
    inputs = {"data": data, "indices": indices}
    assert rows("gather_axis", inputs, {"axis": -1}) == ROWS
    assert shape("gather_axis", inputs, {"axis": 1}) == "{N,M,2}"
    assert rows("gather_axis", inputs, {"axis": 0}) == OTHER
    assert rows("gather_axis", {"data": data, "indices": spec("{}", None, "int64")}, {"axis": 0}) is None


# Static shapes of what is not known


@pytest.mark.parametrize(
    ("start", "stop", "step", "expected"),
    [
        (0, 3, 1, "{min(3,N)}"),
        (-3, 2**63 - 1, 1, "{min(3,N)}"),
        (0, -2, 1, "{N-min(2,N)}"),
        (3, 1, 1, "{0}"),
        (-1, -(2**63), -1, "{N}"),
        (2, -2, 1, "{?}"),
    ],
)
def test_slices_of_a_named_size(start, stop, step, expected):
    assert shape("slice_axes", "{N}", {"starts": (start,), "stops": (stop,), "steps": (step,)}) == expected


@given(
    size=st.integers(0, 7),
    low=st.integers(0, 7),
    extra=st.integers(0, 7),
    start=st.integers(-8, 8),
    stop=st.one_of(st.integers(-8, 8), st.just(2**63 - 1), st.just(-(2**63))),
    step=st.sampled_from([-3, -2, -1, 1, 2, 3]),
)
def test_slices_of_a_size_between_bounds_hold_every_size(size, low, extra, start, stop, step):
    size = low + min(size, extra)
    attributes = {"starts": (start,), "stops": (stop,), "steps": (step,)}
    (found,) = (
        infer("slice_axes", spec([Dimension.symbol("N", low, low + extra)]), attributes).outputs[0].shape
    )
    real = len(range(*slice(start, stop, step).indices(size)))
    assert found.may_be(real)
    assert found.evaluate({"N": size}) in (None, real)


# Refusals, the same in calls and in inference


REFUSED = [
    ("split", None, {"parts": 4}, ShapeError, r"x.shape\[0\] is 2, which 4 equal parts do not divide"),
    ("split", None, {"parts": (1, 3), "axis": -1}, ShapeError, r"x.shape\[1\] is 3, but parts \[1, 3\] add up to 4"),
    ("split", None, {"parts": 1, "axis": 2}, ShapeError, r"axis is 2, but x has 2 dimensions"),
    ("slice_axes", None, {"starts": (0,), "stops": (1, 2)}, OpError, r"stops has 2 entries, expected 1 as starts"),
    ("slice_axes", None, {"starts": (0,), "stops": (1,), "steps": (0,)}, OpError, r"steps\[0\] is 0"),
    ("slice_axes", None, {"starts": (0, 0), "stops": (1, 1), "axes": (0, 0)}, OpError, r"axes\[1\] is 0, the same axis"),
    ("slice_axes", None, {"starts": (0,) * 3, "stops": (1,) * 3}, ShapeError, r"starts has 3 entries, but x has 2"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes", "attributes", "kind", "message"), REFUSED)
def test_a_call_and_inference_refuse_the_same(name, sizes, attributes, kind, message):
    check_refused(name, sizes, attributes, kind, message)


LISTS = [
    ([(2, 3), (2, 2)], 0, ShapeError, r"tensors\[1\].shape\[1\] is 2"),
    ([(2, 3), (2,)], 0, ShapeError, r"tensors\[1\] has 1 dimensions, expected 2 as tensors\[0\]"),
    ([()], 0, ShapeError, r"tensors\[0\] has no dimensions"),
    ([(2, 3)], 2, ShapeError, r"axis is 2, but each tensor has 2 dimensions"),
    ([], 0, OpError, r"expected lists of one or more"),
]


@pytest.mark.parametrize(("shapes", "axis", "kind", "message"), LISTS)
def test_what_does_not_join_is_refused(shapes, axis, kind, message):
    with pytest.raises(kind, match=message):
        ops.concat([np.zeros(shape) for shape in shapes], axis=axis)
    with pytest.raises(kind, match=message):
        infer("concat", {"tensors": [spec(shape) for shape in shapes]}, {"axis": axis})


def test_tensors_of_different_dtypes_do_not_join():
    with pytest.raises(
        OpTypeError,
        match=r"tensors\[1\] is int64 but tensors\[0\] is float64, .*\n  no dtype holds the values of both",
    ):
        ops.concat([np.ones(1), np.ones(1, np.int64)])
    with pytest.raises(OpTypeError, match=r"tensors\[1\] is int64 but tensors\[0\] is float32"):
        infer("concat", {"tensors": [spec("{1}"), spec("{1}", dtype="int64")]})


def test_an_index_outside_the_axis_is_named():
    data = np.ones((2, 3))
    with pytest.raises(OpIndexError, match=r"gather_axis: indices\[1, 0\] = 3 is outside \[0, 3\)"):
        ops.gather_axis(data, [[0], [3]], axis=1)
    with pytest.raises(OpIndexError, match=r"indices\[0\] = -1 is outside \[0, 3\)"):
        ops.gather_axis(data, [-1], axis=-1)
    with pytest.raises(OpIndexError, match=r"indices\[0\] = -4 is outside \[-3, 3\)"):
        ops.gather_axis(data, [-4], axis=-1, wrap=True)
    with pytest.raises(OpIndexError, match=r"indices\[0\] = 2 is outside \[0, 2\)"):
        ops.gather_axis(data, [2], axis=0)
    with pytest.raises(ShapeError, match="axis is 2, but data has 2 dimensions"):
        ops.gather_axis(data, [0], axis=2)
    with pytest.raises(ShapeError, match="axis is 0, but data has 0 dimensions"):
        infer("gather_axis", {"data": "{}", "indices": spec("{1}", dtype="int64")}, {"axis": 0})
