"""Reductions of rows that are assigned to segments by ids.

`sorted_segment_…` take ids that count up from 0 without gaps: the rows of a segment follow one another.
`unsorted_segment_…` take the rows in any order; a segment may be empty.
"""

from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array, counts
from seqflow.ops.segments import FINITE_LOGS
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.ops.shared.weights import expand_trailing, weighted
from seqflow.registry import op
from seqflow.signature import NonNegative, Scalar


@op(
    "number data[N, *d], int ids[N] -> sum_of(data) sums[S, *d], S <= minimum(N, max(ids)+1)",
    caffe2="SortedSegmentSum, SortedSegmentRangeSum",
    known_as="tf.math.segment_sum; torch_scatter.segment_coo",
    rows={"S": "groups(ids)"},
    grad={"data": "gather(d.sums, ids)"},
)
def sorted_segment_sum(data: Array, ids: Array) -> Array:
    """Sum the rows of each id; ids are 0, 1, 2 … in this order, so none is empty.

    The dtypes are those of `lengths_sum`.

    >>> sorted_segment_sum(np.array([1, 2, 3]), np.array([0, 0, 1]))
    array([3, 3])
    """
    return kernels.segment_reduce("sum", data, sorted_lengths(ids))


@op(
    "number data[N, *d], int ids[N] -> mean_of(data) means[S, *d], S <= minimum(N, max(ids)+1)",
    caffe2="SortedSegmentMean, SortedSegmentRangeMean",
    known_as="tf.math.segment_mean",
    rows={"S": "groups(ids)"},
    grad={
        "data": "gather(scale_rows(d.means, 1.0 / maximum(float64(segment_counts(ids, out.means)), 1)), ids)"
    },
)
def sorted_segment_mean(data: Array, ids: Array) -> Array:
    """Average the rows of each id; ids are 0, 1, 2 … in this order, so none is empty.

    The dtypes are those of `lengths_mean`.

    >>> sorted_segment_mean(np.array([1, 2, 3]), np.array([0, 0, 1]))
    array([1.5, 3. ])
    """
    return kernels.segment_reduce("mean", data, sorted_lengths(ids))


@op(
    "number data[N, *d], float weights[N], int ids[N]"
    " -> sum_of(data, weights) sums[S, *d], S <= minimum(N, max(ids)+1)",
    caffe2="SortedSegmentWeightedSum",
    known_as="weighted segment sum",
    rows={"S": "groups(ids)"},
    grad={
        "data": "cast_like(scale_rows(gather(d.sums, ids), weights), data)",
        "weights": "row_dot(gather(d.sums, ids), data)",
    },
)
def sorted_segment_weighted_sum(data: Array, weights: Array, ids: Array) -> Array:
    """Sum the rows of each id, each times its weight; ids are 0, 1, 2 … in this order, so none is empty.

    The dtypes are those of `lengths_weighted_sum`.

    >>> sorted_segment_weighted_sum(np.array([1, 2, 3]), np.array([0.5, 1.0, 2.0]), np.array([0, 0, 1]))
    array([2.5, 6. ])
    """
    return kernels.segment_reduce("sum", weighted(data, weights), sorted_lengths(ids))


@op(
    "ordered data[N, *d], int ids[N] -> largest[S, *d], S <= minimum(N, max(ids)+1)",
    caffe2="SortedSegmentRangeMax",
    known_as="tf.math.segment_max",
    rows={"S": "groups(ids)"},
    grad={"data": "cast_like(gather(d.largest, ids) * extreme_shares(data, ids, out.largest), data)"},
)
def sorted_segment_max(data: Array, ids: Array) -> Array:
    """Return the largest row of each id, element by element; ids are 0, 1, 2 … in this order, so none is empty.

    >>> sorted_segment_max(np.array([1, 2, 3]), np.array([0, 0, 1]))
    array([2, 3])
    """
    return kernels.segment_reduce("max", data, sorted_lengths(ids))


@op(
    "ordered data[N, *d], int ids[N] -> smallest[S, *d], S <= minimum(N, max(ids)+1)",
    known_as="tf.math.segment_min",
    rows={"S": "groups(ids)"},
    grad={"data": "cast_like(gather(d.smallest, ids) * extreme_shares(data, ids, out.smallest), data)"},
)
def sorted_segment_min(data: Array, ids: Array) -> Array:
    """Return the smallest row of each id, element by element; ids are 0, 1, 2 … in this order, so none is empty.

    >>> sorted_segment_min(np.array([1, 2, 3]), np.array([0, 0, 1]))
    array([1, 3])
    """
    return kernels.segment_reduce("min", data, sorted_lengths(ids))


