"""Bringing arrays into the forms that the C++ side takes."""

from math import prod
from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array, DType, scalar


def is_moved(data: Array) -> bool:
    """Rows are bytes, at least one, that may be copied as they are."""
    return not data.dtype.hasobject and data.dtype.itemsize * prod(data.shape[1:]) > 0


def raw(array: Array) -> Array:
    """The array, or its bytes where the buffer protocol cannot describe its elements (times, strings …)."""
    return array if array.dtype.kind in "biufc" else array.reshape(*array.shape, 1).view(np.uint8)


def is_computed(data: Array) -> bool:
    """Elements are numbers the C++ side computes with, or float16."""
    plain = data.dtype.kind in "biu" or data.dtype in (np.float16, np.float32, np.float64)
    return plain and prod(data.shape[1:]) > 0


def computed(kind: str, data: Array) -> Array:
    if data.dtype != np.float16:
        return data
    return data.astype(np.float64 if kind == "mean" else np.float32)


def computed_fill(empty: Any, dtype: DType) -> bytes:
    """`empty` as `dtype` can hold it, in the type that is computed with."""
    value = scalar(empty, dtype)
    return (value.astype(np.float32) if dtype == np.float16 else value).tobytes()
