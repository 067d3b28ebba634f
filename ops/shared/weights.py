"""One weight for each row: the product and its dtype."""

from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array


def weighted_dtype(data: Array, weights: Array) -> np.dtype[Any]:
    """Return the dtype of sums of data times weights."""
    return np.result_type(kernels.sum_dtype(data.dtype), kernels.sum_dtype(weights.dtype))


def weighted(data: Array, weights: Array) -> Array:
    """Each row of data times its weight."""
    dtype = weighted_dtype(data, weights)
    with np.errstate(all="ignore"):
        return np.multiply(data, expand_trailing(weights, data), dtype=dtype)


def expand_trailing(column: Array, rows: Array) -> Array:
    """Return a column with axes of size 1 added at the end, as many axes as `rows` has, so that it broadcasts with them."""
    return column.reshape(-1, *[1] * (rows.ndim - 1))
