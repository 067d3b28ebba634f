"""Where in each segment something is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from segmented import FLOATS, NUMBERS, TIMES, pieces, segmented, stacked

import seqflow as sf
from seqflow import ops

ORDERED = NUMBERS + FLOATS + TIMES


@given(segmented(ORDERED))
def test_the_position_of_an_extreme_is_numpys_in_each_segment(drawn):
    data, lengths = drawn
    for op, find in [(ops.lengths_argmax, np.argmax), (ops.lengths_argmin, np.argmin)]:
        found = op(data, lengths)
        nothing = np.full(data.shape[1:], -1)
        expected = [find(rows, axis=0) if len(rows) else nothing for rows in pieces(data, lengths)]
        np.testing.assert_array_equal(found, stacked(expected, found))


def test_the_first_of_equal_elements_and_the_first_nan_win():
    data = np.array([1.0, 2.0, 2.0, 3.0, np.nan, np.nan])
    assert ops.lengths_argmax(data, [3, 0, 3]).tolist() == [1, -1, 1]
    assert ops.lengths_argmin(-data, [3, 0, 3]).tolist() == [1, -1, 1]


@given(segmented(ORDERED, columns=False), st.integers(1, 12))
def test_the_k_largest_are_the_first_k_of_the_sorted_segment(drawn, k):
    data, lengths = drawn
    values, positions = ops.lengths_topk(data, lengths, k=k)
    assert (values.dtype, values.shape, positions.shape) == (data.dtype, (len(lengths), k), (len(lengths), k))
    for i, rows in enumerate(pieces(data, lengths)):
        ascending = np.argsort(rows[::-1], kind="stable")
        order = (len(rows) - 1 - ascending)[::-1][:k]
        np.testing.assert_array_equal(values[i, : len(order)], rows[order])
        assert positions[i, : len(order)].tolist() == order.tolist()
        assert (positions[i, len(order) :] == -1).all()
        assert (values[i, len(order) :] == np.zeros((), data.dtype)).all()


def test_nan_is_among_the_largest():
    values, positions = ops.lengths_topk(np.array([1.0, np.nan, np.inf]), [3], k=2)
    np.testing.assert_array_equal(values, [[np.nan, np.inf]])
    assert positions.tolist() == [[1, 2]]


def test_k_is_at_least_1_and_data_have_one_axis():
    with pytest.raises(sf.OpError, match=r"^lengths_topk: k is 0, expected an integer, 1 or more"):
        ops.lengths_topk(np.ones(1), [1], k=0)
    with pytest.raises(sf.ShapeError, match=r"^lengths_topk: data has 2 dimensions"):
        ops.lengths_topk(np.ones((1, 1)), [1], k=1)
