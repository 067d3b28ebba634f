"""The batches of one window: planned on lengths alone, made one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
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

    def count(self, drop_last: bool) -> int:
        """The number of batches; those that are short do not count with `drop_last`."""
        return len(self) - int(np.count_nonzero(self.short)) * drop_last

    def take(self, chosen: Array) -> Spans:
        return Spans(self.starts[chosen], self.stops[chosen], self.short[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class SpanSizes:
    """The size of each span."""

    rows: Array
    tokens: Array
    cells: Array
    begun: Array

    def __getitem__(self, number: int) -> BatchSize:
        sizes = (self.rows, self.tokens, self.cells, self.begun)
        return BatchSize(*(int(each[number]) for each in sizes))

    def total(self, chosen: Array) -> BatchSize:
        sizes = (self.rows, self.tokens, self.cells, self.begun)
        return BatchSize(*(int(each[chosen].sum()) for each in sizes))

    def take(self, chosen: Array) -> SpanSizes:
        return SpanSizes(self.rows[chosen], self.tokens[chosen], self.cells[chosen], self.begun[chosen])


def kept_spans(spans: Spans, sizes: SpanSizes, drop_last: bool) -> tuple[Spans, SpanSizes, BatchSize]:
    """The spans that make batches, their sizes, and the size of the short ones, which `drop_last` leaves out."""
    if not drop_last:
        return spans, sizes, NO_ROWS
    kept = np.flatnonzero(~spans.short)
    return spans.take(kept), sizes.take(kept), sizes.total(spans.short)


def padded_sizes(spans: Spans, lengths: Array | None, multiple_of: int = 1) -> SpanSizes:
    """The sizes of batches of rows with these lengths, padded to the longest, or the next multiple."""
    rows = spans.stops - spans.starts
    if lengths is None:
        return SpanSizes(rows, np.zeros_like(rows), np.zeros_like(rows), rows)
    ends = kernels.lengths_to_offsets(lengths)
    longest = kernels.segment_reduce("max", lengths, rows) if len(rows) else rows
    width = -(-longest // multiple_of) * multiple_of
    return SpanSizes(rows, ends[spans.stops] - ends[spans.starts], rows * width, rows)


class NoBatches:
    """The batches of a window without rows."""

    dropped = NO_ROWS
    skipped = 0
    bad: Sequence[BadRow] = ()

    def __len__(self) -> int:
        return 0

    def size(self, number: int) -> BatchSize:
        raise IndexError(number)

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        raise IndexError(number)

    def make_all(self, numbers: Sequence[int], memories: Sequence[BatchMemory | None]) -> list[Record]:
        return make_each(self, numbers, memories)

    def empty(self) -> Record:
        raise IndexError("a window without records has no tensors")

    def numbers(self, number: int) -> Array:
        raise IndexError(number)

    def part(self, number: int, chosen: Array) -> Record:
        raise IndexError(number)
