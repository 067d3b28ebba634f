"""Products of rows with a weight for each row, and their dtype."""

from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array


def weighted_dtype(data: Array, weights: Array) -> np.dtype[Any]:
    """Return the dtype of sums of data times weights."""
    return np.result_type(kernels.sum_dtype(data.dtype), kernels.sum_dtype(weights.dtype))


def weighted(data: Array, weights: Array) -> Array:
    """Return each row of data times its weight."""
    dtype = weighted_dtype(data, weights)
    with np.errstate(all="ignore"):
        return np.multiply(data, expand_trailing(weights, data), dtype=dtype)


def expand_trailing(column: Array, rows: Array) -> Array:
    """Return a column with axes of size 1 added at the end, so that it broadcasts with `rows`."""
    return column.reshape(-1, *[1] * (rows.ndim - 1))
