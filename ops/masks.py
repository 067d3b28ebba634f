"""Masks: the places of dense data that hold a row of a sequence."""

from math import prod
from typing import Literal

import numpy as np

from seqflow.errors import LodError, OpError, ShapeError
from seqflow.kernels.arrays import Array, integers
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.scalars import with_fill
from seqflow.registry import op
from seqflow.shape import InferenceContext
from seqflow.signature import Fill, NonNegative

INT64 = np.iinfo(np.int64)
TRIANGLES = {
    "upper": np.greater,
    "lower": np.less,
    "upper_diagonal": np.greater_equal,
    "lower_diagonal": np.less_equal,
}
"""Relation of the column and the row of a masked place."""
Mode = Literal["sequence", "window", "upper", "lower", "upper_diagonal", "lower_diagonal"]


@op(
    "lengths[B] -> bool mask[B, max_length|max(lengths)]",
    masks={"mask": "lengths"},
)
def lengths_to_mask(
    lengths: Array, *, max_length: NonNegative | None = None, side: Literal["right", "left"] = "right"
) -> Array:
    """Return one row for each sequence, true at the places of its data: the mask of `pad` with the same `side`.

    An empty sequence is a row of False. A sequence longer than `max_length` fills its row.

    >>> lengths_to_mask(np.array([2, 0, 1]))
    array([[ True,  True],
           [False, False],
           [ True, False]])
    """
    width = int(lengths.max(initial=0)) if max_length is None else max_length
    check_memory((len(lengths), width), np.dtype(bool))
    kept = np.minimum(lengths.astype(np.uint64), width)[:, None]
    longest = int(kept.max(initial=0))
    dtype = np.min_scalar_type(longest)  # the narrower the dtype, the more elements one instruction compares
    positions = np.arange(longest, dtype=dtype)
    data: Array = (positions if side == "right" else positions[::-1]) < kept.astype(dtype)
    if longest == width:
        return data
    mask = np.zeros((len(lengths), width), bool)  # columns that are all padding touch no memory
    mask[:, slice(longest) if side == "right" else slice(width - longest, None)] = data
    return mask


@op(
    "x[T>=max(lengths), B, *d], lengths[B] -> y[P=T, B, *d]",
    caffe2="VariableLengthSequencePadding",
    grad={"x": "zero_after_length(d.y, lengths)"},
)
def zero_after_length(x: Array, lengths: Array) -> Array:
    """Set time-major data to 0 at all steps after the end of each sequence.

    The column of an empty sequence is all 0.

    >>> zero_after_length(np.array([[1, 2], [3, 4]]), np.array([2, 1]))
    array([[1, 2],
           [3, 0]])
    """
    y = x.copy()
    y[np.arange(len(x))[:, None] >= lengths] = np.zeros((), x.dtype)
    return y


def _check_bounds_rows(ctx: InferenceContext) -> None:
    """Infer that bounds belong to the rows of x, and that lengths are those it is padded for. No rows move.

    A mask that depends on the number of a row makes new rows, unless the rows are matrices with equal masks.
    """
    each_row = ctx.attr("axis") == 1 and ctx.attr("batch") is None and ctx.attr("mode") not in TRIANGLES
    if each_row and ctx.num_inputs == 2 and ctx.attr("mode") == "sequence":
        ctx.check_steps("x", 1, "bounds")
    axes = list(ctx.axes("x"))
    stay = ctx.attr("batch") is not None or (
        each_row and ctx.num_inputs == 2 and ctx.may_be_same_rows("x", "bounds")
    )
    if axes and axes[0] is not None and axes[0].is_rows and not stay:
        axes[0] = ctx.made_rows()
    ctx.set_output(0, ctx.input("x"), axes=axes)


