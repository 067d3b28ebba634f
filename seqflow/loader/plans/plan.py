"""BatchPlan: the protocol of all batch plans. A plan lays out rows by their lengths; everything else follows
from that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.errors import BatchPlanError
from seqflow.identity.differences import call_text
from seqflow.kernels import PackingPlan
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.along import AlongColumns, check_carried, cut_outside, item_spans, without_wrong
from seqflow.loader.plans.balance import Balance
from seqflow.loader.plans.selection import RowSelection, cut_tensors, unusable_rows, usable_sizes
from seqflow.loader.plans.window_rows import Pieces, WindowRows
from seqflow.ops.shared.random_bits import output, sequence_bits
from seqflow.record import BadRow, Record
from seqflow.record.batch_memory import BatchMemory
from seqflow.record.row_source import ChildRanges


def key_of(*parts: int) -> int:
    """Return one 64-bit number made from several: the seed, the epoch, the number of a window …

    >>> key_of(7, 0) != key_of(0, 7)
    True
    """
    start = np.zeros(1, np.uint64)
    key = reduce(lambda made, part: output(made, np.array([part], np.uint64)), parts, start)
    return int(key[0])


def permutation(count: int, key: int) -> Array:
    """int64[count]: the numbers 0 … count - 1, sorted by random bits, `sequence_bits(key, count)`.

    The lowest bits, as many as the largest number has, are the number itself, so that no two are alike.

    >>> sorted(permutation(4, key_of(7, 0)).tolist())
    [0, 1, 2, 3]
    """
    bits = sequence_bits(key, count)
    low = np.uint64((1 << max(count - 1, 0).bit_length()) - 1)
    bits &= ~low
    bits |= np.arange(count, dtype=np.uint64)
    bits.sort()  # twice as fast as to sort the numbers by their bits
    bits &= low
    return bits.view(np.int64)


LATER: Mapping[str, Any] = {"later": True}
"""Metadata of a field that is newer than states which hold plans: they omit it if it has its default."""


class BatchSize(NamedTuple):
    """Size of a batch, known before it is made."""

    rows: int
    """Rows of the batch: rows of the window, or packed rows."""
    tokens: int
    """Elements of the planned column in it."""
    cells: int
    """Elements when dense: of packed rows, or of rows padded to the longest."""
    begun: int
    """Rows of the window that begin in it: a row that is cut into pieces begins in the batch of its first piece."""
    shared: int = 0
    """Elements among `tokens` that rows share with others, so that the batch does not have them again."""


NO_ROWS = BatchSize(0, 0, 0, 0)


class CutColumn(NamedTuple):
    """A list column of which a batch has the elements of its pieces: its name in a batch, and its tensors."""

    name: str
    tensor: str
    lengths: str
    fill: Any = 0
    """Value that fills its padding in packed rows."""
    first_fill: Any = None
    """Value that replaces the first element of each piece; None leaves it unchanged."""


class Layout(NamedTuple):
    """Rows of each batch: the first `counts[0]` of `order` make the first batch, and so on."""

    counts: Array
    """int64[B]: the number of rows, or packed rows, of each batch; at least one."""
    order: Array | None = None
    """int64[N]: each row once, batch after batch; None is the order in which they are given."""
    short: int = 0
    """Number of last batches that hold less than the plan allows, so that `drop_last` omits them."""
    packing: PackingPlan | None = None
    """Pieces of rows that make packed rows, batch after batch, in place of `order`."""

    @property
    def are_short(self) -> Array:
        """int64[B]: 1 for each batch that is short."""
        return (np.arange(len(self.counts)) >= len(self.counts) - self.short).astype(np.int64)

    def num_kept(self, drop_last: bool) -> int:
        """Return the number of batches, without the short ones if these are dropped."""
        return len(self.counts) - self.short * drop_last

    def checked(self, plan: str, rows: int) -> Layout:
        """Return the layout, in int64; raise BatchPlanError unless each row is in one batch, once."""
        if self.packing is not None:
            return self
        counts = np.asarray(self.counts, np.int64)
        order = None if self.order is None else np.asarray(self.order, np.int64)
        is_whole = int(counts.sum()) == rows and int(counts.min(initial=1)) > 0
        if is_whole and order is not None:
            is_whole = len(order) == rows and 0 <= order.min(initial=0) <= order.max(initial=0) < max(rows, 1)
            is_whole = is_whole and int(np.bincount(order).max(initial=1)) == 1
        if not is_whole:
            of_order = (
                "" if order is None else f" and an order of {len(order)}, {len(np.unique(order))} different"
            )
            raise BatchPlanError(
                f"{plan}: layout has batches of {counts.sum()} rows together, of {counts.min(initial=rows)} or more"
                f"{of_order}, expected each of {rows} rows in one batch"
            )
        return Layout(counts, order, self.short)


class BatchLimits(NamedTuple):
    """Upper bounds of the sizes of a batch; None if there is none."""

    rows: int | None
    tokens: int | None = None
    """Elements of the planned column."""
    cells: int | None = None
    """Its elements when rows are padded to the longest."""
    longest: Mapping[str, int] = {}
    """Largest value of some tensors of lengths."""


class BatchPlan(ABC):
    """Protocol: how the rows of a window make batches, by their lengths alone.

    `Rows`, `TokenBudget`, `Buckets` and `Packed` are such plans. A plan of your own is a frozen dataclass that
    inherits BatchPlan and has `layout`; the other members have defaults, which it may replace by fields or
    methods of the same names. Its fields decide the batches, so states contain them, by `to_dict`.
    """

    lengths: str | None = None
    """Lengths tensor to plan on; by default that of the only list column of numbers."""
    balance: Balance | None = None
    """Balance that assigns the rows or batches of training steps so that all ranks have equal costs."""
    drop_last: bool = False
    """Whether the short batches at the end of a window are omitted."""
    columns: tuple[str, ...] | None = None
    """List columns that are cut together if rows are cut."""
    along: AlongColumns = ()
    """List columns that travel with their row; a mapping says where their items are, so that rows may be cut."""
    multiple_of: int = 1
    """Lengths of padded rows are rounded up to a multiple of this, in `BatchSize.cells`."""
    shared_with: tuple[str, ...] = ()
    """Columns that must be equal in rows that share a prefix."""

    @abstractmethod
    def layout(self, sizes: Array, key: int) -> Layout:
        """Lay out rows of these lengths in batches: the number of rows in each, and their order.

        Random numbers must depend on `key` alone, as in `permutation(n, key)`, because other ranks lay out the
        same window.
        """

    def select(self, sizes: Array) -> RowSelection:
        """Return the rows, or pieces of them, that are laid out; rows that filters omit are counted."""
        return RowSelection.of(sizes)

    @property
    def needs_lengths(self) -> bool:
        """Whether the records must have lengths to plan on."""
        return True

    @property
    def rows_across(self) -> int | None:
        """Rows of each batch if batches run across windows; None if each window is laid out alone."""
        return None

    @property
    def deals_rows(self) -> bool:
        """Whether a balance may exchange rows between batches, because all have the same number; else whole
        batches.
        """
        return False

    @property
    def reorders_rows(self) -> bool:
        """Whether batches have rows in another order than the window."""
        return self.packed_capacity is not None

    @property
    def cuts_rows(self) -> bool:
        """Whether rows may be cut, so that a batch has only a piece of them."""
        return False

    @property
    def splits_rows(self) -> bool:
        """Whether one row may make several."""
        return False

    @property
    def cut_limit(self) -> int | None:
        """Most elements of a piece, if rows are cut."""
        return self.packed_capacity

    @property
    def takes_pads(self) -> bool:
        """Whether batches may be padded; not if they are planned by the costs of flat rows."""
        return True

    @property
    def packed_capacity(self) -> int | None:
        """Elements of each row of a batch, if rows are packed."""
        return None

    def unknown_by_lengths(self) -> str:
        """Return what lengths of rows do not tell of the batches, as a sentence; empty if they tell all."""
        if self.cuts_rows and isinstance(self.along, Mapping):
            return "rows are cut outside the items of along, and lengths do not tell where these are"
        return ""

    def limits(self, tokens: int | None, rows: int | None) -> BatchLimits:
        """Return upper bounds of a batch, from those of all rows: elements of the planned column, and rows."""
        return BatchLimits(rows)

    def cut_columns(self, rows: WindowRows, lengths: str) -> Sequence[CutColumn]:
        """Return the columns that are cut when rows are; raise BatchPlanError when they cannot be cut together."""
        if not self.cuts_rows:
            return ()
        whole = {*rows.pads, *self.along, *self._whole_lists(rows)}
        found = cut_tensors(rows.records[0], lengths, self.columns, type(self).__name__, whole)
        return [CutColumn(name.removesuffix(".values"), name, of) for name, of in found.items()]

    def _whole_lists(self, rows: WindowRows) -> Collection[str]:
        """Return list columns that a batch has by row, though others are cut."""
        return ()

    def record(
        self, batches: WindowBatches, pieces: Pieces, counts: Array | None, memory: BatchMemory | None = None
    ) -> Record:
        """Return the batch of these pieces of rows; `counts` has the number of pieces of each packed row."""
        if batches.cut:
            return batches.rows.take_pieces(pieces, batches.cut, memory)
        return batches.rows.take(pieces.rows, memory)

    def row_sizes(self, rows: WindowRows, lengths: str) -> Array:
        """Return the sizes that batches are planned on."""
        return usable_sizes(rows, lengths, self.columns, type(self).__name__)

    def of_window(
        self, rows: WindowRows, lengths: str | None, key: int = 0, window: int = 0
    ) -> WindowBatches:
        """Return the batches of a window, in an order that depends on `key` if the plan permutes them."""
        columns: Sequence[CutColumn] = ()
        bad: Sequence[BadRow] = ()
        if lengths is None:
            selection = RowSelection.of(np.zeros(rows.num_rows, np.int64))
        else:
            sizes = self.row_sizes(rows, lengths)
            check_carried(rows.records[0], self.along, {lengths, *(self.columns or ())}, type(self).__name__)
            columns = self.cut_columns(rows, lengths)
            spans, wrong = item_spans(rows, self.along), list[BadRow]()
            if spans:
                spans, sizes, wrong = without_wrong(rows, spans, sizes)
            selection = self.select(sizes)
            bad = [*wrong, *unusable_rows(rows, sizes, selection, lengths, self.columns)]
            if spans and (limit := self.cut_limit) is not None:
                selection, too_long = cut_outside(
                    selection, rows, spans, sizes, limit, splits=self.splits_rows
                )
                bad += too_long
            selection, unequal = self._arranged(selection, rows, columns)
            bad += unequal
        layout = self._layout(selection, key)
        found = WindowBatches(
            self,
            rows,
            *laid_out(selection.pieces, layout),
            columns if selection.cut or self.packed_capacity is not None else (),
            (window,),
            is_whole=selection.whole and layout.order is None and layout.packing is None,
            skipped=selection.skipped,
            bad=bad,
        )
        return found.without(layout.short) if self.drop_last and layout.short else found

    def count(self, sizes: Array) -> int:
        """Return the number of batches of a window whose rows have these sizes."""
        return self._layout(self.select(sizes), 0).num_kept(self.drop_last)

    def batch_sizes(self, sizes: Array, key: int = 0) -> Array:
        """int64[batches, 5]: a BatchSize for each batch of a window whose rows have these sizes, ordered by `key`.

        Short batches, which `drop_last` omits, come last.
        """
        selection = self.select(sizes)
        return sizes_of(self, *laid_out(selection.pieces, self._layout(selection, key)))

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the plan and its fields as JSON values, which states contain."""
        return {"name": type(self).__name__, **_fields_of(self)}

    def _arranged(
        self, selection: RowSelection, rows: WindowRows, columns: Sequence[CutColumn]
    ) -> tuple[RowSelection, list[BadRow]]:
        """Return the selection in the order in which it is laid out, and rows that cannot be."""
        return selection, []

    def _layout(self, selection: RowSelection, key: int) -> Layout:
        sizes = selection.pieces.sizes
        if not len(sizes) and self.packed_capacity is None:
            return Layout(sizes)
        return self.layout(sizes, key).checked(type(self).__name__, len(sizes))


