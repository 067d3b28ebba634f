"""Dealing the items of a pool of steps to its batches, so that ranks and micro-batches cost alike."""

from __future__ import annotations

from functools import lru_cache
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
