"""Tensors with the shape and dtype of others: the parts of gradients."""

import math

import numpy as np

from seqflow.errors import ShapeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.axes import check_parts, positive_axes, positive_axis
from seqflow.ops.shared.scalars import cast_like_numpy
from seqflow.registry import op
from seqflow.shape import InferenceContext
from seqflow.signature import Ints, Positive


@op("like[*d] -> like(like) zeros[*d]", grad={"like": None})
def zeros_like(like: Array) -> Array:
    """Return zeros with the shape and dtype of a tensor.

    >>> zeros_like(np.array([1.5, 2.5]))
    array([0., 0.])
    """
    return np.zeros(like.shape, like.dtype)


@op("x[*d] -> y[*d]", grad={"x": None})
def stop_gradient(x: Array) -> Array:
    """Return the same tensor, and stop gradients from flowing back through it (torch: `detach`).

    >>> stop_gradient(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    return x


@op("float x[] -> one[]", grad={"x": None})
def one_like(x: Array) -> Array:
    """Return 1 in the dtype of a scalar: the gradient that a loss starts with.

    >>> one_like(np.array(0.25))
    array(1.)
    """
    return np.ones((), x.dtype)


@op(
    "number x[*d], number like[*e] -> like(like) y[*d]",
    grad={"like": None, "x": "cast_like(d.y, x)"},
    moves="",
)
def cast_like(x: Array, like: Array) -> Array:
    """Cast to the dtype of another tensor; a tensor that has it already is not copied.

    >>> cast_like(np.array([1.0, 2.0]), np.array([7], dtype=np.float32))
    array([1., 2.], dtype=float32)
    """
    return cast_like_numpy(x, like.dtype)


@op(
    "x[*e], like[*d] -> reshaped[*d]",
    grad={"like": None, "x": "reshape_like(d.reshaped, x)"},
)
def reshape_like(x: Array, like: Array) -> Array:
    """Give the same elements, in the same order, the shape of another tensor.

    Raises ShapeError if the numbers of elements differ. The rows are those of `like`. The result shares the memory
    of `x` if possible.

    >>> reshape_like(np.arange(4), np.zeros((2, 2)))
    array([[0, 1],
           [2, 3]])
    """
    if x.size != like.size:
        raise ShapeError(f"x {x.shape} has {x.size} elements, like {like.shape} has {like.size}")
    return x.reshape(like.shape)


@op(
    "number x[*e], number like[*d] -> like(like) sums[*d]",
    grad={"like": None, "x": "cast_like(broadcast_like(d.sums, x), x)"},
    moves="",
)
def sum_to(x: Array, like: Array) -> Array:
    """Sum over all axes along which `like` was broadcast to the shape of `x`; the result has the dtype of `like`.

    It reverses broadcasting, for the gradient of an operand. Raises ShapeError if `like` does not broadcast to `x`.

    >>> sum_to(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.0, 0.0]))
    array([4., 6.])
    """
    if x.shape == like.shape:
        return cast_like_numpy(x, like.dtype)
    before = x.ndim - like.ndim
    pairs = zip(x.shape[max(before, 0) :], like.shape, strict=False)
    if before < 0 or any(mine != theirs != 1 for mine, theirs in pairs):
        raise ShapeError(f"like {like.shape} does not broadcast to the shape of x, {x.shape}")
    summed = [*range(before), *(i + before for i, n in enumerate(like.shape) if n == 1)]
    return summed_like(x, tuple(summed), like)


def summed_like(x: Array, axes: tuple[int, ...], like: Array) -> Array:
    """Return the sum over axes in the shape and dtype of `like`; float16 is summed in float32, and cast once."""
    dtype = np.result_type(like.dtype, np.float32) if like.dtype.kind == "f" else like.dtype
    return cast_like_numpy(np.asarray(x.sum(axes, dtype).reshape(like.shape)), like.dtype)


@op(
    "x[*d], like[*e] -> y[*e]",
    grad={"like": None, "x": "sum_to(d.y, x)"},
)
def broadcast_like(x: Array, like: Array) -> Array:
    """Repeat a tensor along axes to the shape of another, by NumPy's rules of broadcasting.

    >>> broadcast_like(np.array([1, 2]), np.zeros((2, 2)))
    array([[1, 2],
           [1, 2]])
    """
    try:
        return np.broadcast_to(x, like.shape).copy()
    except ValueError:
        raise ShapeError(f"x {x.shape} does not broadcast to the shape of like, {like.shape}") from None


def _spread_gradient(mean: bool) -> str:
    op = "reduce_mean" if mean else "reduce_sum"
    return f"reshape_like({op}(d.y, axes=axes, keepdims=keepdims), x)"


def _infer_spread(ctx: InferenceContext) -> None:
    own = ctx.dtype("x")
    if ctx.attr("mean") and own is not None and own.kind in "biu":
        found = ctx.outputs[0]
        ctx.set_output(0, found.shape, dtype=np.float64, axes=found.axes)


@op(
    "number x[*e], like[*d] -> y[*d]",
    shape=_infer_spread,
    grad={"like": None, "x": _spread_gradient},
    moves="",
)
def spread(
    x: Array, like: Array, *, axes: Ints | None = None, keepdims: bool = False, mean: bool = False
) -> Array:
    """Repeat the results of a reduction along the axes that were reduced, to the shape of what was reduced.

    `axes` and `keepdims` are those of the reduction (`reduce_sum`, `reduce_mean`, `reduce_max`); with `mean` each is
    divided by the number of elements that were reduced to it; integers then give float64.

    >>> spread(np.array([4.0, 6.0]), np.zeros((2, 2)), axes=1, mean=True)
    array([[2., 2.],
           [3., 3.]])
    """
    reduced = tuple(range(like.ndim)) if axes is None else positive_axes("axes", axes, like.ndim)
    kept = [1 if i in reduced else n for i, n in enumerate(like.shape)]
    expected = kept if keepdims else [n for i, n in enumerate(like.shape) if i not in reduced]
    if list(x.shape) != expected:
        raise ShapeError(f"x has shape {list(x.shape)}, expected {expected}")
    values = x.reshape(kept)
    if mean:
        values = values / max(math.prod(like.shape[i] for i in reduced), 1)
    return np.broadcast_to(values, like.shape).copy()


@op("like[N, *d] -> index(N) numbers[N]")
def row_numbers(like: Array) -> Array:
    """Return the row numbers of a tensor, from 0.

    >>> row_numbers(np.array([7.5, 8.5, 9.5]))
    array([0, 1, 2])
    """
    return np.arange(len(like))


def _infer_list_numbers(ctx: InferenceContext) -> None:
    check_parts(ctx.attr("parts"), len(ctx.inputs("tensors")))
    for i, shape in enumerate(ctx.inputs("tensors")):
        if ctx.with_rank_at_least(shape, 1).dimensions is None:
            ctx.set_output(i, "{?}")
        else:
            ctx.set_output(i, [shape[0]], axes=ctx.axes(i)[:1])


@op(
    "{tensors[_, *_]}+ -> {int64 numbers[_]}*parts",
    shape=_infer_list_numbers,
)
def list_numbers(tensors: list[Array], *, parts: Positive) -> list[Array]:
    """Return the row numbers of several tensors, counted on from one to the next; `parts` is the number of tensors.

    >>> list_numbers([np.zeros(2), np.zeros(1)], parts=2)
    [array([0, 1]), array([2])]
    """
    check_parts(parts, len(tensors))
    ends = np.cumsum([len(tensor) for tensor in tensors]).tolist()
    return [np.arange(end - len(tensor), end) for end, tensor in zip(ends, tensors, strict=True)]


def infer_like(ctx: InferenceContext) -> None:
    """Give each result the shape and rows of a tensor of the list `like`."""
    found = ctx.inputs("like")
    check_parts(ctx.attr("parts"), len(found))
    for i, shape in enumerate(found):
        ctx.set_output(i, shape, axes=ctx.axes(f"like[{i}]") if shape.dimensions is not None else None)


@op(
    "x[*e], {like(like) like[*_]}+ -> {pieces[*_]}*parts",
    shape=infer_like,
    grad={"like": None, "x": "reshape_like(concat(d.pieces, axis=axis), x)"},
)
def split_like(x: Array, like: list[Array], *, axis: int = 0, parts: Positive) -> list[Array]:
    """Cut a tensor along an axis into `parts` pieces with the shapes of other tensors: the inverse of `concat`.

    >>> split_like(np.array([1, 2, 3]), [np.zeros(2), np.zeros(1)], parts=2)
    [array([1, 2]), array([3])]
    """
    check_parts(parts, len(like))
    along = positive_axis("axis", axis, x.ndim)
    if sum(one.shape[along : along + 1][0] if one.ndim == x.ndim else -1 for one in like) != x.shape[along]:
        raise ShapeError(
            f"x has shape {list(x.shape)}, which the shapes of like do not make up along axis {along}"
        )
    ends = np.cumsum([one.shape[along] for one in like])
    pieces = np.split(x, ends[:-1], along)
    for i, (piece, one) in enumerate(zip(pieces, like, strict=True)):
        if piece.shape != one.shape:
            raise ShapeError(f"like[{i}] has shape {list(one.shape)}, expected {list(piece.shape)}")
    return [piece.copy() for piece in pieces]


@op(
    "x[R, C, *d] -> rows[N=R*C, *d]",
    grad={"x": "reshape_like(d.rows, x)"},
)
def flatten_rows(x: Array) -> Array:
    """Lay the first two axes flat: the cells of a padded or packed array as rows.

    >>> flatten_rows(np.array([[1, 2], [3, 4]]))
    array([1, 2, 3, 4])
    """
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


@op("like[R, C, *d] -> int64 numbers[P=R, C]")
def cell_numbers(like: Array) -> Array:
    """Return the numbers of the cells of the first two axes, row by row, from 0: their rows in `flatten_rows`.

    >>> cell_numbers(np.zeros((2, 2)))
    array([[0, 1],
           [2, 3]])
    """
    return np.arange(like.shape[0] * like.shape[1]).reshape(like.shape[:2])
