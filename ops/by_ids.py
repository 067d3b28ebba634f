"""Rows by ids in any order: one stable order puts equal ids next to each other, and every op within does the rest."""

from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.registry import op
from seqflow.signature import NonNegative


@op(
    "int ids[N] -> index(N) order[sum(lengths)], int64 lengths[num_segments|S], index(sum(lengths)) back[N],"
    " S <= max(ids)+1, sum(lengths) <= N",
    rows={"S": "groups(ids, num_segments)"},
)
def group_order(
    ids: Array, *, num_segments: NonNegative | None = None, outside: Literal["raise", "drop"] = "raise"
) -> tuple[Array, Array, Array]:
    """Return the stable order that puts rows with equal ids next to each other, their lengths, and the way back.

    With it, every `lengths_X` and `X_within` works by ids in any order, and the sort is shared by all of them:

        order, n, back = group_order(ids)
        stds = lengths_std(gather(x, order), n)                     # a row for each id
        shares = gather(softmax_within(gather(x, order), n), back)  # a row for each row

    NumPy and torch index by `order` and `back` as well: `shift(x[order], n, by=1, fill=nan)[back]`. The second row of
    each is `stride_within(x[order], n, start=ones, stop=twos)`; `n` alone is a histogram.

    An id without rows has the length 0, an empty sequence. Without `num_segments` the largest id is the last. An id
    below 0 or from `num_segments` on is an error; `outside="drop"` omits its row, and its place in `back` is -1,
    which `gather(…, ignore_index=-1)` turns into zeros.

    >>> group_order(np.array([1, 0, 1, 3]))
    GroupOrderResult(order=array([1, 0, 2, 3]), lengths=array([1, 2, 0, 1]), back=array([1, 0, 2, 3]))
    """
    copied = ids.copy()
    if outside == "drop":
        inside = copied >= 0 if num_segments is None else (copied >= 0) & (copied < num_segments)
        kept = np.flatnonzero(inside)
        order, lengths = _grouped(copied[kept], num_segments)
        order = kept[order]
    else:
        order, lengths = _grouped(copied, num_segments)
    back = np.full(len(ids), -1, np.int64)
    back[order] = np.arange(len(order))
    return order, lengths, back


@op("int ids[N] -> int64 positions[N]")
def positions_by_id(ids: Array) -> Array:
    """Return the number of earlier rows with the same id: the position of each row among them, from 0.

    >>> positions_by_id(np.array([7, 5, 7, 7]))
    array([0, 0, 1, 2])
    """
    _, codes, counts = kernels.distinct_ids(ids.astype(np.int64))
    order, _ = kernels.group_rows(codes, len(counts))
    positions = np.empty(len(ids), np.int64)
    positions[order] = kernels.lengths_to_positions(counts)
    return positions


def _grouped(ids: Array, num_segments: int | None) -> tuple[Array, Array]:
    lowest = int(ids.min(initial=0))
    if lowest < 0 and num_segments is None:
        raise OpError(
            f"ids[{int(np.argmax(ids < 0))}] is {ids[ids < 0][0]}, expected 0 or more",
            advice="outside='drop' omits such rows",
        )
    if num_segments is None:
        num_segments = int(ids.max()) + 1 if len(ids) else 0
    return kernels.group_rows(ids, num_segments)
