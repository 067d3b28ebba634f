"""Conversion of strings between two forms: uint8 values with lengths, and Arrow's arrays of strings."""

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


def marked(strings: Any, pattern: str, replacement: str) -> tuple[Any, str]:
    """Replace each match of a regular expression (RE2), and return the mark that "{}" in `replacement` stands for.

    The mark is a noncharacter of Unicode that the strings do not have. Arrow itself never splits at the end of a
    match that may be empty, and does not tell where matches are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = from_strings(strings)[0].tobytes()
    mark = next((chr(c) for c in range(0xFDD0, 0xFDF0) if chr(c).encode() not in text), None)
    if mark is None:
        raise OpError(
            "data holds every noncharacter from U+FDD0 to U+FDEF, expected one to be free as a mark"
        )
    try:
        return pc.replace_substring_regex(
            strings, pattern=pattern, replacement=replacement.format(mark)
        ), mark
    except pa.ArrowInvalid as error:
        raise OpError(f"pattern is {shown(pattern)}: {error}") from None


def cut_at(strings: Any, pattern: str) -> list[list[str]]:
    """Return each string as what is before, in and after each match of a regular expression (RE2), by turns.

    A match of nothing does not cut.
    """
    import pyarrow.compute as pc

    parts = pc.split_pattern(*marked(strings, pattern, r"{0}\0{0}"))
    return [_without_empty_matches(of_text) for of_text in parts.to_pylist()]


def _without_empty_matches(parts: list[str]) -> list[str]:
    cuts = [i for i in range(1, len(parts), 2) if parts[i]]
    ends = zip([-1, *cuts], [*cuts, len(parts)], strict=True)
    pieces = ["".join(parts[start + 1 : end]) for start, end in ends]
    return [part for piece, cut in zip(pieces, cuts, strict=False) for part in (piece, parts[cut])] + pieces[
        -1:
    ]


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
