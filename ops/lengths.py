"""Describing structure: lengths as offsets, ids, ranges, masks."""

from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.registry import op

Array = np.ndarray[Any, Any]


@op("lengths[B] -> int64 offsets[B+1]", caffe2="LengthsToOffsets")
def lengths_to_offsets(lengths: Array) -> Array:
    """Where each sequence starts, with the total at the end (Arrow's offsets, `cu_seqlens`).

    Caffe2 leaves the total out unless `include_last_offset` is set.

    >>> lengths_to_offsets(np.array([2, 0, 1]))
    array([0, 2, 2, 3])
    """
    return kernels.lengths_to_offsets(lengths)


@op("lengths[B] -> int64 ids[sum(lengths)]", caffe2="LengthsToSegmentIds")
def lengths_to_segment_ids(lengths: Array) -> Array:
    """The sequence each row belongs to; an empty sequence does not appear.

    >>> lengths_to_segment_ids(np.array([2, 0, 1]))
    array([0, 0, 2])
    """
    return kernels.lengths_to_segment_ids(lengths)
