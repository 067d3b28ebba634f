"""Ranges of rows: what is gathered, and what a wrong range says."""

import numpy as np
import pytest
from hypothesis import given
from per_sequence import assert_same, assert_sequences
from strategies.ids import IDS

from seqflow import ops
from seqflow.errors import OpError, OpIndexError

DATA = np.array([10, 20, 30, 40])


@given(IDS["gather_ranges"]())
def test_ranges_of_an_example_follow_one_another(call):
    data, ranges = call[0]["data"], call[0]["ranges"].astype(np.int64)
    expected = [np.concatenate([data[:0], *(data[s : s + n] for s, n in one)]) for one in ranges]
    assert_sequences(*ops.gather_ranges(**call[0]), expected, data)


@given(IDS["gather_ranges_to_dense"]())
def test_a_range_of_the_right_length_is_a_row_and_any_other_is_zeros(call):
    data, ranges, keys = (call[0][name] for name in ("data", "ranges", "keys"))
    lengths = call[1]["lengths"]
    for found, length, column in zip(
        ops.gather_ranges_to_dense(data, ranges, keys, lengths=lengths),
        lengths,
        range(len(lengths)),
        strict=True,
    ):
        expected = np.zeros((len(ranges), length), data.dtype)
        for i, (start, size) in enumerate(ranges[:, column].astype(np.int64)):
            if size == length:
                order = sorted(range(start, start + size), key=keys.__getitem__)
                expected[i] = data[np.array(order, np.int64)]
        assert_same(found, expected)


def test_an_empty_range_may_start_anywhere():
    assert ops.gather_ranges(DATA, [[[99, 0], [-3, 0]]]).lengths.tolist() == [0]


@pytest.mark.parametrize("bad", [[3, 2], [-1, 1], [0, -1], [0, 2**62], [2**62, 2**62]])
@pytest.mark.parametrize(
    "gather",
    [ops.gather_ranges, lambda data, ranges: ops.gather_ranges_to_dense(data, ranges, lengths=[1, 1])],
)
def test_a_range_outside_the_data_is_named(gather, bad):
    message = rf"ranges\[1, 0\] starts at {bad[0]} and has length {bad[1]}, expected a range inside the 4 rows of data"
    with pytest.raises(OpIndexError, match=message):
        gather(DATA, [[[0, 1], [1, 1]], [bad, [0, 1]]])


def test_a_range_of_another_length_is_an_error_where_asked():
    ranges = [[[0, 1], [1, 2]], [[0, 0], [1, 1]]]
    with pytest.raises(OpError, match=r"ranges\[1, 1\] has length 1, expected 2 or 0"):
        ops.gather_ranges_to_dense(DATA, ranges, lengths=[1, 2], on_mismatch="raise")
    with pytest.raises(OpError, match="ranges has 2 ranges for each example, lengths has 3"):
        ops.gather_ranges_to_dense(DATA, ranges, lengths=[1, 2, 3])
