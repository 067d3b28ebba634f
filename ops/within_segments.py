"""Functions of a whole segment that keep its rows: softmax, norms, running sums, ranks."""

from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import portions, starts_of
from seqflow.registry import op
from seqflow.signature import NonNegative


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) out[sum(lengths), *d]",
    grad={"data": "softmax_within_backward(d.out, out.out, lengths)"},
)
def softmax_within(data: Array, lengths: Array) -> Array:
    """Compute `exp(data) / sum(exp(data))` within each segment, column by column, without overflow.

    Each segment sums to 1. A segment with NaN or +inf, or of only -inf, gives NaN, as in torch and SciPy. float32 and
    float64 keep their dtype, everything else gives float64. An empty segment has no rows.

    >>> softmax_within(np.array([0.0, 0.0, 7.0]), np.array([2, 0, 1]))
    array([0.5, 0.5, 1. ])
    """
    return kernels.softmax_within(data, lengths)


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) out[sum(lengths), *d]",
    grad={"data": "d.out - exp(out.out) * expand(lengths_sum(d.out, lengths), lengths)"},
)
def log_softmax_within(data: Array, lengths: Array) -> Array:
    """Return the logarithm of `softmax_within`, exact even if the softmax itself is too small for its dtype.

    An empty segment has no rows. The dtypes are those of `softmax_within`.

    >>> log_softmax_within(np.array([-1000.0, 0.0, 7.0]), np.array([2, 0, 1]))
    array([-1000.,     0.,     0.])
    """
    return kernels.softmax_within(data, lengths, log=True)


def _normalize_back(norm: str) -> str:
    if norm == "l1":
        sums, slope = "lengths_sum(abs(data), lengths)", "where(data > 0, 1.0, where(data < 0, -1.0, 0.0))"
        norms = "where(sums == 0, 1.0, sums)"
    else:
        sums, slope = "lengths_sum(square(data), lengths)", "out.out"
        norms = "sqrt(where(sums == 0, 1.0, sums))"  # 1 before the root, which has no derivative at 0
    return f"""
        sums = {sums}
        along = expand(lengths_sum(d.out * out.out, lengths), lengths)
        (d.out - {slope} * along) / expand({norms}, lengths)
    """


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) out[sum(lengths), *d]",
    grad={"data": _normalize_back},
)
def normalize_within(data: Array, lengths: Array, *, norm: Literal["l1", "l2"] = "l2") -> Array:
    """Divide each segment by its norm, column by column: the sum of magnitudes, or the root of the sum of squares.

    A segment with the norm 0 stays as it is, and an empty segment stays empty. float32 and float64 keep their dtype,
    everything else gives float64.

    >>> normalize_within(np.array([3.0, 4.0, 0.0]), np.array([2, 1]))
    array([0.6, 0.8, 0. ])
    >>> normalize_within(np.array([1.0, -3.0]), np.array([2]), norm="l1")
    array([ 0.25, -0.75])
    """
    return kernels.normalize_within(data, lengths, norm == "l1")


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) out[sum(lengths), *d]",
    grad={
        "data": """
            scales = rsqrt(lengths_var(data, lengths, ddof=ddof) + epsilon)
            shares = where(int64(lengths) > ddof, 1.0 / maximum(float64(lengths) - ddof, 1), 0.0)
            along = scale_rows(lengths_sum(d.out * out.out, lengths), shares)
            centred = d.out - expand(lengths_mean(d.out, lengths), lengths) - out.out * expand(along, lengths)
            centred * expand(scales, lengths)
        """
    },
)
def standardize_within(data: Array, lengths: Array, *, ddof: NonNegative = 0, epsilon: float = 1e-8) -> Array:
    """Subtract the mean of each segment, and divide by the root of its variance plus `epsilon`, column by column.

    The variance is that of `lengths_var`, so 0 where a segment is not longer than `ddof`. An empty segment stays
    empty. The dtypes are those of `lengths_mean`.

    >>> standardize_within(np.array([1.0, 3.0, 7.0]), np.array([2, 1]))
    array([-1.,  1.,  0.])
    """
    if not epsilon >= 0:
        raise OpError(f"epsilon is {epsilon}, expected a number, 0 or more")
    means = kernels.segment_reduce("mean", data, lengths)
    variances = kernels.segment_variance(data, lengths, min(ddof, len(data)))
    with np.errstate(all="ignore"):
        out: Array = data - kernels.expand(means, lengths)
        out /= kernels.expand(np.sqrt(variances + epsilon, dtype=means.dtype), lengths)
    return out.astype(means.dtype, copy=False)


