"""Numbers in buckets, and rows of zeros and ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import assert_same
from strategies.ids import IDS

from seqflow import ops, registry
from seqflow.errors import OpError, OpIndexError

NAN = np.nan


@given(
    x=hnp.arrays("float32", st.integers(0, 20)),
    boundaries=hnp.arrays("float64", st.integers(0, 6), elements=st.floats(allow_nan=False)),
)
def test_float32_is_compared_with_float64_as_it_is(x, boundaries):
    """Boundaries are not rounded to float32 in such a way that a number changes sides."""
    boundaries = np.sort(np.concatenate([boundaries, x[x == x].astype(np.float64)[:5]]))
    expected = [len(boundaries) if one != one else int((boundaries < np.float64(one)).sum()) for one in x]
    assert ops.bucketize(x, boundaries).tolist() == expected


def test_a_boundary_belongs_to_the_bucket_below_it_and_nan_to_the_last():
    x = np.array([[-np.inf, 1.0], [1.5, NAN]])
    assert ops.bucketize(x, [1.0, 5.0]).tolist() == [[0, 0], [1, 2]]
    assert ops.bucketize(x, [1.0, 5.0], nan=7).tolist() == [[0, 0], [1, 7]]
    assert ops.bucketize(np.array([True, False]), [0]).tolist() == [1, 0]
    assert ops.bucketize(np.array([1.0], np.float16), np.array([0.5], np.float16)).tolist() == [1]
    assert ops.bucketize([3], np.zeros(0)).tolist() == [0]


@given(IDS["batch_bucketize"](registry.get("batch_bucketize")))
def test_each_column_has_boundaries_of_its_own(call):
    x, boundaries, columns, lengths = call[0].values()
    found = ops.batch_bucketize(x, boundaries, columns, lengths)
    ends = np.cumsum(lengths, dtype=np.int64)
    for m, (column, end, size) in enumerate(zip(columns, ends, lengths.astype(np.int64), strict=True)):
        assert_same(found[:, m], ops.bucketize(x[:, int(column)], boundaries[end - size : end]))
    one_hot = ops.batch_bucket_one_hot(x[:, columns.astype(np.int64)], boundaries, lengths)
    assert one_hot.shape == (len(x), len(boundaries) + len(lengths))
    first = np.cumsum(lengths.astype(np.int64) + 1) - lengths.astype(np.int64) - 1
    expected = np.zeros_like(one_hot)
    np.put_along_axis(expected, found + first, 1, axis=1)
    assert_same(one_hot, expected)


@pytest.mark.parametrize(
    ("boundaries", "message"),
    [
        ([1.0, NAN], r"boundaries\[1\] is nan, expected a number"),
        ([1.0, 5.0, 2.0], r"boundaries\[2\] = 2.0 is below boundaries\[1\] = 5.0, expected no decrease"),
    ],
)
def test_boundaries_out_of_order_are_named(boundaries, message):
    sizes = [len(boundaries)]
    for call in (
        lambda: ops.bucketize([1.0], boundaries),
        lambda: ops.batch_bucketize([[1.0]], boundaries, [0], sizes),
        lambda: ops.batch_bucket_one_hot([[1.0]], boundaries, sizes),
    ):
        with pytest.raises(OpError, match=message):
            call()
    assert ops.batch_bucketize([[1.0]], [3.0, 0.5], [0, 0], [1, 1]).tolist() == [[0, 1]]


def test_ids_are_ones_in_their_columns():
    assert_same(ops.one_hot([[2], [0]], width=3, dtype="int8"), np.array([[[0, 0, 1]], [[1, 0, 0]]], np.int8))
    found = ops.segment_one_hot([1, 1, 0], [2, 0, 1], width=2, dtype=bool)
    assert found.tolist() == [[False, True], [False, False], [True, False]]
    found = ops.batch_one_hot([[1, 5], [2, 6]], [2, 1, 2, 7], [3, 1])
    assert found.tolist() == [[0, 1, 0, 0], [1, 0, 1, 0]]


@pytest.mark.parametrize("bad", [3, -1])
def test_an_id_outside_is_named(bad):
    with pytest.raises(OpIndexError, match=rf"one_hot: x\[1\] = {bad} is outside \[0, 3\)"):
        ops.one_hot([0, bad], width=3)
    with pytest.raises(OpIndexError, match=rf"indices\[1\] = {bad} is outside \[0, 3\)"):
        ops.segment_one_hot([0, bad], [2], width=3)
    with pytest.raises(OpIndexError, match=rf"columns\[0\] = {bad} is outside \[0, 3\)"):
        ops.batch_bucketize(np.zeros((1, 3)), [1.0], [bad], [1])
