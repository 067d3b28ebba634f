"""Running sums inside segments, in NumPy."""

from itertools import pairwise

import numpy as np

from seqflow.kernels.arrays import Array, rows, sum_dtype
from seqflow.kernels.reference.checks import check_sum, counts, offsets_of
from seqflow.kernels.reference.reductions import widened


def cumsum_within(data: Array, lengths: Array, reverse: bool = False, exclusive: bool = False) -> Array:
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
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
