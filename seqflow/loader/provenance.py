"""Provenance: the blocks that the rows of a batch came from, for error messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seqflow.errors import LodError, NetError, OpError, OpTypeError, ShapeError
from seqflow.providers import Block
from seqflow.record import Record, slice_rows

RowNumbers = range | np.ndarray[Any, np.dtype[np.int64]]

ROW_ERRORS = (LodError, OpError, ShapeError)
"""Errors that the data of a row can cause."""
NET_ERRORS: tuple[type[Exception], ...] = (NetError, OpTypeError)
"""Errors of the net itself, whatever the rows."""
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


@dataclass(slots=True)
class Provenance:
    """The row ranges of the rows on their way from the source to a batch, in order.

    The thread that reads adds ranges at the end; the thread that makes batches reads them, and drops the first.
    """

    first: int = 0
    """The number of the first row that is kept."""
    ranges: deque[RowRange] = field(default_factory=deque)

    def add(self, row_range: RowRange) -> None:
        self.ranges.append(row_range)

    def forget_before(self, row: int) -> None:
        """Drop the ranges that end before a row."""
        while self.ranges and self.first + self.ranges[0].rows <= row:
            self.first += self.ranges.popleft().rows

    def describe(self, start: int, stop: int) -> list[str]:
        """The places of the rows start … stop - 1, one text per block."""
        found = []
        position = self.first
        for row_range in list(self.ranges):
            low, high = max(start, position), min(stop, position + row_range.rows)
            if low < high:
                found.append(row_range.part(low - position, high - position))
            position += row_range.rows
        return found


def describe_rows(provenance: Provenance, batch: Record, start: int, row: int | None) -> str:
    """The place of a batch, or of one row of it, whose first row is row `start` of the source.

    A packed batch has the numbers of its source rows itself.
    """
    if "pieces" in batch and "sources" in batch:
        part = batch if row is None else slice_rows(batch, row, row + 1)
        numbers = np.unique(part["sources"]).tolist()
        found = [place for number in numbers[:_SHOWN] for place in provenance.describe(number, number + 1)]
        count = len(numbers)
    else:
        found = (
            provenance.describe(start, start + batch.num_rows)
            if row is None
            else provenance.describe(start + row, start + row + 1)
        )
        count = len(found)
    more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
    return "; ".join(dict.fromkeys(found[:_SHOWN])) + more


def first_failing_row(run: Callable[[Record], object], record: Record, error: Exception) -> int | None:
    """The first row of a record that fails when run alone; None where no single row is the cause.

    The record is halved again and again, which costs no more than running it twice.
    """
    if (
        isinstance(error, NET_ERRORS)
        or not isinstance(error, ROW_ERRORS)
        or _fails(run, slice_rows(record, 0, 0))
    ):
        return None
    start, stop = 0, record.num_rows
    while stop - start > 1:
        middle = (start + stop) // 2
        if _fails(run, slice_rows(record, start, middle)):
            stop = middle
        elif _fails(run, slice_rows(record, middle, stop)):
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