@op(
    "x[R, *e], int bounds[K]? -> y[P=R, *e]",
    caffe2="SequenceMask",
    shape=_check_bounds_rows,
    grad={
        "x": """
            sequence_mask(
                d.y, bounds=bounds, mode=mode, axis=axis, batch=batch, repeat_from_axis=repeat_from_axis,
                radius=radius, fill=0.0
            )
        """
    },
)
def sequence_mask(
    x: Array,
    bounds: Array | None,
    *,
    mode: Mode,
    axis: int = 1,
    batch: int | None = None,
    repeat_from_axis: int | None = None,
    radius: NonNegative = 10,
    fill: Fill | None = None,
) -> Array:
    """Replace the elements of `x` that `mode` masks by `fill`, by default -inf, as in attention scores.

    The rows of each matrix are the axes before `axis`, its columns are `axis` and those after it. With `batch`, the
    axes up to it count matrices with equal masks; with `repeat_from_axis`, the axes from it on are masked together
    with their column.

    `sequence` masks column >= bounds[row]; `window` masks columns farther than `radius` from bounds[row]; there is
    one bound for each row. `upper` masks column > row, `lower` column < row; `upper_diagonal` and `lower_diagonal`
    also mask the diagonal. A `fill` that the dtype cannot hold is an error: integers have no -inf, so they need
    another `fill`.

    >>> sequence_mask(np.array([[1.0, 2.0], [3.0, 4.0]]), mode="upper")
    array([[  1., -inf],
           [  3.,   4.]])
    >>> sequence_mask(np.array([[1, 2], [3, 4]]), np.array([1, 2]), mode="sequence", fill=0)
    array([[1, 0],
           [3, 4]])
    """
    first = 0 if batch is None else _axis(x, "batch", batch, 0) + 1
    middle = _axis(x, "axis", axis, first)
    last = x.ndim if repeat_from_axis is None else _axis(x, "repeat_from_axis", repeat_from_axis, middle)
    matrices, rows = prod(x.shape[:first]), prod(x.shape[first:middle])
    columns, repeats = prod(x.shape[middle:last]), prod(x.shape[last:])
    masked = _masked(mode, rows, columns, bounds, radius)
    x, fill = with_fill("fill", -np.inf if fill is None else fill, x)
    value = np.full((), fill, x.dtype)
    y = np.where(masked[:, :, None], value, x.reshape(matrices, rows, columns, repeats))
    return y.reshape(x.shape)


def _axis(x: Array, name: str, axis: int, first: int) -> int:
    """Return the axis counted from the front; raise ShapeError if it is before `first`."""
    counted = axis + x.ndim if axis < 0 else axis
    if not first <= counted < x.ndim:
        raise ShapeError(f"{name} is {axis}, expected an axis from {first} on of the {x.ndim} of x")
    return counted


def _masked(mode: Mode, rows: int, columns: int, bounds: Array | None, radius: int) -> Array:
    """Return the masked places: bool [rows, columns]."""
    row, column = np.arange(rows)[:, None], np.arange(columns)
    if mode in TRIANGLES:
        if bounds is not None:
            raise OpError(f"bounds are given, but mode {mode!r} takes none")
        masked: Array = TRIANGLES[mode](column, row)
        return masked
    bound = _bounds(mode, rows, bounds)[:, None]
    if mode == "sequence":
        return column >= bound
    # clipped first, so that the difference and the sum stay in int64
    first = np.maximum(bound, INT64.min + radius) - radius
    last = np.minimum(bound, INT64.max - radius) + radius
    return (column < first) | (column > last)


def _bounds(mode: Mode, rows: int, bounds: Array | None) -> Array:
    if bounds is None:
        raise OpError(f"mode {mode!r} needs bounds, one for each of the {rows} rows")
    if len(bounds) != rows:
        raise ShapeError(f"bounds.shape[0] is {len(bounds)}, expected {rows}: one for each row")
    bounds = integers(bounds, "bounds").astype(np.int64, copy=False)
    negative = np.flatnonzero(bounds < 0)
    if mode == "sequence" and len(negative):
        raise LodError(f"bounds[{negative[0]}] is {bounds[negative[0]]}, expected a length, 0 or more")
    return bounds
