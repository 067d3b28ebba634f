"""Lengths and what follows from them, in NumPy."""

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.error import descending, negative, outside
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


def lengths_to_positions(lengths: Array) -> Array:
    lengths = counts(lengths, "lengths")
    total = total_of(lengths, "lengths")
    positions: Array = np.arange(total) - np.repeat(offsets_of(lengths)[:-1], lengths)
    return positions


def segment_ids_to_lengths(ids: Array, num_segments: int | None = None) -> Array:
    ids = counts(ids, "ids")
    bad = ids < 0
    bad[1:] |= ids[1:] < ids[:-1]
    if num_segments is not None:
        bad |= ids >= num_segments
    if bad.any():
        _blame_id(ids, int(np.argmax(bad)), num_segments)
    return np.bincount(ids, minlength=num_segments or 0).astype(np.int64, copy=False)


def _blame_id(ids: Array, position: int, num_segments: int | None) -> None:
    found = int(ids[position])
    if num_segments is not None and not 0 <= found < num_segments:
        raise outside("ids", position, found, 0, num_segments)
    if found < 0:
        raise negative("ids", position, found)
    raise descending("ids", position, found, int(ids[position - 1]))
