"""Masks."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import DTYPES, lengths_arrays, values

from seqflow import LodError, OpError, ShapeError, ops

LENGTHS = lengths_arrays()
MODES = ["sequence", "window", "upper", "lower", "upper_diagonal", "lower_diagonal"]


@given(LENGTHS, st.sampled_from(["right", "left"]), st.none() | st.integers(0, 300))
def test_the_mask_is_that_of_pad(lengths, side, width):
    expected = ops.pad(np.zeros(lengths.sum()), lengths, max_length=width, side=side, truncate=True).mask
    found = ops.lengths_to_mask(lengths, max_length=width, side=side)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, expected)


@given(
    st.data(), LENGTHS, st.sampled_from(DTYPES), st.lists(st.integers(0, 2), max_size=2), st.integers(0, 3)
)
def test_steps_behind_the_end_become_0(draw, lengths, dtype, row, more):
    steps = int(lengths.max(initial=0)) + more
    x = values(draw.draw, dtype, (steps, len(lengths), *row))
    found = ops.zero_after_length(x, lengths)
    assert found.dtype == x.dtype
    assert not np.shares_memory(found, x)
    for t in range(steps):
        for b, length in enumerate(lengths):
            np.testing.assert_array_equal(found[t, b], x[t, b] if t < length else np.zeros_like(x[t, b]))


def test_nan_behind_the_end_becomes_0():
    assert ops.zero_after_length(np.array([[1.0], [np.nan]]), [1]).tolist() == [[1], [0]]


def is_masked(mode, row, column, bounds, radius):
    """What Caffe2's operator does, place by place."""
    return {
        "sequence": lambda: column >= bounds[row],
        "window": lambda: abs(column - int(bounds[row])) > radius,
        "upper": lambda: column > row,
        "lower": lambda: column < row,
        "upper_diagonal": lambda: column >= row,
        "lower_diagonal": lambda: column <= row,
    }[mode]()


@given(st.data(), st.sampled_from(MODES), st.sampled_from(["float16", "float32", "int8", "bool", "M8[s]"]))
def test_each_mode_masks_what_caffe2_masks(draw, mode, dtype):
    shape = draw.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    axis = draw.draw(st.integers(0, len(shape) - 1))
    batch = draw.draw(st.none() | st.integers(0, axis - 1)) if axis else None
    repeat = draw.draw(st.none() | st.integers(axis, len(shape) - 1))
    radius = draw.draw(st.integers(0, 3) | st.just(2**40))
    first, last = 0 if batch is None else batch + 1, len(shape) if repeat is None else repeat
    rows, columns, repeats = prod(shape[first:axis]), prod(shape[axis:last]), prod(shape[last:])
    bounds = draw.draw(hnp.arrays(st.sampled_from(["int32", "int64"]), rows, elements=st.integers(0, 5)))
    bounds = bounds if mode in ("sequence", "window") else None
    x = values(draw.draw, dtype, tuple(shape))
    fill = 1 if dtype in ("int8", "bool", "M8[s]") else None
    found = ops.sequence_mask(
        x, bounds, mode=mode, axis=axis - len(shape) * draw.draw(st.integers(0, 1)), batch=batch,
        repeat_from_axis=repeat, radius=radius, fill=fill,
    )  # fmt: skip
    expected = (
        x.reshape(-1, rows, columns, repeats).copy() if x.size else x.reshape(0, rows, columns, repeats)
    )
    for place in np.ndindex(expected.shape):
        if is_masked(mode, place[1], place[2], bounds, radius):
            expected[place] = -np.inf if fill is None else np.full((), fill, x.dtype)
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    np.testing.assert_array_equal(found, expected.reshape(shape))


@given(st.sampled_from([2**63 - 1, -(2**63), 2**62, -1, 7]), st.sampled_from([0, 1, 2, 2**62, 2**63 - 1]))
def test_a_window_may_be_anywhere(centre, radius):
    found = ops.sequence_mask(np.zeros((1, 5), np.float32), [centre], mode="window", radius=radius, fill=1)
    assert found.tolist() == [[float(abs(column - centre) > radius) for column in range(5)]]


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.sequence_mask(X, mode="sequence"), OpError, "mode 'sequence' needs bounds, one for each of the 2 rows"),
        (lambda: ops.sequence_mask(X, [1], mode="window"), ShapeError, r"bounds.shape\[0\] is 1, expected 2: one for each row"),
        (lambda: ops.sequence_mask(X, [1, -1], mode="sequence"), LodError, r"bounds\[1\] is -1, expected a length, 0 or more"),
        (lambda: ops.sequence_mask(X, [1, 1], mode="upper"), OpError, "bounds are given, but mode 'upper' takes none"),
        (lambda: ops.sequence_mask(X, mode="uper"), OpError, "mode is 'uper'.*did you mean 'upper'"),
        (lambda: ops.sequence_mask(X, mode="upper", axis=2), ShapeError, "axis is 2, expected an axis from 0 on of the 2 of x"),
        (lambda: ops.sequence_mask(X, mode="upper", axis=0, batch=0), ShapeError, "axis is 0, expected an axis from 1 on"),
        (lambda: ops.sequence_mask(X, mode="upper", repeat_from_axis=0), ShapeError, "repeat_from_axis is 0, expected an axis from 1 on"),
        (lambda: ops.sequence_mask(X.astype(int), mode="upper"), OpError, "fill is -inf, "),
        (lambda: ops.sequence_mask(X, [0, 0], mode="window", radius=2**70), OpError, "sequence_mask: "),
        (lambda: ops.zero_after_length([[1]], [2]), ShapeError, r"x.shape\[0\] is 1, expected 2 or more"),
        (lambda: ops.lengths_to_mask([1], max_length=-1), OpError, "max_length is -1, expected an integer, 0 or more"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("side", ["right", "left"])
def test_columns_that_are_all_padding_take_no_time(side):
    mask = ops.lengths_to_mask(np.array([2, 0, 3]), max_length=10**8, side=side)
    assert mask.shape == (3, 10**8)
    assert mask[:, slice(4) if side == "right" else slice(-4, None)].sum(axis=1).tolist() == [2, 0, 3]
