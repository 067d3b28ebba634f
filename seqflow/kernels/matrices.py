"""Products of the rows of each segment with a matrix of its own."""

from itertools import pairwise

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, rows
from seqflow.kernels.checks import check_same_size, check_sum, offsets_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, FLOATS

__all__ = ["multiply_segments"]


@kernel(x=FLOATS, weight=FLOATS, lengths=COUNTS)
def multiply_segments(x: Array, weight: Array, lengths: Array, transpose: bool) -> Array:
    """Return the rows of each segment times its matrix: y[sum(lengths), M], of the dtype of both.

    x[sum(lengths), K], weight[B, K, M], or [B, M, K] with `transpose`, lengths[B].
    """
    x, weight, lengths = rows(x, "x"), rows(weight, "weight"), int64_counts(lengths, "lengths")
    if x.ndim != 2 or weight.ndim != 3:
        raise TypeError(f"x and weight have {x.ndim} and {weight.ndim} axes, expected 2 and 3")
    check_sum(lengths, len(x), "x")
    check_same_size(weight=weight, lengths=lengths)
    matrices = weight.swapaxes(1, 2) if transpose else weight
    y = np.empty((len(x), matrices.shape[2]), x.dtype)
    with np.errstate(all="ignore"):
        for matrix, (start, stop) in zip(matrices, pairwise(offsets_of(lengths).tolist()), strict=True):
            np.matmul(x[start:stop], matrix, out=y[start:stop])
    return y
