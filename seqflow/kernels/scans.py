"""Cumulative sums of each segment."""

from itertools import pairwise

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, rows, sum_dtype
from seqflow.kernels.checks import check_sum, offsets_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, NUMBERS
from seqflow.kernels.reductions import widened

__all__ = ["cumsum_within"]


@kernel(data=NUMBERS, lengths=COUNTS)
def cumsum_within(data: Array, lengths: Array, reverse: bool = False, exclusive: bool = False) -> Array:
    """Sum of a row and all rows before it in its segment: data[sum(lengths), *d] -> sums[sum(lengths), *d].

    With `reverse`, the sum of a row and all rows after it. With `exclusive`, without the row itself. dtype:
    `sum_dtype`; floats are added up in float64, integers wrap around.
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    check_sum(lengths, len(data), "data")
    wide = widened("sum", data)
    sums = np.zeros_like(wide)
    step = -1 if reverse else 1
    with np.errstate(all="ignore"):
        for start, stop in pairwise(offsets_of(lengths).tolist()):
            added, to = wide[start:stop][::step], sums[start:stop][::step]
            if exclusive:
                added, to = added[:-1], to[1:]
            np.cumsum(added, axis=0, out=to)
        return sums.astype(sum_dtype(data.dtype), copy=False)
