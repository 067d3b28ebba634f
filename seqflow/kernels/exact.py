"""Finds the values that a conversion to another dtype has changed."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array

EXACT = 2.0**53
"""Above it float64 skips integers, and a float compared with an integer has to be compared in Python."""


def changed(values: Array, made: Array) -> Array:
    """bool[…]: whether a conversion has made another value of each. A float may be rounded, but stays finite."""
    if values.dtype == made.dtype:
        return np.zeros(values.shape, np.bool_)
    kinds = values.dtype.kind + made.dtype.kind
    if kinds == "ff":
        return np.asarray(np.isfinite(values) != np.isfinite(made))
    numbers = set(kinds) <= set("biuf")
    if not numbers and kinds[0] != kinds[1]:
        return np.ones(values.shape, np.bool_)
    with np.errstate(all="ignore"):
        wrong = np.asarray(made.astype(values.dtype) != values)
    if numbers:
        # NumPy compares int64 with float64 as floats, and wraps -1 to 255 and back
        wrong |= (made < 0) != (values < 0)
        large = np.abs(made.astype(np.float64)) >= EXACT
        wrong[large] = values[large].astype(object) != made[large].astype(object)
    elif kinds[0] in "mM":
        wrong &= ~(np.isnat(values) & np.isnat(made))
    return wrong


def converted(values: Array, dtype: Any) -> tuple[Array, Array]:
    """The values in a dtype, and which of them that changes."""
    with np.errstate(all="ignore"):
        made = values.astype(dtype, copy=False)
    return made, changed(values, made)
