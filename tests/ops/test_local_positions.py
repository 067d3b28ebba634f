"""Rows at positions inside their sequence, against plain lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import assert_sequences, cut, ragged

from seqflow import auto, ops
from seqflow.errors import LodError, OpIndexError, ShapeError
from seqflow.sequence import Sequence


@given(data=ragged(), k=st.integers(1, 4), seed=st.integers(0, 9))
def test_the_best_k_of_each_sequence_come_in_descending_order(data, k, seed):
    rows, lengths = data
    scores = np.random.default_rng(seed).integers(0, 3, len(rows)).astype(np.float32)
    found = ops.topk_within(rows, scores, lengths, k=k)
    orders = [np.argsort(-one, kind="stable")[:k] for one in cut(scores, lengths)]
    expected = [piece[order] for piece, order in zip(cut(rows, lengths), orders, strict=True)]
    assert_sequences(found.values, found.lengths, expected, rows)
    assert found.positions.tolist() == [i for order in orders for i in order.tolist()]
    again = ops.gather_within(rows, found.positions, lengths, found.lengths)
    np.testing.assert_array_equal(again, found.values)


@given(data=ragged(dtypes=("float32", "int64"), max_rank=1))
def test_gathering_by_argsort_sorts(data):
    rows, lengths = data
    sorted_rows = ops.gather_within(rows, ops.argsort_within(rows, lengths), lengths, lengths)
    np.testing.assert_array_equal(sorted_rows, ops.sort_within(rows, lengths))


@given(data=ragged(dtypes=("float32", "int64"), max_rank=1), k=st.integers(1, 4))
def test_gathering_the_positions_of_the_largest_gives_the_largest(data, k):
    rows, lengths = data
    best = ops.lengths_topk(rows, lengths, k=k)
    np.testing.assert_array_equal(
        ops.gather_within_padded(rows, best.positions, lengths, fill=0), best.values
    )


def test_positions_of_minus_1_give_the_fill():
    rows, lengths = np.array([[1, 2], [3, 4]]), np.array([0, 2])
    padded = ops.gather_within_padded(rows, np.array([[-1, -1], [1, -1]]), lengths, fill=7)
    assert padded.tolist() == [[[7, 7], [7, 7]], [[3, 4], [7, 7]]]
    assert ops.gather_within(rows, [-1, 0], lengths, [1, 1], fill=0).tolist() == [[0, 0], [1, 2]]


@given(data=ragged(dtypes=("float32", "int64"), max_rank=1), k=st.integers(1, 3))
def test_positions_as_rows_gather_what_they_gather_inside(data, k):
    rows, lengths = data
    order = ops.argsort_within(rows, lengths)
    found = ops.gather(rows, ops.to_rows_within(order, lengths, lengths))
    np.testing.assert_array_equal(found, ops.gather_within(rows, order, lengths, lengths))
    best = ops.lengths_topk(rows, lengths, k=k)
    places = ops.to_rows(best.positions, lengths, keep_missing=True)
    assert places.dtype == np.int64
    np.testing.assert_array_equal(ops.gather(rows, places, ignore_index=-1), best.values)


def test_positions_as_rows_are_checked():
    with pytest.raises(OpIndexError, match=r"positions\[0\] = 2 is outside \[0, 2\), the rows of sequence 0"):
        ops.to_rows([2, 0], [2, 1])
    with pytest.raises(OpIndexError, match=r"positions\[1, 0\] = -1 is outside \[0, 0\)"):
        ops.to_rows([[0], [-1]], [2, 0])
    with pytest.raises(OpIndexError, match=r"positions\[2\] = 1 is outside \[0, 1\), the rows of sequence 1"):
        ops.to_rows_within([0, 1, 1], [2, 1], [2, 1])
    with pytest.raises(ShapeError):
        ops.to_rows([0, 1, 0], [2, 1])
    with pytest.raises(LodError):
        ops.to_rows_within([0, 1, 0], [2, 1], [1, 1])


def test_lengths_ride_along():
    ids, scores = Sequence([7, 8, 9], [2, 1]), Sequence([0.1, 0.3, 0.2], [2, 1])
    assert auto.topk_within(ids, scores, k=1).values.to_lists() == [[8], [9]]
    assert auto.gather_within(ids, auto.argsort_within(scores, descending=True)).to_lists() == [[8, 7], [9]]


@pytest.mark.parametrize(
    ("positions", "fill", "message"),
    [
        ([0, 2, 0], None, r"positions\[1\] = 2 is outside \[0, 2\), the rows of sequence 0"),
        ([0, 1, -1], None, r"positions\[2\] = -1 is outside \[0, 0\), the rows of sequence 1"),
        ([0, -2, -1], 0, r"positions\[1\] = -2 is outside \[0, 2\), the rows of sequence 0"),
    ],
)
def test_a_position_outside_its_sequence_is_an_error(positions, fill, message):
    with pytest.raises(OpIndexError, match=message):
        ops.gather_within([5, 6], positions, [2, 0], [2, 1], fill=fill)


def test_positions_below_0_count_from_the_end_with_wrap():
    data, lengths = np.arange(5), np.array([3, 0, 2])
    assert ops.gather_within(data, [-1, -3, 1, -2], lengths, [3, 0, 1], wrap=True).tolist() == [2, 0, 1, 3]
    padded = ops.gather_within_padded(data, [[-2, 2], [-1, 0], [-3, -1]], lengths, wrap=True, fill=9)
    assert padded.tolist() == [[1, 2], [9, 9], [9, 4]]
    with pytest.raises(
        OpIndexError, match=r"positions\[0\] = -4 is outside \[-3, 3\), the rows of sequence 0"
    ):
        ops.gather_within(data, [-4], lengths, [1, 0, 0], wrap=True)


def test_a_padded_position_outside_is_named_by_row_and_column():
    with pytest.raises(
        OpIndexError, match=r"positions\[1, 0\] = 0 is outside \[0, 0\), the rows of sequence 1"
    ):
        ops.gather_within_padded([5, 6], [[0], [0]], [2, 0])
