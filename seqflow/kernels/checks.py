"""Checks of lengths and indices for the NumPy kernels; native ones report the same errors at the same positions."""

from itertools import accumulate

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.error import (
    MAX_INT64,
    negative,
    outside,
    overflow,
    slice_across,
    slice_outside,
    too_long,
    wrong_sum,
)


def offsets_of(lengths: Array) -> Array:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def check_not_negative(lengths: Array, argument: str) -> None:
    bad = np.flatnonzero(lengths < 0)
    if len(bad):
        raise negative(argument, int(bad[0]), int(lengths[bad[0]]))


def total_of(lengths: Array, argument: str) -> int:
    """Return the sum of the lengths; raise KernelError for the first negative one, or when the sum overflows."""
    bad = np.flatnonzero(lengths < 0)
    sound = lengths[: bad[0]] if len(bad) else lengths
    # a cheap bound first: only sums that may overflow are added up in Python's integers
    if int(sound.max(initial=0)) * len(sound) > MAX_INT64:
        values = sound.tolist()
        for position, running in enumerate(accumulate(values)):
            if running > MAX_INT64:
                room = MAX_INT64 - (running - values[position]) + 1
                raise overflow(argument, position, values[position], 0, room)
    check_not_negative(lengths, argument)
    return int(lengths.sum(dtype=np.int64))


def check_sum(lengths: Array, expected: int, owner: str, argument: str = "lengths") -> None:
    total = total_of(lengths, argument)
    if total != expected:
        raise wrong_sum(argument, total, expected, owner)


def checked_indices(
    indices: Array, num_rows: int, wrap: bool, ignore_index: int | None, argument: str = "indices"
) -> tuple[Array, Array]:
    """Return indices that count from the start, and a mask of the indices that are used."""
    used = np.ones(indices.shape, bool) if ignore_index is None else indices != ignore_index
    low = -num_rows if wrap else 0
    bad = np.flatnonzero(used & ((indices < low) | (indices >= num_rows)))
    if len(bad):
        raise outside(argument, int(bad[0]), int(indices.flat[bad[0]]), low, num_rows)
    return np.where(indices < 0, indices + num_rows, indices), used


def check_slices(
    source_rows: int, source_starts: Array, sizes: Array, target_rows: int, target_starts: Array
) -> None:
    below = sizes < 0
    # not `start + size > rows`: the sum may overflow int64
    from_bad = (source_starts < 0) | (sizes > source_rows) | (source_starts > source_rows - sizes)
    to_bad = (target_starts < 0) | (sizes > target_rows) | (target_starts > target_rows - sizes)
    bad = np.flatnonzero(below | from_bad | to_bad)
    if len(bad):
        k = int(bad[0])
        size = int(sizes[k])
        if below[k]:
            raise negative("sizes", k, size)
        if from_bad[k]:
            raise slice_outside("source_starts", k, int(source_starts[k]), size, source_rows)
        raise slice_outside("target_starts", k, int(target_starts[k]), size, target_rows)


def check_chunk_slices(firsts: Array, starts: Array, sizes: Array) -> None:
    """Raise KernelError when a slice is not inside one of the chunks that begin at `firsts`, unless it is empty."""
    num_rows = int(firsts[-1])
    chunks = np.searchsorted(firsts, starts, side="right")
    ends = firsts[np.minimum(chunks, len(firsts) - 1)]
    out = (sizes < 0) | (starts < 0) | (sizes > num_rows) | (starts > num_rows - sizes)
    bad = np.flatnonzero(out | ((sizes > 0) & (sizes > ends - starts)))
    if len(bad):
        k = int(bad[0])
        start, size = int(starts[k]), int(sizes[k])
        if size < 0:
            raise negative("sizes", k, size)
        if out[k]:
            raise slice_outside("starts", k, start, size, num_rows)
        raise slice_across("starts", k, start, size, int(firsts[chunks[k] - 1]), int(firsts[chunks[k]]))


def check_same_size(**arrays: Array) -> None:
    """Raise ValueError when the arrays have different numbers of entries."""
    if len({len(array) for array in arrays.values()}) > 1:
        sizes = ", ".join(f"{name} has {len(array)}" for name, array in arrays.items())
        raise ValueError(f"{sizes} entries, expected equally many")


def check_room(lengths: Array, room: int, argument: str = "lengths") -> None:
    """Raise KernelError for the first length above `room`."""
    bad = np.flatnonzero(lengths > room)
    if len(bad):
        raise too_long(argument, int(bad[0]), int(lengths[bad[0]]), room)


def check_width(width: int, argument: str = "width") -> None:
    """Raise ValueError for a negative width."""
    if width < 0:
        raise ValueError(f"{argument} is {width}, expected 0 or more")
