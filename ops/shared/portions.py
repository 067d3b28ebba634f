"""Working on a few sequences at a time, so that what is made on the way stays small and in the cache."""

from collections.abc import Iterator

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array

PORTION = 1 << 16
"""How many rows are worked on at a time; a longer sequence is worked on alone."""


def portions(lengths: Array) -> Iterator[tuple[slice, slice]]:
    """Slices of the sequences and of their rows, which together are all, in order; one at least.

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
