"""Buckets of numbers between boundaries; a boundary belongs to the bucket below it."""

from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.indices import indices_below
from seqflow.ops.shared.slices import int64
from seqflow.registry import op
from seqflow.signature import NonNegative


@op(
    "number x[N, *i], number boundaries[K] -> int64 buckets[N, *i] <= maximum(K, nan|0)",
    caffe2="Bucketize",
)
def bucketize(x: Array, boundaries: Array, *, nan: NonNegative | None = None) -> Array:
    """Return the bucket of each number, 0 to K: the number of the ascending `boundaries` that are below it.

    The buckets are (-inf, b0], (b0, b1] … (b_last, inf). NaN goes to the last bucket, or to the bucket `nan`
    (Caffe2: 0). Numbers and boundaries are compared in the dtype that NumPy promotes both to. Calibration by bins:
    `where(counts[b] > 0, hits[b] / counts[b], p)` with `b = bucketize(p, boundaries)`.

    >>> bucketize(np.array([0.5, 1.0, 7.0, np.nan]), np.array([1.0, 5.0]))
    array([0, 0, 2, 2])
    """
    check_boundaries(boundaries)
    values, bounds = _alike(x, boundaries)
    buckets = kernels.bucketize(values, bounds)
    if nan is not None and x.dtype.kind == "f":
        buckets[np.isnan(x)] = nan
    return buckets


def _alike(x: Array, boundaries: Array) -> tuple[Array, Array]:
    """Return both in one dtype, such that all comparisons of the two stay what they were."""
    if x.dtype == np.float32 and boundaries.dtype == np.float64:
        # no copy of x in float64: a float32 is above a number if it is above that number rounded down to float32
        with np.errstate(over="ignore"):
            rounded = boundaries.astype(np.float32)
        return x, np.where(rounded > boundaries, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    dtype = np.result_type(x, boundaries)
    dtype = {"b": np.dtype(np.uint8)}.get(dtype.kind, np.dtype(np.float32) if dtype == np.float16 else dtype)
    return x.astype(dtype, copy=False), boundaries.astype(dtype, copy=False)


def check_boundaries(boundaries: Array, lengths: Array | None = None) -> None:
    """Raise OpError for the first boundary that is NaN, or below the one before it in its list."""
    boundaries = boundaries.copy()  # it is read several times, and another thread may write to it
    falls = np.zeros(len(boundaries), bool)
    falls[1:] = boundaries[1:] < boundaries[:-1]
    if lengths is not None:
        starts = np.cumsum(lengths) - lengths
        falls[starts[starts < len(falls)]] = False
    wrong = falls | (boundaries != boundaries)
    if wrong.any():
        i = int(np.argmax(wrong))
        if boundaries[i] != boundaries[i]:
            raise OpError(f"boundaries[{i}] is nan, expected a number")
        raise OpError(
            f"boundaries[{i}] = {boundaries[i]} is below boundaries[{i - 1}] = {boundaries[i - 1]}, "
            "expected no decrease"
        )


@op(
    "number x[B, D], number boundaries[sum(lengths)], index(D) columns[M], lengths[M]"
    " -> int64 buckets[B, M] <= maximum(max(lengths), nan|0)",
    caffe2="BatchBucketize",
)
def batch_bucketize(
    x: Array, boundaries: Array, columns: Array, lengths: Array, *, nan: NonNegative | None = None
) -> Array:
    """Bucketize some columns of a matrix: sequence m of `boundaries` is for the column `columns[m]`.

    The buckets are those of `bucketize`. With an empty sequence of boundaries there is one bucket, 0.

    >>> x = np.array([[0.5, 9.0, 3.0], [2.0, 9.0, 1.0]])
    >>> batch_bucketize(x, np.array([1.0, 5.0, 2.5]), np.array([0, 2]), np.array([2, 1]))
    array([[0, 1],
           [1, 0]])
    """
    sizes = int64(lengths)
    check_boundaries(boundaries, sizes)
    chosen = indices_below("columns", columns, x.shape[1])
    check_memory((len(x), len(chosen)), np.dtype(np.int64))
    buckets: Array = np.empty((len(x), len(chosen)), np.int64)
    for m, (column, bounds) in enumerate(zip(chosen, each_list(boundaries, sizes), strict=True)):
        buckets[:, m] = kernels.bucketize(*_alike(x[:, column], bounds))
        if nan is not None and x.dtype.kind == "f":
            buckets[np.isnan(x[:, column]), m] = nan
    return buckets


def each_list(boundaries: Array, sizes: Array) -> list[Any]:
    """Return the boundaries of each column."""
    return np.split(boundaries, np.cumsum(sizes)[:-1]) if len(sizes) else []
