"""Ranges of numbers, and pairs of places."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


def test_ranges_are_those_of_python():
    found = ops.lengths_range(A([0, 5, 8]), A([3, 5, 2]), A([1, 1, -2]))
    assert found.values.tolist() == [0, 1, 2, 8, 6, 4]
    assert found.lengths.tolist() == [3, 0, 3]
    inclusive = ops.lengths_range(A([1, 5, 3]), A([4, 1, 3]), A([1, -2, 1]), inclusive=True)
    assert inclusive.values.tolist() == [1, 2, 3, 4, 5, 3, 1, 3]


def test_int64_is_exact():
    most = 2**63 - 1
    assert ops.lengths_range(A([most - 2]), A([most])).values.tolist() == [most - 2, most - 1]
    for start, stop, step in ((~most, most, 2**62), (most, ~most, ~most), (0, ~most, -3 * 2**61)):
        found = ops.lengths_range(A([start]), A([stop]), A([step])).values.tolist()
        assert found == list(range(start, stop, step))


def test_a_range_over_all_of_int64_is_refused(monkeypatch):
    for _ in range(2):
        with pytest.raises(OpError, match="the result needs"):
            ops.lengths_range(A([-(2**63)]), A([2**63 - 1]))
        monkeypatch.setattr("seqflow.kernels.memory.free_bytes", lambda: None)  # on systems that do not tell


def test_what_cannot_be_made_is_said_before_memory_is_taken():
    with pytest.raises(OpError, match=r"lengths_range: step\[1\] is 0"):
        ops.lengths_range(A([0, 0]), A([1, 1]), A([1, 0]))
    with pytest.raises(OpError, match="the ranges have 100 numbers, expected at most max_total = 9"):
        ops.lengths_range(A([0]), A([100]), max_total=9)
    with pytest.raises((OpError, MemoryError)):
        ops.lengths_range(A([0]), A([2**62]))
    with pytest.raises((OpError, MemoryError)):
        ops.product_within(A([2**31]), A([2**31]))
    with pytest.raises((OpError, MemoryError)):
        ops.combinations_within(A([10**6]), k=4)


def test_pairs_come_in_the_order_of_two_loops():
    left, right, lengths = ops.product_within([2, 0, 1], [3, 2, 1])
    assert left.tolist() == [0, 0, 0, 1, 1, 1, 0]
    assert right.tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert lengths.tolist() == [6, 0, 1]


def test_combinations():
    found = ops.combinations_within([3, 1, 2], replacement=True)
    assert found.lengths.tolist() == [6, 1, 3]
    assert ops.combinations_within([3, 0, 2]).values.tolist() == [[0, 1], [0, 2], [1, 2], [0, 1]]
