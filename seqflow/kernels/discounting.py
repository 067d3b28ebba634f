"""Discounted sums inside each segment."""

from itertools import pairwise

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, rows
from seqflow.kernels.checks import check_same_size, check_sum, offsets_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, FLOATS

__all__ = ["discounted_sums"]


@kernel(data=FLOATS, discount=FLOATS, lengths=COUNTS, last=FLOATS)
def discounted_sums(
    data: Array, discount: Array, lengths: Array, last: Array | None, reverse: bool, gamma: float
) -> Array:
    """Return y[t] = data[t] + gamma * discount[t] * y[t + 1] inside each segment: data[sum(lengths), *d] -> y of its
    dtype.

    After the end of segment b stands `last[b]`, or 0; without `reverse` the sum runs forward, with y[t - 1].
    last[B, *d], the products of gamma with discount[sum(lengths)], and the sums before they are stored are float64.
    """
    data, discount = rows(data, "data"), rows(discount, "discount").astype(np.float64)
    lengths = int64_counts(lengths, "lengths")
    check_sum(lengths, len(data), "data")
    check_same_size(data=data, discount=discount)
    start = np.zeros((len(lengths), *data.shape[1:])) if last is None else rows(last, "last")
    check_same_size(last=start, lengths=lengths)
    sums, step = np.empty_like(data), -1 if reverse else 1
    with np.errstate(all="ignore"):
        discount *= gamma
        for (first, stop), carried in zip(pairwise(offsets_of(lengths).tolist()), start, strict=True):
            for t in range(first, stop)[::step]:
                carried = data[t] + discount[t] * carried
                sums[t] = carried
    return sums
