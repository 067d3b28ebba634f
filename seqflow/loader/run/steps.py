"""The steps of an iteration: their batches are dealt anew so that ranks cost alike."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from seqflow import kernels
from seqflow.errors import BatchPlanError
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Slots, whole_costs
from seqflow.loader.plans.dealing import deal_pool
from seqflow.loader.plans.dealt import Span, deals_rows, dealt_batches, item_costs, item_counts
from seqflow.loader.plans.plan import WindowBatches
from seqflow.loader.plans.totals import Totals, wide
from seqflow.loader.run.making import PlannedBatches, PoolSpan, Turn
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.windows import OpenWindow
from seqflow.loader.schedule.recipe import STEPS, Recipe
from seqflow.loader.schedule.skips import NO_SKIPS, Skips
from seqflow.loader.schedule.steps import PoolBatches, Steps
from seqflow.loader.schedule.streams import BatchAddress, Rotation, Stream, WindowAddress


class Planned(Protocol):
    """Who knows the batches of streams as their windows plan them."""

    rotation: Rotation

    def planned(self, stream: Stream, number: int, stop: int, *, wait: bool) -> PlannedBatches | None:
        """Batch `number` of a stream, and those before batch `stop` in the same window; None behind the last."""

    def window_of(self, stream: Stream, number: int, *, wait: bool) -> range | None:
        """The batches of a stream that are in the window of one of them; None behind the last."""

    def following(self, address: BatchAddress) -> list[WindowAddress]:
        """The windows behind its own from which a batch takes rows."""


class Pool:
    """The batches of one stream in a pool of steps, as they are made."""

    def __init__(self, at: PoolBatches, found: Sequence[PlannedBatches]) -> None:
        self.first = at.first
        self.stop = at.first + len(at.numbers)
        self.found = found
        self.starts = np.cumsum([0, *(one.num_batches for one in found)])
        self.windows = _windows_of(found)
        numbers = frozenset(one.window.number for one in self.windows)
        self.span = PoolSpan(found[0].address.position, found[-1].address.position, numbers, ends=False)
        self.dealt: WindowBatches | None = None
        """All its batches, where rows were dealt; else whole batches were."""
        self.items: Array = np.arange(self.stop - self.first)
        """The planned batch that each batch is, where whole ones were dealt."""
        self.steps: Array = np.zeros(0, np.int64)
        """The step of each batch."""
        self.totals: dict[int, dict[str, int | float]] = {}
        """What each step holds, by name."""

    def turn(self, batch: int, number: int) -> Turn:
        """A batch by its number in the stream; `batch` is that in the epoch."""
        place = number - self.first
        planned, at = self._planned(place)
        address = planned.address._replace(number=planned.address.number + at)
        if self.dealt is not None:
            windows, batches, made = self.windows, self.dealt, place
            seed = planned.windows[0].window.number, address.number
        else:
            planned, at = self._planned(int(self.items[place]))
            windows, batches, made = planned.windows, planned.span.batches, planned.span.start + at
            seed = planned.windows[0].window.number, planned.address.number + at
        pool = self.span._replace(ends=number == self.stop - 1)
        step = int(self.steps[place])
        totals = self.totals.get(step)
        return Turn(
            batch, address, windows, batches, made, batches.size(made),
            pool=pool, seed=seed, step=step, totals=totals,
        )  # fmt: skip

    def _planned(self, place: int) -> tuple[PlannedBatches, int]:
        at = int(np.searchsorted(self.starts, place, side="right")) - 1
        return self.found[at], place - int(self.starts[at])


class StepPlanner:
    """Deals the batches of each pool of steps, when the first of them is asked for."""

    def __init__(
        self,
        steps: Steps,
        recipe: Recipe,
        epoch: int,
        stats: Stats,
        of: Planned,
        totals: Totals | None = None,
        skips: Skips = NO_SKIPS,
        first_index: int = 0,
    ) -> None:
        self._steps, self._balance, self._recipe, self._epoch = steps, recipe.batch.balance, recipe, epoch
        self._stats, self._of, self._totals, self._skips = stats, of, totals, skips
        self._rows = self._balance is not None and deals_rows(recipe.batch, self._balance)
        """Whether rows are dealt; else whole batches, or nothing."""
        self._pools: dict[int, Pool] = {}
        """The pool of each stream that was asked for last."""
        self._reach: dict[int, tuple[int, int, list[WindowAddress]]] = {}
        """For each stream the first batch of a pool, the one behind its last, and the windows that it reads."""
        self._is_warned = False
        self._first_index = first_index
        """How many batches that are not skipped come before the first round."""
        self._counted: dict[int, int] = {}
        """For each stream the batch behind those whose costs were counted."""

    def turn(self, batch: int, *, wait: bool) -> Turn | None:
        """A batch by its number in the epoch; None behind the last."""
        rotation = self._of.rotation
        if rotation.total is not None and batch >= rotation.total:
            return None
        stream, number = rotation.turn(batch)
        pool = self.pool(stream, number, wait=wait)
        if pool is None:
            rotation.locate(batch)  # an error where the epoch has more batches than the stream
            return None
        return pool.turn(batch, number)

    def pool(self, stream: Stream, number: int, *, wait: bool) -> Pool | None:
        """The pool of a batch of a stream; None behind the last."""
        pool = self._pools.get(stream.number)
        if pool is None or not pool.first <= number < pool.stop:
            pool = self._dealt(stream, number, wait=wait)
            if pool is None:
                return None
            self._pools[stream.number] = pool
        return pool

    def again(self, of: Planned) -> StepPlanner:
        """The same for batches that are planned again, of which nothing is counted."""
        return StepPlanner(
            self._steps, self._recipe, self._epoch, Stats(), of, self._totals, self._skips, self._first_index
        )

    def windows_of(self, address: BatchAddress) -> list[WindowAddress]:
        """The windows that the pool of a batch reads, where the batches of all windows are counted."""
        stream = self._of.rotation.streams[address.stream]
        number = stream.checkpoint(address.position).first + address.number
        first, stop, found = self._reach.get(address.stream, (0, 0, []))
        if not first <= number < stop:
            at = self._batches_of_pool(self._steps_of(stream), stream, number, wait=True)
            assert at is not None
            first, stop = at.first, min(at.first + len(at.numbers), stream.last)
            begin, end = stream.locate(first), stream.locate(stop - 1)
            assert isinstance(begin, BatchAddress)
            assert isinstance(end, BatchAddress)
            found = [(stream.number, position) for position in range(begin.position, end.position + 1)]
            found += self._of.following(end)
            self._reach[address.stream] = first, stop, found
        return found

    def first_needed(self, stream: int, position: int) -> int:
        """The first window, at most this one, that batches of a stream still need."""
        pool = self._pools.get(stream)
        return position if pool is None else min(position, pool.span.first)

    def _dealt(self, stream: Stream, number: int, *, wait: bool) -> Pool | None:
        steps = self._steps_of(stream)
        at = self._batches_of_pool(steps, stream, number, wait=wait)
        if at is None:
            return None
        found: list[PlannedBatches] = []
        behind, stop = at.first, at.first + len(at.numbers)
        while behind < stop:
            planned = self._of.planned(stream, behind, stop, wait=wait)
            if planned is None:
                break
            found.append(planned)
            behind += planned.num_batches
        if not behind > number:
            return None
        at = at._replace(numbers=at.numbers[: behind - at.first])
        pool = Pool(at, found)
        self._deal(steps, stream, pool, at, is_last=behind < stop or self._is_end(behind))
        return pool

    def _steps_of(self, stream: Stream) -> Steps:
        """The steps of a stream, which begin anew with each of its parts."""
        return replace(self._steps, base=stream.part_first) if stream.is_cut else self._steps

    def _batches_of_pool(
        self, steps: Steps, stream: Stream, number: int, *, wait: bool
    ) -> PoolBatches | None:
        """The batches of the pool of a batch; None behind the last one of the stream."""
        rotation = self._of.rotation
        window = None
        if steps.pool is None:
            if self._of.window_of(stream, number, wait=wait) is None:
                return None  # a state at the end of an epoch may not have the windows of its last step
            first = steps.first_of_step(rotation, stream, number)
            window = self._of.window_of(stream, first, wait=wait)
            if window is None:
                return None
        return steps.pool_of(rotation, stream, number, window)

    def _deal(self, steps: Steps, stream: Stream, pool: Pool, at: PoolBatches, *, is_last: bool) -> None:
        spans = _joined_spans([one.span for one in pool.found])
        counts = np.concatenate([item_counts(one, self._rows) for one in spans])
        pool.steps = steps.of(at.numbers)
        slots = Slots(pool.steps - at.number, steps.columns(at.numbers), counts)
        items = np.arange(int(counts.sum()))
        if self._balance is not None:
            costs = np.concatenate([item_costs(one, self._balance, self._rows) for one in spans])
            items = deal_pool(whole_costs(costs), slots, self._recipe.key(self._epoch, STEPS, at.number))
            self._count(stream, pool, costs, slots, items)
        if self._rows:
            pool.dealt = dealt_batches(spans, items, counts)
        else:
            pool.items = items
        is_new = pool.first >= self._counted.get(stream.number, 0)
        self._counted[stream.number] = max(pool.stop, self._counted.get(stream.number, 0))
        if self._totals is not None:
            kept = self._are_handed_out(at.numbers, is_last=is_last)
            without = self._stats.without if is_new else Counter[str]()
            pool.totals = self._totals_of(spans, pool.steps, counts, items, kept, without)

    def _count(self, stream: Stream, pool: Pool, costs: Array, slots: Slots, items: Array) -> None:
        if pool.first >= self._counted.get(stream.number, 0):
            self._stats.costs.add(costs, slots, items, self._steps.group)
        self._warn(self._steps, costs[items], slots.counts)

    def _totals_of(
        self,
        spans: Sequence[Span],
        steps: Array,
        counts: Array,
        items: Array,
        kept: Array,
        without: Counter[str],
    ) -> dict[int, dict[str, int | float]]:
        """For each step what all its batches hold that are handed out."""
        assert self._totals is not None
        of_spans = [self._totals.of(one, without, of_rows=self._rows) for one in spans]
        of_item, is_kept = np.repeat(steps, counts), np.repeat(kept, counts)
        totals: dict[int, dict[str, int | float]] = {int(step): {} for step in np.unique(steps)}
        for name, text in self._totals.texts.items():
            found = wide(np.concatenate([one[name] for one in of_spans])[items])
            sums = np.zeros(len(totals), found.dtype)
            np.add.at(sums, of_item[is_kept] - steps[0], found[is_kept])
            for of_step, total in zip(totals, sums.tolist(), strict=True):
                if isinstance(total, int) and not -(2**63) <= total < 2**64:
                    raise BatchPlanError(
                        f"totals: {name} of step {of_step} is {total}, expected an integer of 64 bits\n"
                        f"  write {text} * 1.0 for a floating-point number"
                    )
                totals[of_step][name] = total
        return totals

    def _is_end(self, behind: int) -> bool:
        """Whether the only stream is known to have no batch from this one on."""
        return self._of.rotation.total == behind

    def _are_handed_out(self, numbers: Array, *, is_last: bool) -> Array:
        """Which batches are: none that is skipped, and at the end of the epoch those of whole rounds."""
        skipped = list(self._skips.between(int(numbers[0]), int(numbers[-1]) + 1))
        kept = ~np.isin(numbers, skipped)
        ranks = self._steps.ranks
        if is_last and ranks.tail == "drop":
            index = np.array([self._skips.kept_before(number) for number in numbers.tolist()])
            total = self._skips.kept_before(int(numbers[-1]) + 1)
            whole = (total - self._first_index) // ranks.world_size * ranks.world_size
            kept &= index < self._first_index + whole
        return kept

    def _warn(self, steps: Steps, costs: Array, counts: Array) -> None:
        """Warn once where the ranks are not those that rows are dealt to."""
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
                f": in the first steps the dearest rank costs {ranks:.3f} times the mean; "
                f"on {steps.group} ranks {columns:.3f} times"
            )
        warnings.warn(
            f"Balance: world_size = {steps.ranks.world_size} does not divide group = {steps.group}{found}",
            stacklevel=2,
        )


def _imbalance(costs: Array, ranks: int, steps_of: int) -> float | None:
    """The dearest rank divided by the mean one, of batches in turn, over whole steps of so many of each rank.

    None where there is no whole step, or none that costs anything.
    """
    whole = len(costs) // (ranks * steps_of) * ranks * steps_of
    sums = costs[:whole].reshape(-1, steps_of, ranks).sum(axis=1)
    mean = float(sums.mean(axis=1).sum())
    return float(sums.max(axis=1).sum()) / mean if mean else None


def _windows_of(found: Sequence[PlannedBatches]) -> tuple[OpenWindow, ...]:
    """The windows of all batches in turn, as the rows of joined spans are counted."""
    windows: list[OpenWindow] = []
    before = None
    for one in found:
        if before is None or before.batches is not one.span.batches or before.stop != one.span.start:
            windows += one.windows
        before = one.span
    return tuple(windows)


def _joined_spans(spans: Sequence[Span]) -> list[Span]:
    """The spans, those that follow each other in the same batches as one."""
    found: list[Span] = []
    for span in spans:
        if found and found[-1].batches is span.batches and found[-1].stop == span.start:
            found[-1] = found[-1]._replace(stop=span.stop)
        else:
            found.append(span)
    return found
