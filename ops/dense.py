"""Arithmetic on dense tensors, row by row.

These ops do not take lengths. If row i of the result belongs to row i of the input, lengths that describe the
input's rows also describe the rows of the result.
"""

from math import prod
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.kernels.exact import converted
from seqflow.ops.shared.random_bits import random_bits, uniform
from seqflow.ops.shared.scalars import cast_like_numpy
from seqflow.registry import op
from seqflow.shape import Dimension, InferenceContext
from seqflow.signature import Dtype, NonNegative

# Products


def _infer_matmul(ctx: InferenceContext) -> None:
    a, b = (ctx.with_rank_at_least(ctx.input(name), 1) for name in ("a", "b"))
    if a.dimensions is None or b.dimensions is None:
        ctx.set_output(0, "?")
        return
    ctx.merge(a[-1], b[-2] if len(b) > 1 else b[0])
    mine, theirs = ctx.axes("a"), ctx.axes("b")
    ctx.merge_axes([("a", len(a) - 1), ("b", max(len(b) - 2, 0))])
    sizes: list[Dimension] = [*a[-2:-1], *(b[-1:] if len(b) > 1 else ())]
    axes = [*mine[-2:-1], *(theirs[-1:] if len(b) > 1 else ())]
    if max(len(a), len(b)) < 3:
        ctx.set_output(0, sizes, axes=axes)
        return
    batch, held = ctx.broadcast({"a": a[:-2], "b": b[:-2]})
    plain = [None] * (len(batch) - len(held))
    ctx.set_output(0, ctx.concatenate(batch, sizes), axes=[*held, *plain, *axes])


@op(
    "float a[*d], float b[*e] -> sum_of(a, b) product[*f]",
    caffe2="BatchMatMul",
    shape=_infer_matmul,
    grad={"a, b": "matmul_backward(d.product, a, b)"},
)
def matmul(a: Array, b: Array) -> Array:
    """Return the matrix product over the last axis of `a` and the last but one of `b`, by NumPy's rules.

    Axes before these are batches and broadcast. A one-dimensional argument is a vector, and its axis is not in the
    result. The rows of a matrix `a` stay the same rows. Batches stay, too; inference does not broadcast batches that
    it knows to be rows. A sum over no elements is 0. float16 gives float32.

    >>> matmul(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0], [10.0]]))
    array([[21.],
           [10.]])
    """
    _check_product(a.shape, b.shape)
    dtype = np.result_type(kernels.sum_dtype(a.dtype), kernels.sum_dtype(b.dtype))
    return np.asarray(np.matmul(a.astype(dtype, copy=False), b.astype(dtype, copy=False)))


