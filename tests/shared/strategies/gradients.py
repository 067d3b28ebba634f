"""Inputs for the ops that gradients are made of: for what the ops give, of which they are the derivative."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import registry
from seqflow.registry import OpDef

Drawn = tuple[dict[str, Any], dict[str, Any]]


def _of(forward: str, arriving: str, like: str, *others: str) -> Any:
    """Calls of the derivative of an op: what arrives has the shape of its first output."""

    @st.composite
    def strategy(draw: Any, op: OpDef) -> Drawn:
        from strategies.calls import calls

        inputs, attributes = draw(calls(registry.get(forward)))
        result = registry.get(forward).call(**inputs, **attributes)
        first = result[0] if registry.get(forward).result else result
        made = {arriving: _values(first.shape, draw), "like": _as_number(inputs[like])}
        made |= {name: inputs[name] for name in others}
        named = {one.name for one in op.attributes}
        return {one.name: made[one.name] for one in op.signature.input_arguments}, {
            name: value for name, value in attributes.items() if name in named
        }

    return strategy


def _values(shape: tuple[int, ...], draw: Any) -> np.ndarray[Any, Any]:
    dtype = draw(st.sampled_from(["float32", "float64"]))
    return np.asarray(np.arange(int(np.prod(shape))).reshape(shape) / 4 - 1, dtype)


def _as_number(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array if array.dtype.kind in "iuf" else np.zeros(array.shape, np.float32)


@st.composite
def _matmul(draw: Any, op: OpDef) -> Drawn:
    from strategies.calls import calls

    inputs, _ = draw(calls(registry.get("matmul")))
    product = registry.get("matmul").call(**inputs)
    return {"d": _values(product.shape, draw), **inputs}, {}


@st.composite
def _sequences(
    draw: Any, op: OpDef
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Data of one or two axes, positions of its elements within their sequences, lengths."""
    lengths = draw(hnp.arrays("int64", st.integers(0, 4), elements=st.integers(0, 4)))
    shape = (int(lengths.sum()), *draw(st.sampled_from([(), (2,)])))
    orders = [np.random.default_rng(0).permutation(n) for n in lengths.tolist()]
    positions = np.concatenate([*orders, np.zeros(0)]).astype(np.int64)
    return (
        _values(shape, draw),
        np.broadcast_to(positions.reshape(-1, *[1] * (len(shape) - 1)), shape).copy(),
        lengths,
    )


@st.composite
def _orders(draw: Any, op: OpDef) -> Drawn:
    data, positions, lengths = draw(_sequences(op))
    return {"data": data, "positions": positions, "lengths": lengths}, {}


@st.composite
def _places(draw: Any, op: OpDef) -> Drawn:
    """A position for each sequence, one for each column, or two where there are no columns."""
    data, _, lengths = draw(_sequences(op))
    shape = (len(lengths), *draw(st.sampled_from([(), data.shape[1:] or (2,)])))
    last = (lengths - 1).reshape(-1, *[1] * (len(shape) - 1))
    positions = np.broadcast_to(np.maximum(last, -1), shape).copy()
    rows = shape if len(shape) > 1 else (len(lengths), *data.shape[1:])
    given = {
        "rows": _values(rows, draw),
        "positions": positions,
        "like": data,
        "data": data,
        "lengths": lengths,
    }
    return {one.name: given[one.name] for one in op.signature.input_arguments}, {}


@st.composite
def _rows_of_list(draw: Any, op: OpDef) -> Drawn:
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    inner = draw(st.sampled_from([(), (2,)]))
    like = [np.zeros((size, *inner), np.float32) for size in sizes]
    indices = draw(
        hnp.arrays(
            "int64",
            st.integers(0, 4) if sum(sizes) else st.just(0),
            elements=st.integers(0, max(sum(sizes) - 1, 0)),
        )
    )
    return {
        "rows": _values((len(indices), *inner), draw).astype(np.float32),
        "indices": indices,
        "like": like,
    }, {"parts": len(sizes)}


@st.composite
def _parts(draw: Any, op: OpDef) -> Drawn:
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    inner = draw(st.sampled_from([(), (2,)]))
    tensors = [_values((size, *inner), draw) for size in sizes]
    if op.name == "list_numbers":
        return {"tensors": tensors}, {"parts": len(sizes)}
    tensors = [tensor.astype(np.float64) for tensor in tensors]
    return {"x": np.concatenate(tensors), "like": tensors}, {"parts": len(sizes)}


@st.composite
def _shapes(draw: Any, op: OpDef) -> Drawn:
    """A tensor, and one of another shape that fits: broadcast to it, or with as many elements."""
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    small = tuple(1 if draw(st.booleans()) else n for n in shape)[draw(st.integers(0, len(shape))) :]
    if op.name == "reshape_like":
        return {"x": _values(shape, draw), "like": np.zeros((int(np.prod(shape)),))}, {}
    large, small_values = _values(shape, draw), _values(small, draw)
    return (
        {"x": large, "like": small_values} if op.name == "sum_to" else {"x": small_values, "like": large}
    ), {}


@st.composite
def _reduced(draw: Any, op: OpDef) -> Drawn:
    shape = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
    axes = draw(st.sampled_from([None, (0,), tuple(range(len(shape)))]))
    keepdims = draw(st.booleans())
    sums = registry.get("reduce_sum").call(np.zeros(shape), axes=axes, keepdims=keepdims)
    return {"x": _values(sums.shape, draw), "like": np.zeros(shape)}, {
        "axes": axes,
        "keepdims": keepdims,
        "mean": draw(st.booleans()),
    }


@st.composite
def _largest(draw: Any, op: OpDef) -> Drawn:
    shape = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
    attributes = {
        "axes": draw(st.sampled_from([None, (0,), tuple(range(len(shape)))])),
        "keepdims": draw(st.booleans()),
    }
    x = _values(shape, draw)
    return {"x": x, "largest": registry.get("reduce_max").call(x, **attributes)}, attributes


@st.composite
def _gathered_rows(draw: Any, op: OpDef) -> Drawn:
    from strategies.calls import calls

    inputs, _ = draw(calls(registry.get("gather")))
    like = _as_number(inputs["data"])
    shape = (*inputs["indices"].shape, *like.shape[1:])
    return {"rows": _values(shape, draw).astype(like.dtype), "indices": inputs["indices"], "like": like}, {}


GRADIENTS = {
    "broadcast_like": _shapes,
    "gather_columns_within": _orders,
    "largest_shares": _largest,
    "list_numbers": _parts,
    "matmul_backward": _matmul,
    "put_at_positions": _places,
    "reshape_like": _shapes,
    "scatter_axis": _of("gather_axis", "x", "data", "indices"),
    "scatter_rows": _gathered_rows,
    "scatter_rows_of_list": _rows_of_list,
    "scatter_within": _orders,
    "slice_backward": _of("slice_axes", "d", "x"),
    "split_like": _parts,
    "spread": _reduced,
    "sum_to": _shapes,
    "take_at_positions": _places,
    "tile_backward": _of("tile", "d", "x"),
}
