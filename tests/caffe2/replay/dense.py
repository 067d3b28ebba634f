"""Caffe2's operators on dense tensors: layers, reshaping, concatenating and splitting, reductions over axes."""

from math import prod
from typing import Any, Literal

import numpy as np

from seqflow import ops
from seqflow.errors import OpError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.signature import Ints, NonNegative, Positive, Sizes

from .adapter import (
    ADAPTERS,
    Adapter,
    Caffe2Argument,
    from_front,
    int32,
    integers_of,
    seed_of,
    single_integer,
)

Order = Literal["NCHW", "NHWC"]


# Layers: an axis cuts each input into a matrix


def _matrix(name: str, x: Array, axis: int) -> tuple[Array, tuple[int, ...]]:
    """Return a matrix whose rows are the axes before `axis`, its columns the others; and the shape of its rows."""
    outer = x.shape[: from_front(name, x, axis)]
    return x.reshape(prod(outer), prod(x.shape[len(outer) :])), outer


def fc(
    x: Array, w: Array, b: Array, *, axis: int = 1, axis_w: int = 1, float16_compute: bool = False
) -> Array:
    """Compute FC; `float16_compute` is accepted and ignored: sums are in float32 or wider."""
    rows, outer = _matrix("x", x, axis)
    y = ops.fc(rows, _matrix("w", w, axis_w)[0], b)
    return y.reshape(*outer, y.shape[1])


def fc_transposed(
    x: Array, w: Array, b: Array, *, axis: int = 1, axis_w: int = 1, float16_compute: bool = False
) -> Array:
    """Compute FC with transposed weights."""
    return fc(x, _matrix("w", w, axis_w)[0].T, b, axis=axis)


def batch_matmul(
    a: Array, b: Array, *, trans_a: bool = False, trans_b: bool = False, broadcast: bool = False
) -> Array:
    """Multiply matrices; batches broadcast whether or not `broadcast` is set."""
    for name, x in (("a", a), ("b", b)):
        if x.ndim < 2 and (trans_a if name == "a" else trans_b):
            raise ShapeError(f"{name} has {x.ndim} dimensions {x.shape}, expected 2 or more to be transposed")
    return ops.matmul(a.swapaxes(-1, -2) if trans_a else a, b.swapaxes(-1, -2) if trans_b else b)


def softmax(x: Array, *, axis: int = 1) -> Array:
    """Compute softmax; all axes from `axis` on are one row."""
    return ops.softmax(_matrix("x", x, axis)[0]).reshape(x.shape)


def layer_norm(
    x: Array,
    gamma: Array | None = None,
    beta: Array | None = None,
    *,
    axis: int = 1,
    epsilon: float = 1e-5,
    elementwise_affine: bool = False,
) -> tuple[Array, Array, Array]:
    """Normalise rows; all axes from `axis` on are one row. Outputs include the mean, and the deviation with `epsilon`
    in it.
    """
    if elementwise_affine != (gamma is not None and beta is not None):
        raise OpError("gamma and beta are required with elementwise_affine, and not accepted without it")
    rows, outer = _matrix("x", x, axis)
    gamma, beta = (None if row is None else row.reshape(-1) for row in (gamma, beta))
    y = ops.layer_norm(rows, gamma, beta, epsilon=epsilon)
    mean = ops.reduce_mean(rows, axes=1)
    variance = ops.reduce_mean((rows - mean[:, None]) ** 2, axes=1)
    deviation = np.sqrt(variance + epsilon, dtype=mean.dtype)
    return y.reshape(x.shape), mean.reshape(*outer, 1), deviation.reshape(*outer, 1)


def dropout(
    x: Array, *, ratio: float = 0.5, is_test: bool = False, random_seed: NonNegative | None = None
) -> tuple[Array, Array]:
    """Drop elements; in a test all are kept, and the mask, which Caffe2 leaves unset, is all true."""
    y, kept = ops.dropout(x, ratio=0.0 if is_test else ratio, seed=seed_of(random_seed))
    return y, kept


