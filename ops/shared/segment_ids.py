"""Ids of segments that count up from 0 without gaps."""

import numpy as np

from seqflow.errors import OpError
from seqflow.kernels.arrays import Array


def sorted_lengths(ids: Array) -> Array:
    """How often each id occurs; OpError unless they are 0, 1, 2 … in this order, each at least once."""
    signed = ids.astype(np.int64)  # a copy: NumPy reads it more than once
    steps = np.diff(signed, prepend=-1)
    wrong = (steps != 0) & (steps != 1)
    wrong[:1] |= steps[:1] != 1
    if wrong.any():
        place = int(np.argmax(wrong))
        expected = f"{signed[place - 1]} as before or one more" if place else "0"
        raise OpError(f"ids[{place}] = {ids[place]}, expected {expected}: sorted ids without gaps")
    return np.bincount(signed)
