"""Conversion of strings between two forms: uint8 values with lengths, and Arrow's arrays of strings."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.arguments import shown
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array

Errors = Literal["strict", "replace"]
"""Treatment of bytes that are not UTF-8: raise OpError, or put U+FFFD in their place."""

NormalForm = Literal["NFC", "NFKC", "NFD", "NFKD"]
LARGEST_GROWTH = {"NFC": 3, "NFD": 3, "NFKC": 11, "NFKD": 11}
"""Most bytes that one becomes in a normal form: Unicode's annex 15."""


def to_strings(
    data: Array,
    lengths: Array,
    errors: Errors = "strict",
    place: Callable[[int], str] = "sequence {}".format,
) -> Any:
    """Return a `pyarrow.LargeStringArray` over the bytes of `data`, which are checked to be UTF-8.

    `place` returns the words for a sequence in an error, given its number.
    """
    import pyarrow as pa

    offsets = kernels.lengths_to_offsets(lengths)
    data = np.ascontiguousarray(data)
    strings = pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(data))
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        if errors == "strict":
            raise _not_utf8(data, offsets, place) from None
        texts = [text.decode(errors="replace") for text in _pieces(data, offsets)]
        return pa.array(texts, pa.large_string())
    return strings


def from_strings(strings: Any) -> tuple[Array, Array]:
    """Return the bytes of an array of large strings, in Arrow's own memory, and the int64 length of each."""
    _, offset_buffer, value_buffer = strings.buffers()
    if not len(strings):
        return np.empty(0, np.uint8), np.empty(0, np.int64)
    first = strings.offset
    offsets = np.frombuffer(offset_buffer, np.int64)[first : first + len(strings) + 1]
    if offsets[0] == offsets[-1]:
        return np.empty(0, np.uint8), np.zeros(len(strings), np.int64)
    return np.frombuffer(value_buffer, np.uint8)[offsets[0] : offsets[-1]], np.diff(offsets)


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a regular expression of Python; raise OpError when it is none."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError) as error:
        reason = str(error)
    except RecursionError:
        reason = "its parentheses are nested too deeply"
    raise OpError(f"pattern is {shown(pattern)}: {reason}")


def join(texts: list[str]) -> tuple[Array, Array]:
    """Return Python strings as UTF-8 bytes, and the length of each."""
    pieces = [text.encode() for text in texts]
    sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
    return np.frombuffer(b"".join(pieces), np.uint8), sizes


def _pieces(data: Array, offsets: Array) -> Iterator[bytes]:
    flat, ends = data.tobytes(), offsets.tolist()
    return (flat[start:end] for start, end in pairwise(ends))


def _not_utf8(data: Array, offsets: Array, place: Callable[[int], str]) -> OpError:
    """Return the error for the first sequence that is not UTF-8."""
    for i, text in enumerate(_pieces(data, offsets)):
        try:
            text.decode()
        except UnicodeDecodeError as error:
            byte = text[error.start]
            return OpError(
                f"{place(i)} is not UTF-8: byte {error.start} is 0x{byte:02x} ({error.reason})\n"
                "  errors='replace' puts U+FFFD in the place of such bytes"
            )
    return OpError("data is not UTF-8")  # only if another thread has written to the bytes since Arrow looked
