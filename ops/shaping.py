"""Other shapes for the same elements, joining and cutting along an axis, and reducing over axes.

The ops here know nothing of lengths. Where row i of the result is still row i of the input, inference says so,
and lengths that describe the input's rows describe those of the result.
"""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpIndexError, OpTypeError, ShapeError
from seqflow.ops.scalars import cast_scalar
from seqflow.registry import op
from seqflow.signature import CountOrSizes, Ints, Scalar, Sizes

if TYPE_CHECKING:
    from seqflow.shape import Dimension, InferenceContext, PartialShape

Array = np.ndarray[Any, Any]


# Axes, checked alike in inference and in calls


def _axis(name: str, axis: int, rank: int, of: str = "x") -> int:
    """The axis, counted from the front."""
    if not -rank <= axis < rank:
        raise ShapeError(f"{name} is {axis}, but {of} has {rank} dimension{'' if rank == 1 else 's'}")
    return axis % rank


def _axes(name: str, axes: Sequence[int], rank: int, of: str = "x") -> tuple[int, ...]:
    """The axes, counted from the front; OpError where one stands there twice."""
    found: list[int] = []
    for i, axis in enumerate(axes):
        place = f"{name}[{i}]" if len(axes) > 1 else name
        positive = _axis(place, axis, rank, of)
        if positive in found:
            first = found.index(positive)
            raise OpError(f"{place} is {axis}, the same axis as {name}[{first}] = {axes[first]}")
        found.append(positive)
    return tuple(found)


def _distinct(name: str, axes: Sequence[int]) -> None:
    """What can be said against axes while the rank is not known."""
    for i, axis in enumerate(axes):
        if axis in axes[:i]:
            raise OpError(f"{name}[{i}] is {axis}, the same axis as {name}[{axes.index(axis)}] = {axis}")


# Reshaping


def _infer_reshape(ctx: "InferenceContext") -> None:
    x, value = ctx.input("x"), ctx.input_tensor("shape")
    if value is not None and x.is_static:
        given = x.to_shape()
        found = _solved(given, tuple(value.tolist()))
        ctx.set_output(0, found, rows=ctx.rows("x") if found[:1] == given[:1] != () else None)
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
    ctx.set_output(0, sizes, rows=_rows_if_first(ctx, sizes))


def _check_elements(
    ctx: "InferenceContext", x: "PartialShape", total: "Dimension", shape: "PartialShape", known: "Dimension"
) -> None:
    if not ctx.equalities.resolve(total).compatible(ctx.equalities.resolve(known)):
        raise ShapeError(f"x {x} has {total} elements, shape {shape} has {known}")
    if total.is_named:
        ctx.merge(total, known)


def _left_over(
    ctx: "InferenceContext", x: "PartialShape", total: "Dimension", shape: "PartialShape", known: "Dimension"
) -> "Dimension":
    """The size of what was left open."""
    try:
        return ctx.divide(total, known, evenly=True)
    except ShapeError:
        raise ShapeError(f"x {x} has {total} elements, no multiple of the {known} of shape {shape}") from None


def _rows_if_first(ctx: "InferenceContext", sizes: "Sequence[Dimension]") -> Any:
    """The rows of x where the first of these sizes is provably its number of rows."""
    from seqflow.shape import Comparison

    x = ctx.input("x")
    if not sizes or not x.dimensions:
        return None
    same = ctx.equalities.compare(x[0], sizes[0]) is Comparison.EQUAL
    return ctx.rows("x") if same else None


def _check_sizes(sizes: tuple[int, ...]) -> None:
    if min(sizes, default=0) >= 0:
        return
    for i, size in enumerate(sizes):
        if size < -1:
            raise ShapeError(f"shape[{i}] is {size}, expected a size, or -1 for what is left")
        if size == -1 and -1 in sizes[:i]:
            raise ShapeError(f"shape[{sizes.index(-1)}] and shape[{i}] are both -1, expected one at most")


