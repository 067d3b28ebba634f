"""Buckets: batches of rows of similar lengths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance, check_balance
from seqflow.loader.plans.batches import Layout
from seqflow.loader.plans.permutation import permutation
from seqflow.loader.plans.plan import LATER, BatchPlan, shown_plan
from seqflow.loader.plans.rows import Rows
from seqflow.loader.plans.selection import at_least_one
from seqflow.loader.plans.token_budget import TokenBudget
from seqflow.renamed import renamed_fields


def _of_plan(name: str) -> Any:
    return property(attrgetter(f"plan.{name}"))


@renamed_fields()
@dataclass(frozen=True, slots=True)
class Buckets(BatchPlan):
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

    # which rows make batches, and what these may hold, is said by the plan
    lengths, columns, multiple_of = _of_plan("lengths"), _of_plan("columns"), _of_plan("multiple_of")
    drop_last, cuts_rows, splits_rows = _of_plan("drop_last"), _of_plan("cuts_rows"), _of_plan("splits_rows")
    select, row_sizes, limits = _of_plan("select"), _of_plan("row_sizes"), _of_plan("limits")

    def layout(self, sizes: Array, key: int) -> Layout:
        """The batches of all buckets, permuted by `key`, those that are short last."""
        of_row = np.searchsorted(self._limits(sizes), sizes, side="left")
        in_buckets = np.argsort(of_row.astype(np.min_scalar_type(of_row.max(initial=0))), kind="stable")
        found, first = [], 0
        for rows in np.bincount(of_row).tolist():
            found.append(self.plan.layout(sizes[in_buckets[first : first + rows]], key))
            first += rows
        counts = np.concatenate([np.zeros(0, np.int64), *(one.counts for one in found)])
        is_short = np.zeros(len(counts), bool)
        ends = np.cumsum([len(one.counts) for one in found], dtype=np.int64)
        is_short[ends[np.array([one.short > 0 for one in found], bool)] - 1] = True
        chosen = permutation(len(counts), key)
        chosen = chosen[np.argsort(is_short[chosen], kind="stable")]
        starts = kernels.lengths_to_offsets(counts)[chosen]
        counts = counts[chosen]
        order = in_buckets[np.repeat(starts, counts) + kernels.lengths_to_positions(counts)]
        return Layout(counts, order, int(np.count_nonzero(is_short)))

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