@op(
    "number data[sum(lengths), *d], lengths[B] -> sum_of(data) sums[sum(lengths), *d]",
    grad={"data": "cumsum_within(d.sums, lengths, reverse=logical_not(reverse), exclusive=exclusive)"},
)
def cumsum_within(data: Array, lengths: Array, *, reverse: bool = False, exclusive: bool = False) -> Array:
    """Return the sum of each row and all rows before it in its segment; an empty segment stays empty.

    `reverse` adds up from the end of the segment, `exclusive` omits the row itself. The dtypes are those of
    `lengths_sum`; floats are added up in float64, integers wrap around.

    NumPy's other running functions go by padding, with a `fill` that changes nothing:

        unpad(np.maximum.accumulate(pad(x, n, fill=-np.inf).padded, axis=1), n)

    >>> cumsum_within(np.array([1, 2, 3]), np.array([2, 0, 1]))
    array([1, 3, 3])
    >>> cumsum_within(np.array([1, 2, 3]), np.array([3]), reverse=True, exclusive=True)
    array([5, 3, 0])
    """
    return kernels.cumsum_within(data, lengths, reverse, exclusive)


@op("ordered data[sum(lengths), *d], lengths[B] -> position(lengths) ranks[sum(lengths), *d]")
def rank_within(
    data: Array,
    lengths: Array,
    *,
    ties: Literal["first", "min", "max", "dense"] = "first",
    descending: bool = False,
) -> Array:
    """Return the rank of each element in its segment, column by column: its position in sorted order, from 0.

    Equal elements are ranked in their order (`ties="first"`), or all have the lowest or the highest rank among them
    (`"min"`, `"max"`), or the ranks count distinct values (`"dense"`). NaN and NaT are larger than everything else
    and equal to each other. An empty segment has no ranks.

    >>> rank_within(np.array([30, 10, 20, 10, 5]), np.array([4, 1]))
    array([3, 0, 2, 1, 0])
    >>> rank_within(np.array([30, 10, 20, 10, 5]), np.array([4, 1]), ties="dense")
    array([2, 0, 1, 0, 0])
    """
    ranks = np.empty(data.shape, np.int64)
    for sequences, rows in portions(lengths):
        ranks[rows] = _ranks(data[rows], lengths[sequences], ties, descending)
    return ranks


def _ranks(data: Array, lengths: Array, ties: str, descending: bool) -> Array:
    order = kernels.argsort_within(data, lengths, descending)
    starts = kernels.expand(starts_of(lengths), lengths).reshape(-1, *[1] * (data.ndim - 1))
    rows = order + starts
    places = np.broadcast_to(np.arange(len(data)).reshape(starts.shape), data.shape)
    if ties == "first":
        sorted_ranks = places - starts
    else:
        sorted_ranks = _tied_ranks(np.take_along_axis(data, rows, axis=0), starts, places, ties)
    ranks = np.empty(data.shape, np.int64)
    np.put_along_axis(ranks, rows, sorted_ranks, axis=0)
    return ranks


def _tied_ranks(ordered: Array, starts: Array, places: Array, ties: str) -> Array:
    """Return the ranks of sorted elements, with equal ranks for equal elements."""
    before, after = ordered[:-1], ordered[1:]
    differs = np.ones(ordered.shape, bool)
    differs[1:] = (before != after) & ~((before != before) & (after != after))  # NaN and NaN are equal here
    first = differs | (places == starts)
    if ties == "dense":
        count: Array = np.cumsum(first, axis=0)
        before_segment: Array = np.take_along_axis(count, np.broadcast_to(starts, ordered.shape), axis=0)
        return count - before_segment
    lowest: Array = np.maximum.accumulate(np.where(first, places, 0), axis=0)
    if ties == "min":
        return lowest - starts
    last = np.append(first[1:], np.ones_like(first[:1]), axis=0)
    highest: Array = np.minimum.accumulate(np.where(last, places, len(ordered))[::-1], axis=0)
    return highest[::-1] - starts
