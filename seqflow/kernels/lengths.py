"""Checks of lengths, and offsets, segment ids and positions from them."""

from collections.abc import Callable

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts
from seqflow.kernels.checks import check_not_negative, offsets_of, total_of
from seqflow.kernels.dispatch import extension, kernel
from seqflow.kernels.error import descending, negative, outside
from seqflow.kernels.forms import COUNTS
from seqflow.kernels.memory import check_memory

__all__ = [
    "check_lengths",
    "lengths_to_offsets",
    "lengths_to_positions",
    "lengths_to_segment_ids",
    "max_length",
    "offsets_to_lengths",
    "quick_check_lengths",
    "segment_ids_to_lengths",
]


@kernel(lengths=COUNTS)
def check_lengths(lengths: Array) -> int:
    """Return the sum of lengths[B]; raise KernelError when one is negative or the sum is above int64."""
    return total_of(int64_counts(lengths, "lengths"), "lengths")


@kernel(lengths=COUNTS)
def max_length(lengths: Array) -> int:
    """Return the largest of lengths[B], 0 if there are none; raise KernelError when one is negative."""
    lengths = int64_counts(lengths, "lengths")
    check_not_negative(lengths, "lengths")
    return int(lengths.max(initial=0))


@kernel(lengths=COUNTS)
def lengths_to_offsets(lengths: Array) -> Array:
    """Return int64 offsets[B+1]: the start of each sequence, and the total."""
    lengths = int64_counts(lengths, "lengths")
    total_of(lengths, "lengths")
    return offsets_of(lengths)


@kernel(offsets=COUNTS)
def offsets_to_lengths(offsets: Array) -> Array:
    """Return int64 lengths[B]: the differences of Arrow's offsets[B+1]; no offsets give no lengths.

    Raises KernelError for a negative first offset, and for the first offset that is below the one before it.
    """
    offsets = int64_counts(offsets, "offsets")
    if len(offsets) and offsets[0] < 0:
        raise negative("offsets", 0, int(offsets[0]))
    decreases = offsets[1:] < offsets[:-1]
    if decreases.any():
        at = int(np.argmax(decreases)) + 1
        raise descending("offsets", at, int(offsets[at]), int(offsets[at - 1]))
    lengths: Array = offsets[1:] - offsets[:-1]
    return lengths


@kernel(lengths=COUNTS)
def lengths_to_segment_ids(lengths: Array) -> Array:
    """Return int64 ids[sum(lengths)]: for each row the sequence it belongs to."""
    lengths = int64_counts(lengths, "lengths")
    check_memory((total_of(lengths, "lengths"),), lengths.dtype)
    return np.repeat(np.arange(len(lengths)), lengths)


@kernel(lengths=COUNTS)
def lengths_to_positions(lengths: Array) -> Array:
    """Return int64 positions[sum(lengths)]: for each row its position inside its sequence."""
    lengths = int64_counts(lengths, "lengths")
    total = total_of(lengths, "lengths")
    check_memory((total,), lengths.dtype)
    positions: Array = np.arange(total) - np.repeat(offsets_of(lengths)[:-1], lengths)
    return positions


@kernel(ids=COUNTS)
def segment_ids_to_lengths(ids: Array, num_segments: int | None = None) -> Array:
    """Return int64 lengths[num_segments] of ascending ids[N]; without `num_segments` up to the last id.

    Raises KernelError at the first id that is negative, or `num_segments` or more, or below the one before it.
    """
    ids = int64_counts(ids, "ids")
    bad = ids < 0
    bad[1:] |= ids[1:] < ids[:-1]
    if num_segments is not None:
        bad |= ids >= num_segments
    if bad.any():
        _blame_id(ids, int(np.argmax(bad)), num_segments)
    check_memory((int(ids.max(initial=-1)) + 1 if num_segments is None else num_segments,), ids.dtype)
    return np.bincount(ids, minlength=num_segments or 0).astype(np.int64, copy=False)


def _blame_id(ids: Array, position: int, num_segments: int | None) -> None:
    found = int(ids[position])
    if num_segments is not None and not 0 <= found < num_segments:
        raise outside("ids", position, found, 0, num_segments)
    if found < 0:
        raise negative("ids", position, found)
    raise descending("ids", position, found, int(ids[position - 1]))


def _quick_check_lengths(lengths: Array) -> int:
    if not (type(lengths) is np.ndarray and lengths.ndim == 1 and lengths.dtype in (np.int32, np.int64)):
        raise TypeError("lengths are not a 1-D array of int32 or int64")
    return check_lengths(lengths)


quick_check_lengths: Callable[[Array], int] = getattr(
    extension(), "quick_check_lengths", _quick_check_lengths
)
"""`check_lengths` for 1-D int32 and int64 arrays only; raises TypeError for other arguments."""
