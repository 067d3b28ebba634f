"""Bucket indices of values by sorted boundaries."""

import numpy as np

from seqflow.kernels.arrays import Array, rows
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import NUMBERS, Form

__all__ = ["bucketize"]

_DTYPES = tuple(dtype for dtype in NUMBERS.dtypes if dtype != "f2")
VALUES = Form(
    _DTYPES, lambda values, argument: np.require(values, values.dtype.newbyteorder("="), ["C", "A"])
)
"""Numbers with any number of axes."""
BOUNDARIES = Form(_DTYPES, rows)


@kernel(values=VALUES, boundaries=BOUNDARIES)
def bucketize(values: Array, boundaries: Array) -> Array:
    """Number of boundaries below each value: values[*i], boundaries[K] -> int64 buckets[*i]; K for NaN.

    Boundaries ascend and have the dtype of the values.
    """
    return np.asarray(np.searchsorted(boundaries, values), np.int64)
