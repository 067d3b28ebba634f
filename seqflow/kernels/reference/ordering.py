"""Order inside segments, in NumPy."""

import numpy as np

from seqflow.kernels.arrays import Array, check_column, check_extreme, rows
from seqflow.kernels.reference.checks import check_sum, counts, offsets_of
from seqflow.kernels.reference.reductions import segment_reduce


def sort_within(data: Array, lengths: Array, descending: bool = False) -> Array:
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    return np.take_along_axis(data, _order(data, lengths, descending), axis=0)


def argsort_within(data: Array, lengths: Array, descending: bool = False) -> Array:
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    return _order(data, lengths, descending) - _starts(data, lengths)


def segment_topk(data: Array, lengths: Array, k: int) -> tuple[Array, Array]:
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    check_column(data, "data")
    order = _order(data, lengths, descending=True)
    values = np.zeros((len(lengths), k), data.dtype)
    positions = np.full((len(lengths), k), -1)
    taken = np.arange(k) < lengths[:, None]
    first = offsets_of(lengths)[:-1, None]
    picked = order[(first + np.arange(k))[taken]]
    values[taken] = data[picked]
    positions[taken] = picked - np.broadcast_to(first, taken.shape)[taken]
    return values, positions


def segment_arg(kind: str, data: Array, lengths: Array) -> Array:
    check_extreme(kind)
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    best = np.repeat(segment_reduce(kind, data, lengths), lengths, axis=0)
    found = (data == best) | (data != data)
    inside = np.arange(len(data)).reshape(-1, *[1] * (data.ndim - 1)) - _starts(data, lengths)
    return segment_reduce("min", np.where(found, inside, len(data)), lengths, -1)


def _starts(data: Array, lengths: Array) -> Array:
    """For each row the first row of its segment, with as many axes as data."""
    starts = np.repeat(offsets_of(lengths)[:-1], lengths)
    return starts.reshape(-1, *[1] * (data.ndim - 1))


def _order(data: Array, lengths: Array, descending: bool) -> Array:
    """The rows of `data` in order, column by column, each inside its segment."""
    check_sum(lengths, len(data), "data")
    segments = np.repeat(np.arange(len(lengths)), lengths).reshape(-1, *[1] * (data.ndim - 1))
    segments = np.broadcast_to(segments, data.shape)
    if not descending:
        return np.lexsort((data, segments), axis=0)
    return len(data) - 1 - np.lexsort((data[::-1], -segments[::-1]), axis=0)[::-1]
