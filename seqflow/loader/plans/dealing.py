"""Dealing the items of a pool of steps to its batches, so that ranks and micro-batches cost alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance, Slots, StepCosts, whole_costs
from seqflow.loader.plans.plan import BatchPlan, WindowBatches, joined
from seqflow.loader.plans.selection import Pieces
from seqflow.ops.shared.random_bits import sequence_bits


class Span(NamedTuple):
    """Consecutive planned batches."""

    batches: WindowBatches
    start: int
    stop: int

    @property
    def rows(self) -> slice:
        """Their rows among those of all batches."""
        return slice(self.batches.ends.item(self.start), self.batches.ends.item(self.stop))

    @property
    def row_counts(self) -> Array:
        """int64[batches]: the rows of each batch, or its packed rows."""
        return np.diff(self.batches.ends[self.start : self.stop + 1])

    @property
    def piece_counts(self) -> Array:
        """int64: the pieces of each of their rows."""
        return self.batches.counts(self.rows)

    @property
    def pieces(self) -> Pieces:
        return self.batches.of_rows(self.rows)


class Dealt(NamedTuple):
    """A pool of steps whose batches are dealt."""

    slots: Slots
    items: Array
    """The items of each batch in turn, as they are numbered over the spans: rows, or whole batches."""
    costs: Array | None
    """What items cost, batch after batch as planned; None without a balance."""
    batches: WindowBatches | None
    """The batches where rows were dealt; else whole batches were."""


def deals_rows(plan: BatchPlan, balance: Balance | None) -> bool:
    """Whether rows are dealt, or packed rows; else whole batches are, which any other rows would not fill."""
    return balance is not None and not balance.needs_longest and plan.deals_rows


def deal(spans: Sequence[Span], balance: Balance | None, steps: Array, columns: Array, key: int) -> Dealt:
    """Deal the items of the batches of some spans, which are of these steps, and for these ranks of the group.

    Without a balance the batches stay as they are.
    """
    rows = deals_rows(spans[0].batches.plan, balance)
    counts = np.concatenate([one.row_counts for one in spans]) if rows else np.ones(len(steps), np.int64)
    slots = Slots(steps, columns, counts)
    if balance is None:
        return Dealt(slots, np.arange(len(steps)), None, None)
    costs = np.concatenate([_costs(one, balance, rows) for one in spans])
    items = deal_pool(whole_costs(costs), slots, key)
    return Dealt(slots, items, costs, _dealt_batches(spans, items, counts) if rows else None)


def _costs(span: Span, balance: Balance, rows: bool) -> Array:
    """int64 or float64: what the items of the batches cost, batch after batch."""
    batches, pieces, of_row, counts = span.batches, span.pieces, span.piece_counts, span.row_counts
    longest = None
    if balance.needs_longest:
        capacity, of_batch = batches.plan.packed_capacity, kernels.segment_reduce("sum", of_row, counts)
        most = kernels.segment_reduce("max", pieces.sizes, of_batch)
        longest = np.repeat(most if capacity is None else np.full_like(most, capacity), of_batch)
    costs = balance.piece_costs(pieces, batches.rows, longest)
    if batches.first is not None:
        costs = kernels.segment_reduce("sum", costs, of_row)
    return costs if rows else kernels.segment_reduce("sum", costs, counts)


def _dealt_batches(spans: Sequence[Span], items: Array, counts: Array) -> WindowBatches:
    """Batches of so many rows each, which are numbered over the batches of the spans in turn."""
    if len(spans) == 1:
        return spans[0].batches.dealt(items + spans[0].rows.start, counts)
    batches, firsts = joined([one.batches for one in spans])
    rows = [
        np.arange(one.rows.start, one.rows.stop) + first for one, first in zip(spans, firsts, strict=True)
    ]
    return batches.dealt(np.concatenate(rows)[items], counts)


def window_costs(batches: WindowBatches) -> StepCosts | None:
    """The costs of the steps that begin with the first batch of a window; None where the plan has no balance."""
    balance = batches.plan.balance
    if balance is None:
        return None
    found = StepCosts()
    for _, dealt in _pools(batches, balance):
        assert dealt.costs is not None
        found.add(dealt.costs, dealt.slots, dealt.items, balance.group)
    return found


def window_tokens(batches: WindowBatches) -> Array:
    """int64[batches]: the elements of the planned column in each batch of a window.

    Where the plan has a balance they are those of whole steps, as they are dealt.
    """
    balance, planned = batches.plan.balance, batches.sizes[:, 1]
    if balance is None:
        return planned
    found = [planned[:0]]
    for span, dealt in _pools(batches, balance):
        whole = planned[span.start : span.stop]
        found.append(whole[dealt.items] if dealt.batches is None else dealt.batches.sizes[:, 1])
    return np.concatenate(found)


def _pools(batches: WindowBatches, balance: Balance) -> Iterator[tuple[Span, Dealt]]:
    """The pools of whole steps of a window, as if it were the first."""
    whole = len(batches) // balance.step * balance.step
    pool = (balance.steps_in_pool or max(1, whole // balance.step)) * balance.step
    for first in range(0, whole, pool):
        span = Span(batches, first, min(first + pool, whole))
        numbers = np.arange(span.stop - span.start)
        yield span, deal([span], balance, numbers // balance.step, numbers % balance.group, first)


def deal_pool(costs: Array, slots: Slots, key: int) -> Array:
    """int64[N]: the items of each batch in turn, where costs[N] are those of items, batch after batch.

    Each batch has as many items as before. Items stay in their step where the pool is one; else `key` decides which
    step gets which of those that cost alike.
    """
    starts = kernels.lengths_to_offsets(slots.counts)
    found = np.zeros(len(costs), np.int64)
    batches_of = _batches_of(slots.steps)
    items_of = _items_of_steps(costs, slots, batches_of, key)
    for batches, items in zip(batches_of, items_of, strict=True):
        columns, counts = slots.columns[batches], slots.counts[batches]
        batch, layer, room = _places(columns.tobytes(), counts.tobytes())
        dealt = items if room.max() == 1 else items[kernels.deal(costs[items], room)]
        found[starts[batches][batch] + layer] = dealt
    return found


def _batches_of(steps: Array) -> list[Array]:
    """The batches of each step."""
    if steps[0] == steps[-1] and (steps == steps[0]).all():
        return [np.arange(len(steps))]
    in_order = np.argsort(steps, kind="stable")
    first = np.concatenate([[0], np.flatnonzero(np.diff(steps[in_order])) + 1, [len(steps)]])
    return [in_order[start:stop] for start, stop in pairwise(first.tolist())]


def _items_of_steps(costs: Array, slots: Slots, batches_of: list[Array], key: int) -> list[Array]:
    """The items of each step: its own where there is one, else by strata of equal cost.

    All items in falling order are cut into strata of a layer of each step, and a stratum into neighbouring groups, of
    which each step gets one, by the key: its ranks get items that cost alike.
    """
    if len(batches_of) == 1:
        return [np.arange(len(costs))]
    totals = np.array([slots.counts[batches].sum() for batches in batches_of])
    widths = np.array([len(np.unique(slots.columns[batches])) for batches in batches_of])
    layers = np.maximum(-(-totals // widths), 0)
    steps = np.repeat(np.arange(len(totals)), layers)
    layer = kernels.lengths_to_positions(layers)
    sizes = np.minimum(widths[steps], totals[steps] - layer * widths[steps])
    numbers = np.array([slots.steps[batches[0]] for batches in batches_of])
    most = int(numbers.max()) + 1
    bits = sequence_bits(key, most * (int(layers.max()) + 1))  # of step and layer: the same in all streams
    order = np.lexsort((bits[layer * most + numbers[steps]], layer))
    of_item = np.repeat(steps[order], sizes[order])
    falling = np.argsort(-costs, kind="stable")
    by_step = falling[np.argsort(of_item, kind="stable")]
    return np.split(by_step, np.cumsum(totals)[:-1])


@lru_cache(maxsize=16)
def _places(columns: bytes, counts: bytes) -> tuple[Array, Array, Array]:
    """The places of a step, column after column, in the order in which a column fills its micro-batches.

    Each is the number of a batch and a place in it; the last are how many each column has. Micro-batches get one item
    in turn, so that they are alike, too. Most steps are alike: the int64 arrays are given as their bytes.
    """
    of, sizes = np.frombuffer(columns, np.int64), np.frombuffer(counts, np.int64)
    batch = np.repeat(np.arange(len(sizes)), sizes)
    layer = kernels.lengths_to_positions(sizes)
    order = np.lexsort((batch, layer, of[batch]))
    return batch[order], layer[order], np.bincount(of, sizes).astype(np.int64)
