"""PackedBatches: the packed rows of a window, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.kernels import PackingPlan
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.pieces import Pieces
from seqflow.loader.plans.selection import RowSelection
from seqflow.loader.plans.window_batches import BatchSize, Spans, SpanSizes, make_each
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import BadRow, Record
from seqflow.record.batch_memory import BatchMemory

MADE = ("segment_ids", "position_ids", "pieces", "window", "piece_lengths", "sources")
"""The tensors of a packed batch besides the columns."""

_IDS = np.dtype(np.int32)


@dataclass(frozen=True, slots=True)
class PackedColumn:
    """A column that is packed: its name in a batch, its tensor in the records, and what fills its padding."""

    name: str
    tensor: str
    lengths: str
    fill: Any


@dataclass(frozen=True, slots=True, eq=False)
class PackedBatches:
    """Batches of the packed rows of one window."""

    rows: WindowRows
    columns: Sequence[PackedColumn]
    capacity: int
    window: int
    selection: RowSelection
    bad: Sequence[BadRow]
    layout: PackingPlan
    """Its sources are entries of the selection."""
    first: Array
    """[R + 1]: the first piece of each packed row, in the order of the layout."""
    order: Array
    """[R]: the packed rows in the order in which they make batches."""
    spans: Spans
    sizes: SpanSizes
    dropped: BatchSize

    @property
    def skipped(self) -> int:
        """Rows that filters left out, and empty ones: there is nothing of them to pack."""
        return self.selection.skipped + int(np.count_nonzero(self.selection.pieces.sizes == 0))

    def __len__(self) -> int:
        return len(self.spans)

    def size(self, number: int) -> BatchSize:
        return self.sizes[number]

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        return self._make(self._packed_rows(number), memory)

    def part(self, number: int, chosen: Array) -> Record:
        packed_rows = self._packed_rows(number)
        of_piece = np.repeat(np.arange(len(packed_rows)), self.layout.pieces[packed_rows])
        counts = np.bincount(of_piece[chosen], minlength=len(packed_rows))
        return self._of_pieces(self._pieces(packed_rows).take(chosen), counts[counts > 0])

    def make_all(self, numbers: Sequence[int], memories: Sequence[BatchMemory | None]) -> list[Record]:
        return make_each(self, numbers, memories)

    def empty(self) -> Record:
        return self._make(self.order[:0])

    def numbers(self, number: int) -> Array:
        return self.rows.numbers(self._pieces(self._packed_rows(number)).rows)

    def _packed_rows(self, number: int) -> Array:
        return self.order[int(self.spans.starts[number]) : int(self.spans.stops[number])]

    def _pieces(self, packed_rows: Array) -> Pieces:
        """The pieces of some packed rows. Only their part of the layout is looked at."""
        counts = self.layout.pieces[packed_rows]
        chosen = np.repeat(self.first[packed_rows], counts) + kernels.lengths_to_positions(counts)
        sources, starts, sizes = (kernels.gather(part, chosen) for part in self.layout[:3])
        rows = sources if self.selection.whole else kernels.gather(self.selection.pieces.rows, sources)
        return Pieces(rows, starts, sizes)

    def _make(self, packed_rows: Array, memory: BatchMemory | None = None) -> Record:
        return self._of_pieces(self._pieces(packed_rows), self.layout.pieces[packed_rows], memory)

    def _of_pieces(self, pieces: Pieces, counts: Array, memory: BatchMemory | None = None) -> Record:
        """Packed rows of so many pieces each."""
        tensors = self._dense(pieces, counts, memory)
        tensors |= {"pieces": counts, "window": np.full(len(counts), self.window, np.int64)}
        parents: dict[str, str | None] = dict.fromkeys(tensors)
        tensors |= {"piece_lengths": pieces.sizes, "sources": self.rows.numbers(pieces.rows)}
        parents |= {"piece_lengths": "pieces", "sources": "pieces"}
        source = self.rows.source
        dictionaries = {
            column.name: source.dictionaries[column.tensor]
            for column in self.columns
            if column.tensor in source.dictionaries
        }
        packed = {name for column in self.columns for name in (column.tensor, column.lengths)}
        if len(packed) < len(source.chunks):
            taken = self.rows.take_without(pieces.rows, packed, memory)
            tensors |= taken.tensors
            parents |= {name: parent or "pieces" for name, parent in taken.parents.items()}
            dictionaries |= taken.dictionaries
        return Record(tensors, parents, len(counts), dictionaries=dictionaries)

    def _dense(self, pieces: Pieces, counts: Array, memory: BatchMemory | None) -> dict[str, Array]:
        """The packed columns, `segment_ids` and `position_ids`."""
        numbers, zeros = np.arange(len(pieces.sizes)), np.zeros_like(pieces.sizes)
        layout = PackingPlan(numbers, zeros, pieces.sizes, counts)
        shape = (len(counts), self.capacity)
        tensors: dict[str, Array] = {}
        for column in self.columns:
            chunks = self.rows.source.chunks[column.tensor]
            flat = out = None
            if memory is not None:
                elements = (int(pieces.sizes.sum()), *chunks.row_shape)
                flat = memory.empty(f"{column.name}, in a row", elements, chunks.dtype)
                out = (
                    memory.empty(column.name, shape + chunks.row_shape, chunks.dtype),
                    memory.empty("segment_ids", shape, _IDS),
                    memory.empty("position_ids", shape, _IDS),
                )
            spans = self.rows.spans(column.lengths, pieces)
            data = kernels.gather_slices(chunks, *spans, out=flat)
            filled = kernels.fill_packed(data, pieces.sizes, layout, self.capacity, column.fill, out=out)
            tensors[column.name], segment_ids, position_ids = filled
        return tensors | {"segment_ids": segment_ids, "position_ids": position_ids}
