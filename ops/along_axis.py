"""Joining, repeating and cutting along axes.

These ops do not take lengths. If row i of the result is still row i of the input, inference records it, and lengths
that describe the input's rows also describe the rows of the result.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpIndexError, ShapeError
from seqflow.kernels.arrays import Array, integers
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.axes import check_distinct, positive_axes, positive_axis
from seqflow.registry import get, op
from seqflow.shape import Dimension, InferenceContext
from seqflow.shape.terms import Term, literal
from seqflow.signature import CountOrSizes, Ints, Sizes

# Joining and repeating


def _infer_concat(ctx: InferenceContext) -> None:
    tensors, axis = ctx.inputs("tensors"), ctx.attr("axis")
    known = [shape for shape in tensors if shape.dimensions is not None]
    for i, shape in enumerate(tensors):
        if shape.dimensions is not None:
            _check_rank(i, len(shape), tensors.index(known[0]), len(known[0]))
    if not known:
        ctx.set_output(0, tensors[0])
        return
    along = positive_axis("axis", axis, len(known[0]), "each tensor")
    sizes = list(known[0])
    for shape in known[1:]:
        for i, size in enumerate(shape):
            sizes[i] = sizes[i] + size if i == along else ctx.merge(sizes[i], size)
    if len(known) < len(tensors):  # a tensor of unknown shape adds an unknown number of positions
        sizes[along] = sizes[along] + "?"
    places = [i for i, shape in enumerate(tensors) if shape.dimensions is not None]
    axes = [
        ctx.merge_axes([(k, i) for k in places])
        if i != along
        else ctx.joined(places, i)
        if len(known) == len(tensors)
        else None
        for i in range(len(sizes))
    ]
    ctx.set_output(0, sizes, axes=axes)
    if len(tensors) == 1:
        ctx.same_value(0, 0)
    dtype = ctx.dtype(0)
    # one axis of integers may be lengths: the sum of the result is the sum of the inputs' sums
    if len(sizes) == 1 and dtype is not None and dtype.kind in "iu":
        ctx.join_sizes(0, "tensors")


def _check_rank(i: int, rank: int, first: int, expected: int) -> None:
    if rank == 0:
        raise ShapeError(f"tensors[{i}] has no dimensions, expected 1 or more")
    if rank != expected:
        raise ShapeError(f"tensors[{i}] has {rank} dimensions, expected {expected} as tensors[{first}]")


@op(
    "{like(tensors) tensors[*_]}+ -> joined[*e]",
    caffe2="Concat",
    shape=_infer_concat,
    describes={"joined": "joined(sum(tensors))"},
    grad={"tensors": "split_like(d.joined, tensors, axis=axis, parts=len(tensors))"},
)
def concat(tensors: list[Array], *, axis: int = 0) -> Array:
    """Join tensors along an axis; they must agree in all other axes, and in dtype.

    If the axis is not 0, the rows stay the same rows, and lengths that describe them also describe those of the
    result. To join sequences one by one, see `concat_sequences`. NumPy casts to a common dtype; here, use `cast`.

    >>> concat([np.array([[1, 2]]), np.array([[3]])], axis=1)
    array([[1, 2, 3]])
    """
    for i, tensor in enumerate(tensors):
        _check_rank(i, tensor.ndim, 0, tensors[0].ndim)
    along = positive_axis("axis", axis, tensors[0].ndim, "each tensor")
    for i, tensor in enumerate(tensors):
        for j, (size, expected) in enumerate(zip(tensor.shape, tensors[0].shape, strict=True)):
            if j != along and size != expected:
                raise ShapeError(
                    f"tensors[{i}].shape[{j}] is {size}, expected {expected} as in tensors[0].shape[{j}]"
                )
    if not any(tensor.size for tensor in tensors):  # NumPy loops over all rows, even if a row has no bytes
        sizes = list(tensors[0].shape)
        sizes[along] = sum(tensor.shape[along] for tensor in tensors)
        return np.empty(sizes, tensors[0].dtype)
    return np.concatenate(tensors, along)


def _infer_split(ctx: InferenceContext) -> None:
    x, axis, parts = ctx.input("x"), ctx.attr("axis"), ctx.attr("parts")
    if x.dimensions is None:
        for i in range(ctx.num_outputs):
            ctx.set_output(i, x)
        return
    along = positive_axis("axis", axis, len(x))
    axes = list(ctx.axes("x"))
    first: Dimension | int = 0
    for i, size in enumerate(_part_sizes(ctx, x[along], along, parts)):
        start, stop = ctx.value(first), ctx.value(first + size)
        by = (start, stop, 1) if isinstance(parts, tuple) else ("part", parts, i)
        part = _selected(ctx, axes[along], x[along], by, start, stop) if ctx.num_outputs > 1 else axes[along]
        first = first + size
        ctx.set_output(i, ctx.replace_dim(x, along, size), axes=[*axes[:along], part, *axes[along + 1 :]])


def _part_sizes(
    ctx: InferenceContext, size: Dimension, axis: int, parts: int | tuple[int, ...]
) -> Sequence[Dimension | int]:
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


@op(
    "x[*d] -> {pieces[*_]}*parts",
    caffe2="Split, SplitByLengths",
    shape=_infer_split,
    grad={"x": "reshape_like(concat(d.pieces, axis=axis), x)"},
)
def split(x: Array, *, parts: CountOrSizes, axis: int = 0) -> list[Array]:
    """Cut `x` along an axis into equal parts, or into parts of given sizes; the inverse of `concat`.

    Raises ShapeError if the parts do not add up to the axis. If the axis is not 0, the rows stay the same rows. The
    pieces share the memory of `x`. To cut sequences, see `split_sequences`. NumPy takes positions instead of sizes.

    >>> split(np.arange(6), parts=[4, 2])
    [array([0, 1, 2, 3]), array([4, 5])]
    """
    along = positive_axis("axis", axis, x.ndim)
    size = x.shape[along]
    if sum(parts) != size if isinstance(parts, tuple) else size % parts:
        raise _wrong_parts(along, size, parts)
    sizes = parts if isinstance(parts, tuple) else (size // parts,) * parts
    return np.split(x, np.cumsum(sizes)[:-1], along)


def _infer_tile(ctx: InferenceContext) -> None:
    x, repeats = ctx.input("x"), ctx.attr("repeats")
    if x.dimensions is None:
        ctx.set_output(0, x)
        return
    rank = max(len(x), len(repeats))
    sizes = [*[1] * (rank - len(x)), *x]
    counts = [*[1] * (rank - len(repeats)), *repeats]
    tiled = [ctx.multiply(size, count) for size, count in zip(sizes, counts, strict=True)]
    held = [*[None] * (rank - len(x)), *ctx.axes("x")]
    axes = [ctx.repeated(axis, size, count) for axis, size, count in zip(held, sizes, counts, strict=True)]
    ctx.set_output(0, tiled, axes=axes)


@op(
    "x[*d] -> tiled[*e]",
    caffe2="Tile",
    shape=_infer_tile,
    grad={"x": "tile_backward(d.tiled, x, repeats=repeats)"},
)
def tile(x: Array, *, repeats: Sizes) -> Array:
    """Repeat `x` along its axes, `repeats[i]` times along axis i; 0 times gives an empty axis.

    As in NumPy, both are aligned at the last axis: with too few repeats the first axes stay as they are, too many
    repeats add axes at the front. To repeat each row, see `expand`.

    >>> tile(np.array([[1, 2]]), repeats=[2, 2])
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    rank = max(x.ndim, len(repeats))
    sizes, counts = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - len(repeats)) + tuple(repeats)
    tiled = [size * count for size, count in zip(sizes, counts, strict=True)]
    check_memory(tiled, x.dtype)
    if 0 in tiled:  # NumPy repeats axis by axis, and may run out of memory before it comes to the count of 0
        return np.empty(tiled, x.dtype)
    return np.tile(x, repeats)


