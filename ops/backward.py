"""Derivatives that are ops of their own: for gradients of products, padding, tiles, slices and softmax."""

import numpy as np

from seqflow import kernels
from seqflow.errors import ShapeError
from seqflow.kernels.arrays import Array
from seqflow.ops.along_axis import slice_axes
from seqflow.ops.like import summed_like
from seqflow.ops.padding import Side
from seqflow.ops.shared.scalars import cast_like_numpy
from seqflow.registry import NoDerivative, op
from seqflow.shape import InferenceContext, PartialShape
from seqflow.shape.terms import Term
from seqflow.signature import Ints, Sizes

_MORE = NoDerivative("derivatives of this order are not implemented")


def _infer_product(ctx: InferenceContext) -> None:
    """Each gradient has the rows of `d`, and those of the other factor along the axis that the product sums over."""
    d, a, b = (ctx.input(name) for name in ("d", "a", "b"))
    if d.dimensions is None or not a.dimensions or not b.dimensions:
        ctx.set_output(0, a)
        ctx.set_output(1, b)
        return
    i, j = len(a) - 1, max(len(b) - 2, 0)
    ctx.merge_axes([("a", i), ("b", j)])
    of_a, of_b, of_d = ctx.axes("a"), ctx.axes("b"), ctx.axes("d")
    has_rows, has_columns = len(a) > 1, len(b) > 1
    batch = of_d[: len(d) - has_rows - has_columns]

    def held(shape: PartialShape) -> list[Term | None]:
        # an axis of 1 is repeated by the product, and its gradient summed
        count = max(len(shape) - 2, 0)
        rows = batch[len(batch) - count :]
        return [None if size == 1 else row for size, row in zip(shape[:count], rows, strict=False)]

    ctx.set_output(0, a, axes=[*held(a), *of_d[len(batch) :][:has_rows], of_b[j]])
    ctx.set_output(1, b, axes=[*held(b), of_a[i], *of_d[len(of_d) - has_columns :]])


