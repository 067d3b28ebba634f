"""Reductions over axes.

These ops do not take lengths. If axis 0 is not reduced, the rows stay the same rows for inference, and lengths that
describe the input's rows also describe the rows of the result.
"""

from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.axes import check_distinct, positive_axes
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.registry import op
from seqflow.shape import InferenceContext
from seqflow.signature import Ints, Scalar


def _infer_reduce(ctx: InferenceContext) -> None:
    x, axes, keepdims = ctx.input("x"), ctx.attr("axes"), ctx.attr("keepdims")
    if x.dimensions is None:
        check_distinct("axes", axes or ())
        ctx.set_output(0, x if axes is not None or keepdims else [])
        return
    reduced = range(len(x)) if axes is None else positive_axes("axes", axes, len(x))
    places = [i for i in range(len(x)) if keepdims or i not in reduced]
    held = ctx.axes("x")
    ctx.set_output(
        0,
        [1 if i in reduced else x[i] for i in places],
        axes=[None if i in reduced else held[i] for i in places],
    )


def _reduce(
    reduction: Any, x: Array, axes: Ints | None, keepdims: bool, empty: Any, dtype: np.dtype[Any]
) -> Array:
    reduced = tuple(range(x.ndim)) if axes is None else positive_axes("axes", axes, x.ndim)
    fill = cast_scalar("empty", empty, dtype) if empty != 0 else 0
    if all(x.shape[axis] for axis in reduced):
        options = {} if reduction is np.max else {"dtype": dtype}  # np.max has no parameter dtype
        return np.asarray(reduction(x, axis=reduced, keepdims=keepdims, **options))
    sizes = [1 if i in reduced else n for i, n in enumerate(x.shape) if keepdims or i not in reduced]
    return np.full(sizes, fill, dtype)


@op(
    "number x[*d] -> sum_of(x) sums[*e]",
    caffe2="ReduceSum",
    shape=_infer_reduce,
    grad={"x": "spread(d.sums, x, axes=axes, keepdims=keepdims)"},
)
def reduce_sum(x: Array, *, axes: Ints | None = None, keepdims: bool = False, empty: Scalar = 0) -> Array:
    """Return the sum over some axes, or over all; `keepdims` leaves each of them in place, with size 1.

    A sum over axes without elements is `empty`. An axis named twice is an OpError. Integers and bool are summed in
    int64; float16 and float32 give float32. For sums over the rows of sequences see `lengths_sum`.

    >>> reduce_sum(np.array([[1, 2], [3, 4]]), axes=1)
    array([3, 7])
    """
    return _reduce(np.sum, x, axes, keepdims, empty, kernels.sum_dtype(x.dtype))


@op(
    "number x[*d] -> mean_of(x) means[*e]",
    caffe2="ReduceMean",
    shape=_infer_reduce,
    grad={"x": "spread(d.means, x, axes=axes, keepdims=keepdims, mean=True)"},
)
def reduce_mean(x: Array, *, axes: Ints | None = None, keepdims: bool = False, empty: Scalar = 0) -> Array:
    """Return the mean over some axes, or over all; `keepdims` leaves each of them in place, with size 1.

    A mean over axes without elements is `empty` (NumPy: nan and a warning). An axis named twice is an OpError.
    float32 and float64 keep their dtype, everything else gives float64.

    >>> reduce_mean(np.array([[1, 2], [3, 4]]), axes=0)
    array([2., 3.])
    """
    return _reduce(np.mean, x, axes, keepdims, empty, kernels.mean_dtype(x.dtype))


@op(
    "ordered x[*d] -> largest[*e]",
    caffe2="ReduceMax",
    shape=_infer_reduce,
    grad={
        "x": """
            shares = largest_shares(x, out.largest, axes=axes, keepdims=keepdims)
            cast_like(spread(d.largest, x, axes=axes, keepdims=keepdims) * shares, x)
        """
    },
)
def reduce_max(x: Array, *, axes: Ints | None = None, keepdims: bool = False, empty: Scalar = 0) -> Array:
    """Return the largest element over some axes, or over all; `keepdims` leaves each of them in place, with size 1.

    Over axes without elements the result is `empty` (NumPy: an error). A nan wins. An axis named twice is an OpError.

    >>> reduce_max(np.array([[1, 5], [3, 4]]), axes=1)
    array([5, 4])
    """
    return _reduce(np.max, x, axes, keepdims, empty, x.dtype)


@op(
    "number x[*d], number largest[*e] -> mean_of(x) shares[*d]",
    moves="",
    grad={"x": None, "largest": None},
)
def largest_shares(x: Array, largest: Array, *, axes: Ints | None = None, keepdims: bool = False) -> Array:
    """Return the share of each element in the result of `reduce_max`, for its gradient.

    Equal largest elements share it. If the largest is NaN, the first NaN has the whole share.

    >>> largest_shares(np.array([[1.0, 5.0], [5.0, 4.0]]), np.array(5.0))
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    reduced = tuple(range(x.ndim)) if axes is None else positive_axes("axes", axes, x.ndim)
    hits = x == largest.reshape([1 if i in reduced else n for i, n in enumerate(x.shape)])
    if (largest != largest).any():
        last = range(x.ndim - len(reduced), x.ndim)
        nans = np.moveaxis(x != x, reduced, last)
        counted = nans.reshape(*nans.shape[: last.start], -1).cumsum(-1).reshape(nans.shape)
        hits |= np.moveaxis(nans & (counted == 1), last, reduced)
    counts = hits.sum(reduced, kernels.mean_dtype(x.dtype), keepdims=True)
    return np.asarray(hits / np.maximum(counts, 1))
