"""Indices that point at rows, checked before use."""

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.checks import checked_indices


def indices_below(name: str, indices: Array, count: int) -> Array:
    """Return a copy of the indices as int64; raise KernelError for the first one outside `[0, count)`."""
    # copied before the check: another thread may write to the original after it
    copied = indices.copy()
    checked_indices(copied, count, False, None, name)
    return copied.astype(np.int64, copy=False)
