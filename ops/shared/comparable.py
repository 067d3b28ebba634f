"""Integers that compare as values of any ordered dtype do."""

import numpy as np

from seqflow.kernels.arrays import Array


def as_integers(x: Array) -> Array:
    """Return integers that compare as the values do: NaN and NaT are one value each, the largest."""
    if x.dtype.kind == "f":
        wide = x.astype(np.float64)
        wide += 0.0  # -0.0, which has other bits, becomes 0.0
        wide[np.isnan(wide)] = np.nan
        bits = wide.view(np.int64)
        # as integers, the bits of negative floats descend: flipping all but the sign makes them ascend
        return bits ^ ((bits >> 63) & _MOST)
    if x.dtype.kind in "mM":
        return x.view(np.int64) - np.int64(1)  # NaT, the smallest, becomes the largest
    if x.dtype == np.uint64:
        return x.astype(np.uint64).view(np.int64) ^ ~_MOST
    return x.astype(np.int64, copy=False)


_MOST = np.int64(2**63 - 1)
