"""Rows that a net refuses: found by halving their batch, which is made again without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seqflow.loader.plans.batches import BatchSize, WindowBatches
from seqflow.loader.plans.packed import PackedBatches
from seqflow.loader.plans.window_rows import WindowRows, row_sizes
from seqflow.loader.run.bad_rows import BadRowHandler, refused_row
from seqflow.loader.run.provenance import RowRange, blames_rows, by_halves, first_failing
from seqflow.loader.run.windows import WindowMaker
from seqflow.loader.schedule.streams import WindowAddress
from seqflow.record import BadRow, Record


class Accepted(NamedTuple):
    """What a net makes of a batch without the rows that it refuses."""

    size: BatchSize
    batch: Record
    refused: tuple[BadRow, ...]
    """Numbered over the records of the window."""


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """A batch on which a net has failed."""

    net: Callable[[Record], Record]
    batches: WindowBatches
    number: int
    """Its number among the planned batches."""
    count: int
    """How many rows, or pieces of packed rows, it is made of."""

    def first_failing(self, error: Exception) -> int | None:
        """The first row or piece that fails alone; None where no single one is the cause."""
        return first_failing(self._run, self.count, error)

    def accepted(self, error: Exception, lengths: str | None) -> Accepted | None:
        """The batch without all rows or pieces that fail alone; None where that is no cure.

        `lengths` are those that batches are planned on.
        """
        found = by_halves(self._run, 0, self.count, failed=error)
        failing = {rows.start: failed for rows, failed in found if isinstance(failed, Exception)}
        if not failing or (len(failing) == self.count and self._fails_empty()):
            return None
        chosen = np.setdiff1d(np.arange(self.count), list(failing))
        part = self.batches.part(self.number, chosen)
        try:
            batch = self.net(part)
        except Exception as left:
            if blames_rows(left):
                return None
            raise
        numbers = self.batches.numbers(self.number)
        refused = [refused_row(int(numbers[at]), part, failed) for at, failed in failing.items()]
        return Accepted(self._size(part, lengths), batch, tuple(refused))

    def _run(self, start: int, stop: int) -> Record:
        return self.net(self.batches.part(self.number, np.arange(start, stop)))

    def _fails_empty(self) -> bool:
        try:
            self._run(0, 0)
        except Exception:
            return True
        return False

    def _size(self, part: Record, lengths: str | None) -> BatchSize:
        """The size of a batch of which only a part is left."""
        planned = self.batches.size(self.number)
        if isinstance(self.batches, PackedBatches):
            tokens = int(part["piece_lengths"].sum())
        else:
            tokens = 0 if lengths is None else int(row_sizes(WindowRows((part,)), lengths).sum())
        cells = planned.cells * part.num_rows // max(1, planned.rows)
        return BatchSize(part.num_rows, tokens, cells, planned.begun)


class RefusedRows:
    """The refused rows of windows whose batches have not all been handed out."""

    def __init__(self, maker: WindowMaker, handler: BadRowHandler) -> None:
        self._maker, self._handler = maker, handler
        self._windows: dict[WindowAddress, tuple[Sequence[RowRange], dict[int, BadRow]]] = {}

    def __bool__(self) -> bool:
        return bool(self._windows)

    def add(self, window: WindowAddress, ranges: Sequence[RowRange], refused: Sequence[BadRow]) -> None:
        """Rows of a window. One that is cut into several pieces counts once."""
        if refused:
            rows = self._windows.setdefault(window, (ranges, {}))[1]
            for bad in refused:
                rows.setdefault(bad.row, bad)

    def report(self, but: WindowAddress | None = None) -> int:
        """Count, and keep, the rows of all windows but one; how many they are.

        A window's rows are reported together, since their blocks are read again.
        """
        count = 0
        for window in [window for window in self._windows if window != but]:
            ranges, rows = self._windows.pop(window)
            count += len(rows)
            if not self._handler.keeps_rows:
                self._handler.count += len(rows)
                continue
            for rejected in self._maker.rejected([rows[row] for row in sorted(rows)], ranges):
                self._handler.add(rejected)
        return count
