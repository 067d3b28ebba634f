"""Sum, mean, product, variance, norm and extremes of each segment, and of table rows by index."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, mean_dtype, reduced_dtype, rows, scalar
from seqflow.kernels.checks import check_room, check_same_size, check_sum, checked_indices, offsets_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, FLOATS, NUMBERS

__all__ = [
    "gather_segment_reduce",
    "gather_segment_weigh",
    "normalize_within",
    "segment_reduce",
    "segment_variance",
]


@kernel(data=NUMBERS, lengths=COUNTS)
def segment_reduce(kind: str, data: Array, lengths: Array, empty: Any = 0) -> Array:
    """Reduce the rows of each segment: data[sum(lengths), *d], lengths[B] -> out[B, *d].

    kind is "sum" or "prod" (dtype: `sum_dtype`), "mean" (`mean_dtype`), "max" or "min" (the dtype of data; NaN and
    NaT win). An empty segment gives `empty`, a scalar of the result's dtype. Floats are added up in blocks and
    in float64; integers wrap around, as in NumPy.
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    dtype = reduced_dtype(kind, data.dtype)
    check_sum(lengths, len(data), "data")
    out = np.full((len(lengths), *data.shape[1:]), scalar(empty, dtype), dtype)
    filled = lengths > 0
    # only filled segments: `reduceat` gives an empty one the first row of the next
    if filled.any():
        ufunc = {"max": np.maximum, "min": np.minimum, "prod": np.multiply}.get(kind, np.add)
        with np.errstate(all="ignore"):
            reduced = ufunc.reduceat(widened(kind, data), offsets_of(lengths)[:-1][filled], axis=0)
            if kind == "mean":
                reduced = reduced / lengths[filled].reshape(-1, *[1] * (data.ndim - 1))
            out[filled] = reduced.astype(dtype)
    return out


@kernel(data=NUMBERS, lengths=COUNTS)
def segment_variance(data: Array, lengths: Array, ddof: int = 0, empty: Any = 0) -> Array:
    """Mean squared distance from the mean of the segment: data[sum(lengths), *d], lengths[B] -> out[B, *d].

    The sum of squares is divided by `length - ddof`; a segment that is not longer than `ddof` gives `empty`. dtype:
    `mean_dtype`.
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    dtype = mean_dtype(data.dtype)
    if not data.size:  # NumPy loops over rows without bytes one by one, however many there are
        check_sum(lengths, len(data), "data")
        return np.full((len(lengths), *data.shape[1:]), scalar(empty, dtype), dtype)
    wide = widened("mean", data)
    with np.errstate(all="ignore"):
        distance = wide - np.repeat(segment_reduce("mean", wide, lengths), lengths, axis=0)
        squares = segment_reduce("sum", distance * distance, lengths)
        out: Array = (squares / (lengths - ddof).reshape(-1, *[1] * (data.ndim - 1))).astype(dtype)
    out[lengths <= max(ddof, 0)] = scalar(empty, dtype)
    return out


@kernel(data=FLOATS, lengths=COUNTS)
def normalize_within(data: Array, lengths: Array, l1: bool = False) -> Array:
    """Divide each segment by its norm: data[sum(lengths), *d], lengths[B] -> out[sum(lengths), *d].

    The norm of a column is the root of the sum of squares, or with `l1` the sum of magnitudes, in float64; a norm
    of 0 counts as 1. dtype: `mean_dtype`.
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    check_sum(lengths, len(data), "data")
    dtype = mean_dtype(data.dtype)
    wide = data.astype(np.result_type(dtype, np.float64), copy=False)
    with np.errstate(all="ignore"):
        sums = segment_reduce("sum", np.abs(wide) if l1 else np.square(wide), lengths)
        norms = sums if l1 else np.sqrt(sums)
        norms[norms == 0] = 1
        result: Array = wide / np.repeat(norms, lengths, axis=0)
        return result.astype(dtype, copy=False)


@kernel(table=NUMBERS, indices=COUNTS, lengths=COUNTS)
def gather_segment_reduce(
    kind: str, table: Array, indices: Array, lengths: Array, empty: Any = 0, ignore_index: int | None = None
) -> Array:
    """`segment_reduce` of gathered rows: table[R, *d], indices[sum(lengths)], lengths[B] -> out[B, *d].

    An index equal to `ignore_index` is skipped, also in the count of a mean; a segment of such indices is empty.
    """
    table, indices = rows(table, "table"), int64_counts(indices, "indices")
    lengths = int64_counts(lengths, "lengths")
    reduced_dtype(kind, table.dtype)
    check_sum(lengths, len(indices), "indices")
    picked, used, kept = _used(indices, lengths, len(table), ignore_index)
    return segment_reduce(kind, table[picked[used]], kept, empty)


@kernel(table=NUMBERS, weights=FLOATS, indices=COUNTS, lengths=COUNTS)
def gather_segment_weigh(
    table: Array,
    weights: Array,
    indices: Array,
    lengths: Array,
    positional: bool = False,
    empty: Any = 0,
    ignore_index: int | None = None,
) -> Array:
    """Sums of gathered rows times weights: table[R, *d], weights[sum(lengths)], indices[sum(lengths)], lengths[B] ->
    out[B, *d], in the dtype of the weights.

    With `positional`, weights[P] belong to the first, second … position of every segment, and no segment is longer
    than P. An index equal to `ignore_index` is skipped.
    """
    table, indices = rows(table, "table"), int64_counts(indices, "indices")
    lengths = int64_counts(lengths, "lengths")
    check_sum(lengths, len(indices), "indices")
    if positional:
        check_room(lengths, len(weights))
        weights = weights[np.arange(len(indices)) - np.repeat(offsets_of(lengths)[:-1], lengths)]
    else:
        check_same_size(weights=weights, indices=indices)
    picked, used, kept = _used(indices, lengths, len(table), ignore_index)
    wide = np.result_type(weights, np.float64)
    factors = weights[used].astype(wide).reshape(-1, *[1] * (table.ndim - 1))
    with np.errstate(all="ignore"):
        sums = segment_reduce("sum", table[picked[used]] * factors, kept)
        out: Array = sums.astype(weights.dtype)
    out[kept == 0] = scalar(empty, weights.dtype)
    return out


def _used(
    indices: Array, lengths: Array, num_rows: int, ignore_index: int | None
) -> tuple[Array, Array, Array]:
    """Return the checked indices, whether each is used, and the number of used ones in each segment."""
    picked, used = checked_indices(indices, num_rows, False, ignore_index)
    before = np.concatenate([[0], np.cumsum(used)])
    return picked, used, np.diff(before[offsets_of(lengths)])


def widened(kind: str, data: Array) -> Array:
    """Return the data in the dtype in which they are added up."""
    if kind in ("max", "min"):
        return data
    if data.dtype.kind in "fc":
        return data.astype(np.result_type(data.dtype, np.float64), copy=False)
    return data.astype(reduced_dtype(kind, data.dtype), copy=False)
