"""Slices of the rows of an array: their starts, the positions of their rows, and moving them."""

from collections.abc import Iterator

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array, output
from seqflow.kernels.error import MAX_INT64


def int64(lengths: Array) -> Array:
    """Return a copy of lengths as int64, to read them more than once: another thread may change the original."""
    return lengths.astype(np.int64)


def int64_or_largest(limits: Array) -> Array:
    """Return a copy of limits as int64: its largest number for those above it, which no array reaches."""
    return int64(np.minimum(limits, np.uint64(MAX_INT64)) if limits.dtype == np.uint64 else limits)


def starts_of(lengths: Array) -> Array:
    """Return the first row of each sequence."""
    return kernels.lengths_to_offsets(lengths)[:-1]


def slice_positions(starts: Array, sizes: Array) -> Array:
    """Return the positions `start, start + 1, …` of all slices, one after another."""
    offsets = kernels.lengths_to_offsets(sizes)
    positions: Array = kernels.expand(starts - offsets[:-1], sizes)
    positions += np.arange(len(positions))
    return positions


def move_sequences(data: Array, starts: Array, sizes: Array, out: Array | None = None) -> Array:
    """Concatenate the slices `data[start : start + size]`."""
    offsets = kernels.lengths_to_offsets(sizes)
    shape = (int(offsets[-1]), *data.shape[1:])
    rows = output(out, shape, data.dtype)
    kernels.move_slices(data, starts, sizes, rows, offsets[:-1])
    return rows


def surround(tokens: Array, sizes: Array, begin: int | None, end: int | None) -> tuple[Array, Array]:
    """Return the sequences with a token before and after each, and their new lengths; None adds no token."""
    if begin is None and end is None:
        return tokens, sizes
    longer = sizes + (begin is not None) + (end is not None)
    ends = kernels.lengths_to_offsets(longer)
    rows = np.empty(int(ends[-1]), tokens.dtype)
    kernels.move_slices(tokens, starts_of(sizes), sizes, rows, ends[:-1] + (begin is not None))
    if begin is not None:
        rows[ends[:-1]] = begin
    if end is not None:
        rows[ends[1:] - 1] = end
    return rows, longer


PORTION = 1 << 16
"""Number of rows in a portion, which bounds temporary arrays; a longer sequence is a portion of its own."""


def portions(lengths: Array) -> Iterator[tuple[slice, slice]]:
    """Yield slices of the sequences and of their rows that cover all of them, in order; at least one.

    >>> list(portions(np.array([2, 0, 1])))
    [(slice(0, 3, None), slice(0, 3, None))]
    """
    offsets = kernels.lengths_to_offsets(lengths)
    start = 0
    while True:
        stop = int(np.searchsorted(offsets, offsets[start] + PORTION, "right")) - 1
        stop = min(max(stop, start + 1), len(lengths))
        yield slice(start, stop), slice(int(offsets[start]), int(offsets[stop]))
        if stop == len(lengths):
            return
        start = stop
