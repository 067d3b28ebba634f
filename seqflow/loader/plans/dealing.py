"""Dealing the items of a pool of steps to its batches, so that ranks and micro-batches cost alike."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Slots
from seqflow.ops.shared.random_bits import sequence_bits


def deal_pool(costs: Array, slots: Slots, key: int) -> Array:
    """int64[N]: the items of each batch in turn, where costs[N] are those of items, batch after batch.

    Each batch has as many items as before. Items stay in their step where the pool is one; else `key` decides which
    step gets which of those that cost alike.
    """
    starts = kernels.lengths_to_offsets(slots.counts)
    found = np.zeros(len(costs), np.int64)
    in_order = np.argsort(slots.steps, kind="stable")
    first = np.concatenate([[0], np.flatnonzero(np.diff(slots.steps[in_order])) + 1, [len(in_order)]])
    batches_of = [in_order[a:b] for a, b in pairwise(first.tolist()) if b > a]
    items_of = _items_of_steps(costs, slots, batches_of, key)
    rooms: dict[tuple[bytes, bytes], tuple[tuple[Array, Array], Array]] = {}  # most steps are alike
    for batches, items in zip(batches_of, items_of, strict=True):
        columns, counts = slots.columns[batches], slots.counts[batches]
        alike = columns.tobytes(), counts.tobytes()
        if alike not in rooms:
            rooms[alike] = _places(columns, counts), np.bincount(columns, counts).astype(np.int64)
        (batch, layer), room = rooms[alike]
        dealt = items if room.max() == 1 else items[kernels.deal(costs[items], room)]
        found[starts[batches[batch]] + layer] = dealt
    return found


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


def _places(columns: Array, counts: Array) -> tuple[Array, Array]:
    """The places of a step, column after column, in the order in which a column fills its micro-batches.

    Each is the number of a batch, and a place in it. Micro-batches get one item in turn, so that they are alike, too.
    """
    batch = np.repeat(np.arange(len(counts)), counts)
    layer = kernels.lengths_to_positions(counts)
    order = np.lexsort((batch, layer, columns[batch]))
    return batch[order], layer[order]
