"""Rows in segments, drawn for the tests of ops, and the loop over segments that says what is right."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

NUMBERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
TIMES = ["datetime64[s]", "timedelta64[ms]"]


@st.composite
def segmented(draw: Any, dtypes: list[str], *, columns: bool = True, special: bool = True) -> Any:
    """data[sum(lengths), *d] with many ties, and lengths[B]; `special`: NaN, infinities and NaT among them."""
    lengths = draw(hnp.arrays("int64", st.integers(0, 5), elements=st.integers(0, 9)))
    row = draw(st.sampled_from([(), (), (1,), (3,), (2, 2), (0,)])) if columns else ()
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = (int(lengths.sum()), *row)
    values = draw(hnp.arrays("int64", shape, elements=st.integers(0 if dtype.kind in "bu" else -5, 5)))
    data = values.astype(dtype)
    if dtype.kind == "f":
        data /= 2
    if special and dtype.kind in "fmM":
        odd = [np.nan, np.inf, -np.inf] if dtype.kind == "f" else ["NaT"]
        for value in draw(st.lists(st.sampled_from(odd), max_size=3)) if data.size else []:
            data.flat[draw(st.integers(0, data.size - 1))] = value
    return data, lengths.astype(draw(st.sampled_from(["int64", "int32", "uint16"])))


def pieces(data: Any, lengths: Any) -> list[Any]:
    """The rows of each segment."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return [data[end - length : end] for end, length in zip(ends, lengths.astype(int), strict=True)]


def stacked(results: list[Any], like: Any) -> Any:
    """What a loop over segments found, as one array of the shape and dtype of `like`."""
    return np.array(results).reshape(like.shape).astype(like.dtype) if results else np.zeros_like(like)


def joined(results: list[Any], like: Any) -> Any:
    """What a loop over segments found row by row, as one array of the shape and dtype of `like`."""
    return np.concatenate([*results, np.zeros_like(like[:0])]).reshape(like.shape)
