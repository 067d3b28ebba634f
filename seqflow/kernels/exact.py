"""Find the values that a conversion to another dtype has changed."""

from contextlib import suppress
from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array

EXACT = 2.0**53
"""Above this, float64 skips integers, and NumPy compares int64 with it as floats; Python compares exactly."""


def changed(values: Array, made: Array) -> Array:
    """Return bool[…]: whether a conversion has changed each value. A float may be rounded, but must stay finite."""
    if values.dtype == made.dtype:
        return np.zeros(values.shape, np.bool_)
    kinds = values.dtype.kind + made.dtype.kind
    if kinds == "ff":
        return np.asarray(np.isfinite(values) != np.isfinite(made))
    with np.errstate(all="ignore"):
        if set(kinds) <= set("biuf"):
            one, other = values.astype(np.float64), made.astype(np.float64)
            wrong = np.asarray(one != other)
            large = np.maximum(np.abs(one), np.abs(other)) >= EXACT
            wrong[large] = values[large].astype(object) != made[large].astype(object)
            return wrong
        if kinds[0] != kinds[1]:
            return np.ones(values.shape, np.bool_)
        again = as_times(made, values.dtype) if kinds[0] in "mM" else made.astype(values.dtype)
        wrong = np.asarray(again != values)
    # NaT does not equal itself, but a NaT that stays NaT has not changed
    return wrong & ~(np.isnat(values) & np.isnat(made)) if kinds[0] in "mM" else wrong


def converted(values: Array, dtype: Any) -> tuple[Array, Array]:
    """Return the values in a dtype, and a mask of the values that this changes."""
    with np.errstate(all="ignore"):
        made = as_times(values, np.dtype(dtype))
    return made, changed(values, made)


def as_times(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return the values in a dtype; a time that it cannot hold is NaT, or wraps around with NumPy before 2.5."""
    try:
        return values.astype(dtype, copy=False)
    except OverflowError:
        if values.dtype.kind not in "mM":  # Python's integers
            raise
        made = np.full(values.shape, "NaT", dtype)
        for place in np.ndindex(values.shape):
            with suppress(OverflowError):
                made[place] = values[place].astype(dtype)
        return made
