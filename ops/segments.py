"""Reductions of the rows of each segment to one row.

An empty segment gives `empty`, by default 0.
"""

from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.ops.shared.slices import starts_of
from seqflow.ops.shared.weights import expand_trailing, weighted, weighted_dtype
from seqflow.registry import op
from seqflow.signature import NonNegative, Scalar

FINITE_LOGS = "where(out.logs == -inf, 0.0, out.logs)"
"""Results of logsumexp for its gradient, which is 0 for segments of only -inf, not exp(-inf - -inf)."""


@op(
    "number data[sum(lengths), *d], lengths[B] -> sum_of(data) sums[B, *d]",
    caffe2="LengthsSum",
    describes={"sums": "sum(data) unless empty"},
    grad={"data": "expand(d.sums, lengths)"},
)
def lengths_sum(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Sum the rows of each segment; an empty segment gives `empty`.

    Integers and bool are summed in int64 (uint64 in uint64) and wrap around beyond it, as in NumPy; float16 and
    float32 give float32.

    >>> lengths_sum(np.array([1, 2, 3]), np.array([2, 0, 1]))
    array([3, 0, 3])
    """
    if empty != 0:
        empty = cast_scalar("empty", empty, kernels.sum_dtype(data.dtype))
    return kernels.segment_reduce("sum", data, lengths, empty)


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) means[B, *d]",
    caffe2="LengthsMean",
    grad={"data": "expand(scale_rows(d.means, 1.0 / maximum(float64(lengths), 1)), lengths)"},
)
def lengths_mean(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Average the rows of each segment; an empty segment gives `empty` (NumPy: nan and a warning).

    float32 and float64 keep their dtype, everything else gives float64.

    >>> lengths_mean(np.array([1, 2, 3]), np.array([2, 0, 1]))
    array([1.5, 0. , 3. ])
    """
    if empty != 0:
        empty = cast_scalar("empty", empty, kernels.mean_dtype(data.dtype))
    return kernels.segment_reduce("mean", data, lengths, empty)


@op(
    "ordered data[sum(lengths), *d], lengths[B] -> largest[B, *d]",
    caffe2="LengthsMax",
    grad={"data": "put_at_positions(d.largest, lengths_argmax(data, lengths), data, lengths)"},
    trained_as="lengths_max_with_argmax",
)
def lengths_max(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Return the largest row of each segment, element by element; an empty segment gives `empty` (NumPy: an error).

    As in Caffe2, `empty` is by default 0, even if all data are negative. NaN and NaT win, as in `np.max`.

    >>> lengths_max(np.array([1, 3, -2]), np.array([2, 0, 1]))
    array([ 3,  0, -2])
    """
    return kernels.segment_reduce("max", data, lengths, cast_scalar("empty", empty, data.dtype))


@op(
    "ordered data[sum(lengths), *d], lengths[B] -> smallest[B, *d]",
    grad={"data": "put_at_positions(d.smallest, lengths_argmin(data, lengths), data, lengths)"},
    trained_as="lengths_min_with_argmin",
)
def lengths_min(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Return the smallest row of each segment, element by element; an empty segment gives `empty` (NumPy: an error).

    NaN and NaT win, as in `np.min`.

    >>> lengths_min(np.array([1, 3, -2]), np.array([2, 0, 1]))
    array([ 1,  0, -2])
    """
    return kernels.segment_reduce("min", data, lengths, cast_scalar("empty", empty, data.dtype))


@op(
    "number data[sum(lengths), *d], lengths[B] -> sum_of(data) products[B, *d]",
    grad={"data": "expand(d.products, lengths) * products_of_others(data, lengths)"},
)
def lengths_prod(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Multiply the rows of each segment; an empty segment gives `empty` (NumPy: 1).

    The dtypes are those of `lengths_sum`.

    >>> lengths_prod(np.array([2, 3, 4]), np.array([2, 0, 1]))
    array([6, 0, 4])
    """
    if empty != 0:
        empty = cast_scalar("empty", empty, kernels.sum_dtype(data.dtype))
    return kernels.segment_reduce("prod", data, lengths, empty)


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) sums[B, *d]",
    grad={"data": "expand(scale_rows(d.sums, rsqrt(maximum(float64(lengths), 1))), lengths)"},
)
def lengths_sqrt_sum(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Sum the rows of each segment and divide by the square root of its length; an empty segment gives `empty`.

    The dtypes are those of `lengths_mean`. Paddle's sequence_pool calls it `sqrt`.

    >>> lengths_sqrt_sum(np.array([1.0, 2.0, 3.0, 2.0, 3.0]), np.array([4, 0, 1]))
    array([4., 0., 3.])
    """
    means = kernels.segment_reduce("mean", data, lengths, cast_scalar("empty", empty, _mean_dtype(data)))
    factors = np.sqrt(np.maximum(lengths, 1), dtype=np.float64).astype(means.dtype, copy=False)
    means *= expand_trailing(factors, means)
    return means


@op(
    "number data[sum(lengths), *d], float weights[sum(lengths)], lengths[B]"
    " -> sum_of(data, weights) sums[B, *d]",
    caffe2="LengthsWeightedSum",
    grad={
        "data": "cast_like(scale_rows(expand(d.sums, lengths), weights), data)",
        "weights": "row_dot(expand(d.sums, lengths), data)",
    },
)
def lengths_weighted_sum(data: Array, weights: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Sum the rows of each segment, each times its weight; an empty segment gives `empty`.

    Data and weights are promoted as in NumPy, at least to float32.

    >>> lengths_weighted_sum(np.array([1, 2, 3]), np.array([0.5, 1.0, 2.0]), np.array([2, 0, 1]))
    array([2.5, 0. , 6. ])
    """
    return kernels.segment_reduce(
        "sum", weighted(data, weights), lengths, cast_scalar("empty", empty, weighted_dtype(data, weights))
    )


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) variances[B, *d]",
    grad={
        "data": """
            factors = where(int64(lengths) > ddof, 2.0 / maximum(float64(lengths) - ddof, 1), 0.0)
            centred = data - expand(lengths_mean(data, lengths), lengths)
            expand(scale_rows(d.variances, factors), lengths) * centred
        """
    },
)
def lengths_var(data: Array, lengths: Array, *, ddof: NonNegative = 0, empty: Scalar = 0) -> Array:
    """Return the variance of the rows of each segment: the mean squared distance from their mean.

    The sum of squares is divided by `length - ddof`. An empty segment, and every segment that is not longer than
    `ddof`, gives `empty` (NumPy: nan and a warning). The dtypes are those of `lengths_mean`.

    Skewness from both moments at once:

        centred = x - expand(lengths_mean(x, n), n)
        second, third = lengths_mean(np.stack([centred**2, centred**3], 1), n).T
        third / second**1.5

    >>> lengths_var(np.array([1, 3, 5]), np.array([2, 0, 1]))
    array([1., 0., 0.])
    """
    return _variances(data, lengths, ddof, cast_scalar("empty", empty, _mean_dtype(data)))


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) deviations[B, *d]",
    grad={
        "data": """
            factors = where(int64(lengths) > ddof, 1.0 / maximum(float64(lengths) - ddof, 1), 0.0)
            slopes = where(out.deviations == 0, 0.0, d.deviations / where(out.deviations == 0, 1.0, out.deviations))
            centred = data - expand(lengths_mean(data, lengths), lengths)
            expand(scale_rows(slopes, factors), lengths) * centred
        """
    },
)
def lengths_std(data: Array, lengths: Array, *, ddof: NonNegative = 0, empty: Scalar = 0) -> Array:
    """Return the standard deviation of the rows of each segment: the root of `lengths_var`.

    An empty segment, and every segment that is not longer than `ddof`, gives `empty` (NumPy: nan and a warning).
    `standardize_within` subtracts the mean and divides by it.

    >>> lengths_std(np.array([1, 3, 5]), np.array([2, 0, 1]))
    array([1., 0., 0.])
    """
    value = cast_scalar("empty", empty, _mean_dtype(data))
    deviations = np.sqrt(_variances(data, lengths, ddof, 0))
    if value != 0:
        deviations[lengths <= ddof] = value
    return deviations


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) logs[B, *d]",
    grad={"data": f"expand(d.logs, lengths) * exp(data - expand({FINITE_LOGS}, lengths))"},
)
def lengths_logsumexp(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Compute log(sum(exp(data))) over each segment, without overflow; an empty segment gives `empty` (NumPy: -inf).

    A segment of only -inf gives -inf. The dtypes are those of `lengths_mean`.

    >>> lengths_logsumexp(np.array([1000.0, 1000.0, 3.0]), np.array([2, 0, 1]))
    array([1000.69314718,    0.        ,    3.        ])
    """
    return kernels.segment_logsumexp(data, lengths, cast_scalar("empty", empty, _mean_dtype(data)))


@op("number data[sum(lengths), *d], lengths[B] -> bool found[B, *d]")
def lengths_any(data: Array, lengths: Array, *, empty: bool = False) -> Array:
    """Return whether any row of each segment is not 0, element by element; an empty segment gives `empty`.

    NaN is not 0, as in `np.any`.

    Bitwise reducers of int64 go by bits, `bits = (x[:, None] >> np.arange(64)) & 1`:

        or     lengths_max(bits, n) @ (1 << np.arange(64))
        and    lengths_min(bits, n) @ (1 << np.arange(64))
        xor    lengths_sum(bits, n) % 2 @ (1 << np.arange(64))

    >>> lengths_any(np.array([0, 2, 0]), np.array([2, 0, 1]))
    array([ True, False, False])
    """
    return kernels.segment_reduce("max", data.astype(bool, copy=False), lengths, empty)


@op("number data[sum(lengths), *d], lengths[B] -> bool held[B, *d]")
def lengths_all(data: Array, lengths: Array, *, empty: bool = False) -> Array:
    """Return whether no row of each segment is 0, element by element; an empty segment gives `empty` (NumPy: True).

    NaN is not 0, as in `np.all`.

    >>> lengths_all(np.array([0, 2, 1]), np.array([2, 0, 1]))
    array([False, False,  True])
    """
    return kernels.segment_reduce("min", data.astype(bool, copy=False), lengths, empty)


@op(
    "data[sum(lengths), *d], lengths[B] -> rows[B, *d]",
    grad={"data": "put_at_positions(d.rows, where(int64(lengths) > 0, 0, -1), data, lengths)"},
)
def lengths_first(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Return the first row of each segment; an empty segment gives `empty`.

    >>> lengths_first(np.array([1, 2, 3]), np.array([2, 0, 1]))
    array([1, 0, 3])
    """
    return _picked(data, lengths, starts_of(lengths), empty)


@op(
    "data[sum(lengths), *d], lengths[B] -> rows[B, *d]",
    grad={"data": "put_at_positions(d.rows, int64(lengths) - 1, data, lengths)"},
)
def lengths_last(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Return the last row of each segment; an empty segment gives `empty`.

    >>> lengths_last(np.array([1, 2, 3]), np.array([2, 0, 1]))
    array([2, 0, 3])
    """
    return _picked(data, lengths, kernels.lengths_to_offsets(lengths)[1:] - 1, empty)


def _variances(data: Array, lengths: Array, ddof: int, empty: Any) -> Array:
    # no segment is longer than the data, and ddof may not fit int64
    return kernels.segment_variance(data, lengths, min(ddof, len(data)), empty)


def _picked(data: Array, lengths: Array, places: Array, empty: Any) -> Array:
    """Return the row at the place of each segment; `places` of empty segments are ignored."""
    value = cast_scalar("empty", empty, data.dtype)
    is_empty = lengths == 0
    rows = kernels.gather(data, np.where(is_empty, -1, places), ignore_index=-1)
    if empty != 0:
        rows[is_empty] = value
    return rows


def _mean_dtype(data: Array) -> np.dtype[Any]:
    return kernels.mean_dtype(data.dtype)
