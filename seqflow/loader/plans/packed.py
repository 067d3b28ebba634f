"""Packed: several sequences in each row of a fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import BatchPlanError, OpError
from seqflow.kernels import PackingPlan
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance, check_balance
from seqflow.loader.plans.batches import BatchBounds, BatchSize, kept_batches
from seqflow.loader.plans.cut_columns import (
    checked_columns,
    cut_tensors,
    long_rows,
    unequal_rows,
    usable_sizes,
)
from seqflow.loader.plans.padded_pieces import fill_padded, padded_places, piece_begins, rounded
from seqflow.loader.plans.permutation import permutation
from seqflow.loader.plans.plan_options import LATER, shown_plan
from seqflow.loader.plans.rows import Rows
from seqflow.loader.plans.selection import (
    Oversize,
    Pieces,
    RowSelection,
    at_least_one,
    check_lengths_between,
    check_oversize,
)
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.record import BadRow, Record
from seqflow.record.batch_memory import BatchMemory
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

    With `multiple_of` each piece is followed by padding up to a multiple, over which `position_ids` go on counting;
    `padded_lengths` has, for each piece, what `piece_lengths` has with that padding. Pieces are packed on these.
    With `first_fills` no label of one document is predicted from the token before it, which is another's.
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
    multiple_of: int = field(default=1, metadata=LATER)
    """Each piece is padded to a multiple, as context parallelism needs it: 2 * ranks. `capacity` is one, too."""
    first_fills: dict[str, float] = field(default_factory=dict, metadata=LATER)
    """What the first element of each piece becomes, by column: -100 for labels that a model shifts by itself."""
    balance: Balance | None = field(default=None, metadata=LATER)
    """Deals the rows or batches of training steps so that all ranks cost alike."""

    __repr__ = shown_plan

    def __post_init__(self) -> None:
        at_least_one("Packed", capacity=self.capacity, rows=self.rows, multiple_of=self.multiple_of)
        if self.capacity % self.multiple_of:
            raise OpError(
                f"Packed: capacity is {self.capacity}, expected a multiple of multiple_of = {self.multiple_of}"
            )
        if self.capacity >= 2**31:
            raise OpError(f"Packed: capacity is {self.capacity}, expected less than {2**31}")
        if self.strategy not in ("best_fit", "first_fit", "concat"):
            raise OpError(
                f"Packed: strategy is {self.strategy!r}, expected 'best_fit', 'first_fit' or 'concat'"
            )
        check_lengths_between("Packed", self.min_length, self.max_length)
        check_oversize("Packed", self.oversize)
        check_balance("Packed", self.balance)
        columns = checked_columns(self.columns, "Packed")
        object.__setattr__(self, "columns", columns)
        if columns is not None and self.lengths is None:
            object.__setattr__(self, "lengths", columns[0])
        for option, fills in (("fills", self.fills), ("first_fills", self.first_fills)):
            unknown = [name for name in fills if self.columns is not None and name not in self.columns]
            if unknown:
                raise OpError(f"Packed: {option} has {unknown[0]!r}, which is not one of columns")

    @property
    def needs_lengths(self) -> bool:
        return True

    def of_window(
        self, rows: WindowRows, lengths: str | None, key: int = 0, window: int = 0
    ) -> PackedBatches:
        """The batches of a window. Packed rows are permuted by `key` whether or not the loader shuffles."""
        assert lengths is not None  # planned_lengths sees to that
        columns = packed_columns(self, rows, lengths)
        sizes = self.row_sizes(rows, lengths)
        selection = self.select(sizes)
        layout = self._layout(selection.pieces.sizes)
        order = permutation(len(layout.pieces), key)
        first = kernels.lengths_to_offsets(layout.pieces)
        bounds = Rows(self.rows).bounds(len(order))
        of_bounds = self._sizes(layout, first, order, bounds)
        too_long = long_rows(rows, selection.too_long, sizes, lengths, f"capacity = {self.capacity}")
        bad = [*unequal_rows(rows, sizes, self.columns, "Packed"), *too_long]
        return PackedBatches(
            rows, columns, self.capacity, window, selection, bad, layout,
            first, order, *kept_batches(bounds, of_bounds, self.drop_last), multiple_of=self.multiple_of,
        )  # fmt: skip

    def count(self, sizes: Array) -> int:
        """The number of batches of a window whose rows have these sizes."""
        layout = self._layout(self.select(sizes).pieces.sizes)
        return Rows(self.rows).bounds(len(layout.pieces)).count(self.drop_last)

    def batch_sizes(self, sizes: Array) -> Array:
        """int64[batches, 4]: a BatchSize for each batch of a window whose rows have these sizes, in any order."""
        layout = self._layout(self.select(sizes).pieces.sizes)
        order = np.arange(len(layout.pieces))
        first = kernels.lengths_to_offsets(layout.pieces)
        return self._sizes(layout, first, order, Rows(self.rows).bounds(len(order)))

    def _sizes(self, layout: PackingPlan, first: Array, order: Array, bounds: BatchBounds) -> Array:
        """int64[batches, 4]: a BatchSize for each, of packed rows in an order."""
        used = kernels.segment_reduce("sum", layout.piece_lengths, layout.pieces)[order]
        counts = bounds.stops - bounds.starts
        begun = Pieces(*layout[:3]).begun(first[:-1], first[1:])[order]
        tokens, begun = (kernels.segment_reduce("sum", each, counts) for each in (used, begun))
        return np.stack([counts, tokens, counts * self.capacity, begun], axis=1)

    def _layout(self, sizes: Array) -> PackingPlan:
        """Which pieces share a row, packed on their padded lengths."""
        layout = kernels.plan_packing(rounded(sizes, self.multiple_of), self.capacity, self.strategy)
        if self.multiple_of == 1:
            return layout
        real = np.minimum(layout.piece_lengths, sizes[layout.sources] - layout.starts)
        return layout._replace(piece_lengths=real)

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
    for option, fills in (("fills", plan.fills), ("first_fills", plan.first_fills)):
        unknown = [name for name in fills if name not in names.values()]
        if unknown:
            raise BatchPlanError(
                f"Packed: {option} has {unknown[0]!r}, which is not packed\n  packed are {', '.join(names.values())}"
            )
    padded = [name for name in rows.pads if name in names.values()]
    if padded:
        raise BatchPlanError(
            f"Packed: pad has {padded[0]!r}, which is packed\n  fills= says what fills its rows"
        )
    packed = [
        PackedColumn(name, tensor, tensors[tensor], *_fills(plan, name, record[tensor].dtype))
        for tensor, name in names.items()
    ]
    cut = {*tensors, *tensors.values()}
    for name in [*names.values(), *(name for name in record if name not in cut)]:
        if name in MADE or (name == PADDED and plan.multiple_of > 1):
            raise BatchPlanError(
                f"Packed: the records have a tensor {name!r}, which is the name of one that packing makes\n"
                "  give it another name, with rename= or in prepare"
            )
    return packed


def _fills(plan: Packed, name: str, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """What fills the padding of a column, and its first elements, which None leaves as they are."""
    first = None
    if name in plan.first_fills:
        first = cast_scalar(f"first_fills of Packed has {name!r}, which", plan.first_fills[name], dtype)
    if name in plan.fills:
        return cast_scalar(f"fills of Packed has {name!r}, which", plan.fills[name], dtype), first
    return cast_scalar("fill", plan.fill, dtype), first


MADE = ("segment_ids", "position_ids", "pieces", "window", "piece_lengths", "sources")
"""The tensors of a packed batch besides the columns."""
PADDED = "padded_lengths"
"""That of the pieces with their padding, where they have some."""

_IDS = np.dtype(np.int32)


@dataclass(frozen=True, slots=True)
class PackedColumn:
    """A column that is packed: its name in a batch, its tensor in the records, and what fills its padding."""

    name: str
    tensor: str
    lengths: str
    fill: Any
    first_fill: Any
    """What the first element of each piece becomes; None leaves it as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedBatches:
    """Batches of the packed rows of one window; its methods are those of RowBatches."""

    rows: WindowRows
    columns: Sequence[PackedColumn]
    capacity: int
    window: int | Array
    """The number of the window; of each packed row, where they are of several."""
    selection: RowSelection
    bad: Sequence[BadRow]
    layout: PackingPlan
    """Its sources are entries of the selection."""
    first: Array
    """[R + 1]: the first piece of each packed row, in the order of the layout."""
    order: Array
    """[R]: the packed rows in the order in which they make batches."""
    bounds: BatchBounds
    sizes: Array
    dropped: BatchSize
    multiple_of: int = 1
    """Pieces are padded to a multiple of it."""
    first_source: Array | None = None
    """[R]: the rows before those of the window of each packed row, where they are of several windows."""

    @property
    def skipped(self) -> int:
        """Rows that filters left out, and empty ones: there is nothing of them to pack."""
        return self.selection.skipped + int(np.count_nonzero(self.selection.pieces.sizes == 0))

    def __len__(self) -> int:
        return len(self.bounds)

    def size(self, number: int) -> BatchSize:
        return BatchSize(*self.sizes[number].tolist())

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        return self._make(self._packed_rows(number), memory)

    def part(self, number: int, chosen: Array) -> Record:
        packed_rows = self._packed_rows(number)
        of_piece = np.repeat(np.arange(len(packed_rows)), self.layout.pieces[packed_rows])
        counts = np.bincount(of_piece[chosen], minlength=len(packed_rows))
        return self._of_pieces(
            self.pieces_of(packed_rows).take(chosen), counts[counts > 0], packed_rows[counts > 0]
        )

    def make_all(self, numbers: Sequence[int], memories: Sequence[BatchMemory | None]) -> list[Record]:
        return list(map(self.make, numbers, memories))

    def empty(self) -> Record:
        return self._make(self.order[:0])

    def numbers(self, number: int) -> Array:
        return self.rows.numbers(self.pieces_of(self._packed_rows(number)).rows)

    def dealt(self, packed_rows: Array, counts: Array) -> PackedBatches:
        """Batches of so many packed rows each, of these, by their places in the order."""
        order = self.order[packed_rows]
        pieces, of_row = self.pieces_of(order), self.layout.pieces[order]
        tokens = kernels.segment_reduce("sum", pieces.sizes, of_row)
        first = kernels.lengths_to_offsets(of_row)
        begun = pieces.begun(first[:-1], first[1:])
        tokens, begun = (kernels.segment_reduce("sum", each, counts) for each in (tokens, begun))
        sizes = np.stack([counts, tokens, counts * self.capacity, begun], axis=1)
        return replace(self, order=order, bounds=BatchBounds.until(np.cumsum(counts), False), sizes=sizes)

    def _packed_rows(self, number: int) -> Array:
        return self.order[int(self.bounds.starts[number]) : int(self.bounds.stops[number])]

    def pieces_of(self, packed_rows: Array) -> Pieces:
        """The pieces of some packed rows. Only their part of the layout is looked at."""
        counts = self.layout.pieces[packed_rows]
        chosen = np.repeat(self.first[packed_rows], counts) + kernels.lengths_to_positions(counts)
        sources, starts, sizes = (kernels.gather(part, chosen) for part in self.layout[:3])
        rows = sources if self.selection.whole else kernels.gather(self.selection.pieces.rows, sources)
        return Pieces(rows, starts, sizes)

    def _make(self, packed_rows: Array, memory: BatchMemory | None = None) -> Record:
        counts = self.layout.pieces[packed_rows]
        return self._of_pieces(self.pieces_of(packed_rows), counts, packed_rows, memory)

    def _of_pieces(
        self, pieces: Pieces, counts: Array, packed_rows: Array, memory: BatchMemory | None = None
    ) -> Record:
        """Packed rows of so many pieces each."""
        tensors = self._dense(pieces, counts, memory)
        window = self.window if isinstance(self.window, int) else self.window[packed_rows]
        tensors |= {"pieces": counts, "window": np.full(len(counts), window, np.int64)}
        parents: dict[str, str | None] = dict.fromkeys(tensors)
        sources = self.rows.numbers(pieces.rows)
        if self.first_source is not None:
            sources = sources - np.repeat(self.first_source[packed_rows], counts)
        tensors |= {"piece_lengths": pieces.sizes, "sources": sources}
        parents |= {"piece_lengths": "pieces", "sources": "pieces"}
        if self.multiple_of > 1:
            tensors[PADDED], parents[PADDED] = rounded(pieces.sizes, self.multiple_of), "pieces"
        source = self.rows.source
        dictionaries = {
            column.name: source.dictionaries[column.tensor]
            for column in self.columns
            if column.tensor in source.dictionaries
        }
        packed = {name for column in self.columns for name in (column.tensor, column.lengths)}
        schema = None
        if len(packed) < len(source.chunks):
            taken = self.rows.take(pieces.rows, memory, without=packed)
            tensors |= taken.tensors
            parents |= {name: parent or "pieces" for name, parent in taken.parents.items()}
            dictionaries |= taken.dictionaries
            schema = taken.schema  # says which bytes are text
        return Record(tensors, parents, len(counts), schema, dictionaries)

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
            ranges = self.rows.ranges(column.lengths, pieces)
            data = kernels.gather_slices(chunks, *ranges, out=flat)
            if self.multiple_of > 1:
                places = padded_places(pieces.sizes, counts, self.capacity, self.multiple_of)
                filled = fill_padded(data, places, shape, column.fill, out)
            else:
                filled = kernels.fill_packed(data, pieces.sizes, layout, self.capacity, column.fill, out=out)
            tensors[column.name], segment_ids, position_ids = filled
            if column.first_fill is not None:
                begins = filled[0].reshape(-1, *chunks.row_shape)
                begins[piece_begins(pieces.sizes, counts, self.capacity, self.multiple_of)] = (
                    column.first_fill
                )
        return tensors | {"segment_ids": segment_ids, "position_ids": position_ids}
