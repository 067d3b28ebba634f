"""Forms of arrays for native kernels: C-contiguous, aligned, in native byte order, of certain dtypes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array, counts, integers, rows


@dataclass(frozen=True)
class Form:
    """Form of one argument of a native kernel.

    dtypes: the kinds and sizes of its elements, as in `dtype.str`: "f4" for float32, "U" for strings of any size.
    bring: brings an argument into this form without changing its values, or raises an error.
    """

    dtypes: tuple[str, ...]
    bring: Callable[[Any, str], Array]

    def takes(self, array: Array) -> bool:
        """Return whether the dtype of the array is one of `dtypes`."""
        kind, size = array.dtype.kind, array.dtype.itemsize
        return (kind in self.dtypes or f"{kind}{size}" in self.dtypes) and not array.dtype.hasobject


_NUMBERS = ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
_TIMES = ("M", "m")

COUNTS = Form(("i4", "i8"), counts)
"""One axis of integers: lengths, ids, starts. Other integer dtypes become int64."""

INTEGERS = Form(("i4", "i8"), integers)
"""Integers with any number of axes."""

BYTES = Form(("u1",), rows)
"""Bytes: of strings one after another, or of rows of quantised numbers."""

FLOATS = Form(("f4", "f8"), rows)
"""Rows of floats for matrix products."""

NUMBERS = Form(_NUMBERS, rows)
"""Rows of numbers to compute with."""

ORDERED = Form((*_NUMBERS, *_TIMES), rows)
"""Rows of numbers and times to sort."""

ELEMENTS = Form(
    (*_NUMBERS, *_TIMES, "c8", "S1", "S2", "S4", "S8", "U4", "U8"),
    lambda value, _: np.require(value, None, ["C", "A"]),
)
"""Elements to copy as integers of 1, 2, 4 or 8 bytes; also a single one, without axes."""

ROWS = Form(("b", "i", "u", "f", "c", *_TIMES, "S", "U", "V"), rows)
"""Rows to copy as bytes: of every dtype that does not hold Python objects."""
