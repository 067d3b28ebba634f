"""Assign items to columns so that the columns have similar costs."""

from heapq import heapify, heappop, heapreplace

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts
from seqflow.kernels.checks import check_sum, offsets_of, total_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS

__all__ = ["assign"]


@kernel(costs=COUNTS, room=COUNTS)
def assign(costs: Array, room: Array) -> Array:
    """Assign items to columns, `room[c]` items to column c: costs[N], room[C] -> items int64[N].

    Items are assigned in falling order of cost, ties in input order, each to the column with room that has the least
    total so far, ties to the lower number. Each column keeps the order of assignment. Raises KernelError unless room
    adds up to N.
    """
    costs, room = int64_counts(costs, "costs"), int64_counts(room, "room")
    total_of(costs, "costs")
    check_sum(room, len(costs), "costs", "room")
    places = offsets_of(room).tolist()
    following, stops = places[:-1], places[1:]
    items = np.zeros(len(costs), np.int64)
    heap = [(0, column) for column, count in enumerate(room.tolist()) if count]
    heapify(heap)
    order = np.argsort(-costs, kind="stable")
    for item, cost in zip(order.tolist(), costs[order].tolist(), strict=True):
        total, column = heap[0]
        items[following[column]] = item
        following[column] += 1
        if following[column] < stops[column]:
            heapreplace(heap, (total + cost, column))
        else:
            heappop(heap)
    return items
