"""TokenBudget: batches of as many rows as fit into a number of tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance, check_balance, check_linear
from seqflow.loader.plans.batches import Layout
from seqflow.loader.plans.permutation import permutation
from seqflow.loader.plans.plan import LATER, BatchLimits, BatchPlan, shown_plan
from seqflow.loader.plans.selection import (
    Oversize,
    RowSelection,
    at_least_one,
    check_lengths_between,
    check_oversize,
    checked_columns,
)
from seqflow.renamed import renamed_fields


@renamed_fields()
@dataclass(frozen=True, slots=True)
class TokenBudget(BatchPlan):
    """Batches of at most `max_tokens` tokens, as many rows as fit, and at most `max_rows` of them.

    With `padded` the tokens are those of the padded batch: rows times the longest, rounded up to a `multiple_of`.
    A row above the budget is a bad row unless `oversize` says to "truncate" it, to "split" it into several rows, or
    to "skip" it. What is cut are all columns under the planned lengths, or those of `columns`, which need equal
    lengths in each row.

    With `strategy="best_fit"` the rows of a window are packed into batches, longest first, which come in a random
    order: nearly all are full. With `linear` besides they cost alike instead: a row of L tokens costs
    `L * (linear + L)`, and a batch as much as one row of `max_tokens`; of shorter rows it has more tokens, up to
    `max_tokens * (1 + max_tokens / linear)`, which memory must hold. Both are for batches that are not padded.
    """

    max_tokens: int
    padded: bool = False
    max_rows: int | None = None
    drop_last: bool = False
    lengths: str | None = None
    """The lengths tensor to plan on; the only list column of numbers by default."""
    multiple_of: int = 1
    min_length: int | None = None
    """Shorter rows are left out, and counted."""
    max_length: int | None = None
    """Longer rows are left out, and counted."""
    oversize: Oversize = "bad_rows"
    columns: tuple[str, ...] | None = None
    strategy: Literal["in_order", "best_fit"] = field(default="in_order", metadata=LATER)
    """Which rows of a window make a batch: those that follow each other, or those that fill it best."""
    linear: float | None = field(default=None, metadata=LATER)
    """With "best_fit": the budget is what `max_tokens` tokens in one row cost, as in `Balance`."""
    balance: Balance | None = field(default=None, metadata=LATER)
    """Deals the rows or batches of training steps so that all ranks cost alike."""

    __repr__ = shown_plan

    def __post_init__(self) -> None:
        at_least_one(
            "TokenBudget", max_tokens=self.max_tokens, max_rows=self.max_rows, multiple_of=self.multiple_of
        )  # fmt: skip
        check_lengths_between("TokenBudget", self.min_length, self.max_length)
        check_oversize("TokenBudget", self.oversize)
        check_balance("TokenBudget", self.balance)
        if self.multiple_of > 1 and not self.padded:
            raise OpError(f"TokenBudget: multiple_of is {self.multiple_of}, which needs padded=True")
        if self.multiple_of > self.max_tokens:
            raise OpError(
                f"TokenBudget: multiple_of is {self.multiple_of}, expected at most max_tokens = {self.max_tokens}"
            )
        self._check_strategy()
        object.__setattr__(self, "columns", checked_columns(self.columns, "TokenBudget"))
        if self.columns is not None and not self.cuts_rows:
            raise OpError(
                f'TokenBudget: columns are cut with oversize="truncate" or "split", not {self.oversize!r}'
            )

    def _check_strategy(self) -> None:
        if self.strategy not in ("in_order", "best_fit"):
            raise OpError(f"TokenBudget: strategy is {self.strategy!r}, expected 'in_order' or 'best_fit'")
        if self.linear is not None:
            check_linear("TokenBudget", self.linear)
            if not self._packs:
                raise OpError(f"TokenBudget: linear is {self.linear}, which needs strategy='best_fit'")
            if self.linear == 0:
                raise OpError(
                    "TokenBudget: linear is 0, with which short rows would fill a batch without end"
                )
        for name, value in (
            ("padded", self.padded),
            ("max_rows", self.max_rows),
            ("drop_last", self.drop_last),
        ):
            if value and self._packs:
                raise OpError(f"TokenBudget: {name} is {value!r}, which strategy='best_fit' cannot hold to")

    @property
    def _packs(self) -> bool:
        return self.strategy == "best_fit"

    @property
    def _longest(self) -> int:
        """The longest row that fits."""
        return self.max_tokens // self.multiple_of * self.multiple_of

    @property
    def cuts_rows(self) -> bool:
        return self.oversize in ("truncate", "split")

    @property
    def splits_rows(self) -> bool:
        return self.oversize == "split"

    @property
    def takes_pads(self) -> bool:
        return self.linear is None

    def limits(self, tokens: int | None, rows: int | None) -> BatchLimits:
        most = self.max_tokens if tokens is None else min(self.max_tokens, tokens)
        return BatchLimits(self.max_rows or rows, most, self.max_tokens if self.padded else None)

    def select(self, sizes: Array) -> RowSelection:
        """The rows that batches are made of, none above the budget."""
        passed = RowSelection.of(sizes).between(self.min_length, self.max_length)
        return passed.at_most(self._longest, self.oversize, f"max_tokens = {self.max_tokens}")

    def layout(self, sizes: Array, key: int) -> Layout:
        """The rows in their order, as many in each batch as fit; or packed into batches, which `key` permutes."""
        if not self._packs:
            stops, is_short = self._stops(sizes)
            return Layout(np.diff(stops, prepend=0), None, is_short)
        batch_of = self._batch_of(sizes)
        counts = np.bincount(batch_of)
        order = permutation(len(counts), key)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return Layout(counts[order], np.argsort(places[batch_of], kind="stable"))

    def _batch_of(self, sizes: Array) -> Array:
        """int64[rows]: the batch of each row, all of which are within the budget. Empty rows fit anywhere."""
        filled, empty = np.flatnonzero(sizes), np.flatnonzero(sizes == 0)
        costs, budget = sizes[filled], self.max_tokens
        if self.linear is not None:
            costs = np.rint(costs * (costs + self.linear)).astype(np.int64)
            budget = round(budget * (budget + self.linear))
        packing = kernels.plan_packing(costs, budget, "best_fit")
        found = np.zeros(len(sizes), np.int64)
        found[filled[packing.sources]] = np.repeat(np.arange(len(packing.pieces)), packing.pieces)
        found[empty] = np.arange(len(empty)) % max(1, len(packing.pieces))
        return found

    def _stops(self, sizes: Array) -> tuple[Array, int]:
        """The row after each batch of rows in order, and 1 where the last is short: it is not exactly full."""
        if self.multiple_of > 1:
            sizes = -(-sizes // self.multiple_of) * self.multiple_of
        stops = padded_stops(self, sizes) if self.padded else token_stops(self, sizes)
        if not len(stops):
            return stops, 0
        last = sizes[stops[-2] if len(stops) > 1 else 0 :]
        tokens = len(last) * int(last.max()) if self.padded else int(last.sum())
        return stops, int(tokens < self.max_tokens and len(last) != self.max_rows)


def token_stops(plan: TokenBudget, sizes: Array) -> Array:
    """The row after each batch: as many rows as fit into the budget."""
    ends = kernels.lengths_to_offsets(sizes)
    # for each row that may start a batch, the first that does not fit any more
    beyond = np.searchsorted(ends, ends[:-1] + plan.max_tokens, side="right") - 1
    if plan.max_rows is not None:
        beyond = np.minimum(beyond, np.arange(len(sizes)) + plan.max_rows)
    following, stops, row = beyond.tolist(), [], 0
    while row < len(following):
        row = following[row]
        stops.append(row)
    return np.array(stops, np.int64)


def padded_stops(plan: TokenBudget, sizes: Array) -> Array:
    """The row after each batch: as many rows as fit into the budget when padded to the longest."""
    most = plan.max_rows or len(sizes)
    stops, rows, longest = [], 0, 0
    for row, size in enumerate(sizes.tolist()):
        longest = max(longest, size)
        rows += 1
        if rows * longest > plan.max_tokens or rows > most:
            stops.append(row)
            rows, longest = 1, size
    if rows:
        stops.append(len(sizes))
    return np.array(stops, np.int64)
