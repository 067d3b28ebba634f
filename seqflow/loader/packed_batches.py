"""PackedBatches: the packed rows of a window, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.kernels import PackingPlan
from seqflow.kernels.arrays import Array
from seqflow.loader.padding import pad_columns
from seqflow.loader.pieces import CutRows, Pieces
from seqflow.loader.row_selection import RowSelection
from seqflow.loader.window_batches import BatchSize, Spans, SpanSizes
from seqflow.ops import packing
from seqflow.record import BadRow, Record

MADE = ("segment_ids", "position_ids", "pieces", "window", "piece_lengths", "sources")
"""The tensors of a packed batch besides the columns."""


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

    columns: Sequence[PackedColumn]
    capacity: int
    window: int
    cut: CutRows
    selection: RowSelection
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
        return self.selection.skipped

    @property
    def bad(self) -> Sequence[BadRow]:
        return self.selection.bad

    def __len__(self) -> int:
        return len(self.spans)

    def size(self, number: int) -> BatchSize:
        return self.sizes[number]

    def make(self, number: int) -> Record:
        return self._make(self._packed_rows(number))

    def empty(self) -> Record:
        return self._make(self.order[:0])

    def numbers(self, number: int, row: int | None = None) -> Array:
        packed_rows = self._packed_rows(number)
        return self.cut.numbers(self._pieces(packed_rows if row is None else packed_rows[row : row + 1]))

    def _packed_rows(self, number: int) -> Array:
        return self.order[int(self.spans.starts[number]) : int(self.spans.stops[number])]

    def _pieces(self, packed_rows: Array) -> Pieces:
        """The pieces of some packed rows. Only their part of the layout is looked at."""
        counts = self.layout.pieces[packed_rows]
        chosen = np.repeat(self.first[packed_rows], counts) + kernels.lengths_to_positions(counts)
        sources, starts, sizes, _ = self.layout
        return Pieces(self.selection.pieces.rows[sources[chosen]], starts[chosen], sizes[chosen])

    def _make(self, packed_rows: Array) -> Record:
        pieces, counts = self._pieces(packed_rows), self.layout.pieces[packed_rows]
        tensors = self._dense(pieces, counts)
        tensors |= {"pieces": counts, "window": np.full(len(counts), self.window, np.int64)}
        parents: dict[str, str | None] = dict.fromkeys(tensors)
        tensors |= {"piece_lengths": pieces.sizes, "sources": self.cut.numbers(pieces)}
        parents |= {"piece_lengths": "pieces", "sources": "pieces"}
        others = self.cut.others
        dictionaries = {column.name: of for column in self.columns if (of := self._dictionary(column))}
        if others.records[0].tensors:
            taken = pad_columns(others.take(pieces.rows), self.cut.rows.pad)
            tensors |= taken.tensors
            parents |= {name: parent or "pieces" for name, parent in taken.parents.items()}
            dictionaries |= taken.dictionaries
        return Record(tensors, parents, len(counts), dictionaries=dictionaries)

    def _dense(self, pieces: Pieces, counts: Array) -> dict[str, Array]:
        """The packed columns, `segment_ids` and `position_ids`."""
        layout = PackingPlan(np.arange(len(pieces.sizes)), np.zeros_like(pieces.sizes), pieces.sizes, counts)
        tensors: dict[str, Array] = {}
        for column in self.columns:
            flat = self.cut.gather(column.tensor, pieces)
            filled = kernels.fill_packed(flat, pieces.sizes, layout, self.capacity, column.fill)
            tensors[column.name], segment_ids, position_ids = filled
        return tensors | {"segment_ids": segment_ids, "position_ids": position_ids}

    def _dictionary(self, column: PackedColumn) -> Any:
        return self.cut.dictionaries.get(column.tensor)


def cu_seqlens(batch: Mapping[str, Array]) -> tuple[Array, int]:
    """The offsets of the pieces of a packed batch, int32[S + 1], and the longest: for variable-length attention.

    All rows are laid end to end. The padding of a row, where there is any, is its last segment.
    """
    capacity = batch["segment_ids"].shape[1]
    offsets = packing.packed_cu_seqlens(batch["piece_lengths"], batch["pieces"], capacity=capacity)
    return offsets, int(np.diff(offsets).max(initial=0))
