"""Addition at places that may repeat."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array


def add_at(out: Array, places: Any, values: Array) -> None:
    """Add values to `out` at places; float16 is added up in float32, and cast once."""
    wide = out.astype(np.float32) if out.dtype == np.float16 else out
    np.add.at(wide, places, values)  # not out[places] += values, which adds once where places repeat
    if wide is not out:
        with np.errstate(over="ignore"):
            out[...] = wide
