"""Find the lines of a text, and count letters in them."""

import numpy as np

from seqflow.kernels.arrays import Array, rows
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import BYTES

__all__ = ["split_lines"]

_NEWLINE = 10


@kernel(data=BYTES, blanks=BYTES, letters=BYTES)
def split_lines(data: Array, blanks: Array, letters: Array) -> tuple[Array, Array, Array]:
    """Return the lines that are not blank: uint8 data[n] -> int64 starts[R], int64 stops[R], int64 counts[L, R].

    Each line is `data[start:stop]`, without its newline and without the letters of uint8 `blanks` at its start and
    end. Data after the last newline are ignored. `counts` has the number of each of uint8 letters[L] in each line.
    """
    data, blanks, letters = _bytes(data, "data"), _bytes(blanks, "blanks"), _bytes(letters, "letters")
    stops = np.flatnonzero(data == _NEWLINE)
    starts = np.concatenate([stops[:0], [0], stops[:-1] + 1]) if len(stops) else stops.copy()
    is_blank = np.isin(data, blanks) & (data != _NEWLINE)
    others = np.flatnonzero(~is_blank)
    before = np.searchsorted(others, stops) - 1
    starts = others[np.searchsorted(others, starts)]
    stops = np.where(before < 0, starts, np.maximum(others[before] + 1, starts))
    kept = starts < stops
    starts, stops = starts[kept], stops[kept]
    counts = np.empty((len(letters), len(starts)), np.int64)
    for at, letter in enumerate(letters):
        places = np.flatnonzero(data == letter)
        counts[at] = np.searchsorted(places, stops) - np.searchsorted(places, starts)
    return starts, stops, counts


def _bytes(array: Array, name: str) -> Array:
    array = rows(array, name)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise TypeError(f"{name} is {array.dtype} with {array.ndim} dimensions, expected one of uint8")
    return array
