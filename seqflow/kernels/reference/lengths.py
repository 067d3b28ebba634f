"""Lengths and what follows from them, in NumPy."""

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.reference.checks import check_not_negative, counts, offsets_of, total_of


def check_lengths(lengths: Array) -> int:
    return total_of(counts(lengths, "lengths"), "lengths")


def quick_check_lengths(lengths: Array) -> int:
    if not (isinstance(lengths, np.ndarray) and lengths.ndim == 1 and lengths.dtype in (np.int32, np.int64)):
        raise TypeError("lengths are not a 1-D array of int32 or int64")
    return check_lengths(lengths)


def max_length(lengths: Array) -> int:
    lengths = counts(lengths, "lengths")
    check_not_negative(lengths, "lengths")
    return int(lengths.max(initial=0))


def lengths_to_offsets(lengths: Array) -> Array:
    lengths = counts(lengths, "lengths")
    total_of(lengths, "lengths")
    return offsets_of(lengths)


def lengths_to_segment_ids(lengths: Array) -> Array:
    lengths = counts(lengths, "lengths")
    total_of(lengths, "lengths")
    return np.repeat(np.arange(len(lengths)), lengths)