# Other shapes


def reshape(data: Array, new_shape: Array | None = None, *, shape: Ints | None = None) -> tuple[Array, Array]:
    """Reshape; a 0 means the size of the input at its position. The old shape is the second output."""
    if (new_shape is None) == (shape is None):
        raise OpError("shape is expected either as an argument or as the second input")
    sizes = list(integers_of("new_shape", new_shape) if new_shape is not None else shape or ())
    for i, size in enumerate(sizes):
        if size == 0 and i >= data.ndim:
            raise ShapeError(f"shape[{i}] is 0, the size of the input, but data has {data.ndim} dimensions")
        sizes[i] = data.shape[i] if size == 0 else size
    dtype = np.int64 if new_shape is None else new_shape.dtype
    return ops.reshape(data, np.array(sizes, np.int64)), np.array(data.shape, dtype)


def cast(x: Array, *, to: Any, from_type: Any = None) -> Array:
    """Cast; `to` is a number of Caffe2's DataType, or its name. `from_type` is accepted and ignored."""
    name = to.decode() if isinstance(to, bytes) else to
    dtype = _DTYPES.get(name.upper()) if isinstance(name, str) else _numbered(name)
    if dtype is None:
        raise OpError(f"to is {to!r}, expected one of {', '.join(_DTYPES)}, or its number in DataType")
    return ops.cast(x, dtype=dtype)


_DTYPES = {
    "FLOAT": "float32", "INT32": "int32", "BYTE": "uint8", "BOOL": "bool", "UINT8": "uint8", "INT8": "int8",
    "UINT16": "uint16", "INT16": "int16", "INT64": "int64", "FLOAT16": "float16", "DOUBLE": "float64",
}  # fmt: skip
# numbers of Caffe2's DataType, in the order of the names above; 4 is STRING, 11 is not used
_NUMBERS = dict(zip((1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 13), _DTYPES.values(), strict=True))


def _numbered(number: Any) -> str | None:
    return _NUMBERS.get(int(number)) if isinstance(number, (int, np.integer)) else None


# Joining and cutting


def chosen_axis(axis: int | None, order: Order | None) -> int:
    """Return the axis; `order`, the order of an image's axes, may name it instead."""
    if axis is not None and order is not None:
        raise OpError("axis and order are both given, expected one of them")
    return axis if axis is not None else 3 if order == "NHWC" else 1


def concat(
    *inputs: Array, axis: int | None = None, order: Order | None = None, add_axis: bool = False
) -> tuple[Array, Array]:
    """Concatenate; `add_axis` joins along a new axis. The second output is the size of each input along the axis."""
    along = chosen_axis(axis, order)
    parts = [ops.expand_dims(x, axis=along) for x in inputs] if add_axis else list(inputs)
    joined = ops.concat(parts, axis=along)
    return joined, int32(np.array([part.shape[along] for part in parts]))


def split(
    input: Array,
    split_input: Array | None = None,
    *,
    axis: int | None = None,
    split: Sizes | None = None,
    order: Order | None = None,
    add_axis: bool = False,
    num_outputs: Positive | None = None,
) -> list[Array]:
    """Split by sizes given as an argument or the second input; without sizes, into `num_outputs` equal parts.

    In Caffe2 a call names its outputs, so their number is known: `num_outputs`. `add_axis` removes the axis that
    Concat added.
    """
    if split_input is not None:
        split = integers_of("split", split_input)
    along = chosen_axis(axis, order)
    parts = split or num_outputs
    if parts is None:
        raise OpError("split is missing, expected the size of each part, or num_outputs for equal parts")
    if split and num_outputs not in (None, len(split)):
        raise OpError(f"split has {len(split)} sizes, expected {num_outputs} as num_outputs says")
    pieces = ops.split(input, parts=parts, axis=along)
    return [ops.squeeze(piece, axis=along) for piece in pieces] if add_axis else pieces


