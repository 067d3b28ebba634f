"""Faults in lines of text, with what was found and what was expected."""

from typing import NamedTuple

import pyarrow as pa

from seqflow.record.record import Tensor

_PIECE = 1 << 16


class Malformed(NamedTuple):
    """A malformed line: the row in its place, the position of the fault in the block's bytes, and the reason."""

    row: int
    position: int
    column: str
    reason: str


def holds(data: bytes | Tensor | pa.Buffer, letters: bytes) -> bool:
    """Return whether one of some letters is in the data."""
    # Searching bytes takes a third of the time of comparing an array; small pieces stay in the cache.
    pieces = (bytes(data[start : start + _PIECE]) for start in range(0, len(data), _PIECE))
    return any(letter in piece for piece in pieces for letter in letters)


def excerpt(text: bytes) -> str:
    """Return some bytes of a line for a message, in quotes, cut to 40 letters."""
    return repr(text[:40].decode(errors="replace") + "…" * (len(text) > 40))
