"""Sort, argsort, top-k and argmax of each segment.

All use the same order: numbers by size, NaN and NaT above everything else, ties by position. (So NaN is last in
ascending order, as in NumPy, and first in descending order, as in torch.)
"""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, rows
from seqflow.kernels.checks import check_sum, offsets_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, NUMBERS, ORDERED
from seqflow.kernels.memory import check_memory
from seqflow.kernels.reductions import segment_reduce

__all__ = ["argsort_within", "segment_arg", "segment_extreme", "segment_topk", "sort_within"]


@kernel(data=ORDERED, lengths=COUNTS)
def sort_within(data: Array, lengths: Array, descending: bool = False) -> Array:
    """Return the rows of each segment sorted, each column separately: data[sum(lengths), *d] -> sorted[sum(lengths),
    *d].
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    return np.take_along_axis(data, _order(data, lengths, descending), axis=0)


@kernel(data=ORDERED, lengths=COUNTS)
def argsort_within(data: Array, lengths: Array, descending: bool = False) -> Array:
    """Return the positions of the sorted rows: int64 positions[sum(lengths), *d], each counted inside its segment.

    The order is stable: equal elements keep their order, in descending order too.
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    return _order(data, lengths, descending) - _starts(data, lengths)


@kernel(data=NUMBERS, lengths=COUNTS)
def segment_topk(data: Array, lengths: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest of each segment: data[sum(lengths)] -> values[B, k], int64 positions[B, k] inside the
    segment.

    In descending order. For a segment with fewer elements, values are 0 and positions -1 at the end.
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    if data.ndim != 1:
        raise ValueError(f"data has {data.ndim} dimensions, expected 1")
    check_memory((len(lengths), k), np.dtype(np.int64))
    order = _order(data, lengths, descending=True)
    values = np.zeros((len(lengths), k), data.dtype)
    positions = np.full((len(lengths), k), -1)
    taken = np.arange(k) < lengths[:, None]
    first = offsets_of(lengths)[:-1, None]
    picked = order[(first + np.arange(k))[taken]]
    values[taken] = data[picked]
    positions[taken] = picked - np.broadcast_to(first, taken.shape)[taken]
    return values, positions


@kernel(data=NUMBERS, lengths=COUNTS)
def segment_arg(kind: str, data: Array, lengths: Array) -> Array:
    """Return the first position of the "max" or "min" of each segment: data[sum(lengths), *d] -> int64 positions[B,
    *d].

    The first NaN or NaT wins, as in `np.argmax`. An empty segment gives -1.
    """
    if kind not in ("max", "min"):
        raise ValueError(f"kind is {kind!r}, expected 'max' or 'min'")
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    if data.size == 0:
        check_sum(lengths, len(data), "data")
        return np.full((len(lengths), *data.shape[1:]), -1)
    best = np.repeat(segment_reduce(kind, data, lengths), lengths, axis=0)
    found = (data == best) | (data != data)
    inside = np.arange(len(data)).reshape(-1, *[1] * (data.ndim - 1)) - _starts(data, lengths)
    return segment_reduce("min", np.where(found, inside, len(data)), lengths, -1)


@kernel(data=NUMBERS, lengths=COUNTS)
def segment_extreme(kind: str, data: Array, lengths: Array, empty: Any = 0) -> tuple[Array, Array]:
    """Return the "max" or "min" of each segment, as by `segment_reduce`, and its position, as by `segment_arg`."""
    return segment_reduce(kind, data, lengths, empty), segment_arg(kind, data, lengths)


def _starts(data: Array, lengths: Array) -> Array:
    """Return for each row the first row of its segment, with as many axes as data."""
    starts = np.repeat(offsets_of(lengths)[:-1], lengths)
    return starts.reshape(-1, *[1] * (data.ndim - 1))


def _order(data: Array, lengths: Array, descending: bool) -> Array:
    """Return the rows of `data` in order, column by column, each inside its segment."""
    check_sum(lengths, len(data), "data")
    # NumPy sorts small integers by counting, then moving: another thread must not change them in between
    data = data.copy()
    segments = np.repeat(np.arange(len(lengths)), lengths).reshape(-1, *[1] * (data.ndim - 1))
    segments = np.broadcast_to(segments, data.shape)
    if not descending:
        return np.lexsort((data, segments), axis=0)
    # reversed, sorted and reversed again: a descending order that is stable
    return len(data) - 1 - np.lexsort((data[::-1], -segments[::-1]), axis=0)[::-1]
