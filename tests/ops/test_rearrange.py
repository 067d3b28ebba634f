"""Sequences in, sequences out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import ops

LENGTHS = hnp.arrays("int32", st.integers(0, 5), elements=st.integers(0, 7))


def sequences(values, lengths):
    ends = np.cumsum(lengths)
    return [values[end - length : end].tolist() for end, length in zip(ends, lengths, strict=True)]


@given(LENGTHS, st.integers(0, 8), st.sampled_from(["head", "tail"]))
def test_truncate_keeps_the_head_or_the_tail(lengths, limit, keep):
    values = np.arange(lengths.sum())
    result = ops.truncate(values, lengths, max_length=limit, keep=keep)
    expected = [
        s[:limit] if keep == "head" else s[max(len(s) - limit, 0) :] for s in sequences(values, lengths)
    ]
    assert sequences(result.rows, result.kept) == expected


@given(LENGTHS, st.integers(1, 5), st.data())
def test_split_covers_every_row_with_windows_of_at_most_chunk(lengths, chunk, data):
    stride = data.draw(st.none() | st.integers(1, chunk))
    step = stride or chunk
    values = np.arange(lengths.sum())
    result = ops.split_sequences(values, lengths, chunk=chunk, stride=stride)
    expected = []
    for sequence in sequences(values, lengths):
        pieces, start = [], 0
        while sequence and not (pieces and pieces[-1][-1] == sequence[-1]):
            pieces.append(sequence[start : start + chunk])
            start += step
        expected.append(pieces)
    assert result.counts.tolist() == [len(pieces) for pieces in expected]
    assert sequences(result.rows, result.pieces) == [piece for pieces in expected for piece in pieces]


def test_split_without_overlap_does_not_copy():
    values = np.arange(10)
    assert ops.split_sequences(values, [10], chunk=3).rows is values


@given(LENGTHS)
def test_append_token_adds_one_row_to_every_sequence(lengths):
    values = np.arange(lengths.sum())
    result = ops.append_token(values, lengths, token=-1)
    assert sequences(result.rows, result.longer) == [[*s, -1] for s in sequences(values, lengths)]


def test_an_appended_row_has_the_shape_of_the_others():
    result = ops.append_token(np.ones((2, 3), np.float32), [2], token=0.5)
    np.testing.assert_array_equal(result.rows[-1], [0.5, 0.5, 0.5])
