"""Runs of equal values: answers of Awkward."""

import itertools

import numpy as np
import pytest

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


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "M8[s]", "m8[ms]"])
@pytest.mark.parametrize("gap", [0, 1, 50, 0.5, 2**31, 2**62, 2.0**63, 1e300, -1, -50, -1.5, np.inf, -np.inf])
def test_a_gap_is_compared_with_the_difference_of_pythons_integers(dtype, gap):
    kind = np.dtype(dtype).kind
    limits = np.iinfo(dtype if kind in "iu" else np.int64)
    low, high = (0, 1) if kind == "b" else (limits.min + (kind in "mM"), limits.max)
    random = np.random.default_rng(0)
    values = [
        low,
        high,
        low,
        low + 1,
        high,
        high - 1,
        *([low, low + 1, high - 1, high][i] for i in random.integers(0, 4, 20)),
    ]
    data = A(values, np.int64 if kind in "mM" else dtype).view(dtype)
    ends = [after - before > gap for before, after in itertools.pairwise(int(x) for x in values)]
    expected = np.diff([0, *(np.flatnonzero(ends) + 1), len(values)]).tolist()
    assert ops.run_lengths(data, [len(values)], gap=gap).lengths.tolist() == expected


def test_no_gap_reaches_a_time_that_is_missing():
    times = A(["2000-01-01", "NaT", "2010-01-01", "2020-01-01"], "M8[D]")
    assert ops.run_lengths(times, [4], gap=1).lengths.tolist() == [3, 1]
