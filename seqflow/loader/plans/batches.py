"""The batches of one window: bounds and sizes planned on lengths at once, batches made one by one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

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


class WindowBatches(Protocol):
    """The batches of one window: planned on lengths at once, made one by one, in any order."""

    def __len__(self) -> int: ...

    @property
    def dropped(self) -> BatchSize:
        """What `drop_last` leaves out."""
        ...

    @property
    def skipped(self) -> int:
        """Rows of the window that filters by length leave out."""
        ...

    @property
    def bad(self) -> Sequence[BadRow]:
        """Rows that are in no batch because they cannot be used, numbered over the records of the window, before
        it is shuffled. The loader applies its policy to them."""
        ...

    def size(self, number: int) -> BatchSize: ...

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        """The batch, in `memory` where that is given, until it is used again."""
        ...

    def make_all(self, numbers: Sequence[int], memories: Sequence[BatchMemory | None]) -> list[Record]:
        """Several batches, each in a memory of its own."""
        ...

    def empty(self) -> Record:
        """A batch without rows, with the tensors that all batches have."""
        ...

    def numbers(self, number: int) -> Array:
        """The rows that a batch, or its pieces, are made of: their numbers over the window's records."""
        ...

    def part(self, number: int, chosen: Array) -> Record:
        """A batch made of some of these rows or pieces alone, by their places in `numbers`, in increasing order."""
        ...


def make_each(
    batches: WindowBatches, numbers: Sequence[int], memories: Sequence[BatchMemory | None]
) -> list[Record]:
    """Several batches, one after another."""
    return [batches.make(number, memory) for number, memory in zip(numbers, memories, strict=True)]


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


@dataclass(frozen=True, slots=True, eq=False)
class BatchSizes:
    """The sizes of the batches of a window."""

    rows: Array
    tokens: Array
    cells: Array
    begun: Array

    def __getitem__(self, number: int) -> BatchSize:
        return BatchSize(
            self.rows.item(number), self.tokens.item(number), self.cells.item(number), self.begun.item(number)
        )

    def total(self, chosen: Array) -> BatchSize:
        sizes = (self.rows, self.tokens, self.cells, self.begun)
        return BatchSize(*(int(each[chosen].sum()) for each in sizes))

    def take(self, chosen: Array) -> BatchSizes:
        return BatchSizes(self.rows[chosen], self.tokens[chosen], self.cells[chosen], self.begun[chosen])


def kept_batches(
    bounds: BatchBounds, sizes: BatchSizes, drop_last: bool
) -> tuple[BatchBounds, BatchSizes, BatchSize]:
    """The batches that are kept, their sizes, and what the short ones hold, which `drop_last` leaves out."""
    if not drop_last:
        return bounds, sizes, NO_ROWS
    kept = np.flatnonzero(~bounds.short)
    return bounds.take(kept), sizes.take(kept), sizes.total(bounds.short)


def padded_sizes(bounds: BatchBounds, lengths: Array | None, multiple_of: int = 1) -> BatchSizes:
    """The sizes of batches of rows with these lengths, padded to the longest, or the next multiple."""
    rows = bounds.stops - bounds.starts
    if lengths is None:
        return BatchSizes(rows, np.zeros_like(rows), np.zeros_like(rows), rows)
    ends = kernels.lengths_to_offsets(lengths)
    longest = kernels.segment_reduce("max", lengths, rows) if len(rows) else rows
    width = -(-longest // multiple_of) * multiple_of
    return BatchSizes(rows, ends[bounds.stops] - ends[bounds.starts], rows * width, rows)


@dataclass(frozen=True, slots=True, eq=False)
class RowBatches:
    """Batches of rows, or of pieces of rows, of a window."""

    rows: WindowRows
    bounds: BatchBounds
    sizes: BatchSizes
    dropped: BatchSize
    skipped: int = 0
    bad: Sequence[BadRow] = ()
    pieces: Pieces | None = None
    """The rows batch after batch; None where these are all rows in their order."""
    cut: Collection[str] = ()
    """The lengths of the columns that are cut, where some rows are not whole."""

    def __len__(self) -> int:
        return len(self.bounds)

    def size(self, number: int) -> BatchSize:
        return self.sizes[number]

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        return self._take(self._rows_of(number), memory)

    def make_all(self, numbers: Sequence[int], memories: Sequence[BatchMemory | None]) -> list[Record]:
        if self.cut:
            return make_each(self, numbers, memories)
        found = map(self._rows_of, numbers)
        rows = list(found) if self.pieces is None else [self.pieces.rows[of] for of in found]
        return self.rows.take_all(rows, memories)

    def part(self, number: int, chosen: Array) -> Record:
        return self._take(int(self.bounds.starts[number]) + chosen)

    def empty(self) -> Record:
        return self._take(slice(0, 0))

    def numbers(self, number: int) -> Array:
        chosen = self._rows_of(number)
        return self.rows.numbers(chosen if self.pieces is None else self.pieces.rows[chosen])

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
    sizes: BatchSizes,
    drop_last: bool,
    bad: Sequence[BadRow] = (),
    cut: Collection[str] = (),
) -> RowBatches:
    """Batches of selected rows. `cut` are the lengths of what is cut where a row is not whole."""
    pieces = None if selection.whole else selection.pieces
    lengths = cut if selection.cut else ()
    if selection.cut:
        sizes = replace(sizes, begun=selection.pieces.begun(bounds.starts, bounds.stops))
    return RowBatches(rows, *kept_batches(bounds, sizes, drop_last), selection.skipped, bad, pieces, lengths)


def no_batches() -> RowBatches:
    """Those of a window without records."""
    bounds = BatchBounds.until(np.zeros(0, np.int64), False)
    return RowBatches(WindowRows(()), bounds, padded_sizes(bounds, None), NO_ROWS)
