"""Sequences of all kinds, for property tests of ops."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

Array = np.ndarray[Any, Any]

LENGTHS = st.sampled_from(["int32", "int64", "uint16"]).flatmap(
    lambda dtype: hnp.arrays(dtype, st.integers(0, 6), elements=st.integers(0, 9))
)
DTYPES = st.sampled_from(
    ["float16", "float32", "float64", "int8", "int64", "uint32", "bool", "M8[s]", "c8", "S3"]
)


def values(lengths: Array, dtype: str = "int64", extra: int = 0, strided: bool = False) -> Array:
    """Rows for these lengths, with so many axes of size 2 behind the first; strided ones are read-only, too."""
    total = int(lengths.sum())
    data = np.arange(1, total * 2**extra + 1).reshape(total, *[2] * extra)
    data = (data % 2 == 0) if dtype == "bool" else (data % 100).astype(dtype)
    if strided:
        data = np.repeat(data, 2, axis=0)[::2]
        data.flags.writeable = False
    return data


def per_sequence(data: Array, lengths: Array) -> list[Array]:
    """The rows of each sequence."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return [data[int(end) - int(length) : int(end)] for end, length in zip(ends, lengths, strict=True)]
