"""Python's slices of each sequence: with steps, from both ends."""

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import int64, int64_or_largest, starts_of
from seqflow.registry import MovedRows, op


@op(
    "data[sum(lengths), *d], lengths[B], int start[B]?, int stop[B]?, int step[B]?"
    " -> values[sum(lengths'), *d], int64 lengths'[B] <= lengths",
    depends={"lengths": "lengths, start, stop, step"},
    grad=MovedRows(),
)
def stride_within(
    data: Array, lengths: Array, start: Array | None, stop: Array | None, step: Array | None
) -> tuple[Array, Array]:
    """Take the rows `start:stop:step` of each sequence, as Python slices a list.

    Negative places count from the end, and ends beyond the sequence are clipped. What is not given is as in Python:
    all rows, in steps of 1. A negative step goes backwards; a step of 0 is an error. An empty sequence stays empty.

    >>> stride_within(np.array([1, 2, 3, 4, 5]), np.array([3, 2]), step=np.array([2, -1]))
    StrideWithinResult(values=array([1, 3, 5, 4]), lengths=array([2, 2]))
    """
    sizes = int64(lengths)
    by = np.ones(len(sizes), np.int64) if step is None else int64_or_largest(step)
    wrong = np.flatnonzero(by == 0)
    if len(wrong):
        raise OpError(f"step[{wrong[0]}] is 0, expected a step forward or backward")
    back = by < 0
    first = _clipped(start, np.where(back, sizes - 1, 0), sizes, back)
    end = _clipped(stop, np.where(back, -1, sizes), sizes, back)
    ahead = np.where(back, first - end, end - first)
    width = np.where(by == np.iinfo(np.int64).min, np.iinfo(np.int64).max, np.abs(by))
    kept = np.where(ahead > 0, (np.maximum(ahead, 1) - 1) // width + 1, 0)
    by = np.where(kept > 1, by, 0)  # a step that is taken fits the sequence
    rows = kernels.lengths_to_positions(kept)
    rows *= kernels.expand(by, kept)
    rows += kernels.expand(starts_of(sizes) + first, kept)
    return kernels.gather(data, rows), kept


def _clipped(places: Array | None, default: Array, sizes: Array, back: Array) -> Array:
    """Return places from the start of each sequence, from 0 to its length, or from -1 to its last row backwards."""
    if places is None:
        return default
    given = int64_or_largest(places)
    from_start = np.where(given < 0, given + sizes, given)
    clipped: Array = np.clip(from_start, np.where(back, -1, 0), np.where(back, sizes - 1, sizes))
    return clipped
