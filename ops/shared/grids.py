"""Grids of patches: frames, height and width of each image, checked, and the places of their cells."""

from typing import NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.kernels.memory import check_memory

_MOST = 2.0**62
"""Bound of the patches of one grid: products of int64 that are larger may overflow."""


def merged_grids(grids: Array, merge: int, images: Array | None = None) -> Array:
    """Return a copy of grids[G, 3] with height and width divided by `merge`, int64[G, 3].

    Raises OpError for the first grid that has a negative size, a height or width that is not a multiple of `merge`,
    or too many patches. With `images`, the number of grids of each sequence, the message names the sequence.
    """
    found = int64_integers(grids, "grids")
    wrong = (found < 0).any(1) | (found[:, 1:] % merge != 0).any(1) | (found.prod(1, dtype=float) >= _MOST)
    if wrong.any():
        i = int(np.argmax(wrong))
        of = "" if images is None else f", of sequence {sequence_of(i, images)},"
        raise OpError(
            f"grids[{i}]{of} is {found[i].tolist()}, expected frames, height and width of 0 or more, of which "
            f"height and width are multiples of merge = {merge}"
        )
    found[:, 1:] //= merge
    return found


def sequence_of(item: int, counts: Array) -> int:
    """Return the sequence of an item among the items of all sequences."""
    return int(np.searchsorted(np.cumsum(counts), item, "right"))


class Cells(NamedTuple):
    """Places of the cells of grids, frame by frame, each frame row by row: int64[N]."""

    frame: Array
    row: Array
    column: Array


def cells_of(grids: Array, frames: Array | None = None) -> Cells:
    """Return the places of all cells; `frames` has numbers of the frames of all grids, other than 0, 1, …."""
    # from lengths of frames and rows: dividing the number of each cell takes 4 times as long
    count, height, width = grids.T
    about = grids.astype(np.float64).T
    check_memory((int((about[0] * (1 + about[1] * (1 + about[2]))).sum()), 6), np.dtype(np.int64))
    if frames is None:
        frames = kernels.lengths_to_positions(count)
    heights, widths = kernels.expand(height, count), kernels.expand(width, count)
    rows, row_lengths = kernels.lengths_to_positions(heights), kernels.expand(widths, heights)
    return Cells(
        kernels.expand(kernels.expand(frames, heights), row_lengths),
        kernels.expand(rows, row_lengths),
        kernels.lengths_to_positions(row_lengths),
    )