def _solved(x: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes with the -1 replaced by what is left."""
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


@op("x[*d], int shape[K] -> reshaped[*e]", caffe2="Reshape", shape=_infer_reshape, draw="reshape")
def reshape(x: Array, shape: Array) -> Array:
    """The same elements, in the same order, in another shape; one size may be -1, for what is left.

    Where the first size stays, the rows stay rows. The result shares the memory of `x` where it can. A 0 is a
    size of 0 (Caffe2: the size of the input). ShapeError where the sizes do not fit, and for a -1 beside a 0,
    which any size would fit.

    >>> reshape(np.arange(6), [2, -1])
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    return x.reshape(_solved(x.shape, tuple(shape.tolist())))


def _infer_transpose(ctx: "InferenceContext") -> None:
    x, perm = ctx.input("x"), ctx.attr("perm")
    if perm is not None:
        if x.dimensions is not None:
            _check_length(perm, len(x))
        x = ctx.with_rank(x, len(perm))
    if x.dimensions is None:
        ctx.set_output(0, x)
        return
    axes = _permutation(perm, len(x))
    ctx.set_output(0, [x[axis] for axis in axes], rows=ctx.rows("x") if axes[:1] == (0,) else None)


def _check_length(perm: tuple[int, ...], rank: int) -> None:
    if len(perm) != rank:
        raise ShapeError(f"perm is {list(perm)}, but x has {rank} dimension{'' if rank == 1 else 's'}")


def _permutation(perm: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    if perm is None:
        return tuple(reversed(range(rank)))
    _check_length(perm, rank)
    return _axes("perm", perm, rank)


@op("x[*d] -> transposed[*e]", caffe2="Transpose", shape=_infer_transpose, draw="transpose")
def transpose(x: Array, *, perm: Ints | None = None) -> Array:
    """The axes in another order: axis i of the result is axis `perm[i]` of `x`; without `perm`, reversed.

    `perm` names each axis once, else OpError. Only where axis 0 stays do the rows stay rows. The result shares
    the memory of `x`.

    >>> transpose(np.array([[1, 2, 3], [4, 5, 6]]))
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    return x.transpose(_permutation(perm, x.ndim))


def _infer_expand_dims(ctx: "InferenceContext") -> None:
    x, axis = ctx.input("x"), ctx.attr("axis")
    if x.dimensions is None:
        _distinct("axis", axis)
        ctx.set_output(0, x)
        return
    added = _axes("axis", axis, len(x) + len(axis), "the result")
    remaining = iter(x)
    sizes = [1 if i in added else next(remaining) for i in range(len(x) + len(axis))]
    ctx.set_output(0, sizes, rows=None if 0 in added else ctx.rows("x"))


@op("x[*d] -> expanded[*e]", caffe2="ExpandDims", shape=_infer_expand_dims, draw="expand_dims")
def expand_dims(x: Array, *, axis: Ints) -> Array:
    """The same elements with axes of size 1 added; `axis` says where in the result they stand.

    Several axes are given as a list, and none twice. The result shares the memory of `x`.

    >>> expand_dims(np.array([1, 2]), axis=1)
    array([[1],
           [2]])
    """
    _axes("axis", axis, x.ndim + len(axis), "the result")
    return np.expand_dims(x, axis)


def _infer_squeeze(ctx: "InferenceContext") -> None:
    x, axis = ctx.input("x"), ctx.attr("axis")
    if x.dimensions is None:
        _distinct("axis", axis or ())
        ctx.set_output(0, x)
        return
    if axis is None:
        gone = tuple(i for i, size in enumerate(x) if size == 1)
        if any(size.is_dynamic and size.may_be(1) for size in x):
            stays = bool(len(x)) and not x[0].may_be(1)
            ctx.set_output(0, "?", rows=ctx.rows("x") if stays else None)
            return
    else:
        gone = _axes("axis", axis, len(x))
        for i in gone:
            _check_one(i, ctx.merge(x[i], 1) if x[i].may_be(1) else x[i])
    rest = [size for i, size in enumerate(x) if i not in gone]
    ctx.set_output(0, rest, rows=None if 0 in gone else ctx.rows("x"))


def _check_one(axis: int, size: "int | Dimension") -> None:
    if size != 1:
        raise ShapeError(f"x.shape[{axis}] is {size}, expected 1, to be squeezed")


@op("x[*d] -> squeezed[*e]", caffe2="Squeeze", shape=_infer_squeeze, draw="squeeze")
def squeeze(x: Array, *, axis: Ints | None = None) -> Array:
    """The same elements without axes of size 1: without those in `axis`, or without any.

    Without `axis` a batch of one row loses its rows, so say which. ShapeError for an axis of another size. The
    result shares the memory of `x`.

    >>> squeeze(np.array([[[1], [2]]]), axis=2)
    array([[1, 2]])
    """
    if axis is None:
        return np.squeeze(x)
    gone = _axes("axis", axis, x.ndim)
    for i in gone:
        _check_one(i, x.shape[i])
    return np.squeeze(x, gone)


# Joining and repeating


def _infer_concat(ctx: "InferenceContext") -> None:
    tensors, axis = ctx.inputs("tensors"), ctx.attr("axis")
    _check_dtypes([dtype for i in range(len(tensors)) if (dtype := ctx.dtype(i)) is not None])
    known = [shape for shape in tensors if shape.dimensions is not None]
    for i, shape in enumerate(tensors):
        if shape.dimensions is not None:
            _check_rank(i, len(shape), tensors.index(known[0]), len(known[0]))
    if not known:
        ctx.set_output(0, tensors[0])
        return
    along = _axis("axis", axis, len(known[0]), "each tensor")
    sizes = list(known[0])
    for shape in known[1:]:
        for i, size in enumerate(shape):
            sizes[i] = sizes[i] + size if i == along else ctx.merge(sizes[i], size)
    if len(known) < len(tensors):
        sizes[along] = sizes[along] + "?"
    ctx.set_output(0, sizes, rows=ctx.merge_rows(*range(len(tensors))) if along else None)


def _check_dtypes(dtypes: Sequence[np.dtype[Any]]) -> None:
    for i, dtype in enumerate(dtypes):
        if dtype != dtypes[0]:
            raise OpTypeError(
                f"tensors[{i}] is {dtype}, expected {dtypes[0]} as tensors[0]\n  cast one of them first"
            )


def _check_rank(i: int, rank: int, first: int, expected: int) -> None:
    if rank == 0:
        raise ShapeError(f"tensors[{i}] has no dimensions, expected 1 or more")
    if rank != expected:
        raise ShapeError(f"tensors[{i}] has {rank} dimensions, expected {expected} as tensors[{first}]")


@op("{tensors[*_]}+ -> joined[*e]", caffe2="Concat", shape=_infer_concat, draw="concat")
def concat(tensors: list[Array], *, axis: int = 0) -> Array:
    """The tensors one after another along an axis; they agree in all others, and in dtype.

    Along another axis than 0 the rows stay rows, and lengths that describe them describe those of the result.
    For sequences, joined one by one, see `concat_sequences`. (NumPy casts to a common dtype: say so with `cast`.)

    >>> concat([np.array([[1, 2]]), np.array([[3]])], axis=1)
    array([[1, 2, 3]])
    """
    _check_dtypes([tensor.dtype for tensor in tensors])
    for i, tensor in enumerate(tensors):
        _check_rank(i, tensor.ndim, 0, tensors[0].ndim)
    along = _axis("axis", axis, tensors[0].ndim, "each tensor")
    for i, tensor in enumerate(tensors):
        for j, (size, expected) in enumerate(zip(tensor.shape, tensors[0].shape, strict=True)):
            if j != along and size != expected:
                raise ShapeError(
                    f"tensors[{i}].shape[{j}] is {size}, expected {expected} as in tensors[0].shape[{j}]"
                )
    return np.concatenate(tensors, along)


def _infer_split(ctx: "InferenceContext") -> None:
    x, axis, parts = ctx.input("x"), ctx.attr("axis"), ctx.attr("parts")
    if x.dimensions is None:
        for i in range(ctx.num_outputs):
            ctx.set_output(i, x)
        return
    along = _axis("axis", axis, len(x))
    for i, size in enumerate(_part_sizes(ctx, x[along], along, parts)):
        ctx.set_output(i, ctx.replace_dim(x, along, size), rows=ctx.rows("x") if along else None)


def _part_sizes(
    ctx: "InferenceContext", size: "Dimension", axis: int, parts: int | tuple[int, ...]
) -> "Sequence[Dimension | int]":
    if isinstance(parts, tuple):
        if not size.compatible(sum(parts)):
            raise _wrong_parts(axis, size, parts)
        ctx.merge(size, sum(parts))
        return parts
    try:
        return [ctx.divide(size, parts, evenly=True)] * parts
    except ShapeError:
        raise _wrong_parts(axis, size, parts) from None


def _wrong_parts(axis: int, size: Any, parts: int | tuple[int, ...]) -> ShapeError:
    if isinstance(parts, tuple):
        return ShapeError(f"x.shape[{axis}] is {size}, but parts {list(parts)} add up to {sum(parts)}")
    return ShapeError(f"x.shape[{axis}] is {size}, which {parts} equal parts do not divide")


@op("x[*d] -> {pieces[*_]}*parts", caffe2="Split", shape=_infer_split, draw="split")
def split(x: Array, *, parts: CountOrSizes, axis: int = 0) -> list[Array]:
    """`x` cut along an axis: into so many equal parts, or into parts of these sizes; the inverse of `concat`.

    ShapeError where the parts do not make up the axis. Along another axis than 0 the rows stay rows. The pieces
    share the memory of `x`. To cut sequences, see `split_sequences`. (NumPy takes positions in place of sizes.)

    >>> split(np.arange(6), parts=[4, 2])
    [array([0, 1, 2, 3]), array([4, 5])]
    """
    along = _axis("axis", axis, x.ndim)
    size = x.shape[along]
    if sum(parts) != size if isinstance(parts, tuple) else size % parts:
        raise _wrong_parts(along, size, parts)
    sizes = parts if isinstance(parts, tuple) else (size // parts,) * parts
    return np.split(x, np.cumsum(sizes)[:-1], along)


def _infer_tile(ctx: "InferenceContext") -> None:
    x, repeats = ctx.input("x"), ctx.attr("repeats")
    if x.dimensions is None:
        ctx.set_output(0, x)
        return
    rank = max(len(x), len(repeats))
    sizes = [*[1] * (rank - len(x)), *x]
    counts = [*[1] * (rank - len(repeats)), *repeats]
    tiled = [ctx.multiply(size, count) for size, count in zip(sizes, counts, strict=True)]
    kept = rank == len(x) and counts[:1] == [1]
    ctx.set_output(0, tiled, rows=ctx.rows("x") if kept else None)


@op("x[*d] -> tiled[*e]", caffe2="Tile", shape=_infer_tile, draw="tile")
def tile(x: Array, *, repeats: Sizes) -> Array:
    """`x` repeated along its axes, `repeats[i]` times along axis i; 0 times gives an empty axis.

    As in NumPy both are aligned at the last axis: too few repeats leave the first axes alone, too many add axes
    at the front. To repeat each row, see `expand`.

    >>> tile(np.array([[1, 2]]), repeats=[2, 2])
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    return np.tile(x, repeats)


# Taking parts


def _infer_slice(ctx: "InferenceContext") -> None:
    x = ctx.input("x")
    starts, stops, steps, axes = (ctx.attr(name) for name in ("starts", "stops", "steps", "axes"))
    if x.dimensions is None:
        _slices(None, starts, stops, steps, axes)
        ctx.set_output(0, x)
        return
    sizes = list(x)
    kept = True
    for axis, part in _slices(len(x), starts, stops, steps, axes):
        sizes[axis] = _sliced(sizes[axis], part)
        if axis == 0 and not (part.step == 1 and sizes[0] == x[0] and x[0].is_named):
            kept = False
    ctx.set_output(0, sizes, rows=ctx.rows("x") if kept and sizes else None)


def _sliced(size: "Dimension", part: slice) -> "Dimension":
    """How many positions a slice takes of an axis of this size."""
    from seqflow.shape import Dimension

    if size.is_static:
        return Dimension(len(range(*part.indices(size.get_length()))))
    start, stop, step = part.start, part.stop, abs(part.step)
    if part.step < 0:  # the same positions, counted forwards
        start, stop = (
            (part.stop + 1 if part.stop != -1 else _END),
            (part.start + 1 if part.start != -1 else _END),
        )
    count = _between(size, start, stop)
    return count if step == 1 else (count + (step - 1)) // step


def _between(size: "Dimension", start: int, stop: int) -> "Dimension":
    """How many positions there are from `start` to before `stop`, each counted from the end if negative."""
    from seqflow.shape import Dimension

    both_ends = (start < 0) == (stop < 0)
    if both_ends and stop <= start:
        return Dimension(0)
    meet = not both_ends and stop < _END and start and size.min_length < abs(start) + abs(stop)
    if meet or start < 0 <= stop < _END:
        return Dimension(0, size.max_length) if meet else Dimension(0)
    count = _position(size, stop) - _position(size, start)
    return count.within(0, stop - start) if both_ends and stop < _END else count


def _position(size: "Dimension", position: int) -> "Dimension":
    """A position, counted from the front and clipped to the axis."""
    from seqflow.shape import Dimension

    if abs(position) >= _END:
        return size if position > 0 else Dimension(0)
    return size - size.minimum(-position) if position < 0 else size.minimum(position)


_END = 2**63 - 1


def _slices(
    rank: int | None,
    starts: tuple[int, ...],
    stops: tuple[int, ...],
    steps: tuple[int, ...] | None,
    axes: tuple[int, ...] | None,
) -> list[tuple[int, slice]]:
    """The slice for each axis; for an unknown rank only what can be checked without it."""
    steps = (1,) * len(starts) if steps is None else steps
    for name, given in (("stops", stops), ("steps", steps), ("axes", axes)):
        if given is not None and len(given) != len(starts):
            raise OpError(f"{name} has {len(given)} entries, expected {len(starts)} as starts")
    if 0 in steps:
        raise OpError(f"steps[{steps.index(0)}] is 0, expected another step")
    if rank is None:
        _distinct("axes", axes or ())
        return []
    if axes is None and len(starts) > rank:
        raise ShapeError(f"starts has {len(starts)} entries, but x has {rank} dimensions")
    places = range(len(starts)) if axes is None else _axes("axes", axes, rank)
    return list(zip(places, map(slice, starts, stops, steps), strict=True))


@op("x[*d] -> part[*e]", caffe2="Slice", shape=_infer_slice, draw="slice_axes")
def slice_axes(
    x: Array, *, starts: Ints, stops: Ints, steps: Ints | None = None, axes: Ints | None = None
) -> Array:
    """Part of `x` along its first axes, or along `axes`: from each start to before its stop, by each step.

    As in NumPy negative positions count from the end, positions beyond an end stand for the end, and a negative
    step goes backwards. A large stop means up to the last element: `stops=2**63 - 1`. (Caffe2 counts a negative
    stop one further, -1 being the end.) The result shares the memory of `x`. To cut sequences, see
    `slice_sequences`.

    >>> slice_axes(np.arange(12).reshape(3, 4), starts=[0, -2], stops=[2, 4])
    array([[2, 3],
           [6, 7]])
    """
    index: list[Any] = [slice(None)] * x.ndim
    for axis, part in _slices(x.ndim, starts, stops, steps, axes):
        index[axis] = part
    return x[(*index, ...)]


def _infer_gather_axis(ctx: "InferenceContext") -> None:
    data, indices = ctx.input("data"), ctx.input("indices")
    if data.dimensions is None:
        ctx.set_output(0, data)
        return
    axis = _axis("axis", ctx.attr("axis"), len(data), "data")
    shape = ctx.concatenate(data[:axis], indices, data[axis + 1 :])
    kept = ctx.rows("data") if axis else ctx.rows("indices") if indices.dimensions else None
    ctx.set_output(0, shape, rows=kept)


@op(
    "data[*d], int indices[*i] -> gathered[*e]",
    caffe2="BatchGather",
    shape=_infer_gather_axis,
    draw="gather_axis",
)
def gather_axis(data: Array, indices: Array, *, axis: int, wrap: bool = False) -> Array:
    """The parts of `data` at `indices` along an axis, in the place of that axis.

    `axis` may count from the end. With `wrap` so may indices; every index outside the axis is an OpIndexError.
    Along axis 0 this is `gather`. (NumPy's `take` wraps without being asked.)

    >>> gather_axis(np.array([[1, 2, 3], [4, 5, 6]]), np.array([2, 0]), axis=1)
    array([[3, 1],
           [6, 4]])
    """
    along = _axis("axis", axis, data.ndim, "data")
    if along == 0 and indices.ndim:
        return kernels.gather(data, indices, wrap=wrap)
    _check_indices(indices, data.shape[along], wrap)
    return np.asarray(np.take(data, indices.astype(np.int64, copy=False), along))


def _check_indices(indices: Array, size: int, wrap: bool) -> None:
    low = -size if wrap else 0
    bad = (indices < low) | (indices >= size)
    if bad.any():
        place = np.unravel_index(np.flatnonzero(bad)[0], indices.shape)
        where = f"[{', '.join(map(str, place))}]" if place else ""
        raise OpIndexError(f"indices{where} = {indices[place]} is outside [{low}, {size})")


# Reducing


def _infer_reduce(ctx: "InferenceContext") -> None:
    x, axes, keepdims = ctx.input("x"), ctx.attr("axes"), ctx.attr("keepdims")
    if x.dimensions is None:
        _distinct("axes", axes or ())
        ctx.set_output(0, x if axes is not None or keepdims else [])
        return
    reduced = range(len(x)) if axes is None else _axes("axes", axes, len(x))
    sizes = [1 if i in reduced else size for i, size in enumerate(x) if keepdims or i not in reduced]
    ctx.set_output(0, sizes, rows=None if 0 in reduced or not len(x) else ctx.rows("x"))


def _reduce(
    reduction: Any, x: Array, axes: Ints | None, keepdims: bool, empty: Any, dtype: np.dtype[Any]
) -> Array:
    reduced = tuple(range(x.ndim)) if axes is None else _axes("axes", axes, x.ndim)
    fill = cast_scalar("empty", empty, dtype) if empty != 0 else 0
    if all(x.shape[axis] for axis in reduced):
        options = {} if reduction is np.max else {"dtype": dtype}
        return np.asarray(reduction(x, axis=reduced, keepdims=keepdims, **options))
    sizes = [1 if i in reduced else n for i, n in enumerate(x.shape) if keepdims or i not in reduced]
    return np.full(sizes, fill, dtype)


@op("number x[*d] -> sum_of(x) sums[*e]", caffe2="ReduceSum", shape=_infer_reduce, draw="reduce")
def reduce_sum(x: Array, *, axes: Ints | None = None, keepdims: bool = False, empty: Scalar = 0) -> Array:
    """The sum over some axes, or over all; `keepdims` leaves each of them in place, with size 1.

    Over axes without elements, as an empty segment gives `empty`, so does this. An axis named twice is an
    OpError. Integers and bool are summed in int64; float16 and float32 give float32. Over the rows of
    sequences, see `lengths_sum`.

    >>> reduce_sum(np.array([[1, 2], [3, 4]]), axes=1)
    array([3, 7])
    """
    return _reduce(np.sum, x, axes, keepdims, empty, kernels.sum_dtype(x.dtype))


@op("number x[*d] -> mean_of(x) means[*e]", caffe2="ReduceMean", shape=_infer_reduce, draw="reduce")
def reduce_mean(x: Array, *, axes: Ints | None = None, keepdims: bool = False, empty: Scalar = 0) -> Array:
    """The mean over some axes, or over all; `keepdims` leaves each of them in place, with size 1.

    Over axes without elements, as an empty segment gives `empty`, so does this (NumPy: nan and a warning). An
    axis named twice is an OpError. float32 and float64 keep their dtype, everything else gives float64.

    >>> reduce_mean(np.array([[1, 2], [3, 4]]), axes=0)
    array([2., 3.])
    """
    return _reduce(np.mean, x, axes, keepdims, empty, kernels.mean_dtype(x.dtype))


@op("ordered x[*d] -> largest[*e]", caffe2="ReduceMax", shape=_infer_reduce, draw="reduce")
def reduce_max(x: Array, *, axes: Ints | None = None, keepdims: bool = False, empty: Scalar = 0) -> Array:
    """The largest over some axes, or over all; `keepdims` leaves each of them in place, with size 1.

    Over axes without elements, as an empty segment gives `empty`, so does this (NumPy: an error). A nan wins.
    An axis named twice is an OpError.

    >>> reduce_max(np.array([[1, 5], [3, 4]]), axes=1)
    array([5, 4])
    """
    return _reduce(np.max, x, axes, keepdims, empty, x.dtype)