def shown_plan(plan: BatchPlan) -> str:
    """Return the text of a plan, without fields that are newer than states and have their default."""
    return call_text(plan.to_dict())


def _fields_of(value: Any) -> dict[str, Any]:
    shown = fields(value) if is_dataclass(value) else ()
    return {
        one.name: _plain(getattr(value, one.name))
        for one in shown
        if "later" not in one.metadata or getattr(value, one.name) != _default(one)
    }


def _default(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


def _plain(value: Any) -> Any:
    """Return a value as JSON; a value without a JSON form becomes its text."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, BatchPlan):
        return value.to_dict()
    if is_dataclass(value):
        return {"name": type(value).__name__, **_fields_of(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return repr(value)


@dataclass(slots=True, eq=False)
class WindowBatches:
    """The batches of a window: pieces of rows, batch after batch."""

    plan: BatchPlan
    rows: WindowRows
    pieces: Pieces
    ends: Array
    """int64[B + 1]: the row at which each batch begins among the rows of all batches, and their number."""
    first: Array | None = None
    """int64[R + 1]: the first piece of each row of the batches; None if each row is one piece."""
    columns: Sequence[CutColumn] = ()
    """Columns of which batches have the elements of their pieces, not of whole rows."""
    windows: Sequence[int] = (0,)
    """Numbers of the windows that the rows come from."""
    first_rows: Array | None = None
    """int64: the first row of each window, if there are several."""
    is_whole: bool = False
    """Whether the pieces are all rows of the window, in order."""
    dropped: BatchSize = NO_ROWS
    """Sizes that `drop_last` omits."""
    skipped: int = 0
    """Number of rows of the window that filters by length omit."""
    bad: Sequence[BadRow] = ()
    """Rows in no batch because they cannot be used, numbered over the records of the window, before it is
    shuffled. The loader applies its policy to them."""
    sizes: Array = field(init=False)
    """int64[B, 5]: a BatchSize for each."""
    cut: Collection[str] = field(init=False)
    """Lengths of `columns`."""
    before_net: tuple[WindowBatches, tuple[int, ...]] | None = field(init=False, default=None)
    """Kept by who makes the batches: the same ones with the results of these steps of the net that runs on them."""

    def __post_init__(self) -> None:
        self.cut = {one.lengths for one in self.columns}
        self.sizes = sizes_of(self.plan, self.pieces, self.ends, self.first)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def size(self, number: int) -> BatchSize:
        return BatchSize(*self.sizes[number].tolist())

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        """Return the batch, in `memory` if it is given; it is then valid until the memory is used again."""
        return self._make(self._rows_of(number), memory)

    def make_all(self, numbers: Sequence[int], memories: Sequence[BatchMemory | None]) -> list[Record]:
        """Return several batches, each in a memory of its own."""
        if self.cut:
            return list(map(self.make, numbers, memories))
        found = map(self._rows_of, numbers)
        rows = list(found) if self.is_whole else [self.pieces.rows[of] for of in found]
        return self.rows.take_all(rows, memories)

    def part(self, number: int, chosen: Array) -> Record:
        """Return a batch made from some of its pieces alone, by their places in `numbers`, in increasing order."""
        pieces = self.pieces_of(number).some(chosen)
        if self.first is None:
            return self.plan.record(self, pieces, None)
        counts = np.bincount(self.row_of_pieces(number)[chosen])
        return self.plan.record(self, pieces, counts[counts > 0])

    def size_of_part(self, number: int, chosen: Array) -> BatchSize:
        """Return the size of such a batch. Rows begin in the batch as it was planned."""
        planned, kept = self.size(number), len(np.unique(self.row_of_pieces(number)[chosen]))
        pieces = self.pieces_of(number).some(chosen)
        cells = planned.cells * kept // max(1, planned.rows)
        return BatchSize(kept, int(pieces.sizes.sum()), cells, planned.begun, int(pieces.shared.sum()))

    def empty(self) -> Record:
        """Return a batch without rows, with the tensors that all batches have."""
        return self._make(slice(0, 0))

    def numbers(self, number: int) -> Array:
        """Return the rows that a batch, or its pieces, are made from: their numbers over the window's records."""
        if self.is_whole:
            return self.rows.numbers(self._rows_of(number))
        return self.rows.numbers(self.pieces_of(number).rows)

    def pieces_of(self, number: int) -> Pieces:
        return self.pieces.take(self._span(self._rows_of(number)))

    def row_of_pieces(self, number: int) -> Array:
        """int64: the row of the batch that contains each of its pieces."""
        counts = self.counts(self._rows_of(number))
        return np.repeat(np.arange(len(counts)), counts)

    def counts(self, rows: slice) -> Array:
        """int64: the pieces of each of some of the batches' rows."""
        if self.first is None:
            return np.ones(rows.stop - rows.start, np.int64)
        return np.diff(self.first[rows.start : rows.stop + 1])

    def of_rows(self, rows: slice) -> Pieces:
        """Return the pieces of some of the batches' rows."""
        return self.pieces.take(self._span(rows))

    def without(self, short: int) -> WindowBatches:
        """Return all batches except the last ones, which are dropped."""
        kept = len(self) - short
        dropped = BatchSize(*self.sizes[kept:].sum(axis=0).tolist())
        return replace(self, ends=self.ends[: kept + 1], dropped=dropped)

    def regrouped(self, rows: Array, counts: Array) -> WindowBatches:
        """Return batches of so many rows each, taken from these rows of the batches."""
        chosen, first = rows, None
        if self.first is not None:
            first, of_row = self.first[rows], np.diff(self.first)[rows]
            chosen = np.repeat(first, of_row) + kernels.lengths_to_positions(of_row)
            first = kernels.lengths_to_offsets(of_row)
        ends = kernels.lengths_to_offsets(counts)
        return replace(self, pieces=self.pieces.take(chosen), ends=ends, first=first, is_whole=False)

    def _rows_of(self, number: int) -> slice:
        return slice(self.ends.item(number), self.ends.item(number + 1))

    def _span(self, rows: slice) -> slice:
        """Return the places of the pieces of some rows."""
        if self.first is None:
            return rows
        return slice(self.first.item(rows.start), self.first.item(rows.stop))

    def _make(self, rows: slice, memory: BatchMemory | None = None) -> Record:
        if self.is_whole:
            return self.rows.take(rows, memory)
        counts = None if self.first is None else self.counts(rows)
        return self.plan.record(self, self.of_rows(rows), counts, memory)


def laid_out(pieces: Pieces, layout: Layout) -> tuple[Pieces, Array, Array | None]:
    """Return the pieces batch after batch, the first row of each batch, and the first piece of each packed row."""
    ends = kernels.lengths_to_offsets(layout.counts)
    if layout.packing is None:
        return pieces if layout.order is None else pieces.take(layout.order), ends, None
    packing = layout.packing
    found = pieces.take(packing.sources)
    found = replace(found, starts=found.starts + packing.starts, sizes=packing.piece_lengths)
    return found, ends, kernels.lengths_to_offsets(packing.pieces)


def sizes_of(plan: BatchPlan, pieces: Pieces, ends: Array, first: Array | None) -> Array:
    """int64[B, 5]: a BatchSize for each batch; rows are padded to the longest, or a multiple."""
    found = np.empty((len(ends) - 1, len(BatchSize._fields)), np.int64)
    if not len(found):
        return found
    rows, spans = np.diff(ends), ends if first is None else first[ends]
    counts = rows if first is None else np.diff(spans)
    tokens = kernels.lengths_to_offsets(pieces.sizes)[spans]
    width: Any = plan.packed_capacity
    if width is None:
        width = kernels.segment_reduce("max", pieces.sizes[: spans[-1]], counts)
        if plan.multiple_of > 1:
            width = -(-width // plan.multiple_of) * plan.multiple_of
    found[:, 0], found[:, 1], found[:, 2] = rows, np.diff(tokens), rows * width
    found[:, 3] = np.diff(pieces.begun[spans]) if plan.cuts_rows else rows
    found[:, 4] = 0 if pieces.trees is None else np.diff(kernels.lengths_to_offsets(pieces.shared)[spans])
    return found


def joined(batches: Sequence[WindowBatches]) -> tuple[WindowBatches, Array]:
    """Return the rows of all batches in turn, as batches that are then balanced, and the first row of each."""
    one = batches[0]
    rows = reduce(WindowRows.joined, [of.rows for of in batches])
    before = kernels.lengths_to_offsets(np.array([of.rows.num_rows for of in batches]))
    pieces = Pieces(
        np.concatenate([of.pieces.rows + first for of, first in zip(batches, before[:-1], strict=True)]),
        np.concatenate([of.pieces.starts for of in batches]),
        np.concatenate([of.pieces.sizes for of in batches]),
        {
            name: ChildRanges(
                *map(np.concatenate, zip(*(of.pieces.items[name] for of in batches), strict=True))
            )
            for name in one.pieces.items
        },
        None if one.pieces.trees is None else np.concatenate([of.pieces.trees for of in batches]),
    )
    counts, first = np.array([len(of.pieces.rows) for of in batches]), None
    if one.first is not None:
        of_row = np.concatenate([np.diff(of.first) for of in batches if of.first is not None])
        first = kernels.lengths_to_offsets(of_row)
        counts = np.array([len(of.first) - 1 for of in batches if of.first is not None])
    source_rows = kernels.lengths_to_offsets(np.array([of.rows.source.num_rows for of in batches]))
    windows = [of.windows[0] for of in batches]
    made = WindowBatches(one.plan, rows, pieces, one.ends[:1], first, one.columns, windows, source_rows[:-1])
    return made, kernels.lengths_to_offsets(counts)[:-1]
