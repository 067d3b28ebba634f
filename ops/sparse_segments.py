"""Rows of a table at indices, reduced by an id for each index.

`sparse_sorted_segment_…` take ids that count up from 0 without gaps. `sparse_unsorted_segment_…` take ids in any
order; a segment may be empty. The table is read as in `pooling`.
"""

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array, int64_counts
from seqflow.kernels.checks import checked_indices
from seqflow.ops.segment_ids import sorted_lengths
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.ops.shared.weights import weighted_dtype
from seqflow.registry import op
from seqflow.signature import NonNegative, Scalar


@op(
    "number table[R, *d], index(R) indices[N], int ids[N]"
    " -> sum_of(table) sums[S, *d], S <= minimum(N, max(ids)+1)",
    caffe2="SparseSortedSegmentSum",
    rows={"S": "groups(ids)"},
    grad={"table": "scatter_rows(gather(d.sums, ids), indices, table)"},
)
def sparse_sorted_segment_sum(table: Array, indices: Array, ids: Array) -> Array:
    """Sum the rows of `table` at the indices of each id; ids are 0, 1, 2 … in this order, so none is empty.

    >>> sparse_sorted_segment_sum(np.array([1.0, 10.0, 100.0]), np.array([0, 2, 1]), np.array([0, 0, 1]))
    array([101.,  10.])
    """
    return kernels.gather_segment_reduce("sum", table, indices, sorted_lengths(ids))


@op(
    "number table[R, *d], index(R) indices[N], int ids[N]"
    " -> mean_of(table) means[S, *d], S <= minimum(N, max(ids)+1)",
    caffe2="SparseSortedSegmentMean",
    rows={"S": "groups(ids)"},
    grad={
        "table": """
            shares = scale_rows(d.means, 1.0 / maximum(float64(segment_counts(ids, out.means)), 1))
            scatter_rows(gather(shares, ids), indices, table)
        """
    },
)
def sparse_sorted_segment_mean(table: Array, indices: Array, ids: Array) -> Array:
    """Average the rows of `table` at the indices of each id; ids are 0, 1, 2 … in this order, so none is empty.

    >>> sparse_sorted_segment_mean(np.array([1.0, 10.0, 100.0]), np.array([0, 2, 1]), np.array([0, 0, 1]))
    array([50.5, 10. ])
    """
    return kernels.gather_segment_reduce("mean", table, indices, sorted_lengths(ids))


@op(
    "number table[R, *d], float weights[N], index(R) indices[N], int ids[N]"
    " -> sum_of(table, weights) sums[S, *d], S <= minimum(N, max(ids)+1)",
    caffe2="SparseSortedSegmentWeightedSum",
    rows={"S": "groups(ids)"},
    grad={
        "table": "scatter_rows(scale_rows(gather(d.sums, ids), weights), indices, table)",
        "weights": "row_dot(gather(d.sums, ids), gather(table, indices))",
    },
)
def sparse_sorted_segment_weighted_sum(table: Array, weights: Array, indices: Array, ids: Array) -> Array:
    """Sum the rows of `table` at the indices of each id, each times the weight of its index.

    Ids are 0, 1, 2 … in this order, so none is empty.

    >>> table, weights = np.array([1.0, 10.0, 100.0]), np.array([0.5, 2.0, 3.0])
    >>> sparse_sorted_segment_weighted_sum(table, weights, np.array([0, 2, 1]), np.array([0, 0, 1]))
    array([200.5,  30. ])
    """
    factors = weights.astype(weighted_dtype(table, weights), copy=False)
    return kernels.gather_segment_weigh(table, factors, indices, sorted_lengths(ids))


