"""The batches of one window: planned on lengths alone, made one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.record import Record
from seqflow.record.batch_memory import BatchMemory

if TYPE_CHECKING:
    from seqflow.loader.window_rows import WindowRows


class BatchSize(NamedTuple):
    """What a batch holds, known before it is made."""

    rows: int
    """Rows of the batch: rows of the window, or packed rows."""
    tokens: int
    """Elements of the planned column in it."""
    cells: int
    """Elements when dense: of packed rows, or of rows padded to the longest."""


class WindowBatches(Protocol):
    """The batches of one window: planned on lengths at once, made one by one, in any order."""

    def __len__(self) -> int: ...

    @property
    def dropped(self) -> BatchSize:
        """What `drop_last` leaves out."""
        ...

    def size(self, number: int) -> BatchSize: ...

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        """The batch, in `memory` where that is given, until it is used again."""
        ...

    def empty(self) -> Record:
        """A batch without rows, with the tensors that all batches have."""
        ...

    def numbers(self, number: int, row: int | None = None) -> Array:
        """The rows that a batch, or one of its rows, is made of: their numbers over the window's records in turn."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Batches as spans of consecutive items (rows, or packed rows): the first, and the one after the last.

    `short` marks those that hold less than their plan allows because the window ended.
    """

    starts: Array
    stops: Array
    short: Array

    @staticmethod
    def until(stops: Array, last_is_short: bool) -> Spans:
        """Spans that follow each other from item 0 on."""
        short = np.zeros(len(stops), bool)
        short[-1:] = last_is_short
        return Spans(np.concatenate([[0], stops[:-1]]).astype(np.int64)[: len(stops)], stops, short)

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, chosen: Array) -> Spans:
        return Spans(self.starts[chosen], self.stops[chosen], self.short[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class SpanSizes:
    """The size of each span."""

    rows: Array
    tokens: Array
    cells: Array

    def __getitem__(self, number: int) -> BatchSize:
        return BatchSize(int(self.rows[number]), int(self.tokens[number]), int(self.cells[number]))

    def total(self, chosen: Array) -> BatchSize:
        return BatchSize(
            int(self.rows[chosen].sum()), int(self.tokens[chosen].sum()), int(self.cells[chosen].sum())
        )

    def take(self, chosen: Array) -> SpanSizes:
        return SpanSizes(self.rows[chosen], self.tokens[chosen], self.cells[chosen])


def padded_sizes(spans: Spans, lengths: Array | None, multiple_of: int = 1) -> SpanSizes:
    """The sizes of batches of rows with these lengths, padded to the longest, or the next multiple."""
    rows = spans.stops - spans.starts
    if lengths is None:
        return SpanSizes(rows, np.zeros_like(rows), np.zeros_like(rows))
    ends = kernels.lengths_to_offsets(lengths)
    longest = kernels.segment_reduce("max", lengths, rows) if len(rows) else rows
    width = -(-longest // multiple_of) * multiple_of
    return SpanSizes(rows, ends[spans.stops] - ends[spans.starts], rows * width)


@dataclass(frozen=True, slots=True, eq=False)
class RowBatches:
    """Batches of rows of a window. `order` has the rows batch after batch; None where they follow each other."""

    rows: WindowRows
    spans: Spans
    sizes: SpanSizes
    dropped: BatchSize
    order: Array | None = None

    def __len__(self) -> int:
        return len(self.spans)

    def size(self, number: int) -> BatchSize:
        return self.sizes[number]

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        return self._take(slice(int(self.spans.starts[number]), int(self.spans.stops[number])), memory)

    def empty(self) -> Record:
        return self._take(slice(0, 0))

    def numbers(self, number: int, row: int | None = None) -> Array:
        start, stop = int(self.spans.starts[number]), int(self.spans.stops[number])
        chosen = slice(start, stop) if row is None else slice(start + row, start + row + 1)
        return self.rows.numbers(chosen if self.order is None else self.order[chosen])

    def _take(self, chosen: slice, memory: BatchMemory | None = None) -> Record:
        return self.rows.take(chosen if self.order is None else self.order[chosen], memory)


class NoBatches:
    """The batches of a window without rows."""

    dropped = BatchSize(0, 0, 0)

    def __len__(self) -> int:
        return 0

    def size(self, number: int) -> BatchSize:
        raise IndexError(number)

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        raise IndexError(number)

    def empty(self) -> Record:
        raise IndexError("a window without records has no tensors")

    def numbers(self, number: int, row: int | None = None) -> Array:
        raise IndexError(number)
