"""The rows around each row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import assert_same, cut, ragged

import seqflow as sf
from seqflow import ops


def windows(data, lengths, before, after, fill):
    """Window by window."""
    found = np.full((len(data), before + 1 + after, *data.shape[1:]), fill).astype(data.dtype)
    row = 0
    for sequence in cut(data, lengths):
        for i in range(len(sequence)):
            for place in range(-before, after + 1):
                if 0 <= i + place < len(sequence):
                    found[row, before + place] = sequence[i + place]
            row += 1
    return found


@given(ragged(), st.integers(0, 7), st.integers(0, 7), st.integers(0, 1))
def test_context_windows_hold_the_rows_around_each_row(sequences, before, after, fill):
    data, lengths = sequences
    found = ops.context_windows(data, lengths, before=before, after=after, fill=fill)
    assert_same(found, windows(data, lengths, before, after, fill))


@given(ragged(), st.integers(1, 7))
def test_ngrams_hold_each_row_and_those_that_follow(sequences, n):
    data, lengths = sequences
    assert_same(ops.ngrams(data, lengths, n=n), windows(data, lengths, 0, n - 1, 0))


@given(ragged())
def test_the_one_gram_of_a_row_is_the_row(sequences):
    data, lengths = sequences
    assert_same(ops.ngrams(data, lengths, n=1)[:, 0], np.ascontiguousarray(data))


def test_a_fill_that_the_dtype_cannot_hold_is_an_error():
    with pytest.raises(sf.OpError, match=r"^ngrams: fill is -1, which uint8 cannot hold"):
        ops.ngrams(np.zeros(2, np.uint8), [2], n=2, fill=-1)


def test_an_n_gram_has_at_least_one_row():
    with pytest.raises(sf.OpError, match=r"^ngrams: n is 0, expected an integer, 1 or more"):
        ops.ngrams([1, 2], [2], n=0)
