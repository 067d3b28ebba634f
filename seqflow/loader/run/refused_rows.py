"""Rows that a net refuses: found by halving their batch, which is made again without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from seqflow.loader.plans.packed_batches import PackedBatches
from seqflow.loader.plans.row_sizes import row_sizes
from seqflow.loader.plans.window_batches import BatchSize, WindowBatches
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.bad_rows import BadRowHandler, refused_row
from seqflow.loader.run.provenance import RowRange, blames_rows, first_failing
from seqflow.record import BadRow, Record

if TYPE_CHECKING:
    from seqflow.loader.run.recipe import Recipe


class Accepted(NamedTuple):
    """What a net makes of a batch without the rows that it refuses."""

    size: BatchSize
    batch: Record
    refused: tuple[BadRow, ...]
    """Numbered over the records of the window."""


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """A batch that a net has failed on, in parts: rows, or the pieces of packed rows."""

    net: Callable[[Record], Record]
    batches: WindowBatches
    number: int
    """Its number among the planned batches."""
    count: int
    """How many rows or pieces it is made of."""

    def first_failing(self) -> int | None:
        """The first row or piece that fails alone; None where no single one is the cause."""
        return first_failing(lambda start, stop: self._error(start, stop) is not None, self.count)

    def accepted(self, error: Exception, lengths: str | None) -> Accepted | None:
        """The batch without all rows or pieces that fail alone; None where that is no cure.

        `lengths` are those that batches are planned on.
        """
        failing = dict(self._failing(0, self.count, error))
        if not failing or (len(failing) == self.count and self._error(0, 0) is not None):
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
        refused = [refused_row(int(numbers[at]), part, found) for at, found in failing.items()]
        return Accepted(self._size(part, lengths), batch, tuple(refused))

    def _failing(self, start: int, stop: int, error: Exception) -> Iterator[tuple[int, Exception]]:
        """Of parts that fail together, each that fails alone, with its error."""
        if stop - start == 1:
            yield start, error
            return
        middle = (start + stop) // 2
        for low, high in ((start, middle), (middle, stop)):
            found = self._error(low, high) if low < high else None
            if found is not None:
                yield from self._failing(low, high, found)

    def _error(self, start: int, stop: int) -> Exception | None:
        try:
            self.net(self.batches.part(self.number, np.arange(start, stop)))
        except Exception as error:
            return error
        return None

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

    def __init__(self, recipe: Recipe, handler: BadRowHandler) -> None:
        self._recipe, self._handler = recipe, handler
        self._windows: dict[tuple[int, int], tuple[Sequence[RowRange], dict[int, BadRow]]] = {}

    def __bool__(self) -> bool:
        return bool(self._windows)

    def add(self, spot: tuple[int, int], ranges: Sequence[RowRange], refused: Sequence[BadRow]) -> None:
        """Rows of the window at a spot. One that is cut into several pieces counts once."""
        if refused:
            rows = self._windows.setdefault(spot, (ranges, {}))[1]
            for bad in refused:
                rows.setdefault(bad.row, bad)

    def report(self, but: tuple[int, int] | None = None) -> int:
        """Count, and keep, the rows of all windows but that at a spot; how many they are.

        A window's rows are reported together, since their blocks are read again.
        """
        count = 0
        for spot in [spot for spot in self._windows if spot != but]:
            ranges, rows = self._windows.pop(spot)
            count += len(rows)
            if not self._handler.keeps_rows:
                self._handler.count += len(rows)
                continue
            for rejected in self._recipe.rejected([rows[row] for row in sorted(rows)], ranges):
                self._handler.add(rejected)
        return count
