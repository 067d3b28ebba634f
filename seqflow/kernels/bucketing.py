"""Values to the numbers of their buckets."""

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import NUMBERS, Form

__all__ = ["bucketize"]

VALUES = Form(NUMBERS.dtypes, lambda values, argument: np.require(values, None, ["C", "A"]))
"""Numbers with any number of axes."""


@kernel(values=VALUES, boundaries=NUMBERS)
def bucketize(values: Array, boundaries: Array) -> Array:
    """How many boundaries are below each value: values[*i], boundaries[K] -> int64 buckets[*i]; K for NaN.

    Boundaries ascend and have the dtype of the values.
    """
    return np.asarray(np.searchsorted(boundaries, values), np.int64)
