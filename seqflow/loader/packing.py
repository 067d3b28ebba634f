"""Packed: put several sequences into each row of a fixed size, window by window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpError
from seqflow.kernels import PackingPlan
from seqflow.kernels.arrays import Array
from seqflow.loader.batching import Rows, at_least_one, batches
from seqflow.loader.order import permutation
from seqflow.loader.pieces import Elements
from seqflow.loader.row_sizes import row_sizes
from seqflow.loader.window_batches import BatchSize, Spans, SpanSizes
from seqflow.loader.window_rows import WindowRows
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.record import Record, concat_records, nbytes, take_rows
from seqflow.record.batch_memory import BatchMemory


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows of `capacity` elements, packed full; see `ops.pack_rows` for the strategies.

    The rows of a window are packed together, and their packed rows, in a random order, make batches of `rows`.
    `value` fills what is left of a row. Nothing is lost: a sequence longer than `capacity` is cut.

    A batch has each values column of the planned lengths under the column's name, [R, capacity]; `segment_ids`
    and `position_ids`, [R, capacity]; and for the pieces in each row `pieces` (how many), `piece_lengths` and
    `sources` (the number of the row each piece comes from, counted over the window, before it is shuffled).
    `window`, [R], is the number of the window. Other columns of the source rows come along, one entry a piece.
    """

    capacity: int
    strategy: Literal["best_fit", "first_fit", "concat"] = "best_fit"
    rows: int = 64
    """Packed rows of a batch."""
    value: int | float = 0
    drop_last: bool = False
    lengths: str | None = None
    """The lengths tensor to plan on; the only list column of numbers by default."""

    def __post_init__(self) -> None:
        at_least_one("Packed", capacity=self.capacity, rows=self.rows)
        if self.capacity >= 2**31:
            raise OpError(f"Packed: capacity is {self.capacity}, expected less than {2**31}")
        if self.strategy not in ("best_fit", "first_fit", "concat"):
            raise OpError(
                f"Packed: strategy is {self.strategy!r}, expected 'best_fit', 'first_fit' or 'concat'"
            )

    def of_window(
        self, rows: WindowRows, lengths: str | None, key: int, shuffled: bool, window: int
    ) -> PackedBatches:
        """The batches of a window. Packed rows are permuted by `key` whether or not the loader shuffles."""
        assert lengths is not None  # planned_lengths sees to that
        for record in rows.records[:1]:
            _refuse_nested(record, lengths)
        layout = kernels.plan_packing(row_sizes(rows, lengths), self.capacity, self.strategy)
        return PackedBatches.of(self, rows, lengths, layout, permutation(len(layout.pieces), key), window)


