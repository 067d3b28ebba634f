"""Exponentials inside segments, in NumPy."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array, mean_dtype, rows, scalar
from seqflow.kernels.reference.checks import counts
from seqflow.kernels.reference.reductions import segment_reduce, widened


def softmax_within(data: Array, lengths: Array, log: bool = False) -> Array:
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    wide = widened("mean", data)
    with np.errstate(all="ignore"):
        shifted = wide - np.repeat(segment_reduce("max", wide, lengths), lengths, axis=0)
        total = np.repeat(segment_reduce("sum", np.exp(shifted), lengths), lengths, axis=0)
        result: Array = shifted - np.log(total) if log else np.exp(shifted) / total
        return result.astype(mean_dtype(data.dtype), copy=False)


def segment_logsumexp(data: Array, lengths: Array, empty: Any = 0) -> Array:
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    dtype = mean_dtype(data.dtype)
    wide = widened("mean", data)
    with np.errstate(all="ignore"):
        shift = segment_reduce("max", wide, lengths)
        shift[~np.isfinite(shift)] = 0
        total = segment_reduce("sum", np.exp(wide - np.repeat(shift, lengths, axis=0)), lengths)
        result: Array = (shift + np.log(total)).astype(dtype)
    result[lengths == 0] = scalar(empty, dtype)
    return result
