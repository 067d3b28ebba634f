"""Inputs for ops on shapes and for dense arithmetic, where signatures do not say enough."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

Call = tuple[dict[str, Any], dict[str, Any]]
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)
SMALL_SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)
DTYPES = st.sampled_from(["float32", "float64", "int32", "int64", "uint8", "bool", "datetime64[s]"])


@st.composite
def _array(draw: Any, shapes: Any = SHAPES, dtypes: Any = DTYPES) -> np.ndarray[Any, Any]:
    shape, dtype = draw(shapes), np.dtype(draw(dtypes))
    count = int(np.prod(shape))
    start = draw(st.integers(0, 5))
    return (np.arange(start, start + count) % 11).astype(dtype).reshape(shape)


@st.composite
def _reshape(draw: Any, op: Any = None) -> Call:
    x = draw(_array())
    kept = draw(st.integers(0, x.ndim))
    sizes = [*x.shape[:kept], int(np.prod(x.shape[kept:]))]
    if draw(st.booleans()):
        sizes = draw(st.permutations(sizes))
    if x.size and draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return {"x": x, "shape": np.array(sizes, draw(st.sampled_from(["int32", "int64"])))}, {}


@st.composite
def _transpose(draw: Any, op: Any = None) -> Call:
    x = draw(_array())
    perm = draw(st.permutations(range(x.ndim)))
    signed = tuple(axis - x.ndim if draw(st.booleans()) else axis for axis in perm)
    return {"x": x}, draw(st.sampled_from([{}, {"perm": signed}]))


@st.composite
def _axes(draw: Any, rank: int, least: int = 0) -> tuple[int, ...]:
    axes = (
        draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=least, max_size=rank)) if rank else []
    )
    return tuple(axis - rank if draw(st.booleans()) else axis for axis in axes)


@st.composite
def _expand_dims(draw: Any, op: Any = None) -> Call:
    x = draw(_array())
    added = draw(st.integers(1, 2))
    axis = draw(st.permutations(range(x.ndim + added)))[:added]
    return {"x": x}, {"axis": tuple(axis)}


@st.composite
def _squeeze(draw: Any, op: Any = None) -> Call:
    x = draw(_array(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=2)))
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    axis = draw(st.lists(st.sampled_from(ones), unique=True)) if ones else []
    return {"x": x}, draw(st.sampled_from([{}, {"axis": tuple(axis)}]))


@st.composite
def _concat(draw: Any, op: Any = None) -> Call:
    first = draw(_array())
    axis = draw(st.integers(-first.ndim, first.ndim - 1))
    tensors = [first]
    for _ in range(draw(st.integers(0, 2))):
        shape = list(first.shape)
        shape[axis] = draw(st.integers(0, 3))
        tensors.append(draw(_array(st.just(tuple(shape)), st.just(first.dtype))))
    return {"tensors": tensors}, {"axis": axis}


@st.composite
def _split(draw: Any, op: Any = None) -> Call:
    x = draw(_array())
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    size = x.shape[axis]
    cuts = sorted(draw(st.lists(st.integers(0, size), max_size=2)))
    sizes = tuple(np.diff([0, *cuts, size]).tolist())
    counts = [count for count in (1, 2, 3, 4) if size % count == 0]
    return {"x": x}, {"parts": draw(st.sampled_from([sizes, *counts])), "axis": axis}


@st.composite
def _tile(draw: Any, op: Any = None) -> Call:
    x = draw(_array(SMALL_SHAPES))
    return {"x": x}, {"repeats": tuple(draw(st.lists(st.integers(0, 2), max_size=4)))}


@st.composite
def _slice_axes(draw: Any, op: Any = None) -> Call:
    x = draw(_array())
    axes = draw(_axes(x.ndim))
    positions = st.lists(st.integers(-6, 6), min_size=len(axes), max_size=len(axes)).map(tuple)
    steps = st.lists(st.sampled_from([-2, -1, 1, 2, 3]), min_size=len(axes), max_size=len(axes)).map(tuple)
    attributes = {"starts": draw(positions), "stops": draw(positions)}
    attributes |= draw(st.sampled_from([{}, {"steps": draw(steps)}]))
    return {"x": x}, attributes | draw(st.sampled_from([{}, {"axes": axes}]))


@st.composite
def _gather_axis(draw: Any, op: Any = None) -> Call:
    data = draw(_array(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)))
    axis = draw(st.integers(-data.ndim, data.ndim - 1))
    wrap = draw(st.booleans())
    low = -data.shape[axis] if wrap else 0
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=3))
    dtype = draw(st.sampled_from(["int32", "int64"]))
    indices = draw(hnp.arrays(dtype, shape, elements=st.integers(low, data.shape[axis] - 1)))
    return {"data": data, "indices": indices}, {"axis": axis, "wrap": wrap}


@st.composite
def _reduce(draw: Any, op: Any = None) -> Call:
    dtypes = st.sampled_from(["float16", "float32", "float64", "int32", "uint64", "bool"])
    x = draw(_array(dtypes=dtypes))
    attributes = {"keepdims": draw(st.booleans())}
    return {"x": x}, attributes | draw(st.sampled_from([{}, {"axes": draw(_axes(x.ndim))}]))


@st.composite
def _matmul(draw: Any, op: Any = None) -> Call:
    dtypes = st.sampled_from(["float16", "float32", "float64"])
    shapes = draw(
        hnp.mutually_broadcastable_shapes(signature="(m?,n),(n,p?)->(m?,p?)", max_dims=2, max_side=3)
    )
    a, b = (draw(_array(st.just(shape), dtypes)) for shape in shapes.input_shapes)
    return {"a": a, "b": b}, {}


@st.composite
def _cast(draw: Any, op: Any = None) -> Call:
    dtypes = st.sampled_from(["float16", "float32", "float64", "int8", "int64", "uint16", "bool"])
    return {"x": draw(_array(dtypes=dtypes))}, {"dtype": np.dtype(draw(dtypes))}


@st.composite
def _square_root_divide(draw: Any, op: Any = None) -> Call:
    data = draw(_array(dtypes=st.sampled_from(["float16", "float32", "float64"])))
    scale = draw(_array(st.just(data.shape[:1]), st.sampled_from(["float32", "int64", "uint8"])))
    return {"data": data, "scale": scale}, {}


SHAPING = {
    "reshape": _reshape, "transpose": _transpose, "expand_dims": _expand_dims, "squeeze": _squeeze,
    "concat": _concat, "split": _split, "tile": _tile, "slice_axes": _slice_axes, "gather_axis": _gather_axis,
    "reduce_max": _reduce, "reduce_mean": _reduce, "reduce_sum": _reduce, "matmul": _matmul, "cast": _cast,
    "square_root_divide": _square_root_divide,
}  # fmt: skip
