"""Faults in lines of text, with what was found and what was expected."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from seqflow.record.record import Tensor

_PIECE = 1 << 16


class Malformed(NamedTuple):
    """A malformed line: the row in its place, the position of the fault in the block's bytes, and the reason."""

    row: int
    position: int
    column: str
    reason: str


class Fault(NamedTuple):
    """The first fault of a row: `data[start:stop]` of the block's bytes is not what is expected."""

    row: int
    start: int
    stop: int
    column: str
    expected: str


class Faults:
    """Faults of a block, collected column by column; each row is reported once, with the first fault in its line."""

    def __init__(self) -> None:
        self._found: list[tuple[Tensor, Tensor, Tensor]] = []
        self._expected: list[tuple[str, str]] = []

    def add(self, rows: Tensor, starts: Tensor, stops: Tensor, column: str, expected: str) -> None:
        """Add places with their rows, and what the column expects there."""
        self._found.append((rows, starts, stops))
        self._expected.append((column, expected))

    def rows(self) -> Tensor:
        """Return the row of each fault."""
        return np.concatenate([rows for rows, *_ in self._found])

    def first(self) -> Iterator[Fault]:
        """Yield the first fault of each row that has any; of several at one place, the one that was added first."""
        rows, starts, stops = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
        kinds = np.repeat(np.arange(len(self._found)), [len(rows) for rows, *_ in self._found])
        order = np.lexsort((starts, rows))  # stable, so that faults at one place stay in order
        _, first = np.unique(rows[order], return_index=True)
        for at in order[first].tolist():
            yield Fault(int(rows[at]), int(starts[at]), int(stops[at]), *self._expected[kinds[at]])


def holds(data: bytes | Tensor | pa.Buffer, letters: bytes) -> bool:
    """Return whether one of some letters is in the data."""
    # Searching bytes takes a third of the time of comparing an array; small pieces stay in the cache.
    pieces = (bytes(data[start : start + _PIECE]) for start in range(0, len(data), _PIECE))
    return any(letter in piece for piece in pieces for letter in letters)


def excerpt(text: bytes) -> str:
    """Return some bytes of a line for a message, in quotes, cut to 40 letters."""
    return repr(text[:40].decode(errors="replace") + "…" * (len(text) > 40))
