"""Slices of the rows of an array: where they start, which rows they hold, and moving them."""

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array, output


def int64(lengths: Array) -> Array:
    """A copy of lengths as int64: of what is read more than once, since another thread may change the original."""
    return lengths.astype(np.int64)


def starts_of(lengths: Array) -> Array:
    """The first row of each sequence."""
    return kernels.lengths_to_offsets(lengths)[:-1]


def slice_positions(starts: Array, sizes: Array) -> Array:
    """The positions `start, start + 1, …` of all slices, one after another."""
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
