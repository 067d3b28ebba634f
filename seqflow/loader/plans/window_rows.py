"""The prepared rows of one window, in the order in which they are used, and the sizes that they are planned on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.pad import Pad, Padding, TakenRows
from seqflow.loader.plans.selection import Pieces
from seqflow.record import Record, nbytes, slice_rows
from seqflow.record.batch_memory import BatchMemory
from seqflow.record.row_source import ChildRanges, RowSource


@dataclass(frozen=True, slots=True, eq=False)
class WindowRows:
    """The rows of some records, one record after another or in another order.

    `order[i]` is the number of row i, counted over the records in turn; None where it is i. The records are not
    joined: batches are gathered straight from them, with the columns of `pads` padded. Threads may share it.
    """

    records: Sequence[Record]
    order: Array | None = None
    pads: Mapping[str, Pad] = field(default_factory=dict)
    _source: RowSource | None = field(default=None, repr=False)
    _ranges: Mapping[str, ChildRanges] | None = field(default=None, repr=False)
    """For each lengths of the rows, where what they describe lies below each row, in order."""
    _padding: Padding | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if not self.records:
            return
        if self._source is None:
            object.__setattr__(self, "_source", RowSource(self.records))
        if self._ranges is None and not self._are_views:
            object.__setattr__(self, "_ranges", _ranges_in(self.order, self.source))
        if self.pads:
            object.__setattr__(self, "_padding", Padding(self.source, self.pads))

    @property
    def _are_views(self) -> bool:
        """Whether consecutive rows are taken as views of the records."""
        return self.order is None and not self.pads

    @property
    def source(self) -> RowSource:
        assert self._source is not None
        return self._source

    @property
    def num_rows(self) -> int:
        if self.order is not None:
            return len(self.order)
        return 0 if self._source is None else self._source.num_rows

    @property
    def nbytes(self) -> int:
        return sum(nbytes(record) for record in self.records)

    def tensor(self, name: str) -> Array:
        """A tensor that has an entry for each row, in order."""
        joined = self.source.tensor(name)
        return joined if self.order is None else kernels.gather(joined, self.order)

    def numbers(self, rows: Array | slice) -> Array:
        """The numbers of rows, counted over the records in turn, from their places in the order."""
        if self.order is not None:
            return self.order[rows]
        return np.arange(*rows.indices(self.num_rows)) if isinstance(rows, slice) else rows

    def take(
        self,
        rows: Array | slice,
        memory: BatchMemory | None = None,
        *,
        without: Collection[str] = (),
        ranges: Mapping[str, ChildRanges] = MappingProxyType({}),
    ) -> Record:
        """Rows by their place in the order, repeats allowed, with everything below them, padded where asked for.

        Consecutive rows of one record are views of it. All else is in `memory` where that is given, until it is
        used again. Some tensors are left out: those `without`. `ranges` are as in `RowSource.take`.
        """
        if isinstance(rows, slice) and self._are_views:
            start, stop, _ = rows.indices(self.num_rows)
            return self.source.slice(start, stop)
        found = {**self._ranges_of(rows), **ranges}
        source = self._padding or self.source
        return source.take_known(self.numbers(rows), memory, without=without, ranges=found)

    def take_all(
        self, batches: Sequence[Array | slice], memories: Sequence[BatchMemory | None]
    ) -> list[Record]:
        """Several batches of rows, each as in `take`."""
        pairs = zip(batches, memories, strict=True)
        if self._padding is None:
            return [self.take(rows, memory) for rows, memory in pairs]
        return self._padding.take_all(
            [TakenRows(self.numbers(rows), self._ranges_of(rows), memory) for rows, memory in pairs]
        )

    def take_pieces(self, pieces: Pieces, cut: Collection[str], memory: BatchMemory | None = None) -> Record:
        """One row for each piece: of what the lengths `cut` describe its elements, of all else the whole row."""
        ranges = {lengths: self.ranges(lengths, pieces) for lengths in cut}
        return self.take(pieces.rows, memory, ranges=ranges)

    def _ranges_of(self, rows: Array | slice) -> dict[str, ChildRanges]:
        return {
            name: ChildRanges(of.starts[rows], of.sizes[rows]) for name, of in (self._ranges or {}).items()
        }

    def sizes(self, lengths: str) -> Array:
        """int64[num_rows]: the elements below each row, in order, that the lengths tensor describes.

        Lengths of a deeper level are added up: the words of all sentences of a document.
        """
        if self._ranges is not None and lengths in self._ranges:
            return self._ranges[lengths].sizes
        parts = [_sizes(record, lengths) for record in self.records]
        sizes = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return sizes if self.order is None else kernels.gather(sizes, self.order)

    def ranges(self, lengths: str, pieces: Pieces) -> ChildRanges:
        """Where the elements of pieces are, under lengths of the rows."""
        if self._ranges is not None:
            starts = self._ranges[lengths].starts[pieces.rows]
        else:
            starts = kernels.gather(self.source.offsets[lengths], self.numbers(pieces.rows))
        return ChildRanges(starts + pieces.starts, pieces.sizes)

    def part(self, start: int, stop: int) -> WindowRows:
        """The rows start … stop - 1 of the order."""
        if self.order is not None:
            chosen = slice(start, stop)
            return replace(self, order=self.order[chosen], _ranges=self._ranges_of(chosen))
        if (start, stop) == (0, self.num_rows):
            return self
        found, first = [], 0
        for record in self.records:
            low, high = max(start - first, 0), min(stop - first, record.num_rows)
            if low < high:
                found.append(slice_rows(record, low, high))
            first += record.num_rows
        return replace(self, records=found or [slice_rows(self.records[0], 0, 0)], _source=None, _ranges=None)

    def joined(self, other: WindowRows) -> WindowRows:
        """The rows of both."""
        records = (*self.records, *other.records)
        order = None
        if self.order is not None or other.order is not None:
            count = self.source.num_rows
            order = np.concatenate([self.numbers(slice(None)), other.numbers(slice(None)) + count])
        return replace(self, records=records, order=order, _source=None, _ranges=None)


def _ranges_in(order: Array | None, source: RowSource) -> dict[str, ChildRanges]:
    """For each lengths of the rows, in an order, where what they describe lies."""
    found = {}
    for name, offsets in source.offsets.items():
        if source.parents[name] is None:
            starts, sizes = offsets[:-1], np.diff(offsets)
            if order is not None:
                starts, sizes = kernels.gather(starts, order), kernels.gather(sizes, order)
            found[name] = ChildRanges(starts, sizes)
    return found


def _sizes(record: Record, lengths: str) -> Array:
    sizes = record[lengths].astype(np.int64, copy=False)
    parent = record.parents[lengths]
    while parent is not None:
        sizes = kernels.segment_reduce("sum", sizes, record[parent])
        parent = record.parents[parent]
    return sizes