def tile(
    x: Array,
    tiles_input: Array | None = None,
    axis_input: Array | None = None,
    *,
    tiles: NonNegative | None = None,
    axis: int | None = None,
) -> Array:
    """Repeat along an axis; inputs take precedence over arguments."""
    tiles = tiles if tiles_input is None else single_integer("tiles", tiles_input)
    axis = axis if axis_input is None else single_integer("axis", axis_input)
    if tiles is None or axis is None:
        raise OpError(f"{'tiles' if tiles is None else 'axis'} is missing, expected an argument or an input")
    repeats = [1] * x.ndim
    repeats[from_front("x", x, axis)] = tiles
    return ops.tile(x, repeats=repeats)


def slice_(
    data: Array,
    starts_input: Array | None = None,
    ends_input: Array | None = None,
    *,
    starts: Ints | None = None,
    ends: Ints | None = None,
) -> Array:
    """Slice; negative positions count from after the end: -1 is the end itself. Several axes at once are allowed."""
    if starts_input is not None and ends_input is not None:
        starts, ends = integers_of("starts", starts_input), integers_of("ends", ends_input)
    if starts is None or ends is None:
        raise OpError("starts and ends are expected, both as arguments or both as inputs")
    if len(starts) != len(ends) or len(starts) > data.ndim:
        raise ShapeError(f"starts {starts} and ends {ends} are expected for the first of {data.ndim} axes")
    bounds = [
        (_position("starts", i, start, size), _position("ends", i, end, size)) if size else (0, 0)
        for i, (start, end, size) in enumerate(zip(starts, ends, data.shape, strict=False))
    ]
    for i, (start, end) in enumerate(bounds):
        if end < start:
            raise OpError(f"ends[{i}] is {ends[i]}, which is before starts[{i}] = {starts[i]}")
    return ops.slice_axes(data, starts=[start for start, _ in bounds], stops=[end for _, end in bounds])


def _position(name: str, i: int, position: int, size: int) -> int:
    counted = position + size + 1 if position < 0 else min(position, size)
    if counted < 0:
        raise OpError(f"{name}[{i}] is {position}, which is before the first of {size} elements")
    return counted


_DIMS = {"dims": Caffe2Argument("axis", Sizes, convert=lambda dims: tuple(sorted(set(dims))))}
"""Axes of a reduction; a dimension named twice counts once."""
_REDUCED = {
    "axes": Caffe2Argument("axes", Ints | None, None, lambda axes: axes or None),
    "keepdims": Caffe2Argument("keepdims", bool, True),
}
"""Reductions over axes. Axes stay, with size 1, unless requested otherwise. Integers are summed in int64; the largest
of no elements is 0."""

ADAPTERS |= {
    "FC": Adapter(fc),
    "FCTransposed": Adapter(fc_transposed),
    "BatchMatMul": Adapter(batch_matmul),
    "Softmax": Adapter(softmax),
    "LayerNorm": Adapter(layer_norm),
    "Dropout": Adapter(dropout),
    "Cast": Adapter(cast),
    "Reshape": Adapter(reshape, strings=True),
    "Transpose": Adapter(arguments={"axes": Caffe2Argument("perm", Ints | None, None)}, strings=True),
    "ExpandDims": Adapter(arguments=_DIMS, strings=True),
    "Squeeze": Adapter(arguments=_DIMS, strings=True),
    "Concat": Adapter(concat, strings=True),
    "Split": Adapter(split, strings=True),
    "Tile": Adapter(tile, strings=True),
    "Slice": Adapter(slice_, strings=True),
    "ReduceSum": Adapter(arguments=_REDUCED),
    "ReduceMean": Adapter(arguments=_REDUCED),
    "ReduceMax": Adapter(arguments=_REDUCED),
}
