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
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.record import Record, concat_records, nbytes, take_rows


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows of `capacity` elements, packed full; see `ops.pack_rows` for the strategies.

    Each window of rows makes one batch, or batches of `rows` packed rows where that is given. What would make
    rows with much room left (at most one in eight) is held over to the next window. `value` fills what is left
    of a row. Nothing is lost: a sequence longer than `capacity` is cut.

    A batch has each values column of the planned lengths under the column's name, [R, capacity]; `segment_ids`
    and `position_ids`, [R, capacity]; and for the pieces in each row `pieces` (how many), `piece_lengths` and
    `sources` (the number of the row each piece comes from, counted over the whole epoch). Other columns of the
    source rows come along, one entry a piece.
    """

    capacity: int
    strategy: Literal["best_fit", "first_fit", "concat"] = "best_fit"
    rows: int | None = None
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


FULL = 0.995
"""Rows of a window that are less full than this are packed again with the next window."""
HELD_OVER = 1 / 8
"""The largest part of a window's rows that may be held over, the emptiest first."""


def most_rows(window_rows: int, capacity: int) -> int:
    """The most packed rows in a batch whose window has this many rows of values to pack.

    Of packed rows all but one are more than half full, counted in pairs: n values fill 2n/capacity + 1 of them at
    most. Up to `HELD_OVER` of the rows of one window join the next, as they did from the one before.
    """
    alone = 2 * window_rows / capacity + 1
    return int(alone / (1 - 2 * HELD_OVER))


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
    return packed if plan.rows is None else batches(packed, Rows(plan.rows, plan.drop_last), None)


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
