"""Softmax, log-softmax and log-sum-exp of each segment."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, mean_dtype, rows, scalar
from seqflow.kernels.checks import check_sum
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, FLOATS, NUMBERS
from seqflow.kernels.reductions import segment_reduce, widened

__all__ = ["segment_logsumexp", "softmax_within", "softmax_within_backward"]


@kernel(data=NUMBERS, lengths=COUNTS)
def softmax_within(data: Array, lengths: Array, log: bool = False) -> Array:
    """Return exp(data) divided by its sum over the segment: data[sum(lengths), *d] -> out[sum(lengths), *d].

    With `log`, the logarithm of this. dtype: `mean_dtype`. A segment with NaN or +infinity, or with -infinity only,
    gives NaN.
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    wide = widened("mean", data)
    with np.errstate(all="ignore"):
        # minus the largest: exp() of large numbers would overflow, and the quotient is the same
        shifted = wide - np.repeat(segment_reduce("max", wide, lengths), lengths, axis=0)
        total = np.repeat(segment_reduce("sum", np.exp(shifted), lengths), lengths, axis=0)
        result: Array = shifted - np.log(total) if log else np.exp(shifted) / total
        return result.astype(mean_dtype(data.dtype), copy=False)


@kernel(data=NUMBERS, lengths=COUNTS)
def segment_logsumexp(data: Array, lengths: Array, empty: Any = 0) -> Array:
    """Return log(sum(exp(data))) of each segment: data[sum(lengths), *d], lengths[B] -> out[B, *d]; dtype:
    `mean_dtype`.

    An empty segment gives `empty`, a scalar of the result's dtype.
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    dtype = mean_dtype(data.dtype)
    wide = widened("mean", data)
    with np.errstate(all="ignore"):
        shift = segment_reduce("max", wide, lengths)
        # -inf minus -inf would be NaN, but the result of a segment of -inf is -inf
        shift[~np.isfinite(shift)] = 0
        total = segment_reduce("sum", np.exp(wide - np.repeat(shift, lengths, axis=0)), lengths)
        result: Array = (shift + np.log(total)).astype(dtype)
    result[lengths == 0] = scalar(empty, dtype)
    return result


@kernel(d=FLOATS, out=FLOATS, lengths=COUNTS)
def softmax_within_backward(d: Array, out: Array, lengths: Array) -> Array:
    """Return the gradient of `softmax_within`, from its result and the gradient of that: out * (d - sum(d * out)).

    d[sum(lengths), *d], out[sum(lengths), *d], lengths[B] -> back[sum(lengths), *d], in the dtype of `out`.
    """
    d, out, lengths = rows(d, "d"), rows(out, "out"), int64_counts(lengths, "lengths")
    if d.shape != out.shape:
        raise ValueError(f"d has shape {d.shape}, expected {out.shape} as out")
    check_sum(lengths, len(out), "data")
    wide = np.result_type(out.dtype, np.float64)
    with np.errstate(all="ignore"):
        products = d.astype(wide, copy=False) * out
        totals = np.repeat(segment_reduce("sum", products, lengths), lengths, axis=0)
        back: Array = (out * (d - totals)).astype(out.dtype, copy=False)
    return back
