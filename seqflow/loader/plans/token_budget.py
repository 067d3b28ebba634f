"""TokenBudget: batches of as many rows as fit into a number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance, check_balance, check_linear
from seqflow.loader.plans.batches import BatchBounds, RowBatches, padded_sizes, row_batches
from seqflow.loader.plans.cut_columns import (
    checked_columns,
    cut_tensors,
    long_rows,
    unequal_rows,
    usable_sizes,
)
from seqflow.loader.plans.permutation import permutation
from seqflow.loader.plans.plan_options import LATER, shown_plan
from seqflow.loader.plans.selection import (
    Oversize,
    RowSelection,
    at_least_one,
    check_lengths_between,
    check_oversize,
)
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import BadRow
from seqflow.renamed import renamed_fields


@renamed_fields()
@dataclass(frozen=True, slots=True)
class TokenBudget:
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
        if self.columns is not None and not self._cuts:
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
    def needs_lengths(self) -> bool:
        return True

    @property
    def _cuts(self) -> bool:
        return self.oversize in ("truncate", "split")

    def of_window(self, rows: WindowRows, lengths: str | None, key: int = 0, window: int = 0) -> RowBatches:
        """The batches of a window, in the order of its rows."""
        assert lengths is not None  # planned_lengths sees to that
        sizes = self.row_sizes(rows, lengths)
        selection = self.select(sizes)
        bad = self.bad_rows(rows, sizes, selection, lengths)
        selection, bounds = self._in_batches(selection, key)
        of_bounds = padded_sizes(bounds, selection.pieces.sizes, self.multiple_of)
        return row_batches(rows, selection, bounds, of_bounds, self.drop_last, bad, self.cut(rows, lengths))

    def count(self, sizes: Array) -> int:
        """The number of batches of a window whose rows have these sizes."""
        selected = self.select(sizes).pieces.sizes
        if self._packs:
            return int(self._batch_of(selected).max(initial=-1)) + 1
        return self.bounds(len(selected), selected).count(self.drop_last)

    def batch_sizes(self, sizes: Array) -> Array:
        """int64[batches, 4]: a BatchSize for each batch of a window whose rows have these sizes, in any order."""
        selection, bounds = self._in_batches(self.select(sizes), 0)
        return padded_sizes(bounds, selection.pieces.sizes, self.multiple_of)

    def _in_batches(self, selection: RowSelection, key: int) -> tuple[RowSelection, BatchBounds]:
        """The rows batch after batch."""
        if not self._packs:
            return selection, self.bounds(len(selection.pieces.sizes), selection.pieces.sizes)
        selection, counts = self._packed(selection, key)
        return selection, BatchBounds.until(np.cumsum(counts), False)

    def _packed(self, selection: RowSelection, key: int) -> tuple[RowSelection, Array]:
        """The rows in the order of the batches, which `key` permutes, and how many each has."""
        batch_of = self._batch_of(selection.pieces.sizes)
        counts = np.bincount(batch_of)
        order = permutation(len(counts), key)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        chosen = np.argsort(places[batch_of], kind="stable")
        return replace(selection, pieces=selection.pieces.take(chosen), whole=False), counts[order]

    def _batch_of(self, sizes: Array) -> Array:
        """int64[rows]: the batch of each row, all of which are within the budget. Empty rows fit anywhere."""
        filled, empty = np.flatnonzero(sizes), np.flatnonzero(sizes == 0)
        costs, budget = sizes[filled], self.max_tokens
        if self.linear is not None:
            costs = np.rint(costs * (costs + self.linear)).astype(np.int64)
            budget = round(budget * (budget + self.linear))
        layout = kernels.plan_packing(costs, budget, "best_fit")
        found = np.zeros(len(sizes), np.int64)
        found[filled[layout.sources]] = np.repeat(np.arange(len(layout.pieces)), layout.pieces)
        found[empty] = np.arange(len(empty)) % max(1, len(layout.pieces))
        return found

    def row_sizes(self, rows: WindowRows, lengths: str) -> Array:
        """The sizes that batches are planned on."""
        return usable_sizes(rows, lengths, self.columns, "TokenBudget")

    def select(self, sizes: Array) -> RowSelection:
        """The rows that batches are made of, none above the budget."""
        return (
            RowSelection.of(sizes)
            .between(self.min_length, self.max_length)
            .at_most(self._limit, self.oversize)
        )

    def cut(self, rows: WindowRows, lengths: str) -> set[str]:
        """The lengths of the columns that are cut, where some are."""
        if not self._cuts:
            return set()
        return set(cut_tensors(rows.records[0], lengths, self.columns, "TokenBudget", rows.pads).values())

    def bad_rows(
        self, rows: WindowRows, sizes: Array, selection: RowSelection, lengths: str
    ) -> Sequence[BadRow]:
        """The rows that cannot be used, and why."""
        limit = f"max_tokens = {self.max_tokens}"
        too_long = long_rows(rows, selection.too_long, sizes, lengths, limit)
        return [*unequal_rows(rows, sizes, self.columns, "TokenBudget"), *too_long]

    @property
    def _limit(self) -> int:
        """The longest row that fits."""
        return self.max_tokens // self.multiple_of * self.multiple_of

    def bounds(self, num_rows: int, sizes: Array | None) -> BatchBounds:
        """Which of these consecutive rows make a batch; the last is short unless it is exactly full."""
        assert sizes is not None
        if self.multiple_of > 1:
            sizes = -(-sizes // self.multiple_of) * self.multiple_of
        stops = padded_stops(self, sizes) if self.padded else token_stops(self, sizes)
        if not len(stops):
            return BatchBounds.until(stops, False)
        last = sizes[stops[-2] if len(stops) > 1 else 0 :]
        tokens = len(last) * int(last.max()) if self.padded else int(last.sum())
        return BatchBounds.until(stops, tokens < self.max_tokens and len(last) != self.max_rows)


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
