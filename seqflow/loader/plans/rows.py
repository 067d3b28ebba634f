"""Rows: batches of equally many rows; and the plan that an argument stands for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from seqflow.errors import OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance, check_balance
from seqflow.loader.plans.batches import Layout
from seqflow.loader.plans.plan import LATER, BatchLimits, BatchPlan, shown_plan
from seqflow.loader.plans.selection import RowSelection, at_least_one, check_lengths_between
from seqflow.renamed import renamed_fields


@renamed_fields()
@dataclass(frozen=True, slots=True)
class Rows(BatchPlan):
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
        return self.filters or self.balance is not None

    @property
    def rows_across(self) -> int | None:
        return None if self.filters else self.n

    @property
    def deals_rows(self) -> bool:
        return True

    def limits(self, tokens: int | None, rows: int | None) -> BatchLimits:
        return BatchLimits(self.n)

    def select(self, sizes: Array) -> RowSelection:
        return RowSelection.of(sizes).between(self.min_length, self.max_length)

    def layout(self, sizes: Array, key: int) -> Layout:
        """The rows in their order, `n` in each batch."""
        return Layout(*batches_of_n(len(sizes), self.n))


def batches_of_n(rows: int, n: int) -> tuple[Array, None, int]:
    """How many rows each batch has, in their order, and how many batches are short."""
    full, left = divmod(rows, n)
    counts = np.full(full + (left > 0), n, np.int64)
    if left:
        counts[-1] = left
    return counts, None, int(left > 0)


def batch_plan(batch: BatchPlan | int) -> BatchPlan:
    """The plan itself, or `Rows(n)` for an integer n.

    >>> batch_plan(32) == Rows(32)
    True
    """
    if isinstance(batch, BatchPlan):
        return batch
    if isinstance(batch, int) and not isinstance(batch, bool):
        return Rows(batch)
    raise OpTypeError(
        f"batch is {batch!r}, expected a number of rows, Rows(n), TokenBudget(max_tokens), "
        "Buckets(boundaries, plan), Packed(capacity) or a BatchPlan of your own"
    )
