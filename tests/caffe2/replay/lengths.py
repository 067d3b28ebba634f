"""Caffe2's conversions between lengths, segment ids, ranges and offsets; segment reducers, also of gathered rows.

In Caffe2, LengthsMax ignores a NaN that is not the first element of its segment; here NaN wins, as in the op.
"""

from seqflow import ops
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.signature import Positive

from .adapter import (
    ADAPTERS,
    GRADIENT_ONLY,
    Adapter,
    Caffe2Argument,
    chosen,
    int32,
    num_rows,
    single_integer,
)

_SEGMENTS = {"num_segments": Caffe2Argument("num_segments", int, -1, chosen)}
_WEIGHTS = {"grad_on_weights": GRADIENT_ONLY}


def lengths_to_offsets(lengths: Array, *, include_last_offset: bool = False) -> Array:
    """Return offsets without the total at the end, unless it is requested."""
    offsets = ops.lengths_to_offsets(lengths)
    return int32(offsets if include_last_offset else offsets[:-1])


def lengths_split(
    lengths: Array, n_split_input: Array | None = None, *, n_split: Positive | None = None
) -> Array:
    """Split lengths; the second input takes precedence over the argument."""
    if n_split_input is not None:
        n_split = single_integer("n_split", n_split_input)
    if n_split is None:
        raise OpError("n_split is missing, expected it as an argument or as the second input")
    return int32(ops.lengths_split(lengths, n=n_split))


def segment_ids_to_lengths(segment_ids: Array, data: Array | None = None) -> Array:
    """Count segments; with `data` there are as many segments as `data` has rows."""
    return int32(ops.segment_ids_to_lengths(segment_ids, num_segments=_num_rows(data)))


def segment_ids_to_ranges(segment_ids: Array, data: Array | None = None) -> Array:
    """Return ranges; segments after the last id are (0, 0), not empty ranges at the end."""
    ranges = ops.segment_ids_to_ranges(segment_ids, num_segments=_num_rows(data))
    last = int(segment_ids[-1]) if len(segment_ids) else -1
    ranges[last + 1 :] = 0
    return int32(ranges)


def _num_rows(data: Array | None) -> int | None:
    return None if data is None else num_rows("data", data)


ADAPTERS |= {
    "LengthsToOffsets": Adapter(lengths_to_offsets),
    "LengthsToRanges": Adapter(outputs="int32 ranges"),
    "LengthsToSegmentIds": Adapter(outputs="int32 ids"),
    "LengthsRangeFill": Adapter(outputs="int32 positions"),
    "LengthsToShape": Adapter(outputs="int32 shape"),
    "LengthsToWeights": Adapter(arguments={"power": Caffe2Argument("power", float, 0.5)}),
    "LengthsSplit": Adapter(lengths_split),
    "SegmentIdsToLengths": Adapter(segment_ids_to_lengths),
    "SegmentIdsToRanges": Adapter(segment_ids_to_ranges),
    "LengthsWeightedSum": Adapter(arguments=_WEIGHTS),
    "LengthsTopK": Adapter(outputs="values, int32 positions", arguments={"k": Caffe2Argument("k", Positive)}),
    "UnsortedSegmentSum": Adapter(arguments=_SEGMENTS),
    "UnsortedSegmentMean": Adapter(arguments=_SEGMENTS),
    "UnsortedSegmentWeightedSum": Adapter(arguments=_SEGMENTS | _WEIGHTS),
    "SparseLengthsWeightedSum": Adapter(arguments=_WEIGHTS),
    "SparseUnsortedSegmentSum": Adapter(arguments=_SEGMENTS),
    "SparseUnsortedSegmentMean": Adapter(arguments=_SEGMENTS),
    "SparseUnsortedSegmentWeightedSum": Adapter(arguments=_SEGMENTS | _WEIGHTS),
}