@dataclass(frozen=True, slots=True, eq=False)
class PackedBatches:
    """Batches of the packed rows of one window."""

    plan: Packed
    rows: WindowRows
    lengths: str
    layout: PackingPlan
    first: Array
    """[R + 1]: the first piece of each packed row, in the order of the layout."""
    order: Array
    """[R]: the packed rows in the order in which they make batches."""
    spans: Spans
    sizes: SpanSizes
    dropped: BatchSize
    window: int
    elements: Elements
    others: WindowRows
    """The rows without what is packed."""

    @staticmethod
    def of(
        plan: Packed, rows: WindowRows, lengths: str, layout: PackingPlan, order: Array, window: int
    ) -> PackedBatches:
        spans = Rows(plan.rows).spans(len(order), None)
        used = kernels.segment_reduce("sum", layout.piece_lengths, layout.pieces)[order]
        counts = spans.stops - spans.starts
        of_spans = SpanSizes(counts, kernels.segment_reduce("sum", used, counts), counts * plan.capacity)
        kept = np.flatnonzero(~spans.short) if plan.drop_last else np.arange(len(spans))
        dropped = of_spans.total(spans.short) if plan.drop_last else BatchSize(0, 0, 0)
        first = kernels.lengths_to_offsets(layout.pieces)
        others = WindowRows([_other_columns(record, lengths) for record in rows.records], rows.order)
        return PackedBatches(
            plan, rows, lengths, layout, first, order, spans.take(kept), of_spans.take(kept), dropped, window,
            Elements.under(rows, lengths), others,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.spans)

    def size(self, number: int) -> BatchSize:
        return self.sizes[number]

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        return self._make(self.order[self.spans.starts[number] : self.spans.stops[number]])

    def empty(self) -> Record:
        return self._make(self.order[:0])

    def numbers(self, number: int, row: int | None = None) -> Array:
        start, stop = int(self.spans.starts[number]), int(self.spans.stops[number])
        packed_rows = self.order[start:stop] if row is None else self.order[start + row : start + row + 1]
        return self.rows.numbers(self.layout.sources[self._pieces(packed_rows)])

    def _pieces(self, packed_rows: Array) -> Array:
        """The pieces of some packed rows, by their place in the layout."""
        pieces = self.layout.pieces[packed_rows]
        return np.repeat(self.first[packed_rows], pieces) + kernels.lengths_to_positions(pieces)

    def _make(self, packed_rows: Array) -> Record:
        """The batch of some packed rows. Only their part of the layout is looked at."""
        pieces, chosen = self.layout.pieces[packed_rows], self._pieces(packed_rows)
        places, starts, sizes = (part[chosen] for part in self.layout[:3])
        sources = places if self.rows.order is None else self.rows.order[places]
        tensors = self._dense(sources, starts, sizes, pieces)
        tensors |= {"pieces": pieces, "window": np.full(len(pieces), self.window)}
        tensors |= {"piece_lengths": sizes, "sources": sources}
        parents: dict[str, str | None] = dict.fromkeys(tensors)
        parents |= {"piece_lengths": "pieces", "sources": "pieces"}
        taken = self.others.take(places)
        tensors |= taken.tensors
        parents |= {name: parent or "pieces" for name, parent in taken.parents.items()}
        return Record(tensors, parents, len(pieces))

    def _dense(self, sources: Array, starts: Array, sizes: Array, pieces: Array) -> dict[str, Array]:
        """The packed columns, `segment_ids` and `position_ids`."""
        ends = kernels.lengths_to_offsets(sizes)
        layout = PackingPlan(np.arange(len(sizes)), np.zeros_like(sizes), sizes, pieces)
        tensors: dict[str, Array] = {}
        record = self.rows.records[0]
        for name, parent in record.parents.items():
            if parent == self.lengths:
                tensor = record[name]
                flat = np.empty((int(ends[-1]), *tensor.shape[1:]), tensor.dtype)
                self.elements.move(name, sources, starts, sizes, flat, ends[:-1])
                fill = cast_scalar("value", self.plan.value, tensor.dtype)
                filled = kernels.fill_packed(flat, sizes, layout, self.plan.capacity, fill)
                tensors[name.removesuffix(".values")], segment_ids, position_ids = filled
        return tensors | {"segment_ids": segment_ids, "position_ids": position_ids}


FULL = 0.995
"""Rows of a window that are less full than this are packed again with the next window."""
HELD_OVER = 1 / 8
"""The largest part of a window's rows that may be held over, the emptiest first."""


def most_rows(tokens: int, capacity: int) -> int:
    """The most packed rows that so many elements fill: all but one are more than half full, counted in pairs."""
    return 2 * tokens // capacity + 1


@dataclass(frozen=True, slots=True)
class PendingRows:
    """Rows that are still to be packed, and the number of the source row of each."""

    record: Record
    sources: Array


def packed_batches(
    records: Iterable[Record], plan: Packed, lengths_name: str, window_bytes: int
) -> Iterator[Record]:
    """Batches of packed rows, window by window."""
    packed = _packed_windows(records, plan, lengths_name, window_bytes)
    return batches(packed, Rows(plan.rows, plan.drop_last), None)


def pack(record: Record, plan: Packed, lengths_name: str) -> Record:
    """All rows of a record in one batch."""
    layout = kernels.plan_packing(record[lengths_name], plan.capacity, plan.strategy)
    return _packed_batch(PendingRows(record, np.arange(record.num_rows)), layout, plan, lengths_name)


def windows(records: Iterable[Record], window_bytes: int) -> Iterator[Record]:
    """Records of up to `window_bytes`, joined from consecutive ones."""
    held: list[Record] = []
    size = 0
    for record in records:
        if held and size + nbytes(record) > window_bytes:
            window, held, size = concat_records(held), [], 0
            yield window
            del window
        held.append(record)
        size += nbytes(record)
        del record
    if held:
        yield concat_records(held)


