"""Which source gives each batch, where their shares change: Tijdeman's rule for the chairman assignment problem.

R. Tijdeman, "The chairman assignment problem", Discrete Mathematics 32 (1980): after any number of batches no source
is further than 1 - 1/(2m - 2) batches from the sum of its shares, m being the number of sources.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.loader.schedule.weights import Shares

_NEVER = 2**40
"""Behind all batches that there can be."""
_OWED = 64
"""A source without a share any more is owed less than a batch: it comes while no other may, up to so many batches
later, times m; or not at all."""


def settled(shares: Shares) -> int:
    """The batch from which on only sources come that have a share."""
    return shares.last_change + _OWED * int(shares.of_batch.shape[1])


def assigned(shares: Shares, count: int, order: Array) -> Array:
    """int64[count]: the source of each of the first batches; `order` int64[m] says who comes first among equals.

    Batch j of a source may come once its shares have come to j + 1/(2m - 2) batches, and should before they have
    come to j + 1 - 1/(2m - 2). Of those that may come, the one comes that should come first.
    """
    sources = len(order)
    if sources == 1:
        return np.zeros(count, np.int64)
    released, due = _times(shares, count, order)
    found = np.empty(count, np.int64)
    waiting: list[int] = []
    at, last = 0, settled(shares)
    for number in range(count):
        while at < len(released) and released[at] <= number + 1:
            heappush(waiting, due[at])
            at += 1
        if not waiting or (number >= last and waiting[0] >= _NEVER * sources):
            heappush(waiting, due[at])
            at += 1
        found[number] = heappop(waiting)
    return np.asarray(np.argsort(order, kind="stable")[found % sources])


def _times(shares: Shares, count: int, order: Array) -> tuple[list[int], list[int]]:
    """When each batch of a source may come, in this order, and when it should, times m, plus the source's place."""
    sources = len(order)
    margin = shares.unit // (2 * sources - 2)
    may, should = [], []
    for member in range(sources):
        of_source = shares.until(member, count) // shares.unit
        batches = np.arange(of_source + 1 + sources) * shares.unit  # some may come early
        may.append(shares.reached(member, batches + margin, _NEVER))
        due = shares.reached(member, batches + shares.unit - margin, _NEVER)
        should.append(due * sources + order[member])
    released = np.concatenate(may)
    by_release = np.argsort(released, kind="stable")
    return released[by_release].tolist(), np.concatenate(should)[by_release].tolist()
