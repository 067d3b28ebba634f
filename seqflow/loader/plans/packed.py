"""Packed: put several sequences into each row of a fixed size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import BatchPlanError, OpError
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.counts import at_least_one, check_lengths_between
from seqflow.loader.plans.cut_columns import (
    checked_columns,
    cut_tensors,
    long_rows,
    unequal_rows,
    usable_sizes,
)
from seqflow.loader.plans.packed_batches import MADE, PackedBatches, PackedColumn
from seqflow.loader.plans.permutation import permutation
from seqflow.loader.plans.pieces import Pieces
from seqflow.loader.plans.rows import Rows
from seqflow.loader.plans.selection import Oversize, RowSelection, check_oversize
from seqflow.loader.plans.window_batches import SpanSizes, kept_spans
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.renamed import renamed_fields


@renamed_fields(value="fill", values="fills")
@dataclass(frozen=True, slots=True)
class Packed:
    """Rows of `capacity` elements, packed full; see `ops.pack_rows` for the strategies.

    `columns` are cut and packed alike: each row has equally many elements in all of them. By default they are all
    values under the planned lengths. What is left of a packed row is filled with `fill`, or that of the column in
    `fills`. The rows of a window are packed together, and their packed rows, in a random order, make batches of
    `rows`. Nothing is lost unless asked: a sequence longer than `capacity` is cut into pieces, where `oversize`
    doesn't say to "truncate" it, to "skip" it, or that it is one of the loader's "bad_rows".

    A batch has each packed column under its own name, [R, capacity]; `segment_ids` and `position_ids`,
    [R, capacity]; and for the pieces in each row `pieces` (how many), `piece_lengths` and `sources` (the number of
    the row each piece comes from, counted over the window, before it is shuffled). `window`, [R], is the number of
    the window. Columns of one value a row come along, one entry a piece; so do columns that the loader pads. Any
    other list column is an error. The offsets of all pieces come with `loader.to("torch", cu_seqlens=True)`.
    """

    capacity: int
    columns: tuple[str, ...] | None = None
    fills: dict[str, float] = field(default_factory=dict)
    strategy: Literal["best_fit", "first_fit", "concat"] = "best_fit"
    rows: int = 64
    """Packed rows of a batch."""
    fill: int | float = 0
    drop_last: bool = False
    lengths: str | None = None
    """The lengths tensor to plan on; by default of the first of `columns`, or the only list column of numbers."""
    min_length: int | None = None
    """Shorter rows are left out, and counted."""
    max_length: int | None = None
    """Longer rows are left out, and counted."""
    oversize: Oversize = "split"

    def __post_init__(self) -> None:
        at_least_one("Packed", capacity=self.capacity, rows=self.rows)
        if self.capacity >= 2**31:
            raise OpError(f"Packed: capacity is {self.capacity}, expected less than {2**31}")
        if self.strategy not in ("best_fit", "first_fit", "concat"):
            raise OpError(
                f"Packed: strategy is {self.strategy!r}, expected 'best_fit', 'first_fit' or 'concat'"
            )
        check_lengths_between("Packed", self.min_length, self.max_length)
        check_oversize("Packed", self.oversize)
        columns = checked_columns(self.columns, "Packed")
        object.__setattr__(self, "columns", columns)
        if columns is not None and self.lengths is None:
            object.__setattr__(self, "lengths", columns[0])
        unknown = [name for name in self.fills if self.columns is not None and name not in self.columns]
        if unknown:
            raise OpError(f"Packed: fills has {unknown[0]!r}, which is not one of columns")

    @property
    def needs_lengths(self) -> bool:
        return True

    def of_window(
        self, rows: WindowRows, lengths: str | None, key: int, shuffled: bool, window: int
    ) -> PackedBatches:
        """The batches of a window. Packed rows are permuted by `key` whether or not the loader shuffles."""
        assert lengths is not None  # planned_lengths sees to that
        columns = packed_columns(self, rows, lengths)
        sizes = self.row_sizes(rows, lengths)
        selection = self.select(sizes)
        layout = kernels.plan_packing(selection.pieces.sizes, self.capacity, self.strategy)
        order = permutation(len(layout.pieces), key)
        spans = Rows(self.rows).spans(len(order))
        used = kernels.segment_reduce("sum", layout.piece_lengths, layout.pieces)[order]
        counts = spans.stops - spans.starts
        first = kernels.lengths_to_offsets(layout.pieces)
        begun = Pieces(*layout[:3]).begun(first[:-1], first[1:])[order]
        tokens, begun = (kernels.segment_reduce("sum", each, counts) for each in (used, begun))
        of_spans = SpanSizes(counts, tokens, counts * self.capacity, begun)
        too_long = long_rows(rows, selection.too_long, sizes, lengths, f"capacity = {self.capacity}")
        bad = [*unequal_rows(rows, sizes, self.columns, "Packed"), *too_long]
        return PackedBatches(
            rows, columns, self.capacity, window, selection, bad, layout,
            first, order, *kept_spans(spans, of_spans, self.drop_last),
        )  # fmt: skip

    def count(self, sizes: Array) -> int:
        """The number of batches of a window whose rows have these sizes."""
        layout = kernels.plan_packing(self.select(sizes).pieces.sizes, self.capacity, self.strategy)
        return Rows(self.rows).spans(len(layout.pieces)).count(self.drop_last)

    def row_sizes(self, rows: WindowRows, lengths: str) -> Array:
        """The sizes that batches are planned on."""
        return usable_sizes(rows, lengths, self.columns, "Packed")

    def select(self, sizes: Array) -> RowSelection:
        """The rows that are packed."""
        selection = RowSelection.of(sizes).between(self.min_length, self.max_length)
        return selection if self.oversize == "split" else selection.at_most(self.capacity, self.oversize)


def most_rows(tokens: int, capacity: int) -> int:
    """The most packed rows that so many elements fill: all but one are more than half full, counted in pairs."""
    return 2 * tokens // capacity + 1


def packed_columns(plan: Packed, rows: WindowRows, lengths: str) -> list[PackedColumn]:
    """The columns that a plan packs; BatchPlanError where they are not those of the records."""
    record = rows.records[0]
    tensors = cut_tensors(record, lengths, plan.columns, "Packed", left_whole=rows.pads)
    names = {tensor: tensor.removesuffix(".values") for tensor in tensors}
    unknown = [name for name in plan.fills if name not in names.values()]
    if unknown:
        raise BatchPlanError(
            f"Packed: fills has {unknown[0]!r}, which is not packed\n  packed are {', '.join(names.values())}"
        )
    padded = [name for name in rows.pads if name in names.values()]
    if padded:
        raise BatchPlanError(
            f"Packed: pad has {padded[0]!r}, which is packed\n  fills= says what fills its rows"
        )
    packed = [
        PackedColumn(name, tensor, tensors[tensor], _fill(plan, name, record[tensor].dtype))
        for tensor, name in names.items()
    ]
    cut = {*tensors, *tensors.values()}
    for name in [*names.values(), *(name for name in record if name not in cut)]:
        if name in MADE:
            raise BatchPlanError(
                f"Packed: the records have a tensor {name!r}, which is the name of one that packing makes\n"
                "  give it another name, with rename= or in prepare"
            )
    return packed


def _fill(plan: Packed, name: str, dtype: np.dtype[Any]) -> Any:
    if name in plan.fills:
        return cast_scalar(f"fills of Packed has {name!r}, which", plan.fills[name], dtype)
    return cast_scalar("fill", plan.fill, dtype)
