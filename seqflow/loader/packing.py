"""Packing: sequences of a window of rows, several in each row of fixed size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from seqflow import kernels
from seqflow.errors import LodError, OpError
from seqflow.loader.batching import Rows, at_least_one, batches
from seqflow.ops.scalars import cast_scalar
from seqflow.record import Record, concat_records, nbytes, take_rows


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows of `capacity` elements, packed full; see `ops.pack_rows` for the strategies.

    Each window of rows is packed on its own and is one batch, or batches of `rows` packed rows where that is
    given. `value` fills what is left of a row. Nothing is lost: a sequence longer than `capacity` is cut.

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
        if self.strategy not in ("best_fit", "first_fit", "concat"):
            raise OpError(
                f"Packed: strategy is {self.strategy!r}, expected 'best_fit', 'first_fit' or 'concat'"
            )


def packed_batches(
    records: Iterable[Record], plan: Packed, lengths_name: str, window_bytes: int
) -> Iterator[Record]:
    """Batches of packed rows, window by window; nothing is held over from one window to the next."""
    packed = _packed_windows(records, plan, lengths_name, window_bytes)
    return packed if plan.rows is None else batches(packed, Rows(plan.rows, plan.drop_last), None)


def windows(records: Iterable[Record], window_bytes: int) -> Iterator[Record]:
    """Records put together until they hold `window_bytes`."""
    held: list[Record] = []
    size = 0
    for record in records:
        if held and size + nbytes(record) > window_bytes:
            yield concat_records(held) if len(held) > 1 else held[0]
            held, size = [], 0
        held.append(record)
        size += nbytes(record)
    if held:
        yield concat_records(held) if len(held) > 1 else held[0]


def _packed_windows(
    records: Iterable[Record], plan: Packed, lengths_name: str, window_bytes: int
) -> Iterator[Record]:
    first_row = 0
    for window in windows(records, window_bytes):
        packed = _pack(window, plan, lengths_name, first_row)
        first_row += window.num_rows
        if packed.num_rows:
            yield packed


def _pack(window: Record, plan: Packed, lengths_name: str, first_row: int) -> Record:
    lengths = window[lengths_name]
    columns = [name for name, parent in window.parents.items() if parent == lengths_name]
    _refuse_nested(window, columns)
    layout = kernels.plan_packing(lengths, plan.capacity, plan.strategy)
    sources, _, piece_lengths, pieces = layout
    tensors = {}
    for name in columns:
        fill = cast_scalar("value", plan.value, window[name].dtype)
        filled = kernels.fill_packed(window[name], lengths, layout, plan.capacity, fill)
        tensors[name.removesuffix(".values")], segment_ids, position_ids = filled
    tensors |= {"segment_ids": segment_ids, "position_ids": position_ids}
    tensors |= {"pieces": pieces, "piece_lengths": piece_lengths, "sources": sources + first_row}
    parents: dict[str, str | None] = dict.fromkeys(tensors)
    parents |= {"piece_lengths": "pieces", "sources": "pieces"}
    others = _other_columns(window, {lengths_name, *columns})
    if others.tensors:
        taken = take_rows(others, sources)
        tensors |= taken.tensors
        parents |= {name: parent or "pieces" for name, parent in taken.parents.items()}
    return Record(tensors, parents, len(pieces), None)


def _refuse_nested(window: Record, columns: list[str]) -> None:
    for name in columns:
        if name in window.parents.values():
            raise LodError(f"{name} are lengths of a deeper level, expected one level of values to pack")


def _other_columns(window: Record, left_out: set[str]) -> Record:
    kept = {name: array for name, array in window.items() if name not in left_out}
    return Record(kept, {name: window.parents[name] for name in kept}, window.num_rows, None)