def _packed_windows(
    records: Iterable[Record], plan: Packed, lengths_name: str, window_bytes: int
) -> Iterator[Record]:
    """One batch per window. The emptiest rows are held over to the next window; the last window packs all."""
    held: PendingRows | None = None
    first_row = 0
    for window in windows(records, window_bytes):
        _refuse_nested(window, lengths_name)
        numbers = np.arange(first_row, first_row + window.num_rows)
        first_row += window.num_rows
        everything = _join(held, PendingRows(window, numbers))
        del window
        layout = kernels.plan_packing(everything.record[lengths_name], plan.capacity, plan.strategy)
        full = _full_rows(layout, plan.capacity)
        held = _pieces_of(everything, _rows_of(layout, ~full), lengths_name)
        batch = _packed_batch(everything, _rows_of(layout, full), plan, lengths_name)
        del everything
        if batch.num_rows:
            yield batch
        del batch
    if held is not None:
        layout = kernels.plan_packing(held.record[lengths_name], plan.capacity, plan.strategy)
        if len(layout.pieces):
            yield _packed_batch(held, layout, plan, lengths_name)


def _join(held: PendingRows | None, more: PendingRows) -> PendingRows:
    if held is None or not held.record.num_rows:
        return more
    record = concat_records([held.record, more.record])
    return PendingRows(record, np.concatenate([held.sources, more.sources]))


def _full_rows(layout: PackingPlan, capacity: int) -> Array:
    """A mask of the packed rows that are full enough to be in this batch."""
    used = kernels.segment_reduce("sum", layout.piece_lengths, layout.pieces)
    full: Array = used >= FULL * capacity
    allowed = int(HELD_OVER * len(used))
    if np.count_nonzero(~full) > allowed:
        full[:] = True
        full[np.argsort(used, kind="stable")[:allowed]] = False
    return full


def _rows_of(layout: PackingPlan, chosen: Array) -> PackingPlan:
    """The part of a plan for the chosen rows."""
    of_piece = chosen[kernels.lengths_to_segment_ids(layout.pieces)]
    sources, starts, piece_lengths, pieces = layout
    return PackingPlan(sources[of_piece], starts[of_piece], piece_lengths[of_piece], pieces[chosen])


def _pieces_of(pending: PendingRows, layout: PackingPlan, lengths_name: str) -> PendingRows:
    """The pieces of a plan, as rows to pack again."""
    order = np.argsort(layout.sources, kind="stable")
    sources, starts, sizes = layout.sources[order], layout.starts[order], layout.piece_lengths[order]
    record = take_rows(pending.record, sources)
    if np.array_equal(record[lengths_name], sizes):
        return PendingRows(record, pending.sources[sources])
    inside = kernels.lengths_to_offsets(record[lengths_name])[:-1] + starts
    offsets = kernels.lengths_to_offsets(sizes)
    tensors = dict(record.tensors) | {lengths_name: sizes}
    for name, parent in record.parents.items():
        if parent == lengths_name:
            tensors[name] = np.empty((int(offsets[-1]), *record[name].shape[1:]), record[name].dtype)
            kernels.move_slices(record[name], inside, sizes, tensors[name], offsets[:-1])
    return PendingRows(replace(record, tensors=tensors), pending.sources[sources])


def _packed_batch(pending: PendingRows, layout: PackingPlan, plan: Packed, lengths_name: str) -> Record:
    """The batch of packed rows that a plan describes."""
    record = pending.record
    lengths = record[lengths_name]
    tensors: dict[str, Array] = {}
    for name, parent in record.parents.items():
        if parent == lengths_name:
            fill = cast_scalar("value", plan.value, record[name].dtype)
            filled = kernels.fill_packed(record[name], lengths, layout, plan.capacity, fill)
            tensors[name.removesuffix(".values")], segment_ids, position_ids = filled
    tensors |= {"segment_ids": segment_ids, "position_ids": position_ids}
    tensors |= {"pieces": layout.pieces, "piece_lengths": layout.piece_lengths}
    tensors["sources"] = pending.sources[layout.sources]
    parents: dict[str, str | None] = dict.fromkeys(tensors)
    parents |= {"piece_lengths": "pieces", "sources": "pieces"}
    others = _other_columns(record, lengths_name)
    if others.tensors:
        taken = take_rows(others, layout.sources)
        tensors |= taken.tensors
        parents |= {name: parent or "pieces" for name, parent in taken.parents.items()}
    return Record(tensors, parents, len(layout.pieces))


def _refuse_nested(window: Record, lengths_name: str) -> None:
    for name, parent in window.parents.items():
        if parent == lengths_name and name in window.parents.values():
            raise LodError(f"{name} are lengths of a deeper level, expected one level of values to pack")


def _other_columns(record: Record, lengths_name: str) -> Record:
    """Everything but the lengths and the values that are packed."""
    kept = {
        name: tensor
        for name, tensor in record.items()
        if name != lengths_name and record.parents[name] != lengths_name
    }
    return Record(kept, {name: record.parents[name] for name in kept}, record.num_rows)
