"""Sequences one by one: what an op gives is compared with a plain loop over them."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

DTYPES = ["float32", "float64", "float16", "int64", "uint8", "bool", "datetime64[s]"]
LENGTHS_DTYPES = ["int32", "int64", "uint16", "uint64"]


def lengths_arrays(longest=5, **options):
    """Lengths of any dtype: none, empty ones, and longer ones."""
    count = options.get("count", st.integers(0, 5))
    return st.sampled_from(LENGTHS_DTYPES).flatmap(
        lambda dtype: hnp.arrays(dtype, count, elements=st.integers(0, longest))
    )


@st.composite
def ragged(draw, dtypes=tuple(DTYPES), max_rank=3, lengths=None):
    """data[sum(lengths), *d], lengths: of any dtype, 1-D to `max_rank`-D, contiguous or not."""
    if lengths is None:
        lengths = draw(lengths_arrays())
    width = draw(st.lists(st.integers(0, 3), max_size=max_rank - 1))
    data = values(draw, draw(st.sampled_from(dtypes)), (int(lengths.sum()), *width))
    if draw(st.booleans()):
        data = np.repeat(data, 2, axis=0)[::2]
    return data, lengths


def values(draw, dtype, shape):
    """Small numbers, so that some are equal."""
    numbers = draw(hnp.arrays("int8", shape, elements=st.integers(0, 9)))
    return numbers.astype(dtype)


def cut(data, lengths):
    """The sequences, one array each."""
    ends = np.cumsum(lengths.astype(np.int64))
    return [data[end - length : end] for end, length in zip(ends, lengths.astype(np.int64), strict=True)]


def join(pieces, like):
    """Sequences one after another, with the dtype and row shape of `like`."""
    return np.concatenate([like[:0], *(np.asarray(piece, like.dtype) for piece in pieces)])


def assert_same(found, expected):
    """Equal values, shape and dtype."""
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected, strict=True)


def assert_sequences(rows, lengths, expected, like):
    """`rows` and `lengths` hold the arrays of `expected`; their dtype and row shape are those of `like`."""
    assert lengths.dtype == np.int64
    assert lengths.tolist() == [len(piece) for piece in expected]
    assert_same(rows, join(expected, like))