# Taking parts


def _infer_slice(ctx: InferenceContext) -> None:
    x = ctx.input("x")
    starts, stops, steps, axes = (ctx.attr(name) for name in ("starts", "stops", "steps", "axes"))
    if x.dimensions is None:
        _slices(None, starts, stops, steps, axes)
        ctx.set_output(0, x)
        return
    sizes, held = list(x), list(ctx.axes("x"))
    for axis, part in _slices(len(x), starts, stops, steps, axes):
        sizes[axis] = _sliced(sizes[axis], part)
        if not (part.step == 1 and sizes[axis] == x[axis] and x[axis].is_named):
            start = part.start if part.step == 1 else None
            by = part.start, part.stop, part.step
            held[axis] = _selected(ctx, held[axis], x[axis], by, start, part.stop)
    ctx.set_output(0, sizes, axes=held)


def _selected(
    ctx: InferenceContext,
    held: Term | None,
    size: Dimension,
    by: Hashable,
    start: int | None,
    stop: int | None,
) -> Term | None:
    """Return the axis that a slice selects; the first k steps are the steps padded for `minimum(lengths, k)`."""
    from seqflow.registry.value_numbering import output_value

    selected, terms = ctx.selected(held, size, by, start, stop), ctx.equalities.terms
    steps = None if held is None else terms.find(held)
    if steps is not None and steps.kind == "steps" and start is not None and stop is not None:
        from_front = steps.data == "right" and start == 0 <= stop < _END
        if from_front or (steps.data == "left" and start < 0 and stop >= _END):
            minimum, most = get("minimum"), terms.make("literal", literal(stop if from_front else -start))
            inputs = {"x": steps.args[0], "y": most}
            lengths = output_value(minimum, "result", 0, inputs, minimum.complete({}), ctx.equalities)
            first = terms.steps(lengths, str(steps.data))
            ctx.equalities.unite(first, selected, ctx.op_name)  # type: ignore[arg-type]
            return first
    return selected


