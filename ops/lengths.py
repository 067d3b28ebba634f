"""Describing structure: lengths as offsets, ids, ranges, masks."""

from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError
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


@op("lengths[B], lens other[B] ->", same=("lengths", "other"))
def same_lengths(lengths: Array, other: Array) -> None:
    """Say that two columns have the same lengths, row by row: tokens and their labels.

    In a net it makes their rows the same for inference; when it runs, LodError names the first row where the
    lengths differ. It has no output.

    >>> same_lengths(np.array([2, 0, 1]), np.array([2, 0, 1]))
    """
    differing = np.flatnonzero(lengths != other)
    if len(differing):
        row = differing[0]
        raise LodError(
            f"lengths[{row}] is {lengths[row]} but other[{row}] is {other[row]}, expected the same"
        )
