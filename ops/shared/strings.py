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

SPACES = "\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space as `str.split` knows it, as a class of a regular expression."""

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


_TAKEN = re.compile(r"[\x01-\x08]")  # what `\1` to `\7`, `\a` and `\b` are in a string


def check_escapes(**patterns: str | None) -> None:
    r"""Raise OpError where a string took the backslash of an escape, such as `\b` or `\1`: nothing would match.

    Texts by name: a regular expression, and what replaces its matches.
    """
    for name, pattern in patterns.items():
        if pattern is not None and (found := _TAKEN.search(pattern)):
            raise OpError(
                f"{name} is {shown(pattern)}: {found[0]!r} is a control character, expected an escape",
                advice=f"{name}=r'…' keeps backslashes, '…' needs two: r'\\b' is '\\\\b'",
            )


def find_matches(strings: Any, pattern: str, *, empty: bool = False) -> tuple[Array, Array, Array]:
    """Return where each match of a regular expression (RE2) starts and ends, and how many each string has.

    Places are bytes of all strings joined. Matches of nothing are left out, unless `empty` asks for them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    # Arrow gives no places of matches, so a mark is put before and after each: a noncharacter of Unicode, three bytes
    # long, that does not occur in the strings.
    text = from_strings(strings)[0].tobytes()
    mark = next((chr(c) for c in range(0xFDD0, 0xFDF0) if chr(c).encode() not in text), None)
    if mark is None:
        raise OpError(
            "data holds every noncharacter from U+FDD0 to U+FDEF, expected one to be free as a mark"
        )
    try:
        marked = pc.replace_substring_regex(strings, pattern, f"{mark}\\0{mark}")
    except pa.ArrowInvalid as error:
        reason = str(error).partition("Invalid regular expression: ")[2] or str(error)
        raise OpError(f"pattern is {shown(pattern)}: {reason}") from None
    first, second, third = np.frombuffer(mark.encode(), np.uint8)
    values, lengths = from_strings(marked)
    marks = np.flatnonzero((values[:-2] == first) & (values[1:-1] == second) & (values[2:] == third))
    counts = np.diff(np.searchsorted(marks, kernels.lengths_to_offsets(lengths))) // 2
    starts, ends = (marks - 3 * np.arange(len(marks))).reshape(-1, 2).T
    is_found = (starts < ends) | empty
    return starts[is_found], ends[is_found], kernels.segment_reduce("sum", is_found, counts)


def cut_at(offsets: Array, starts: Array, ends: Array, counts: Array) -> tuple[Array, Array, Array]:
    """Return where what lies between matches and in them starts and ends, in turn, and the number of both."""
    last = np.cumsum(2 * counts + 2) - 1
    first = last - 2 * counts - 1
    bounds = np.empty(2 * (len(counts) + len(starts)), np.int64)
    is_match = np.ones(len(bounds), bool)
    is_match[first] = is_match[last] = False
    bounds[first], bounds[last] = offsets[:-1], offsets[1:]
    bounds[is_match] = np.stack([starts, ends], axis=1).ravel()
    return np.delete(bounds, last), np.delete(bounds, first), 2 * counts + 1


def find_words(strings: Any, pattern: str, *, empty: bool = False) -> tuple[Array, Array, Array]:
    """Return where each text between matches starts and ends, unless it is empty, and how many each string has.

    Places are bytes of all strings joined. Matches of nothing do not cut, unless `empty` says so.
    """
    offsets = kernels.lengths_to_offsets(from_strings(strings)[1])
    starts, ends, counts = cut_at(offsets, *find_matches(strings, pattern, empty=empty))
    is_word = (kernels.lengths_to_positions(counts) % 2 == 0) & (starts < ends)
    return starts[is_word], ends[is_word], kernels.segment_reduce("sum", is_word, counts)


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
