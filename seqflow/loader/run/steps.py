"""Steps of an iteration: their batches are balanced so that ranks have equal costs."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.assign_ranks import AnyTable, Skips, StepPool, Steps
from seqflow.loader.epoch.ranks import Ranks
from seqflow.loader.epoch.table import BatchEntry, Missing, SingleRows, StreamOrder
from seqflow.loader.order.recipe import STEPS, Recipe
from seqflow.loader.plans.balanced_pools import Totals, balance_pool, deals_rows, wide
from seqflow.loader.run.ledger import Stats
from seqflow.loader.run.reading import PlannedRows
from seqflow.loader.run.tasks import BatchTask, PlannedBatches, PoolBatches


class StepPlanner:
    """Balances the batches of each pool of steps when the first of them is requested."""

    def __init__(
        self,
        steps: Steps,
        recipe: Recipe,
        epoch: int,
        stats: Stats,
        rows: PlannedRows,
        handed: "HandedOut | None",
    ) -> None:
        self._steps, self._balance, self._recipe, self._epoch = steps, recipe.batch.balance, recipe, epoch
        self._stats, self.rows, self._handed = stats, rows, handed
        self._deals_rows = deals_rows(recipe.batch, self._balance)
        """Whether single rows are assigned; otherwise whole batches, or nothing."""
        self._pools: dict[int, PoolBatches] = {}
        """The last requested pool of each stream."""
        self._is_warned = False
        self._counted: dict[int, int] = {}
        """For each stream, the first batch whose costs are not counted."""

    def task(self, row: BatchEntry, following: int, *, wait: bool) -> BatchTask | None:
        """Return the task of a row of the table after balancing; None if that requires waiting. A run then goes
        on at `following`.
        """
        pool = self._pools.get(row.stream)
        if pool is None or not pool.first <= row.place < pool.stop:
            pool = self._balanced_pool(row, wait=wait)
            if pool is None:
                return None
            self._pools[row.stream] = pool
        return pool.task(row, following)

    def reach(self, k: int) -> tuple[int, int, int]:
        """Return stream, first and last window of the pool of row k, if the batches of all windows are counted."""
        table = self.rows.table
        row = table.find(k)
        assert isinstance(row, BatchEntry)
        stream, at = table.streams[row.stream], self._pool_of(row)
        assert isinstance(at, StepPool)
        last = stream.row(-1, row.stream, at.stop - 1)
        return row.stream, stream.window_of(at.first), last.pieces[-1][0]

    def first_needed(self, stream: int, position: int) -> int:
        """Return the first window, at most this one, that batches of a stream still need."""
        pool = self._pools.get(stream)
        return position if pool is None else min(position, pool.first_window)

    def _pool_of(self, row: BatchEntry) -> StepPool | Missing:
        table = self.rows.table
        return self._steps_of(table.streams[row.stream]).pool_of(table, row.stream, row.place)

    def _steps_of(self, stream: StreamOrder) -> Steps:
        """Return the steps of a stream, which begin again with each of its parts."""
        return replace(self._steps, base=stream.start_batch) if stream.is_cut else self._steps

    def _balanced_pool(self, row: BatchEntry, *, wait: bool) -> PoolBatches | None:
        while isinstance(at := self._pool_of(row), Missing):
            if not self.rows.plan(at, wait=wait):
                return None
        table = self.rows.table
        stream = table.streams[row.stream]
        found: list[PlannedBatches] = []
        place = at.first
        while place < at.stop:
            if isinstance(stream, SingleRows):
                first = stream.part(row.stream, place, at.stop)
            else:
                first = stream.row(-1, row.stream, place)
            planned = self.rows.planned(first, at.stop, wait=wait)
            if planned is None:
                return None
            windows, span = planned
            found.append((first, windows, span))
            place = first.place + span.stop - span.start
        kept = None if self._handed is None else self._handed.are(at.numbers, self._steps.ranks, table)
        if isinstance(kept, Missing):
            return self._balanced_pool(row, wait=wait) if self.rows.plan(kept, wait=wait) else None
        pool = PoolBatches(at, found, stream)
        self._set_balance(pool, at, row.stream, kept)
        return pool

    def _set_balance(self, pool: PoolBatches, at: StepPool, stream: int, kept: Array | None) -> None:
        """Balance a pool; `kept` are the batches that count in totals."""
        steps = self._steps_of(self.rows.table.streams[stream])
        spans = pool.spans
        pool.steps = steps.of(pool.batches)
        key = self._recipe.key(self._epoch, STEPS, at.number)
        balanced = balance_pool(
            spans, self._balance, pool.steps - at.number, steps.columns(pool.batches), key
        )
        is_new = pool.first >= self._counted.get(stream, 0)
        self._counted[stream] = max(pool.stop, self._counted.get(stream, 0))
        if balanced.costs is not None:
            if is_new:
                self._stats.costs.add(balanced.costs, balanced.slots, balanced.items, steps.group)
            self._warn(balanced.costs[balanced.items], balanced.slots.counts)
        if balanced.batches is not None:
            pool.regrouped = balanced.batches
        else:
            pool.items = balanced.items
        if self._handed is not None and kept is not None:
            without = self._stats.without if is_new else Counter[str]()
            of_spans = [self._handed.totals.of(one, without, of_rows=self._deals_rows) for one in spans]
            pool.totals = self._handed.sums(of_spans, pool.steps, balanced.slots.counts, balanced.items, kept)

    def _warn(self, costs: Array, counts: Array) -> None:
        """Warn once if the ranks are not those that rows are assigned to."""
        steps = self._steps
        if self._is_warned or steps.group % steps.ranks.world_size == 0 or len(counts) < steps.size:
            return
        of_batches = kernels.segment_reduce("sum", costs.astype(np.float64), counts)
        ranks, columns = (
            _imbalance(of_batches, size, steps.size // steps.group)
            for size in (steps.ranks.world_size, steps.group)
        )
        self._is_warned = True
        found = ""
        if ranks is not None and columns is not None:
            found = (
                f": in the first steps the most expensive rank costs {ranks:.3f} times the mean; "
                f"on {steps.group} ranks {columns:.3f} times"
            )
        warnings.warn(
            f"Balance: world_size = {steps.ranks.world_size} does not divide group = {steps.group}{found}",
            stacklevel=2,
        )


@dataclass(frozen=True, slots=True)
class HandedOut:
    """The totals of steps, and the settings that decide which batches are handed out and counted."""

    totals: Totals
    skips: Skips
    first_index: int
    """Number of kept rows of the table before the first round."""

    def are(self, numbers: Array, ranks: Ranks, table: AnyTable) -> Array | Missing:
        """bool: which batches are handed out: all except skipped ones, and with tail="drop" those of incomplete
        rounds.

        If a window has to be planned first, return that window. `numbers` are increasing.
        """
        skips, size = self.skips, ranks.world_size
        kept: Array = ~np.isin(numbers, list(skips.between(int(numbers[0]), int(numbers[-1]) + 1)))
        last = skips.kept_before(int(numbers[-1]) + 1) - 1 - self.first_index
        if ranks.tail != "drop" or last < 0:
            return kept
        # a round need not end with a step: batches that are skipped move rounds against steps
        begin = self.first_index + last // size * size
        whole = table.has(skips.number(begin + size - 1))
        if isinstance(whole, Missing):
            return whole
        if not whole:
            kept &= np.array([skips.kept_before(number) < begin for number in numbers.tolist()])
        return kept

    def sums(
        self, of_spans: Sequence[Mapping[str, Array]], steps: Array, counts: Array, items: Array, kept: Array
    ) -> dict[int, dict[str, Any]]:
        """Return, for each step, the totals over its `kept` batches; raise BatchPlanError when 64 bits do not
        hold one. Totals that are kept apart are lists of the values of each batch instead.
        """
        of_item, is_kept = np.repeat(steps, counts), np.repeat(kept, counts)
        totals: dict[int, dict[str, Any]] = {int(step): {} for step in np.unique(steps)}
        for name in self.totals.texts:
            found = wide(np.concatenate([one[name] for one in of_spans])[items])
            if self.totals.apart:
                for of_step, values in zip(steps.tolist(), _values_of_batches(found, counts), strict=True):
                    totals[of_step].setdefault(name, []).append(values)
                continue
            sums = np.zeros(len(totals), found.dtype)
            np.add.at(sums, of_item[is_kept] - steps[0], found[is_kept])
            for of_step, total in zip(totals, sums.tolist(), strict=True):
                self.totals.check_sum(name, of_step, total)
                totals[of_step][name] = total
        return totals


def _values_of_batches(items: Array, counts: Array) -> Iterator[list[int | float]]:
    """Yield the values of each batch, one after another: numbers to add in this order, as floats round."""
    for values in np.split(items, np.cumsum(counts)[:-1]):
        yield values.tolist() if values.dtype.kind == "f" else [sum(values.tolist())]


def _imbalance(costs: Array, ranks: int, steps_of: int) -> float | None:
    """Return the cost of the most expensive rank divided by that of the mean one, over whole steps of batches
    in turn.

    A step has `steps_of` batches of each rank. Return None if there is no whole step, or all costs are 0.
    """
    whole = len(costs) // (ranks * steps_of) * ranks * steps_of
    sums = costs[:whole].reshape(-1, steps_of, ranks).sum(axis=1)
    mean = float(sums.mean(axis=1).sum())
    return float(sums.max(axis=1).sum()) / mean if mean else None
