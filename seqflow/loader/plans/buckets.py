"""Buckets: batches of rows of similar lengths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance, check_balance
from seqflow.loader.plans.batches import BatchBounds, RowBatches, padded_sizes, row_batches
from seqflow.loader.plans.permutation import permutation
from seqflow.loader.plans.plan_options import LATER, shown_plan
from seqflow.loader.plans.rows import Rows
from seqflow.loader.plans.selection import RowSelection, at_least_one
from seqflow.loader.plans.token_budget import TokenBudget
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.renamed import renamed_fields


@renamed_fields()
@dataclass(frozen=True, slots=True)
class Buckets:
    """Batches of rows of similar lengths, which need less padding, by another plan: `Rows` or `TokenBudget`.

        sf.Buckets([64, 128, 256], sf.Rows(32))
        sf.Buckets(16, sf.TokenBudget(16_384, padded=True))

    `boundaries` are the largest lengths of all buckets but the last, which has all longer rows; or how many buckets
    there are, of equally many tokens each. The rows of a window fall into buckets, each of which makes batches in the
    order of its rows; the batches of all buckets come in a random order. The last batch of a bucket may be short:
    these come last in the window, and the plan's `drop_last` leaves them out.
    """

    boundaries: int | tuple[int, ...]
    plan: Rows | TokenBudget
    balance: Balance | None = field(default=None, metadata=LATER)
    """Deals the rows or batches of training steps so that all ranks cost alike."""

    __repr__ = shown_plan

    def __post_init__(self) -> None:
        plan: object = self.plan
        boundaries: Any = self.boundaries
        if not isinstance(plan, (Rows, TokenBudget)):
            raise OpTypeError(f"Buckets: plan is {plan!r}, expected Rows(n) or TokenBudget(max_tokens)")
        check_balance("Buckets", self.balance)
        if isinstance(plan, TokenBudget) and plan.strategy != "in_order":
            raise OpError(
                f"Buckets: strategy is {plan.strategy!r}, expected 'in_order': buckets order the rows"
            )
        if plan.balance is not None:
            raise OpError(
                "Buckets: its plan has a balance\n  give balance= to Buckets, whose batches are dealt"
            )
        if not isinstance(boundaries, Iterable):
            at_least_one("Buckets", boundaries=boundaries)
            return
        if isinstance(boundaries, str):
            raise OpTypeError(
                f"Buckets: boundaries is {self.boundaries!r}, expected lengths, or a number of buckets"
            )
        object.__setattr__(self, "boundaries", tuple(boundaries))
        self._check_order()

    def _check_order(self) -> None:
        assert not isinstance(self.boundaries, int)
        if not self.boundaries:
            raise OpError(
                "Buckets: boundaries is empty, expected at least one length, or a number of buckets"
            )
        before = 0
        for place, boundary in enumerate(self.boundaries):
            at_least_one("Buckets", **{f"boundaries[{place}]": boundary})
            if boundary <= before:
                raise OpError(
                    f"Buckets: boundaries has {boundary} after {before}, expected lengths in increasing order"
                )
            before = boundary

    @property
    def lengths(self) -> str | None:
        return self.plan.lengths

    @property
    def drop_last(self) -> bool:
        return self.plan.drop_last

    @property
    def columns(self) -> tuple[str, ...] | None:
        return self.plan.columns

    @property
    def needs_lengths(self) -> bool:
        return True

    def of_window(self, rows: WindowRows, lengths: str | None, key: int = 0, window: int = 0) -> RowBatches:
        """The batches of a window, those that are full permuted by `key` whether or not the loader shuffles."""
        assert lengths is not None  # planned_lengths sees to that
        sizes = self.row_sizes(rows, lengths)
        selection, bounds = self._plan(sizes)
        of_bounds = self._padded_sizes(selection, bounds)
        chosen = permutation(len(bounds), key)
        chosen = chosen[np.argsort(bounds.short[chosen], kind="stable")]
        bounds, of_bounds = bounds.take(chosen), of_bounds[chosen]
        if isinstance(self.plan, Rows):
            return row_batches(rows, selection, bounds, of_bounds, self.drop_last)
        bad = self.plan.bad_rows(rows, sizes, selection, lengths)
        return row_batches(
            rows, selection, bounds, of_bounds, self.drop_last, bad, self.plan.cut(rows, lengths)
        )

    def count(self, sizes: Array) -> int:
        """The number of batches of a window whose rows have these sizes."""
        return self._plan(sizes)[1].count(self.drop_last)

    def batch_sizes(self, sizes: Array) -> Array:
        """int64[batches, 4]: a BatchSize for each batch of a window whose rows have these sizes, in any order."""
        return self._padded_sizes(*self._plan(sizes))

    def _padded_sizes(self, selection: RowSelection, bounds: BatchBounds) -> Array:
        multiple = self.plan.multiple_of if isinstance(self.plan, TokenBudget) else 1
        return padded_sizes(bounds, selection.pieces.sizes, multiple)

    def select(self, sizes: Array) -> RowSelection:
        """The rows, or pieces of them, that batches are made of."""
        return self.plan.select(sizes)

    def row_sizes(self, rows: WindowRows, lengths: str) -> Array:
        """The sizes that batches are planned on."""
        return self.plan.row_sizes(rows, lengths)

    def _plan(self, sizes: Array) -> tuple[RowSelection, BatchBounds]:
        """The rows bucket by bucket, and the batches of all buckets."""
        selection = self.plan.select(sizes)
        limits = self._limits(selection.pieces.sizes)
        of_row = np.searchsorted(limits, selection.pieces.sizes, side="left")
        counted = np.uint16 if len(limits) < 2**16 else np.int64  # 16 bits are sorted by counting
        order = np.argsort(of_row.astype(counted), kind="stable")
        selection = replace(selection, pieces=selection.pieces.take(order), whole=False)
        return selection, self._bounds(np.bincount(of_row), selection.pieces.sizes)

    def _limits(self, sizes: Array) -> Array:
        """The largest lengths of all buckets but the last."""
        if not isinstance(self.boundaries, int):
            return np.array(self.boundaries, np.int64)
        if not len(sizes):
            return np.zeros(0, np.int64)
        in_order = np.sort(sizes)
        tokens = np.cumsum(in_order)
        shares = np.arange(1, self.boundaries) * int(tokens[-1]) // self.boundaries
        return np.unique(in_order[np.searchsorted(tokens, shares)])

    def _bounds(self, counts: Array, sizes: Array) -> BatchBounds:
        """The batches of all buckets; `sizes` are those of the rows, bucket by bucket."""
        found, start = [], 0
        for count in counts.tolist():
            bounds = self.plan.bounds(count, sizes[start : start + count])
            found.append(BatchBounds(bounds.starts + start, bounds.stops + start, bounds.short))
            start += count
        if not found:
            return BatchBounds.until(np.zeros(0, np.int64), False)
        return BatchBounds(
            np.concatenate([bounds.starts for bounds in found]),
            np.concatenate([bounds.stops for bounds in found]),
            np.concatenate([bounds.short for bounds in found]),
        )
