"""Provenance: the blocks that the rows of a batch came from, for error messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqflow.errors import LodError, NetError, OpError, OpMemoryError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.providers import Block
from seqflow.record import Record, slice_rows

RowNumbers = range | np.ndarray[Any, np.dtype[np.int64]]

ROW_ERRORS = (LodError, OpError, ShapeError)
"""Errors that the data of a row can cause."""
NET_ERRORS: tuple[type[Exception], ...] = (NetError, OpTypeError, OpMemoryError)
"""Errors of the net itself, or of the machine, whatever the rows."""
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class RowRange:
    """Consecutive rows from one block."""

    block: Block
    rows: int
    numbers: RowNumbers | None
    """Their row numbers in the block; None where `prepare` made new rows."""

    def row(self, number: int) -> str:
        """The place of row `number` of the range, as text."""
        place = f"{self.block.origin}, block {self.block.index}"
        return place if self.numbers is None else f"{place}, row {self.numbers[number]}"

    def part(self, start: int, stop: int) -> str:
        """The place of rows start … stop - 1 of the range, as text."""
        if self.numbers is None or stop - start == 1:
            return self.row(start)
        first, last = self.numbers[start], self.numbers[stop - 1]
        return f"{self.block.origin}, block {self.block.index}, rows {first} to {last}"


def describe_rows(ranges: Sequence[RowRange], rows: Array) -> str:
    """The places of rows that are counted over the ranges in turn, as text: runs of a block together."""
    ends = np.cumsum([one.rows for one in ranges])
    numbers = np.unique(rows)
    found: list[str] = []
    for at in np.unique(np.searchsorted(ends, numbers, side="right")).tolist():
        start = int(ends[at]) - ranges[at].rows
        inside = numbers[(numbers >= start) & (numbers < ends[at])] - start
        together = len(inside) == inside[-1] - inside[0] + 1
        pieces = [(inside[0], inside[-1] + 1)] if together else [(row, row + 1) for row in inside]
        found += [ranges[at].part(int(low), int(high)) for low, high in pieces]
        if len(found) > _SHOWN and ranges[at].numbers is not None and not together:
            break
    found = list(dict.fromkeys(found))
    more = len(found) - _SHOWN
    return "; ".join(found[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def blames_rows(error: Exception) -> bool:
    """Whether the data of a row may have caused the error."""
    return isinstance(error, ROW_ERRORS) and not isinstance(error, NET_ERRORS)


def first_failing_row(run: Callable[[Record], object], record: Record, error: Exception) -> int | None:
    """The first row of a record that fails when run alone; None where no single row is the cause."""
    if not blames_rows(error):
        return None
    return first_failing(lambda start, stop: _fails(run, slice_rows(record, start, stop)), record.num_rows)


def first_failing(fails: Callable[[int, int], bool], count: int) -> int | None:
    """The first of `count` rows, which fail together, that `fails(start, stop)` alone; None where none does.

    The rows are halved again and again, which costs no more than running them twice.
    """
    if not count or fails(0, 0):
        return None
    start, stop = 0, count
    while stop - start > 1:
        middle = (start + stop) // 2
        if fails(start, middle):
            stop = middle
        elif fails(middle, stop):
            start = middle
        else:
            return None
    return start


def _fails(run: Callable[[Record], object], record: Record) -> bool:
    try:
        run(record)
    except Exception:  # what matters is the error that is known already
        return True
    return False
