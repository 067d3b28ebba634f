"""BatchPlan: the protocol of all batch plans. A plan lays out rows by their lengths; all else follows from that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from seqflow.identity.plans import plan_text
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance
from seqflow.loader.plans.batches import CutColumn, Layout, WindowBatches, laid_out, sizes_of
from seqflow.loader.plans.selection import Pieces, RowSelection, cut_tensors, unusable_rows, usable_sizes
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import BadRow, Record
from seqflow.record.batch_memory import BatchMemory

LATER: Mapping[str, Any] = {"later": True}
"""Metadata of a field that is newer than states which hold plans: they leave it out where it has its default."""


class BatchLimits(NamedTuple):
    """Upper bounds of what a batch holds; None where there is none."""

    rows: int | None
    tokens: int | None = None
    """Elements of the planned column."""
    cells: int | None = None
    """Its elements when rows are padded to the longest."""
    longest: Mapping[str, int] = {}
    """The largest of some tensors of lengths."""


class BatchPlan(ABC):
    """Protocol: how the rows of a window make batches, by their lengths alone.

    `Rows`, `TokenBudget`, `Buckets` and `Packed` are such plans. One of your own is a frozen dataclass that inherits
    BatchPlan and has `layout`; the rest has defaults, which it may replace by fields or methods of the same names.
    Its fields decide which batches there are: states hold them, by `to_dict`.
    """

    lengths: str | None = None
    """The lengths tensor to plan on; the only list column of numbers by default."""
    balance: Balance | None = None
    """Deals the rows or batches of training steps so that all ranks cost alike."""
    drop_last: bool = False
    """Whether the short batches at the end of a window are left out."""
    columns: tuple[str, ...] | None = None
    """The list columns that are cut together where rows are cut."""
    multiple_of: int = 1
    """Lengths of padded rows are rounded up to a multiple of it, in `BatchSize.cells`."""

    @abstractmethod
    def layout(self, sizes: Array, key: int) -> Layout:
        """Lay out rows of these lengths in batches: how many each has, and in which order the rows are.

        Random numbers depend on `key` alone, as in `permutation(n, key)`: other ranks lay out the same window.
        """

    def select(self, sizes: Array) -> RowSelection:
        """The rows, or pieces of them, that are laid out; what filters leave out is counted."""
        return RowSelection.of(sizes)

    @property
    def needs_lengths(self) -> bool:
        """Whether the records must have lengths to plan on."""
        return True

    @property
    def rows_across(self) -> int | None:
        """Rows of each batch where batches run across windows; None where each window is laid out alone."""
        return None

    @property
    def deals_rows(self) -> bool:
        """Whether a balance may exchange rows between batches, since all have equally many; else whole batches."""
        return False

    @property
    def cuts_rows(self) -> bool:
        """Whether rows may be cut, so that a batch has only a piece of them."""
        return False

    @property
    def splits_rows(self) -> bool:
        """Whether one row may make several."""
        return False

    @property
    def takes_pads(self) -> bool:
        """Whether batches may be padded; not where they are planned by what flat rows cost."""
        return True

    @property
    def packed_capacity(self) -> int | None:
        """Elements of each row of a batch, where rows are packed."""
        return None

    def limits(self, tokens: int | None, rows: int | None) -> BatchLimits:
        """Upper bounds of a batch, from those of all rows: elements of the planned column, and rows."""
        return BatchLimits(rows)

    def cut_columns(self, rows: WindowRows, lengths: str) -> Sequence[CutColumn]:
        """The columns that are cut where rows are; BatchPlanError where they cannot be cut together."""
        if not self.cuts_rows:
            return ()
        found = cut_tensors(rows.records[0], lengths, self.columns, type(self).__name__, rows.pads)
        return [CutColumn(name.removesuffix(".values"), name, of) for name, of in found.items()]

    def record(
        self, batches: WindowBatches, pieces: Pieces, counts: Array | None, memory: BatchMemory | None = None
    ) -> Record:
        """The batch that has these pieces of rows; `counts` says how many each packed row has."""
        if batches.cut:
            return batches.rows.take_pieces(pieces, batches.cut, memory)
        return batches.rows.take(pieces.rows, memory)

    def row_sizes(self, rows: WindowRows, lengths: str) -> Array:
        """The sizes that batches are planned on."""
        return usable_sizes(rows, lengths, self.columns, type(self).__name__)

    def of_window(
        self, rows: WindowRows, lengths: str | None, key: int = 0, window: int = 0
    ) -> WindowBatches:
        """The batches of a window, in an order that depends on `key` where the plan permutes them."""
        columns: Sequence[CutColumn] = ()
        bad: Sequence[BadRow] = ()
        if lengths is None:
            selection = RowSelection.of(np.zeros(rows.num_rows, np.int64))
        else:
            sizes = self.row_sizes(rows, lengths)
            selection = self.select(sizes)
            columns = self.cut_columns(rows, lengths)
            bad = unusable_rows(rows, sizes, selection, lengths, self.columns)
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
        """The number of batches of a window whose rows have these sizes."""
        layout = self._layout(self.select(sizes), 0)
        return len(layout.counts) - layout.short * self.drop_last

    def batch_sizes(self, sizes: Array) -> Array:
        """int64[batches, 4]: a BatchSize for each batch of a window whose rows have these sizes, in any order."""
        selection = self.select(sizes)
        return sizes_of(self, *laid_out(selection.pieces, self._layout(selection, 0)))

    def to_dict(self) -> dict[str, Any]:
        """The name of the plan and its fields, as JSON has them: what states say of it."""
        return {"name": type(self).__name__, **_fields_of(self)}

    def _layout(self, selection: RowSelection, key: int) -> Layout:
        sizes = selection.pieces.sizes
        if not len(sizes) and self.packed_capacity is None:
            return Layout(sizes)
        return self.layout(sizes, key).checked(type(self).__name__, len(sizes))


def shown_plan(plan: BatchPlan) -> str:
    """The text of a plan, without fields that are newer than states and have their default."""
    return plan_text(plan.to_dict())


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
    """A value as JSON has it; what JSON has not is its text."""
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
