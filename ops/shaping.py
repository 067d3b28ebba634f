"""Changes of the shape, not of the elements.

These ops do not take lengths. If row i of the result is still row i of the input, inference records it, and lengths
that describe the input's rows also describe the rows of the result.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from seqflow.errors import ShapeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.axes import check_distinct, positive_axes
from seqflow.registry import op
from seqflow.shape import Comparison, Dimension, InferenceContext, PartialShape
from seqflow.shape.terms import Term
from seqflow.signature import Ints


def _infer_reshape(ctx: InferenceContext) -> None:
    x, value = ctx.input("x"), ctx.input_tensor("shape")
    if value is not None and x.is_static:
        given = x.to_shape()
        found = _solved(given, tuple(value.tolist()))
        ctx.set_output(0, found, axes=_reshaped(ctx, list(ctx.make_shape(found))))
        return
    if value is not None:
        _check_sizes(tuple(value.tolist()))
    shape = ctx.input_tensor_as_shape("shape")
    if shape.dimensions is None:
        ctx.set_output(0, shape)
        return
    sizes = list(shape.dimensions)
    open_places = [i for i, size in enumerate(sizes) if not size.is_named]
    known = ctx.num_elements(size for size in sizes if size.is_named)
    total = ctx.num_elements(x)
    if not open_places:
        _check_elements(ctx, x, total, shape, known)
    elif len(open_places) == 1 and known.max_length != 0:
        sizes[open_places[0]] = _left_over(ctx, x, total, shape, known)
    elif value is not None:
        raise ShapeError(f"shape is {value.tolist()}: any size fits the -1, expected a number")
    ctx.set_output(0, sizes, axes=_reshaped(ctx, sizes))
    if len(sizes) == 1 and len(x.dimensions or ()) == 2:
        ctx.flat_mask(0, "x")


def _check_elements(
    ctx: InferenceContext, x: PartialShape, total: Dimension, shape: PartialShape, known: Dimension
) -> None:
    if not ctx.equalities.resolve(total).compatible(ctx.equalities.resolve(known)):
        raise ShapeError(f"x {x} has {total} elements, shape {shape} has {known}")
    if total.is_named:
        ctx.merge(total, known)


def _left_over(
    ctx: InferenceContext, x: PartialShape, total: Dimension, shape: PartialShape, known: Dimension
) -> Dimension:
    """Return the size that was left open, computed from the total."""
    try:
        return ctx.divide(total, known, evenly=True)
    except ShapeError:
        raise ShapeError(f"x {x} has {total} elements, no multiple of the {known} of shape {shape}") from None


def _reshaped(ctx: InferenceContext, sizes: Sequence[Dimension]) -> list[Term | None]:
    """Return the rows of the axes: those of the first axes with unchanged sizes, then those of flattened axes."""
    x, axes = ctx.input("x"), ctx.axes("x")
    if x.dimensions is None or not any(axes):
        return []
    stay = 0
    for before, after in zip(x, sizes, strict=False):
        if ctx.equalities.compare(before, after) is not Comparison.EQUAL:
            break
        stay += 1
    found: list[Term | None] = list(axes[:stay])
    last = 0  # the number of axes at the end that stay
    while last < min(len(x), len(sizes)) - stay and (
        ctx.equalities.compare(x[-1 - last], sizes[-1 - last]) is Comparison.EQUAL
    ):
        last += 1
    between = len(sizes) - stay - last
    if between == 1 and len(x) - last > stay:
        found.append(ctx.flat_rows("x", stay, len(x) - last))
    elif not stay and sizes:
        found.append(ctx.made_rows())
        found += [None] * (between - 1)
    else:
        found += [None] * between
    return found + list(axes[len(axes) - last :] if last else ())


def _check_sizes(sizes: tuple[int, ...]) -> None:
    if min(sizes, default=0) >= 0:
        return
    for i, size in enumerate(sizes):
        if size < -1:
            raise ShapeError(f"shape[{i}] is {size}, expected a size, or -1 for what is left")
        if size == -1 and -1 in sizes[:i]:
            raise ShapeError(f"shape[{sizes.index(-1)}] and shape[{i}] are both -1, expected one at most")


def _solved(x: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes, with -1 replaced by the size that fits."""
    _check_sizes(sizes)
    total, known = prod(x), prod([size for size in sizes if size != -1])
    if -1 not in sizes:
        if total != known:
            raise ShapeError(f"x {x} has {total} elements, shape {sizes} has {known}")
        return sizes
    if known == 0:
        raise ShapeError(f"shape is {list(sizes)}: any size fits the -1, expected a number")
    if total % known:
        raise ShapeError(f"x {x} has {total} elements, no multiple of the {known} of shape {sizes}")
    return tuple([total // known if size == -1 else size for size in sizes])


@op(
    "x[*d], int shape[K] -> reshaped[*e]",
    caffe2="Reshape",
    shape=_infer_reshape,
    grad={"x": "reshape_like(d.reshaped, x)"},
)
def reshape(x: Array, shape: Array) -> Array:
    """Give the same elements, in the same order, another shape; one size may be -1, for the size that fits.

    If the first size stays, the rows stay the same rows. The result shares the memory of `x` if possible. A 0 is a
    size of 0. Raises ShapeError if the sizes do not fit, and for a -1 together with a 0, since any size would fit.

    >>> reshape(np.arange(6), [2, -1])
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    return x.reshape(_solved(x.shape, tuple(shape.tolist())))


def _infer_transpose(ctx: InferenceContext) -> None:
    x, perm = ctx.input("x"), ctx.attr("perm")
    if perm is not None:
        if x.dimensions is not None:
            _check_length(perm, len(x))
        x = ctx.with_rank(x, len(perm))
    if x.dimensions is None:
        ctx.set_output(0, x)
        return
    axes = _permutation(perm, len(x))
    held = ctx.axes("x", len(x))
    ctx.set_output(0, [x[axis] for axis in axes], axes=[held[axis] for axis in axes])


def _check_length(perm: tuple[int, ...], rank: int) -> None:
    if len(perm) != rank:
        raise ShapeError(f"perm is {list(perm)}, but x has {rank} dimension{'' if rank == 1 else 's'}")


def _permutation(perm: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    if perm is None:
        return tuple(reversed(range(rank)))
    _check_length(perm, rank)
    return positive_axes("perm", perm, rank)


def _transpose_back(perm: tuple[int, ...] | None) -> str:
    if perm is None:
        return "transpose(d.transposed)"
    axes = [axis % len(perm) for axis in perm]
    return f"transpose(d.transposed, perm={[axes.index(i) for i in range(len(axes))]})"


@op(
    "x[*d] -> transposed[*e]",
    caffe2="Transpose",
    shape=_infer_transpose,
    grad={"x": _transpose_back},
)
def transpose(x: Array, *, perm: Ints | None = None) -> Array:
    """Permute the axes: axis i of the result is axis `perm[i]` of `x`; without `perm`, reverse them.

    `perm` names each axis once, else it is an OpError. The rows stay the same rows only if axis 0 stays. The result
    shares the memory of `x`.

    >>> transpose(np.array([[1, 2, 3], [4, 5, 6]]))
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    return x.transpose(_permutation(perm, x.ndim))


def _infer_expand_dims(ctx: InferenceContext) -> None:
    x, axis = ctx.input("x"), ctx.attr("axis")
    if x.dimensions is None:
        check_distinct("axis", axis)
        ctx.set_output(0, x)
        return
    added = positive_axes("axis", axis, len(x) + len(axis), "the result")
    places = range(len(x) + len(axis))
    sizes, held = iter(x), iter(ctx.axes("x"))
    ctx.set_output(
        0,
        [1 if i in added else next(sizes) for i in places],
        axes=[None if i in added else next(held) for i in places],
    )


@op(
    "x[*d] -> expanded[*e]",
    caffe2="ExpandDims",
    shape=_infer_expand_dims,
    grad={"x": "reshape_like(d.expanded, x)"},
)
def expand_dims(x: Array, *, axis: Ints) -> Array:
    """Insert axes of size 1; `axis` is their place in the result.

    Several axes are given as a list, none of them twice. The result shares the memory of `x`.

    >>> expand_dims(np.array([1, 2]), axis=1)
    array([[1],
           [2]])
    """
    positive_axes("axis", axis, x.ndim + len(axis), "the result")
    return np.expand_dims(x, axis)


def _infer_squeeze(ctx: InferenceContext) -> None:
    x, axis = ctx.input("x"), ctx.attr("axis")
    if x.dimensions is None:
        check_distinct("axis", axis or ())
        ctx.set_output(0, x)
        return
    if axis is None:
        gone = tuple(i for i, size in enumerate(x) if size == 1)
        if any(size.is_dynamic and size.may_be(1) for size in x):
            stays = bool(len(x)) and not x[0].may_be(1)
            ctx.set_output(0, "?", rows=ctx.rows("x") if stays else None)  # its rank is not known
            return
    else:
        gone = positive_axes("axis", axis, len(x))
        for i in gone:
            if not ctx.equalities.resolve(x[i]).may_be(1):
                _check_one(i, x[i])
            ctx.merge(x[i], 1)
    rest = [i for i in range(len(x)) if i not in gone]
    held = ctx.axes("x")
    ctx.set_output(0, [x[i] for i in rest], axes=[held[i] for i in rest])


def _check_one(axis: int, size: int | Dimension) -> None:
    if size != 1:
        raise ShapeError(f"x.shape[{axis}] is {size}, expected 1, to be squeezed")


@op(
    "x[*d] -> squeezed[*e]",
    caffe2="Squeeze",
    shape=_infer_squeeze,
    grad={"x": "reshape_like(d.squeezed, x)"},
)
def squeeze(x: Array, *, axis: Ints | None = None) -> Array:
    """Remove axes of size 1: those in `axis`, or all.

    Without `axis` a batch of one row loses the axis of its rows, so prefer to give it. Raises ShapeError for an axis
    of another size. The result shares the memory of `x`.

    >>> squeeze(np.array([[[1], [2]]]), axis=2)
    array([[1, 2]])
    """
    if axis is None:
        return np.squeeze(x)
    gone = positive_axes("axis", axis, x.ndim)
    for i in gone:
        _check_one(i, x.shape[i])
    return np.squeeze(x, gone)
