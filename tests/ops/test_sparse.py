"""Gathering rows and sequences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import ops

LENGTHS = hnp.arrays("int64", st.integers(0, 5), elements=st.integers(0, 4))


def test_gather_keeps_the_shape_of_the_indices():
    data = np.arange(12).reshape(4, 3)
    np.testing.assert_array_equal(ops.gather(data, [[3, 0], [1, 1]]), data[[[3, 0], [1, 1]]])


def test_negative_indices_wrap_only_when_asked_to():
    assert ops.gather([10, 20, 30], [-1, 0], wrap=True).tolist() == [30, 10]
    with pytest.raises(IndexError, match=r"indices\[0\] = -1 is outside \[0, 3\)"):
        ops.gather([10, 20, 30], [-1, 0])


def test_an_ignored_index_gives_zeros():
    assert ops.gather([10, 20], [-100, 1], ignore_index=-100).tolist() == [0, 20]


def test_gather_writes_into_out():
    out = np.empty(2, np.int64)
    assert ops.gather(np.array([1, 2, 3]), [2, 0], out=out) is out
    assert out.tolist() == [3, 1]
    with pytest.raises(ValueError, match="out"):
        ops.gather(np.array([1, 2, 3]), [2, 0], out=np.empty(3, np.int64))


def test_an_empty_table_takes_no_indices():
    assert ops.gather(np.zeros((0, 2)), np.zeros(0, int)).shape == (0, 2)
    with pytest.raises(IndexError, match=r"outside \[0, 0\)"):
        ops.gather(np.zeros((0, 2)), [0])


@given(LENGTHS.filter(len), st.data())
def test_whole_sequences_are_gathered_in_any_order(lengths, data):
    indices = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=6))
    values = np.arange(lengths.sum() * 2).reshape(-1, 2)
    parts = np.split(values, np.cumsum(lengths)[:-1])
    result = ops.gather_sequences(values, indices, lengths)
    assert result.lengths.tolist() == [len(parts[i]) for i in indices]
    np.testing.assert_array_equal(result.values, np.concatenate([values[:0], *(parts[i] for i in indices)]))
