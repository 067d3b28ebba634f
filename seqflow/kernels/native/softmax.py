"""Exponentials inside segments, in C++."""

from typing import Any

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import Array, counts, mean_dtype, rows
from seqflow.kernels.native.forms import computed_fill, is_computed


def softmax_within(data: Array, lengths: Array, log: bool = False) -> Array:
    try:
        return _native.softmax_within(data, lengths, log)
    except TypeError:
        pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    if not is_computed(data):
        return reference.softmax_within(data, lengths, log)
    return _native.softmax_within(data.astype(mean_dtype(data.dtype), copy=False), lengths, log)


def segment_logsumexp(data: Array, lengths: Array, empty: Any = 0) -> Array:
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    if not is_computed(data):
        return reference.segment_logsumexp(data, lengths, empty)
    dtype = mean_dtype(data.dtype)
    return _native.segment_logsumexp(data.astype(dtype, copy=False), lengths, computed_fill(empty, dtype))
