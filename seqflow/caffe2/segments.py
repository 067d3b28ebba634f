"""Segment reducers, by lengths and by ids.

LengthsMax passes over a NaN that is not the first of its segment in Caffe2; here NaN wins, as in its op.
"""

from seqflow import ops
from seqflow.caffe2.adapter import Adapter, chosen, int32
from seqflow.kernels.arrays import Array
from seqflow.signature import Positive


def lengths_weighted_sum(
    data: Array, scalars: Array, lengths: Array, *, grad_on_weights: bool = False
) -> Array:
    """`grad_on_weights` speaks of the gradient only."""
    return ops.lengths_weighted_sum(data, scalars, lengths)


def lengths_topk(data: Array, lengths: Array, *, k: Positive) -> tuple[Array, Array]:
    values, positions = ops.lengths_topk(data, lengths, k=k)
    return values, int32(positions)


def unsorted_segment_sum(data: Array, segment_ids: Array, *, num_segments: int = -1) -> Array:
    return ops.unsorted_segment_sum(data, segment_ids, num_segments=chosen(num_segments))


def unsorted_segment_mean(data: Array, segment_ids: Array, *, num_segments: int = -1) -> Array:
    return ops.unsorted_segment_mean(data, segment_ids, num_segments=chosen(num_segments))


def unsorted_segment_weighted_sum(
    data: Array, scalars: Array, segment_ids: Array, *, num_segments: int = -1, grad_on_weights: bool = False
) -> Array:
    return ops.unsorted_segment_weighted_sum(data, scalars, segment_ids, num_segments=chosen(num_segments))


ADAPTERS = {
    "LengthsWeightedSum": Adapter(lengths_weighted_sum),
    "LengthsTopK": Adapter(lengths_topk),
    "UnsortedSegmentSum": Adapter(unsorted_segment_sum),
    "UnsortedSegmentMean": Adapter(unsorted_segment_mean),
    "UnsortedSegmentWeightedSum": Adapter(unsorted_segment_weighted_sum),
}