@op(
    "number table[R, *d], index(R) indices[N], int ids[N]"
    " -> sum_of(table) sums[num_segments|S, *d], S <= max(ids)+1",
    caffe2="SparseUnsortedSegmentSum",
    rows={"S": "groups(ids, num_segments)"},
    grad={"table": "scatter_rows(gather_inside(d.sums, ids), indices, table)"},
)
def sparse_unsorted_segment_sum(
    table: Array, indices: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Sum the rows of `table` at the indices of each id; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment.

    >>> sparse_unsorted_segment_sum(np.array([1.0, 10.0, 100.0]), np.array([0, 2, 1]), np.array([2, 0, 2]))
    array([100.,   0.,  11.])
    """
    empty = cast_scalar("empty", empty, kernels.sum_dtype(table.dtype))
    _, picked, lengths = _grouped(table, indices, ids, num_segments)
    return kernels.gather_segment_reduce("sum", table, picked, lengths, empty)


@op(
    "number table[R, *d], index(R) indices[N], int ids[N]"
    " -> mean_of(table) means[num_segments|S, *d], S <= max(ids)+1",
    caffe2="SparseUnsortedSegmentMean",
    rows={"S": "groups(ids, num_segments)"},
    grad={
        "table": """
            shares = scale_rows(d.means, 1.0 / maximum(float64(segment_counts(ids, out.means)), 1))
            scatter_rows(gather_inside(shares, ids), indices, table)
        """
    },
)
def sparse_unsorted_segment_mean(
    table: Array, indices: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Average the rows of `table` at the indices of each id; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment.

    >>> sparse_unsorted_segment_mean(np.array([1.0, 10.0, 100.0]), np.array([0, 2, 1]), np.array([2, 0, 2]))
    array([100. ,   0. ,   5.5])
    """
    empty = cast_scalar("empty", empty, kernels.mean_dtype(table.dtype))
    _, picked, lengths = _grouped(table, indices, ids, num_segments)
    return kernels.gather_segment_reduce("mean", table, picked, lengths, empty)


@op(
    "number table[R, *d], float weights[N], index(R) indices[N], int ids[N]"
    " -> sum_of(table, weights) sums[num_segments|S, *d], S <= max(ids)+1",
    caffe2="SparseUnsortedSegmentWeightedSum",
    rows={"S": "groups(ids, num_segments)"},
    grad={
        "table": "scatter_rows(scale_rows(gather_inside(d.sums, ids), weights), indices, table)",
        "weights": "row_dot(gather_inside(d.sums, ids), gather(table, indices))",
    },
)
def sparse_unsorted_segment_weighted_sum(
    table: Array,
    weights: Array,
    indices: Array,
    ids: Array,
    *,
    num_segments: NonNegative | None = None,
    empty: Scalar = 0,
) -> Array:
    """Sum the rows of `table` at the indices of each id, each times the weight of its index.

    An empty segment gives `empty`. Without `num_segments` the largest id is the last segment.

    >>> table, weights = np.array([1.0, 10.0, 100.0]), np.array([0.5, 2.0, 3.0])
    >>> sparse_unsorted_segment_weighted_sum(table, weights, np.array([0, 2, 1]), np.array([2, 0, 2]))
    array([200. ,   0. ,  30.5])
    """
    dtype = weighted_dtype(table, weights)
    empty = cast_scalar("empty", empty, dtype)
    order, picked, lengths = _grouped(table, indices, ids, num_segments)
    factors = kernels.gather(weights, order).astype(dtype, copy=False)
    return kernels.gather_segment_weigh(table, factors, picked, lengths, False, empty)


def _grouped(
    table: Array, indices: Array, ids: Array, num_segments: int | None
) -> tuple[Array, Array, Array]:
    """Return the order that sorts the ids, the indices in that order, and the count of each id."""
    indices, ids = int64_counts(indices, "indices"), int64_counts(ids, "ids")
    checked_indices(indices, len(table), False, None)  # before sorting, so that an error names the position
    if num_segments is None:
        num_segments = int(ids.max(initial=-1)) + 1
    order, lengths = kernels.group_rows(ids, num_segments)
    return order, indices[order], np.asarray(lengths)