@op(
    "number data[N, *d], int ids[N] -> sum_of(data) products[S, *d], S <= minimum(N, max(ids)+1)",
    known_as="tf.math.segment_prod",
    rows={"S": "groups(ids)"},
    grad={"data": "gather(d.products, ids) * products_of_others(data, segment_counts(ids, out.products))"},
)
def sorted_segment_prod(data: Array, ids: Array) -> Array:
    """Multiply the rows of each id; ids are 0, 1, 2 … in this order, so none is empty.

    The dtypes are those of `lengths_prod`.

    >>> sorted_segment_prod(np.array([2, 3, 4]), np.array([0, 0, 1]))
    array([6, 4])
    """
    return kernels.segment_reduce("prod", data, sorted_lengths(ids))


@op(
    "number data[N, *d], int ids[N] -> mean_of(data) logs[S, *d], S <= minimum(N, max(ids)+1)",
    caffe2="SortedSegmentRangeLogSumExp",
    known_as="torch.logsumexp per segment",
    rows={"S": "groups(ids)"},
    grad={"data": f"gather(d.logs, ids) * exp(data - gather({FINITE_LOGS}, ids))"},
)
def sorted_segment_logsumexp(data: Array, ids: Array) -> Array:
    """Compute log(sum(exp(data))) over the rows of each id; ids are 0, 1, 2 … in this order, so none is empty.

    The dtypes are those of `lengths_logsumexp`.

    >>> sorted_segment_logsumexp(np.array([1000.0, 1000.0, 3.0]), np.array([0, 0, 1]))
    array([1000.69314718,    3.        ])
    """
    return kernels.segment_logsumexp(data, sorted_lengths(ids))


@op(
    "number data[N, *d], int ids[N] -> mean_of(data) logs[S, *d], S <= minimum(N, max(ids)+1)",
    caffe2="SortedSegmentRangeLogMeanExp",
    known_as="log mean exp per segment",
    rows={"S": "groups(ids)"},
    grad={
        "data": f"""
            shares = scale_rows(d.logs, 1.0 / maximum(float64(segment_counts(ids, out.logs)), 1))
            gather(shares, ids) * exp(data - gather({FINITE_LOGS}, ids))
        """
    },
)
def sorted_segment_logmeanexp(data: Array, ids: Array) -> Array:
    """Compute log(mean(exp(data))) over the rows of each id; ids are 0, 1, 2 … in this order, so none is empty.

    The dtypes are those of `lengths_logsumexp`.

    >>> sorted_segment_logmeanexp(np.array([1000.0, 1000.0, 3.0]), np.array([0, 0, 1]))
    array([1000.,    3.])
    """
    lengths = sorted_lengths(ids)
    logs = kernels.segment_logsumexp(data, lengths)
    logs -= expand_trailing(np.log(lengths).astype(logs.dtype), logs)
    return logs


