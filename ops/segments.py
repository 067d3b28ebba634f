"""Reducing the rows of each segment to one."""

from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.ops.scalars import cast_scalar
from seqflow.registry import op
from seqflow.signature import Scalar

Array = np.ndarray[Any, Any]


@op("number data[sum(lengths), *d], lengths[B] -> sum_of(data) sums[B, *d]", caffe2="LengthsSum")
def lengths_sum(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Sum the rows of each segment; an empty segment gives `empty`.

    Integers and bool are summed in int64 (uint64 in uint64) and wrap around beyond it, as in NumPy; float16 and
    float32 give float32.

    >>> lengths_sum(np.array([1, 2, 3]), np.array([2, 0, 1]))
    array([3, 0, 3])
    """
    if empty != 0:
        empty = cast_scalar("empty", empty, kernels.sum_dtype(data.dtype))
    return kernels.segment_reduce("sum", data, lengths, empty)


@op("number data[sum(lengths), *d], lengths[B] -> mean_of(data) means[B, *d]", caffe2="LengthsMean")
def lengths_mean(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Average the rows of each segment; an empty segment gives `empty` (NumPy: nan and a warning).

    float32 and float64 keep their dtype, everything else gives float64.

    >>> lengths_mean(np.array([1, 2, 3]), np.array([2, 0, 1]))
    array([1.5, 0. , 3. ])
    """
    if empty != 0:
        empty = cast_scalar("empty", empty, kernels.mean_dtype(data.dtype))
    return kernels.segment_reduce("mean", data, lengths, empty)


@op("ordered data[sum(lengths), *d], lengths[B] -> largest[B, *d]", caffe2="LengthsMax")
def lengths_max(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """The largest row of each segment, element by element; an empty segment gives `empty` (NumPy: an error).

    As in Caffe2 that is 0 unless asked otherwise, even where all other data are negative. NaN and NaT win, as
    in `np.max`.

    >>> lengths_max(np.array([1, 3, -2]), np.array([2, 0, 1]))
    array([ 3,  0, -2])
    """
    return kernels.segment_reduce("max", data, lengths, cast_scalar("empty", empty, data.dtype))


@op("ordered data[sum(lengths), *d], lengths[B] -> smallest[B, *d]")
def lengths_min(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """The smallest row of each segment, element by element; an empty segment gives `empty` (NumPy: an error).

    NaN and NaT win, as in `np.min`.

    >>> lengths_min(np.array([1, 3, -2]), np.array([2, 0, 1]))
    array([ 1,  0, -2])
    """
    return kernels.segment_reduce("min", data, lengths, cast_scalar("empty", empty, data.dtype))
