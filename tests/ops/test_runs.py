"""Runs of equal values: answers of Awkward."""

import numpy as np

from seqflow import ops

A = np.array


def test_runs_end_with_their_sequence():
    found = ops.run_lengths(A([1, 1, 2, 2, 2, 3, 3, 3]), [5, 0, 2, 1])
    assert [one.tolist() for one in found] == [[1, 2, 3, 3], [2, 3, 2, 1], [2, 0, 1, 1]]


def test_nan_is_equal_to_nan():
    assert ops.run_lengths(A([np.nan, np.nan, 1.0]), [3]).lengths.tolist() == [2, 1]


def test_sessions_end_at_a_gap():
    times = A([0, 10, 100, 105, 90], np.uint32)
    assert ops.run_lengths(times, [4, 1], gap=30).lengths.tolist() == [2, 2, 1]
    assert ops.run_lengths(times.astype("datetime64[s]"), [4, 1], gap=30).counts.tolist() == [2, 1]


def test_places_count_again_from_each_start():
    begins = ops.shift(A([5, 6, 0, 7, 0, 8]), [6], by=1, fill=1) == 0
    lengths, _ = ops.starts_to_lengths(begins, [6])
    assert ops.lengths_to_positions(lengths).tolist() == [0, 1, 2, 0, 1, 0]