@op(
    "number data[N, *d], int ids[N] -> sum_of(data) sums[num_segments|S, *d], S <= max(ids)+1",
    caffe2="UnsortedSegmentSum",
    known_as="tf.math.unsorted_segment_sum; torch.index_add; torch_scatter.scatter_add; np.add.at",
    rows={"S": "groups(ids, num_segments)"},
    grad={"data": "gather_inside(d.sums, ids)"},
)
def unsorted_segment_sum(
    data: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Sum the rows of each id; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment. The dtypes are those of `lengths_sum`.

    >>> unsorted_segment_sum(np.array([1, 2, 3]), np.array([2, 0, 2]))
    array([2, 0, 4])
    """
    return _reduce_by_id("sum", data, ids, num_segments, empty)


@op(
    "number data[N, *d], int ids[N] -> mean_of(data) means[num_segments|S, *d], S <= max(ids)+1",
    caffe2="UnsortedSegmentMean",
    known_as="tf.math.unsorted_segment_mean; torch_scatter.scatter_mean",
    rows={"S": "groups(ids, num_segments)"},
    grad={
        "data": "gather_inside(scale_rows(d.means, 1.0 / maximum(float64(segment_counts(ids, out.means)), 1)), ids)"
    },
)
def unsorted_segment_mean(
    data: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Average the rows of each id; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment. The dtypes are those of `lengths_mean`.

    >>> unsorted_segment_mean(np.array([1, 2, 3]), np.array([2, 0, 2]))
    array([2., 0., 2.])
    """
    return _reduce_by_id("mean", data, ids, num_segments, empty)


@op(
    "ordered data[N, *d], int ids[N] -> largest[num_segments|S, *d], S <= max(ids)+1",
    known_as="tf.math.unsorted_segment_max; torch_scatter.scatter_max",
    rows={"S": "groups(ids, num_segments)"},
    grad={"data": "cast_like(gather_inside(d.largest, ids) * extreme_shares(data, ids, out.largest), data)"},
)
def unsorted_segment_max(
    data: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Return the largest row of each id, element by element; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment.

    >>> unsorted_segment_max(np.array([1, 2, 3]), np.array([2, 0, 2]))
    array([2, 0, 3])
    """
    return _reduce_by_id("max", data, ids, num_segments, empty)


@op(
    "ordered data[N, *d], int ids[N] -> smallest[num_segments|S, *d], S <= max(ids)+1",
    known_as="tf.math.unsorted_segment_min; torch_scatter.scatter_min",
    rows={"S": "groups(ids, num_segments)"},
    grad={
        "data": "cast_like(gather_inside(d.smallest, ids) * extreme_shares(data, ids, out.smallest), data)"
    },
)
def unsorted_segment_min(
    data: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Return the smallest row of each id, element by element; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment.

    >>> unsorted_segment_min(np.array([1, 2, 3]), np.array([2, 0, 2]))
    array([2, 0, 1])
    """
    return _reduce_by_id("min", data, ids, num_segments, empty)


@op(
    "number data[N, *d], float weights[N], int ids[N]"
    " -> sum_of(data, weights) sums[num_segments|S, *d], S <= max(ids)+1",
    caffe2="UnsortedSegmentWeightedSum",
    known_as="weighted scatter_add",
    rows={"S": "groups(ids, num_segments)"},
    grad={
        "data": "cast_like(scale_rows(gather_inside(d.sums, ids), weights), data)",
        "weights": "row_dot(gather_inside(d.sums, ids), data)",
    },
)
def unsorted_segment_weighted_sum(
    data: Array, weights: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Sum the rows of each id, each times its weight; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment. The dtypes are those of `lengths_weighted_sum`.

    >>> unsorted_segment_weighted_sum(np.array([1, 2, 3]), np.array([0.5, 1.0, 2.0]), np.array([2, 0, 2]))
    array([2. , 0. , 6.5])
    """
    return _reduce_by_id("sum", weighted(data, weights), ids, num_segments, empty)


_RESULT_DTYPES = {"sum": kernels.sum_dtype, "mean": kernels.mean_dtype}
"""Dtypes of reductions that differ from those of the data."""


def _reduce_by_id(kind: str, data: Array, ids: Array, num_segments: int | None, empty: Scalar) -> Array:
    rule = _RESULT_DTYPES.get(kind)
    value = cast_scalar("empty", empty, data.dtype if rule is None else rule(data.dtype))
    if num_segments is None:
        ids = counts(ids, "ids")
        num_segments = int(ids.max(initial=-1)) + 1
    if kind in ("sum", "mean") and data.ndim == 1 and data.dtype.kind == "f" and data.dtype.itemsize <= 8:
        return _add_up(kind, data, ids, num_segments, value)
    order, lengths = kernels.group_rows(ids, num_segments)
    return kernels.gather_segment_reduce(kind, data, order, lengths, value)


def _add_up(kind: str, column: Array, ids: Array, num_segments: int, empty: Any) -> Array:
    """Return sums or means of one column, in float64: adding single elements is faster than sorting them by id."""
    counted, dtype = kind == "mean" or empty != 0, _RESULT_DTYPES[kind](column.dtype)
    if column.dtype.itemsize < 4:
        column = column.astype(np.float32)
    sums, sizes = kernels.add_by_id(column, ids, num_segments, counted)
    with np.errstate(all="ignore"):
        if kind == "mean":
            sums /= np.maximum(sizes, 1)
        result: Array = sums.astype(dtype, copy=False)
    if counted:
        result[sizes == 0] = empty
    return result


def sorted_lengths(ids: Array) -> Array:
    """Return the count of each id; raise OpError unless they are 0, 1, 2 … in this order, each at least once."""
    signed = ids.astype(np.int64)  # a copy: it is read more than once, and another thread may write to it
    steps = np.diff(signed, prepend=-1)
    wrong = (steps != 0) & (steps != 1)
    wrong[:1] |= steps[:1] != 1
    if wrong.any():
        place = int(np.argmax(wrong))
        expected = f"{signed[place - 1]} as before or one more" if place else "0"
        raise OpError(f"ids[{place}] = {ids[place]}, expected {expected}: sorted ids without gaps")
    return np.bincount(signed)
