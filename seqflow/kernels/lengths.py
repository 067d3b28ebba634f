"""Lengths and what follows from them."""

# mypy: disable-error-code="no-any-return"

from seqflow.kernels import choice, reference
from seqflow.kernels.arrays import Array

quick_check_lengths = (choice.native or reference).quick_check_lengths
"""`check_lengths` of 1-D int32 and int64 arrays and nothing else: TypeError for what it does not take."""


def check_lengths(lengths: Array) -> int:
    """The sum of lengths[B]; KernelError where one is negative or the sum is above int64."""
    return choice.chosen.check_lengths(lengths)


def max_length(lengths: Array) -> int:
    """The largest of lengths[B], 0 where there are none; KernelError where one is negative."""
    return choice.chosen.max_length(lengths)


def lengths_to_offsets(lengths: Array) -> Array:
    """int64 offsets[B+1]: where each sequence starts, and the total."""
    return choice.chosen.lengths_to_offsets(lengths)


def lengths_to_segment_ids(lengths: Array) -> Array:
    """int64 ids[sum(lengths)]: for each row the sequence it belongs to."""
    return choice.chosen.lengths_to_segment_ids(lengths)


def lengths_to_positions(lengths: Array) -> Array:
    """int64 positions[sum(lengths)]: for each row its position inside its sequence."""
    return choice.chosen.lengths_to_positions(lengths)


def segment_ids_to_lengths(ids: Array, num_segments: int | None = None) -> Array:
    """int64 lengths[num_segments] of ids[N] in ascending order; without `num_segments` up to the last id.

    KernelError at the first id that is negative, or `num_segments` or more, or below the one before it.
    """
    return choice.chosen.segment_ids_to_lengths(ids, num_segments)
