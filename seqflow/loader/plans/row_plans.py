"""Plans whose batches are rows: Rows, TokenBudget and Buckets."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.arguments import at_least_one
from seqflow.deprecated_names import renamed_fields
from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.along import AlongColumns, check_uncut, checked_along
from seqflow.loader.plans.balance import Balance, check_linear
from seqflow.loader.plans.plan import LATER, BatchLimits, BatchPlan, Layout, permutation, shown_plan
from seqflow.loader.plans.selection import (
    Oversize,
    RowSelection,
    check_lengths_between,
    checked_columns,
)


@renamed_fields()
@dataclass(frozen=True, slots=True)
class Rows(BatchPlan):
    """Batches of `n` rows. A last short batch is kept unless `drop_last`."""

    n: int
    """Number of rows in a batch."""
    drop_last: bool = False
    """Whether to omit short batches."""
    lengths: str | None = None
    """Lengths tensor whose fill is reported; by default that of the only list column of numbers."""
    min_length: int | None = None
    """Shorter rows are omitted, and counted."""
    max_length: int | None = None
    """Longer rows are omitted, and counted."""
    balance: Balance | None = field(default=None, metadata=LATER)
    """Balance that assigns the rows or batches of training steps so that all ranks have equal costs."""

    __repr__ = shown_plan
    deals_rows = True

    def __post_init__(self) -> None:
        at_least_one("Rows", n=self.n)
        check_lengths_between("Rows", self.min_length, self.max_length)

    @property
    def filters(self) -> bool:
        """Whether rows may be omitted because of their lengths."""
        return self.min_length is not None or self.max_length is not None

    @property
    def needs_lengths(self) -> bool:
        return self.filters or self.balance is not None

    @property
    def rows_across(self) -> int | None:
        return None if self.filters else self.n

    def limits(self, tokens: int | None, rows: int | None) -> BatchLimits:
        return BatchLimits(self.n)

    def select(self, sizes: Array) -> RowSelection:
        return RowSelection.of(sizes).between(self.min_length, self.max_length)

    def layout(self, sizes: Array, key: int) -> Layout:
        """Return the rows in order, `n` in each batch."""
        return Layout(*batches_of_n(len(sizes), self.n))


def batches_of_n(rows: int, n: int) -> tuple[Array, None, int]:
    """Return the number of rows of each batch, their order, and the number of short batches."""
    full, left = divmod(rows, n)
    counts = np.full(full + (left > 0), n, np.int64)
    if left:
        counts[-1] = left
    return counts, None, int(left > 0)


@renamed_fields()
@dataclass(frozen=True, slots=True)
class TokenBudget(BatchPlan):
    """Batches of at most `max_tokens` tokens, as many rows as fit, and at most `max_rows` of them.

    With `padded` the tokens are those of the padded batch: rows times the longest, rounded up to a
    `multiple_of`. A row above the budget is a bad row, unless `oversize` says to "truncate" it, to "split" it
    into several rows, or to "skip" it. All columns under the planned lengths are cut, or those of `columns`,
    which need equal lengths in each row.

    With `strategy="best_fit"`, the rows of a window are packed into batches, longest first, which come in a
    random order: nearly all are full. If `linear` is given too, batches have equal costs instead: a row of L
    tokens costs `L * (linear + L)`, and a batch as much as one row of `max_tokens`; a batch of shorter rows has
    more tokens, up to `max_tokens * (1 + max_tokens / linear)`, which memory must hold. Both are for batches
    that are not padded.
    """

    max_tokens: int
    """Largest number of tokens in a batch."""
    padded: bool = False
    """Whether to count the tokens of padded batches: rows times the longest."""
    max_rows: int | None = None
    """Largest number of rows in a batch; None for any number."""
    drop_last: bool = False
    """Whether to omit short batches at the end of a window."""
    lengths: str | None = None
    """Lengths tensor to plan on; by default that of the only list column of numbers."""
    multiple_of: int = 1
    """With `padded`, the longest row is rounded up to a multiple of this."""
    min_length: int | None = None
    """Shorter rows are omitted, and counted."""
    max_length: int | None = None
    """Longer rows are omitted, and counted."""
    oversize: Oversize = "bad_rows"
    """Treatment of a row above the budget: a bad row, cut off, cut into several rows, or omitted."""
    columns: tuple[str, ...] | None = None
    """List columns that are cut; None is all under the planned lengths."""
    along: AlongColumns = field(default=(), metadata=LATER)
    """List columns that travel with their row, when rows are cut; a mapping to `Along` says where their items are."""
    strategy: Literal["in_order", "best_fit"] = field(default="in_order", metadata=LATER)
    """Choice of rows for a batch: those that follow each other, or those that fill it best."""
    linear: float | None = field(default=None, metadata=LATER)
    """With "best_fit": the budget is the cost of `max_tokens` tokens in one row, as in `Balance`."""
    balance: Balance | None = field(default=None, metadata=LATER)
    """Balance that assigns the rows or batches of training steps so that all ranks have equal costs."""

    __repr__ = shown_plan

    def __post_init__(self) -> None:
        at_least_one(
            "TokenBudget", max_tokens=self.max_tokens, max_rows=self.max_rows, multiple_of=self.multiple_of
        )  # fmt: skip
        check_lengths_between("TokenBudget", self.min_length, self.max_length)
        if self.multiple_of > 1 and not self.padded:
            raise OpError.of("TokenBudget.multiple_of", f"is {self.multiple_of}, which needs padded=True")
        if self.multiple_of > self.max_tokens:
            raise OpError.of(
                "TokenBudget.multiple_of",
                f"is {self.multiple_of}, expected at most max_tokens = {self.max_tokens}",
            )
        self._check_strategy()
        object.__setattr__(self, "columns", checked_columns(self.columns, "TokenBudget"))
        object.__setattr__(self, "along", checked_along(self.along, "TokenBudget"))
        if self.cuts_rows:
            check_uncut("TokenBudget", self.along, "oversize", self.oversize)
        if self.columns is not None and not self.cuts_rows:
            raise OpError.of(
                "TokenBudget.columns", f'are cut with oversize="truncate" or "split", not {self.oversize!r}'
            )

    def _check_strategy(self) -> None:
        if self.linear is not None:
            check_linear("TokenBudget", self.linear)
            if not self._packs:
                raise OpError.of("TokenBudget.linear", f"is {self.linear}, which needs strategy='best_fit'")
            if self.linear == 0:
                raise OpError.of(
                    "TokenBudget.linear", "is 0, with which short rows would fill a batch without end"
                )
        for name in ("padded", "drop_last"):
            value = getattr(self, name)
            if value and self._packs:
                raise OpError.of(
                    f"TokenBudget.{name}", f"is {value!r}, which strategy='best_fit' cannot hold to"
                )

    @property
    def _packs(self) -> bool:
        return self.strategy == "best_fit"

    @property
    def reorders_rows(self) -> bool:
        return self._packs

    @property
    def _longest(self) -> int:
        """Length of the longest row that fits."""
        return self.max_tokens // self.multiple_of * self.multiple_of

    @property
    def cuts_rows(self) -> bool:
        return self.oversize in ("truncate", "split")

    @property
    def splits_rows(self) -> bool:
        return self.oversize == "split"

    @property
    def cut_limit(self) -> int:
        return self._longest

    @property
    def takes_pads(self) -> bool:
        return self.linear is None

    def limits(self, tokens: int | None, rows: int | None) -> BatchLimits:
        most = self.max_tokens if tokens is None else min(self.max_tokens, tokens)
        return BatchLimits(self.max_rows or rows, most, self.max_tokens if self.padded else None)

    def select(self, sizes: Array) -> RowSelection:
        """Return the rows that batches are made from, none above the budget."""
        passed = RowSelection.of(sizes).between(self.min_length, self.max_length)
        return passed.at_most(self._longest, self.oversize, f"max_tokens = {self.max_tokens}")

    def layout(self, sizes: Array, key: int) -> Layout:
        """Return the rows in order, as many in each batch as fit; or packed into batches, which are permuted by
        `key`.
        """
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
        costs, budget = sizes[filled], min(self.max_tokens, _LARGEST)
        if self.linear is not None:
            linear, largest = float(self.linear), float(costs.max(initial=0))
            # whole units, of which all rows together have fewer than the kernel takes
            unit = max(1.0, len(costs) * (largest / _LARGEST) * (largest + linear))
            costs = np.rint(costs * ((costs + linear) / unit)).astype(np.int64)
            budget = round(min(budget * ((budget + linear) / unit), _LARGEST))
        packing = kernels.plan_packing(costs, budget, "best_fit", self.max_rows or 0)
        batches = np.arange(len(packing.pieces))
        found = np.zeros(len(sizes), np.int64)
        found[filled[packing.sources]] = np.repeat(batches, packing.pieces)
        numbers = np.arange(len(empty))
        if self.max_rows is None:
            found[empty] = numbers % max(1, len(batches))
            return found
        # empty rows fill up the batches, and those that are left make batches of their own
        most = min(self.max_rows, len(sizes))
        rooms = np.cumsum(most - packing.pieces)
        left = np.maximum(numbers - (int(rooms[-1]) if len(rooms) else 0), 0)
        found[empty] = np.searchsorted(rooms, numbers, side="right") + left // most
        return found

    def _stops(self, sizes: Array) -> tuple[Array, int]:
        """Return the row after each batch of rows in order, and 1 where the last is short: it is not exactly full."""
        if self.multiple_of > 1:
            sizes = -(-sizes // self.multiple_of) * self.multiple_of
        stops = padded_stops(self, sizes) if self.padded else token_stops(self, sizes)
        if not len(stops):
            return stops, 0
        last = sizes[stops[-2] if len(stops) > 1 else 0 :]
        tokens = len(last) * int(last.max()) if self.padded else int(last.sum())
        return stops, int(tokens < self.max_tokens and len(last) != self.max_rows)


_LARGEST = 2**60
"""Largest budget that is given to the kernel; no batch reaches it."""


def token_stops(plan: TokenBudget, sizes: Array) -> Array:
    """Return the row after each batch: as many rows as fit into the budget."""
    ends = kernels.lengths_to_offsets(sizes)
    # for each row that may start a batch, the first that does not fit any more; limits above all rows are cut to
    # these, so that no sum exceeds an int64
    budget = min(plan.max_tokens, int(ends[-1]))
    beyond = np.searchsorted(ends, ends[:-1] + budget, side="right") - 1
    if plan.max_rows is not None:
        beyond = np.minimum(beyond, np.arange(len(sizes)) + min(plan.max_rows, len(sizes)))
    following, stops, row = beyond.tolist(), [], 0
    while row < len(following):
        row = following[row]
        stops.append(row)
    return np.array(stops, np.int64)


def padded_stops(plan: TokenBudget, sizes: Array) -> Array:
    """Return the row after each batch: as many rows as fit into the budget when padded to the longest."""
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


def _of_plan(name: str) -> Any:
    return property(attrgetter(f"plan.{name}"))


@renamed_fields()
@dataclass(frozen=True, slots=True)
class Buckets(BatchPlan):
    """Batches of rows of similar lengths, which need less padding, by another plan: `Rows` or `TokenBudget`.

        sf.Buckets([64, 128, 256], sf.Rows(32))
        sf.Buckets(16, sf.TokenBudget(16_384, padded=True))

    `boundaries` are the largest lengths of all buckets except the last, which has all longer rows; or the
    number of buckets, which then have equal numbers of tokens. The rows of a window fall into buckets, each of
    which makes batches in the order of its rows; the batches of all buckets come in a random order. The last
    batch of a bucket may be short: these come last in the window, and the plan's `drop_last` leaves them out.
    """

    boundaries: int | tuple[int, ...]
    """Lengths that divide buckets; a number makes so many buckets."""
    plan: Rows | TokenBudget
    """Plan of the batches of each bucket; in a job its keys are written next to `boundaries`."""
    balance: Balance | None = field(default=None, metadata=LATER)
    """Balance that assigns the rows or batches of training steps so that all ranks have equal costs."""

    __repr__ = shown_plan
    reorders_rows = True

    def __post_init__(self) -> None:
        plan = self.plan
        boundaries: Any = self.boundaries
        if isinstance(plan, TokenBudget) and plan.strategy != "in_order":
            raise OpError.of(
                "Buckets.strategy", f"is {plan.strategy!r}, expected 'in_order': buckets order the rows"
            )
        if plan.balance is not None:
            raise OpError.of(
                "Buckets.plan",
                "has a balance, expected none",
                advice="give balance= to Buckets: it makes the batches that are dealt to the ranks",
            )
        if not isinstance(boundaries, Iterable):
            at_least_one("Buckets", boundaries=boundaries)
            return
        object.__setattr__(self, "boundaries", tuple(boundaries))
        self._check_order()

    def _check_order(self) -> None:
        assert not isinstance(self.boundaries, int)
        if not self.boundaries:
            raise OpError.of(
                "Buckets.boundaries", "is empty, expected at least one length, or a number of buckets"
            )
        before = 0
        for place, boundary in enumerate(self.boundaries):
            at_least_one("Buckets", **{f"boundaries[{place}]": boundary})
            if boundary <= before:
                raise OpError.of(
                    "Buckets.boundaries",
                    f"has {boundary} after {before}, expected lengths in increasing order",
                )
            before = boundary

    # which rows make batches, and what these may hold, is said by the plan
    lengths, columns, multiple_of = _of_plan("lengths"), _of_plan("columns"), _of_plan("multiple_of")
    drop_last, cuts_rows, splits_rows = _of_plan("drop_last"), _of_plan("cuts_rows"), _of_plan("splits_rows")
    select, row_sizes, limits = _of_plan("select"), _of_plan("row_sizes"), _of_plan("limits")
    along, cut_limit = _of_plan("along"), _of_plan("cut_limit")

    def layout(self, sizes: Array, key: int) -> Layout:
        """Return the batches of all buckets, permuted by `key`, with short batches last."""
        rows, buckets = self._buckets(sizes)
        counts = np.concatenate([sizes[:0], *(one.counts for one in buckets)])
        is_short = np.concatenate([sizes[:0], *(one.are_short for one in buckets)])
        chosen = permutation(len(counts), key)
        chosen = chosen[np.argsort(is_short[chosen], kind="stable")]
        starts, counts = kernels.lengths_to_offsets(counts)[chosen], counts[chosen]
        order = rows[np.repeat(starts, counts) + kernels.lengths_to_positions(counts)]
        return Layout(counts, order, int(is_short.sum()))

    def count(self, sizes: Array) -> int:
        _, buckets = self._buckets(self.select(sizes).pieces.sizes)
        return sum(one.num_kept(self.drop_last) for one in buckets)

    def _buckets(self, sizes: Array) -> tuple[Array, list[Layout]]:
        """Return the rows bucket by bucket, and the batches of each."""
        of_row = np.searchsorted(self._limits(sizes), sizes, side="left")
        counted = of_row.astype(np.min_scalar_type(of_row.max(initial=0)))  # 16 bits are sorted by counting
        rows, stops = np.argsort(counted, kind="stable"), np.cumsum(np.bincount(of_row)).tolist()
        in_buckets = sizes[rows]
        spans = pairwise([0, *stops])
        return rows, [self.plan.layout(in_buckets[start:stop], 0) for start, stop in spans]

    def _limits(self, sizes: Array) -> Array:
        """Return the largest lengths of all buckets except the last."""
        if not isinstance(self.boundaries, int):
            return np.array(self.boundaries, np.int64)
        if not len(sizes):
            return np.zeros(0, np.int64)
        in_order = np.sort(sizes)
        tokens = np.cumsum(in_order)
        total = int(tokens[-1])
        number = min(self.boundaries, total + 1)  # more have no token each
        shares = np.arange(1, number) * total // number
        return np.unique(in_order[np.searchsorted(tokens, shares)])


def batch_plan(batch: BatchPlan | int) -> BatchPlan:
    """Return the plan itself, or `Rows(n)` for an integer n.

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
