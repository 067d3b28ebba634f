"""Exponentials inside segments, each taken relative to the largest so that none overflows."""

# mypy: disable-error-code="no-any-return"

from typing import Any

from seqflow.kernels import choice
from seqflow.kernels.arrays import Array


def softmax_within(data: Array, lengths: Array, log: bool = False) -> Array:
    """exp(data) divided by its sum over the segment: data[sum(lengths), *d] -> out[sum(lengths), *d].

    With `log`, the logarithm of that. dtype: `mean_dtype`. A segment that holds NaN or +infinity, or nothing but
    -infinity, gives NaN.
    """
    return choice.chosen.softmax_within(data, lengths, log)


def segment_logsumexp(data: Array, lengths: Array, empty: Any = 0) -> Array:
    """log(sum(exp(data))) of each segment: data[sum(lengths), *d], lengths[B] -> out[B, *d]; dtype: `mean_dtype`.

    An empty segment gives `empty`, a scalar of the result's dtype.
    """
    return choice.chosen.segment_logsumexp(data, lengths, empty)