def _check_product(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    for name, shape in (("a", a), ("b", b)):
        if not shape:
            raise ShapeError(f"{name} has no dimensions, expected 1 or more")
    inner = -2 if len(b) > 1 else -1
    if a[-1] != b[inner]:
        axis = len(b) + inner
        raise ShapeError(f"b.shape[{axis}] is {b[inner]}, expected {a[-1]} as in a.shape[{len(a) - 1}]")
    try:
        np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise ShapeError(
            f"a {a} and b {b} have batches {a[:-2]} and {b[:-2]}, which do not broadcast"
        ) from None


@op(
    "float x[N, *e, K], float weight[M, K], float bias[M]? -> sum_of(x, weight) y[N, *e, M]",
    caffe2="FC, FCTransposed",
    grad={"x": "matmul(d.y, weight)", "weight": "outer_sum(d.y, x)", "bias": "sum_to(d.y, bias)"},
)
def fc(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Apply a fully connected layer over the last axis: `x @ weight.T + bias`. Rows stay the same rows.

    float16 gives float32; if the dtypes differ, the result has the larger one.

    >>> fc(np.array([[1.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([0.0, 10.0]))
    array([[ 3., 12.]])
    """
    dtype = np.result_type(kernels.sum_dtype(x.dtype), kernels.sum_dtype(weight.dtype))
    flat = x.reshape(prod(x.shape[:-1]), x.shape[-1]).astype(dtype, copy=False)
    y = np.matmul(flat, weight.T.astype(dtype, copy=False))
    if bias is not None:
        y += bias.astype(dtype, copy=False)
    result: Array = y.reshape(*x.shape[:-1], len(weight))
    return result


# Within each row


def _at_least_float32(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype == np.float16 else x


@op(
    "float x[N, *e, K] -> y[N, *e, K]",
    caffe2="Softmax",
    grad={"x": "cast_like(out.y * (d.y - reduce_sum(d.y * out.y, axes=-1, keepdims=True)), x)"},
)
def softmax(x: Array) -> Array:
    """Compute `exp(x) / sum(exp(x))` along the last axis, so that each row adds up to 1.

    It is computed without overflow, float16 in float32. A row of only `-inf` has no answer and gives nan. For the
    segments of flat data see `softmax_within`.

    >>> softmax(np.array([[0.0, 0.0], [0.0, -np.inf]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    wide = _at_least_float32(x)
    with np.errstate(invalid="ignore"):
        y: Array = wide - wide.max(-1, keepdims=True, initial=-np.inf)
        np.exp(y, out=y)
        y /= y.sum(-1, keepdims=True)
    return y.astype(x.dtype, copy=False)


def _layer_norm_back(weight: bool) -> str:
    return f"""
        centred = x - reduce_mean(x, axes=-1, keepdims=True)
        scale = rsqrt(reduce_mean(square(centred), axes=-1, keepdims=True) + epsilon)
        normed = centred * scale
        inner = {"d.y * weight" if weight else "d.y * 1.0"}
        means = reduce_mean(inner, axes=-1, keepdims=True)
        cast_like(scale * (inner - means - normed * reduce_mean(inner * normed, axes=-1, keepdims=True)), x)
    """


@op(
    "float x[N, *e, K], float weight[K]?, float bias[K]? -> y[N, *e, K]",
    caffe2="LayerNorm",
    grad={
        "x": _layer_norm_back,
        "weight": "sum_to(d.y * layer_norm(x, epsilon=epsilon), weight)",
        "bias": "sum_to(d.y, bias)",
    },
)
def layer_norm(
    x: Array, weight: Array | None = None, bias: Array | None = None, *, epsilon: float = 1e-5
) -> Array:
    """Subtract the mean of each row and divide by its standard deviation; then multiply by `weight`, add `bias`.

    The last axis is a row. `epsilon` is added to the variance, which is taken over all K elements (`ddof` 0).
    float16 is computed in float32.

    >>> layer_norm(np.array([[1.0, 3.0]]), epsilon=0.0)
    array([[-1.,  1.]])
    """
    if not epsilon >= 0:
        raise OpError(f"epsilon is {epsilon}, expected a number, 0 or more")
    if x.size == 0:
        return x.copy()
    wide = _at_least_float32(x)
    y: Array = wide - wide.mean(-1, keepdims=True)
    variance = np.einsum("...i,...i->...", y, y)[..., None] / y.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        y /= np.sqrt(variance + epsilon, dtype=y.dtype)
    if weight is not None:
        y *= cast_like_numpy(weight, y.dtype)
    if bias is not None:
        y += cast_like_numpy(bias, y.dtype)
    return y.astype(x.dtype, copy=False)


@op(
    "float data[N, *d], number scale[N] -> divided[N, *d]",
    caffe2="SquareRootDivide",
    grad={
        "data": "square_root_divide(d.divided, scale)",
        "scale": """
            slopes = -0.5 * row_dot(d.divided, out.divided) / where(scale == 0, 1.0, scale)
            cast_like(where(scale == 0, 0.0, slopes), scale)
        """,
    },
)
def square_root_divide(data: Array, scale: Array) -> Array:
    """Divide each row by the square root of its scale; a scale of 0 leaves the row as it is.

    With lengths as the scale, it turns sums into Paddle's `sqrt` pool. Raises OpError for a negative scale.

    >>> square_root_divide(np.array([2.0, 3.0]), np.array([4, 0]))
    array([1., 3.])
    """
    negative = np.flatnonzero(scale < 0)
    if len(negative):
        raise OpError(f"scale[{negative[0]}] = {scale[negative[0]]} is negative")
    roots = np.sqrt(np.where(scale == 0, 1, scale), dtype=np.float64)
    wide = _at_least_float32(data)
    divided: Array = wide / roots.astype(wide.dtype).reshape(-1, *[1] * (data.ndim - 1))
    return divided.astype(data.dtype, copy=False)


# Random


@op(
    "float x[N, *d] -> y[N, *d], bool kept[N, *d]",
    caffe2="Dropout",
    random="seed",
    grad={"x": "where(out.kept, d.y / (1 - ratio), 0.0)"},
)
def dropout(x: Array, *, ratio: float = 0.5, seed: NonNegative) -> tuple[Array, Array]:
    """Set each element to 0 with probability `ratio`, else divide it by `1 - ratio`; also return which were kept.

    The same seed drops the same places on every machine: element j of row i is dropped if the uniform number of
    sequence i and position j is below `ratio`; `seqflow.ops.shared.random_bits` defines it.

    >>> dropout(np.ones(4), ratio=0.5, seed=3).kept.shape
    (4,)
    """
    if not 0 <= ratio <= 1:
        raise OpError(f"ratio is {ratio}, expected a number from 0 to 1")
    width = np.full(len(x), int(np.prod(x.shape[1:], dtype=np.int64)), np.int64)
    kept = (uniform(random_bits(seed, width)) >= ratio).reshape(x.shape)
    scale = x.dtype.type(1 / (1 - ratio) if ratio < 1 else 0)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(kept, x * scale, x.dtype.type(0)), kept


# Dtypes


def _infer_cast(ctx: InferenceContext) -> None:
    found, dtype = ctx.dtype("x"), ctx.attr("dtype")
    ctx.set_output(0, ctx.input("x"), axes=ctx.axes("x"), dtype=dtype)
    if found is not None and found.kind in "iu" and dtype.kind in "iu":
        ctx.same_value(0, "x")


@op(
    "x[*d] -> dtype y[*d]",
    caffe2="Cast",
    shape=_infer_cast,
    grad={"x": "cast_like(d.y, x)"},
)
def cast(x: Array, *, dtype: Dtype) -> Array:
    """Convert `x` to another dtype; return `x` itself if it has that dtype.

    Floats become integers by dropping the fraction, and every number except 0 is true. A value that the dtype cannot
    hold is an OpError: an integer outside its range, nan or infinity as an integer (NumPy wraps around). Floats are
    rounded, and overflow to infinity.

    >>> cast(np.array([1.5, -2.5]), dtype="int64")
    array([ 1, -2])
    """
    if x.dtype.kind in "mM" or dtype.kind in "mM":
        _check_times(x.dtype, dtype)
        return _cast_times(x, dtype)
    if x.dtype.kind == "V" or (x.dtype.kind == "c" and dtype.kind not in "cb"):
        raise OpError(f"x is {x.dtype}, which does not cast to {dtype}")
    if dtype.kind in "iu" and x.dtype.kind in "iuf" and not np.can_cast(x.dtype, dtype):
        _check_range(x, dtype)
    return cast_like_numpy(x, dtype)


def _check_times(found: np.dtype[Any], dtype: np.dtype[Any]) -> None:
    kinds = found.kind + dtype.kind
    if kinds not in ("mm", "MM", "im", "iM", "mi", "Mi") or (
        "i" in kinds and 8 not in (found.itemsize, dtype.itemsize)
    ):
        raise OpError(f"x is {found}, which does not cast to {dtype}\n  times cast to times and int64")


def _cast_times(x: Array, dtype: np.dtype[Any]) -> Array:
    found, wrong = converted(x, dtype)
    if x.dtype.kind == dtype.kind and np.can_cast(x.dtype, dtype) and wrong.any():
        raise OpError(f"x has {x[wrong][0]}, which {dtype} cannot hold")
    return found


def _check_range(x: Array, dtype: np.dtype[Any]) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    if x.dtype.kind == "f":
        whole = np.trunc(_at_least_float32(x))
        # below high + 1, a power of two that floats hold exactly: high itself would be rounded up to it
        fits = (whole >= float(low)) & (whole < float(high + 1))
    elif not x.size or (low <= int(x.min()) and int(x.max()) <= high):
        return
    else:
        own = np.iinfo(x.dtype)
        fits = (x >= max(low, own.min)) & (x <= min(high, own.max))
    if not fits.all():
        place = np.unravel_index(int(np.argmin(fits)), x.shape)
        where = f"x[{', '.join(map(str, place))}]" if place else "x"
        raise OpError(f"{where} = {x[place]} is outside {dtype}, {low} to {high}")