@op(
    "float d[*f], float a[*d], float b[*e] -> like(a) grad_a[*d], like(b) grad_b[*e]",
    shape=_infer_product,
    moves="",
    grad={
        "d": "cast_like(matmul(d.grad_a, b) + matmul(a, d.grad_b), d)",
        "a": "grad, _ = matmul_backward(d, a, d.grad_b)",
        "b": "_, grad = matmul_backward(d, d.grad_a, b)",
    },
)
def matmul_backward(d: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Return the gradients of both factors of `matmul(a, b)`; `d` is the gradient of the product.

    >>> matmul_backward(np.array([[1.0]]), np.array([[2.0, 3.0]]), np.array([[4.0], [5.0]]))
    MatmulBackwardResult(grad_a=array([[4., 5.]]), grad_b=array([[2.],
           [3.]]))
    """
    rows = a if a.ndim > 1 else a[None, :]
    columns = b if b.ndim > 1 else b[:, None]
    try:
        shape = np.matmul(np.empty(a.shape, bool), np.empty(b.shape, bool)).shape
    except ValueError:
        raise ShapeError(f"a {list(a.shape)} and b {list(b.shape)} have no product") from None
    if d.shape != shape:
        raise ShapeError(f"d has shape {list(d.shape)}, expected {list(shape)} as the product has")
    d = d if a.ndim > 1 else np.expand_dims(d, -1 if b.ndim == 1 else -2)
    d = d if b.ndim > 1 else d[..., None]
    with np.errstate(all="ignore"):
        by_a = _summed(np.matmul(d, np.swapaxes(columns, -1, -2)), rows.shape)
        by_b = _summed(np.matmul(np.swapaxes(rows, -1, -2), d), columns.shape)
    return by_a.reshape(a.shape).astype(a.dtype), by_b.reshape(b.shape).astype(b.dtype)


def _summed(x: Array, shape: tuple[int, ...]) -> Array:
    """Return the sum over the batches that broadcast."""
    before = x.ndim - len(shape)
    axes = [*range(before), *(i + before for i, n in enumerate(shape) if n == 1 and x.shape[i + before] != 1)]
    return np.asarray(x.sum(tuple(axes)).reshape(shape))


@op(
    "float a[N, *e, M], float b[N, *e, K] -> sum_of(a, b) sums[M, K]",
    grad={"a": "matmul(b, transpose(d.sums))", "b": "matmul(a, d.sums)"},
)
def outer_sum(a: Array, b: Array) -> Array:
    """Return the sum of the outer products of all rows: of `a` and `b` as matrices, `a.T @ b`.

    It is the gradient of the weights of `fc`.

    >>> outer_sum(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[3., 4.],
           [6., 8.]])
    """
    dtype = np.result_type(kernels.sum_dtype(a.dtype), kernels.sum_dtype(b.dtype))
    rows = int(np.prod(a.shape[:-1]))
    left, right = (one.reshape(rows, one.shape[-1]).astype(dtype, copy=False) for one in (a, b))
    with np.errstate(all="ignore"):
        return np.asarray(left.T @ right)


@op(
    "data[sum(lengths), *d], like[B, T>=max(lengths), *d], lengths[B] -> padded[B, T, *d]",
    grad={"like": None, "data": "unpad(d.padded, lengths, side=side)"},
)
def pad_like(data: Array, like: Array, lengths: Array, *, side: Side = "right") -> Array:
    """Lay out each sequence as one row as wide as those of `like`, filled up with zeros: the gradient of `unpad`.

    An empty sequence is a row of zeros.

    >>> pad_like(np.array([1, 2, 3]), np.zeros((2, 3)), np.array([2, 1]))
    array([[1, 2, 0],
           [3, 0, 0]])
    """
    padded, _ = kernels.pad(data, lengths, like.shape[1], np.zeros((), data.dtype), side)
    return padded


@op(
    "data[sum(lengths), *d], like[T>=max(lengths), B, *d], lengths[B] -> packed[P=T, B, *d]",
    grad={"like": None, "data": "unpack_by_time(d.packed, lengths)"},
)
def pack_by_time_like(data: Array, like: Array, lengths: Array) -> Array:
    """Lay out sequences by time, in as many steps as `like` has, zeros after each: the gradient of `unpack_by_time`.

    An empty sequence is a column of zeros.

    >>> pack_by_time_like(np.array([1, 2, 3]), np.zeros((2, 2)), np.array([2, 1]))
    array([[1, 3],
           [2, 0]])
    """
    padded, _ = kernels.pad(data, lengths, like.shape[0], np.zeros((), data.dtype))
    return np.ascontiguousarray(padded.swapaxes(0, 1))


@op(
    "number data[sum(lengths), *d], lengths[B] -> products[sum(lengths), *d]",
    moves="",
    grad={"data": "products_of_others_backward(d.products, data, lengths)"},
)
def products_of_others(data: Array, lengths: Array) -> Array:
    """Return, for each row, the product of all other rows of its segment, column by column, without a division.

    The only row of a segment gives 1. An empty segment has no rows.

    >>> products_of_others(np.array([2.0, 0.0, 4.0]), np.array([3]))
    array([0., 8., 0.])
    """
    before, after = _products_around(data, lengths)
    # not the product of all divided by the row: that is 0 / 0 for a row of 0
    return np.asarray(before * after)


def _products_around(data: Array, lengths: Array) -> tuple[Array, Array]:
    """Return, for each row, the product of the rows before it in its segment, and of the rows after it."""
    before, after = np.ones(data.shape, data.dtype), np.ones(data.shape, data.dtype)
    with np.errstate(all="ignore"):
        for rows in _steps(lengths):
            before[rows] = before[rows - 1] * data[rows - 1]
        for rows in reversed(list(_steps(lengths))):
            after[rows - 1] = after[rows] * data[rows]
    return before, after


def _steps(lengths: Array) -> list[Array]:
    """Return, for t = 1, 2, …, the rows at position t of all segments that are long enough."""
    positions = kernels.lengths_to_positions(lengths)
    order = np.argsort(positions, kind="stable")
    counts = np.bincount(positions)
    return np.split(order, np.cumsum(counts)[:-1])[1:] if len(counts) else []


@op(
    "number d[sum(lengths), *d], number data[sum(lengths), *d], lengths[B] -> like(data) back[sum(lengths), *d]",
    moves="",
    grad=_MORE,
)
def products_of_others_backward(d: Array, data: Array, lengths: Array) -> Array:
    """Return the gradient of `products_of_others`: each row's sum of d times the products of all rows but two.

    An empty segment has no rows.

    >>> products_of_others_backward(np.array([1.0, 0.0, 0.0]), np.array([2.0, 3.0, 4.0]), np.array([3]))
    array([0., 4., 3.])
    """
    before, after = _products_around(data, lengths)
    earlier, later = np.zeros(data.shape, data.dtype), np.zeros(data.shape, data.dtype)
    with np.errstate(all="ignore"):
        for rows in _steps(lengths):
            earlier[rows] = earlier[rows - 1] * data[rows - 1] + d[rows - 1] * before[rows - 1]
        for rows in reversed(list(_steps(lengths))):
            later[rows - 1] = later[rows] * data[rows] + d[rows] * after[rows]
        return np.asarray(earlier * after + later * before)


def _infer_as_like(ctx: InferenceContext) -> None:
    like = ctx.input("like")
    ctx.set_output(0, like, axes=ctx.axes("like") if like.dimensions is not None else None)


@op(
    "number d[*e], number like[*d] -> like(like) back[*d]",
    shape=_infer_as_like,
    moves="",
    grad={"like": None, "d": "cast_like(tile(d.back, repeats=repeats), d)"},
)
def tile_backward(d: Array, like: Array, *, repeats: Sizes) -> Array:
    """Return the gradient of `tile`: the sum of all copies, in the shape of the tensor that was tiled.

    >>> tile_backward(np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(2), repeats=[2])
    array([4., 6.])
    """
    rank = max(like.ndim, len(repeats))
    sizes, counts = (1,) * (rank - like.ndim) + like.shape, (1,) * (rank - len(repeats)) + tuple(repeats)
    expected = [size * count for size, count in zip(sizes, counts, strict=True)]
    if list(d.shape) != expected:
        raise ShapeError(f"d has shape {list(d.shape)}, expected {expected} as the tiled tensor")
    copies = d.reshape([n for pair in zip(counts, sizes, strict=True) for n in pair])
    return summed_like(copies, tuple(range(0, 2 * rank, 2)), like)


@op(
    "number d[*e], number like[*d] -> like(like) back[*d]",
    shape=_infer_as_like,
    moves="",
    grad={
        "like": None,
        "d": "cast_like(slice_axes(d.back, starts=starts, stops=stops, steps=steps, axes=axes), d)",
    },
)
def slice_backward(
    d: Array, like: Array, *, starts: Ints, stops: Ints, steps: Ints | None = None, axes: Ints | None = None
) -> Array:
    """Return the gradient of `slice_axes`: `d` at the place of the slice, zeros everywhere else.

    >>> slice_backward(np.array([5.0]), np.zeros(3), starts=[1], stops=[2])
    array([0., 5., 0.])
    """
    back = np.zeros(like.shape, like.dtype)
    part = slice_axes(back, starts=starts, stops=stops, steps=steps, axes=axes)
    if d.shape != part.shape:
        raise ShapeError(f"d has shape {list(d.shape)}, expected {list(part.shape)} as the slice")
    part[...] = cast_like_numpy(d, back.dtype)
    return back


@op(
    "float d[sum(lengths), *d], like(d) y[sum(lengths), *d], lengths[B] -> back[sum(lengths), *d]",
    moves="",
    grad={
        "d": "softmax_within_backward(d.back, y, lengths)",
        "y": """
            along = expand(lengths_sum(d * y, lengths), lengths)
            d.back * (d - along) - d * expand(lengths_sum(d.back * y, lengths), lengths)
        """,
    },
)
def softmax_within_backward(d: Array, y: Array, lengths: Array) -> Array:
    """Return the gradient of `softmax_within` with the result `y`: y * (d - sum(d * y)) within each segment.

    An empty segment has no rows.

    >>> softmax_within_backward(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([2]))
    array([ 0.25, -0.25])
    """
    return kernels.softmax_within_backward(d, y, lengths)
