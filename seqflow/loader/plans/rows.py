"""Rows: batches of equally many rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance, check_balance
from seqflow.loader.plans.batches import BatchBounds, RowBatches, padded_sizes, row_batches
from seqflow.loader.plans.plan_options import LATER, shown_plan
from seqflow.loader.plans.selection import RowSelection, at_least_one, check_lengths_between
from seqflow.loader.plans.window_rows import WindowRows, row_sizes
from seqflow.renamed import renamed_fields


@renamed_fields()
@dataclass(frozen=True, slots=True)
class Rows:
    """Batches of `n` rows. A last short batch is kept unless `drop_last`."""

    n: int
    drop_last: bool = False
    lengths: str | None = None
    """The lengths tensor whose fill is reported; the only list column of numbers by default."""
    min_length: int | None = None
    """Shorter rows are left out, and counted."""
    max_length: int | None = None
    """Longer rows are left out, and counted."""
    balance: Balance | None = field(default=None, metadata=LATER)
    """Deals the rows or batches of training steps so that all ranks cost alike."""

    __repr__ = shown_plan

    def __post_init__(self) -> None:
        at_least_one("Rows", n=self.n)
        check_lengths_between("Rows", self.min_length, self.max_length)
        check_balance("Rows", self.balance)

    @property
    def filters(self) -> bool:
        """Whether rows may be left out by their lengths."""
        return self.min_length is not None or self.max_length is not None

    @property
    def needs_lengths(self) -> bool:
        """Whether the records must have lengths to plan on."""
        return self.filters or self.balance is not None

    @property
    def columns(self) -> None:
        """Rows are not cut."""
        return None

    def of_window(self, rows: WindowRows, lengths: str | None, key: int = 0, window: int = 0) -> RowBatches:
        """The batches of a window, in the order of its rows."""
        if lengths is None:
            assert not self.filters  # planned_lengths sees to that
            everything, bounds = RowSelection.of(np.zeros(0, np.int64)), self.bounds(rows.num_rows)
            return row_batches(rows, everything, bounds, padded_sizes(bounds, None), self.drop_last)
        selection = self.select(row_sizes(rows, lengths))
        bounds = self.bounds(len(selection.pieces.sizes))
        return row_batches(
            rows, selection, bounds, padded_sizes(bounds, selection.pieces.sizes), self.drop_last
        )

    def count(self, sizes: Array) -> int:
        """The number of batches of a window whose rows have these sizes."""
        return self.bounds(len(self.select(sizes).pieces.sizes)).count(self.drop_last)

    def batch_sizes(self, sizes: Array) -> Array:
        """int64[batches, 4]: a BatchSize for each batch of a window whose rows have these sizes, in any order."""
        selected = self.select(sizes).pieces.sizes
        return padded_sizes(self.bounds(len(selected)), selected)

    def row_sizes(self, rows: WindowRows, lengths: str) -> Array:
        """The sizes that batches are planned on."""
        return row_sizes(rows, lengths)

    def select(self, sizes: Array) -> RowSelection:
        """The rows that batches are made of."""
        return RowSelection.of(sizes).between(self.min_length, self.max_length)

    def bounds(self, num_rows: int, sizes: Array | None = None) -> BatchBounds:
        """Which of these consecutive rows make a batch."""
        full = np.arange(self.n, num_rows + 1, self.n, dtype=np.int64)
        left = num_rows % self.n
        return BatchBounds.until(np.append(full, num_rows) if left else full, left > 0)