def _sliced(size: Dimension, part: slice) -> Dimension:
    """Return the number of positions that a slice takes of an axis of this size."""
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


def _between(size: Dimension, start: int, stop: int) -> Dimension:
    """Return the number of positions from `start` to before `stop`; negative ones count from the end."""
    both_ends = (start < 0) == (stop < 0)
    if both_ends and stop <= start:
        return Dimension(0)
    meet = not both_ends and stop < _END and start and size.min_length < abs(start) + abs(stop)
    if meet or start < 0 <= stop < _END:
        return Dimension(0, size.max_length) if meet else Dimension(0)
    count = _position(size, stop) - _position(size, start)
    return count.within(0, stop - start) if both_ends and stop < _END else count


def _position(size: Dimension, position: int) -> Dimension:
    """Return the position counted from the front and clipped to the axis."""
    if abs(position) >= _END:
        return size if position > 0 else Dimension(0)
    return size - size.minimum(-position) if position < 0 else size.minimum(position)


_END = 2**63 - 1  # the largest int64, which users write as a stop for "up to the last element"


def _slices(
    rank: int | None,
    starts: tuple[int, ...],
    stops: tuple[int, ...],
    steps: tuple[int, ...] | None,
    axes: tuple[int, ...] | None,
) -> list[tuple[int, slice]]:
    """Return the slice for each axis; for an unknown rank, check what can be checked without it."""
    steps = (1,) * len(starts) if steps is None else steps
    for name, given in (("stops", stops), ("steps", steps), ("axes", axes)):
        if given is not None and len(given) != len(starts):
            raise OpError(f"{name} has {len(given)} entries, expected {len(starts)} as starts")
    if 0 in steps:
        raise OpError(f"steps[{steps.index(0)}] is 0, expected another step")
    if rank is None:
        check_distinct("axes", axes or ())
        return []
    if axes is None and len(starts) > rank:
        raise ShapeError(f"starts has {len(starts)} entries, but x has {rank} dimensions")
    places = range(len(starts)) if axes is None else positive_axes("axes", axes, rank)
    return list(zip(places, map(slice, starts, stops, steps), strict=True))


