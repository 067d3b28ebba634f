"""Pooling rows of a table by lengths and by ids."""

from seqflow import ops
from seqflow.caffe2.adapter import Adapter, chosen
from seqflow.kernels.arrays import Array


def sparse_lengths_weighted_sum(
    data: Array, weights: Array, indices: Array, lengths: Array, *, grad_on_weights: bool = False
) -> Array:
    """`grad_on_weights` speaks of the gradient only."""
    return ops.sparse_lengths_weighted_sum(data, weights, indices, lengths)


def sparse_unsorted_segment_sum(
    data: Array, indices: Array, segment_ids: Array, *, num_segments: int = -1
) -> Array:
    return ops.sparse_unsorted_segment_sum(data, indices, segment_ids, num_segments=chosen(num_segments))


def sparse_unsorted_segment_mean(
    data: Array, indices: Array, segment_ids: Array, *, num_segments: int = -1
) -> Array:
    return ops.sparse_unsorted_segment_mean(data, indices, segment_ids, num_segments=chosen(num_segments))


def sparse_unsorted_segment_weighted_sum(
    data: Array,
    scalars: Array,
    indices: Array,
    segment_ids: Array,
    *,
    num_segments: int = -1,
    grad_on_weights: bool = False,
) -> Array:
    return ops.sparse_unsorted_segment_weighted_sum(
        data, scalars, indices, segment_ids, num_segments=chosen(num_segments)
    )


ADAPTERS = {
    "SparseLengthsWeightedSum": Adapter(sparse_lengths_weighted_sum),
    "SparseUnsortedSegmentSum": Adapter(sparse_unsorted_segment_sum),
    "SparseUnsortedSegmentMean": Adapter(sparse_unsorted_segment_mean),
    "SparseUnsortedSegmentWeightedSum": Adapter(sparse_unsorted_segment_weighted_sum),
}
