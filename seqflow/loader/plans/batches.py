"""The batches of one window: bounds and sizes planned on lengths at once, batches made one by one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.selection import Pieces, RowSelection
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import BadRow, Record
from seqflow.record.batch_memory import BatchMemory


class BatchSize(NamedTuple):
    """What a batch holds, known before it is made."""

    rows: int
    """Rows of the batch: rows of the window, or packed rows."""
    tokens: int
    """Elements of the planned column in it."""
    cells: int
    """Elements when dense: of packed rows, or of rows padded to the longest."""
    begun: int
    """Rows of the window that begin in it: one that is cut into pieces begins in the batch of its first."""


NO_ROWS = BatchSize(0, 0, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class BatchBounds:
    """First item of each batch, and the item behind its last; the items are rows, or packed rows.

    `short` marks those that hold less than their plan allows because the window ended.
    """

    starts: Array
    stops: Array
    short: Array

    @staticmethod
    def until(stops: Array, last_is_short: bool) -> BatchBounds:
        """Batches that follow each other from item 0 on."""
        short = np.zeros(len(stops), bool)
        short[-1:] = last_is_short
        return BatchBounds(np.concatenate([[0], stops[:-1]]).astype(np.int64)[: len(stops)], stops, short)

    def __len__(self) -> int:
        return len(self.starts)

    def count(self, drop_last: bool) -> int:
        """The number of batches; those that are short do not count with `drop_last`."""
        return len(self) - int(np.count_nonzero(self.short)) * drop_last

    def take(self, chosen: Array) -> BatchBounds:
        return BatchBounds(self.starts[chosen], self.stops[chosen], self.short[chosen])


def kept_batches(bounds: BatchBounds, sizes: Array, drop_last: bool) -> tuple[BatchBounds, Array, BatchSize]:
    """The batches that are kept, their sizes, and what the short ones hold, which `drop_last` leaves out."""
    if not drop_last:
        return bounds, sizes, NO_ROWS
    kept = np.flatnonzero(~bounds.short)
    return bounds.take(kept), sizes[kept], BatchSize(*sizes[bounds.short].sum(axis=0).tolist())


def padded_sizes(bounds: BatchBounds, lengths: Array | None, multiple_of: int = 1) -> Array:
    """int64[batches, 4]: a BatchSize for each, of rows of these lengths, padded to the longest, or a multiple."""
    rows = bounds.stops - bounds.starts
    tokens = cells = np.zeros_like(rows)
    if lengths is not None and len(rows):
        ends = kernels.lengths_to_offsets(lengths)
        tokens = ends[bounds.stops] - ends[bounds.starts]
        width = -(-kernels.segment_reduce("max", lengths, rows) // multiple_of) * multiple_of
        cells = rows * width
    return np.stack([rows, tokens, cells, rows], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class RowBatches:
    """Batches of rows, or of pieces of rows, of a window: planned on lengths at once, made one by one."""

    rows: WindowRows
    bounds: BatchBounds
    sizes: Array
    """int64[batches, 4]: a BatchSize for each."""
    dropped: BatchSize
    """What `drop_last` leaves out."""
    skipped: int = 0
    """Rows of the window that filters by length leave out."""
    bad: Sequence[BadRow] = ()
    """Rows that are in no batch because they cannot be used, numbered over the records of the window, before it is
    shuffled. The loader applies its policy to them."""
    pieces: Pieces | None = None
    """The rows batch after batch; None where these are all rows in their order."""
    cut: Collection[str] = ()
    """The lengths of the columns that are cut, where some rows are not whole."""
    planned: Pieces | None = None
    """The rows batch after batch, with the sizes that they were planned on; None where no lengths were."""

    def __len__(self) -> int:
        return len(self.bounds)

    def size(self, number: int) -> BatchSize:
        return BatchSize(*self.sizes[number].tolist())

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        """The batch, in `memory` where that is given, until it is used again."""
        return self._take(self._rows_of(number), memory)

    def make_all(self, numbers: Sequence[int], memories: Sequence[BatchMemory | None]) -> list[Record]:
        """Several batches, each in a memory of its own."""
        if self.cut:
            return list(map(self.make, numbers, memories))
        found = map(self._rows_of, numbers)
        rows = list(found) if self.pieces is None else [self.pieces.rows[of] for of in found]
        return self.rows.take_all(rows, memories)

    def part(self, number: int, chosen: Array) -> Record:
        """A batch made of some of its rows or pieces alone, by their places in `numbers`, in increasing order."""
        return self._take(int(self.bounds.starts[number]) + chosen)

    def empty(self) -> Record:
        """A batch without rows, with the tensors that all batches have."""
        return self._take(slice(0, 0))

    def numbers(self, number: int) -> Array:
        """The rows that a batch, or its pieces, are made of: their numbers over the window's records."""
        chosen = self._rows_of(number)
        return self.rows.numbers(chosen if self.pieces is None else self.pieces.rows[chosen])

    def dealt(self, rows: Array, counts: Array) -> RowBatches:
        """Batches of so many rows each, of these, by their places in the batches."""
        assert self.planned is not None
        pieces = self.planned.take(rows)
        bounds = BatchBounds.until(np.cumsum(counts), False)
        sizes = padded_sizes(bounds, pieces.sizes)
        return replace(self, bounds=bounds, sizes=sizes, pieces=pieces, planned=pieces)

    def _rows_of(self, number: int) -> slice:
        return slice(self.bounds.starts.item(number), self.bounds.stops.item(number))

    def _take(self, chosen: slice | Array, memory: BatchMemory | None = None) -> Record:
        if self.pieces is None:
            return self.rows.take(chosen, memory)
        pieces = self.pieces.take(chosen)
        if self.cut:
            return self.rows.take_pieces(pieces, self.cut, memory)
        return self.rows.take(pieces.rows, memory)


def row_batches(
    rows: WindowRows,
    selection: RowSelection,
    bounds: BatchBounds,
    sizes: Array,
    drop_last: bool,
    bad: Sequence[BadRow] = (),
    cut: Collection[str] = (),
) -> RowBatches:
    """Batches of selected rows. `cut` are the lengths of what is cut where a row is not whole."""
    pieces = None if selection.whole else selection.pieces
    lengths = cut if selection.cut else ()
    if selection.cut:
        sizes[:, -1] = selection.pieces.begun(bounds.starts, bounds.stops)
    kept = kept_batches(bounds, sizes, drop_last)
    return RowBatches(rows, *kept, selection.skipped, bad, pieces, lengths, selection.pieces)


def no_batches() -> RowBatches:
    """Those of a window without records."""
    bounds = BatchBounds.until(np.zeros(0, np.int64), False)
    return RowBatches(WindowRows(()), bounds, padded_sizes(bounds, None), NO_ROWS)