@op(
    "x[*d] -> part[*e]",
    caffe2="Slice",
    shape=_infer_slice,
    grad={"x": "slice_backward(d.part, x, starts=starts, stops=stops, steps=steps, axes=axes)"},
)
def slice_axes(
    x: Array, *, starts: Ints, stops: Ints, steps: Ints | None = None, axes: Ints | None = None
) -> Array:
    """Take a slice of `x` along its first axes, or along `axes`: from each start up to its stop, by each step.

    As in NumPy negative positions count from the end, positions beyond an end stand for the end, and a negative
    step goes backwards. A large stop means up to the last element: `stops=2**63 - 1`. The result
    shares the memory of `x`. To cut sequences, see `slice_sequences`.

    >>> slice_axes(np.arange(12).reshape(3, 4), starts=[0, -2], stops=[2, 4])
    array([[2, 3],
           [6, 7]])
    """
    index: list[Any] = [slice(None)] * x.ndim
    for axis, part in _slices(x.ndim, starts, stops, steps, axes):
        index[axis] = part
    return x[(*index, ...)]


def _infer_gather_axis(ctx: InferenceContext) -> None:
    data, indices = ctx.input("data"), ctx.input("indices")
    if data.dimensions is None:
        ctx.set_output(0, data)
        return
    axis = positive_axis("axis", ctx.attr("axis"), len(data), "data")
    shape = ctx.concatenate(data[:axis], indices, data[axis + 1 :])
    held, taken = ctx.axes("data"), list(ctx.axes("indices"))
    ctx.check_indices("indices", held[axis], "data")
    if len(taken) == 1 and taken[0] is None:
        taken = [ctx.selected_steps(held[axis], "indices")]
    ctx.set_output(0, shape, axes=[*held[:axis], *taken, *held[axis + 1 :]])
    if axis == 0:
        ctx.set_points(0, ctx.moved_points("data"))


@op(
    "data[*d], int indices[*i] -> gathered[*e]",
    caffe2="BatchGather",
    shape=_infer_gather_axis,
    grad={"data": "scatter_axis(d.gathered, indices, data, axis=axis, wrap=wrap)"},
)
def gather_axis(data: Array, indices: Array, *, axis: int, wrap: bool = False) -> Array:
    """Take the slices of `data` at `indices` along an axis.

    `axis` may count from the end, and indices may, too, with `wrap`. An index outside the axis is an OpIndexError.
    Along axis 0 this is `gather`. NumPy's `take` always wraps.

    >>> gather_axis(np.array([[1, 2, 3], [4, 5, 6]]), np.array([2, 0]), axis=1)
    array([[3, 1],
           [6, 4]])
    """
    along = positive_axis("axis", axis, data.ndim, "data")
    if along == 0 and indices.ndim:
        return kernels.gather(data, indices, wrap=wrap)
    places = integers(indices, "indices").copy()  # another thread may write to them after the check
    _check_indices(places, data.shape[along], wrap)
    shape = (*data.shape[:along], *places.shape, *data.shape[along + 1 :])
    if 0 in shape:  # NumPy loops over all rows, even if a row has no bytes
        return np.empty(shape, data.dtype)
    check_memory(shape, data.dtype)
    return np.asarray(np.take(data, places, along))


def _check_indices(indices: Array, size: int, wrap: bool) -> None:
    low = -size if wrap else 0
    bad = (indices < low) | (indices >= size)
    if bad.any():
        place = np.unravel_index(np.flatnonzero(bad)[0], indices.shape)
        where = f"[{', '.join(map(str, place))}]" if place else ""
        raise OpIndexError(f"indices{where} = {indices[place]} is outside [{low}, {size})")
