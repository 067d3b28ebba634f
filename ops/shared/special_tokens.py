"""Special tokens at both ends of sequences."""

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import starts_of


def surround(tokens: Array, sizes: Array, begin: int | None, end: int | None) -> tuple[Array, Array]:
    """The sequences with a token before and one after each, and their new lengths; None adds none."""
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
