"""Inputs for any op, drawn from its signature alone."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import registry
from seqflow.registry import OpDef
from seqflow.signature import Argument, Attribute
from seqflow.signature.language import AtLeast, Max, Name, Rest, Sum, evaluate

DTYPES = {
    "any": ["float32", "float64", "int32", "int64", "uint8", "bool", "datetime64[s]"],
    "number": ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint64", "bool"],
    "ordered": ["float16", "float32", "float64", "int16", "int64", "uint32", "bool", "datetime64[s]"],
    "float": ["float32", "float64"],
    "int": ["int32", "int64"],
    "index": ["int32", "int64", "uint8"],
    "bool": ["bool"],
}
LENGTHS_DTYPES = ["int32", "int64", "uint16"]


@st.composite
def calls(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and attributes that the op takes."""
    if op.draw is not None:
        return draw(STRATEGIES[op.draw]())
    if op.same is not None:
        lengths = draw(hnp.arrays("int64", st.integers(0, 4), elements=st.integers(0, 4)))
        return {name: lengths.copy() for name in op.same}, {}
    attributes = {a.name: draw(_attribute(a)) for a in op.attributes if a.required or a.kind == "choice"}
    known: dict[object, Any] = {name: v for name, v in attributes.items() if isinstance(v, int)}
    for argument in op.signature.input_arguments:
        if argument.dtype.word == "index":
            known[argument.dtype.of[0]] = draw(st.integers(1, 4))
    arrays: dict[str, Any] = {}
    for argument in sorted(op.signature.input_arguments, key=lambda argument: not argument.is_lengths):
        shape = [size for dim in argument.dims for size in _sizes(draw, dim, known)]
        arrays[argument.name] = _array(draw, argument, shape, known)
        if argument.is_lengths:
            lengths = arrays[argument.name]
            known[Sum(argument.name)] = int(lengths.sum())
            known[Max(argument.name)] = int(lengths.max()) if len(lengths) else 0
    return {argument.name: arrays[argument.name] for argument in op.signature.input_arguments}, attributes


def _attribute(attribute: Attribute) -> st.SearchStrategy[Any]:
    if attribute.kind == "choice":
        return st.sampled_from(attribute.choices)
    if attribute.kind == "int":
        low = attribute.minimum or 0
        return st.integers(low, low + 4)
    return st.just(1)


def _sizes(draw: Any, dim: Any, known: dict[object, Any]) -> list[int]:
    if isinstance(dim, Rest):
        if dim not in known:
            known[dim] = draw(st.lists(st.integers(1, 3), max_size=2))
        return known[dim]
    if isinstance(dim, AtLeast):
        known[dim.name] = evaluate(dim.bound, known) + draw(st.integers(0, 2))
        return [known[dim.name]]
    if isinstance(dim, Name) and dim.name not in known:
        known[dim.name] = draw(st.integers(0, 4))
    return [evaluate(dim, known)]


def _array(draw: Any, argument: Argument, shape: list[int], known: dict[object, Any]) -> np.ndarray[Any, Any]:
    if argument.is_lengths:
        dtype = draw(st.sampled_from(LENGTHS_DTYPES))
        return draw(hnp.arrays(dtype, shape, elements=st.integers(0, 4)))
    word = argument.dtype.word
    dtype = draw(st.sampled_from(DTYPES.get(word, [word])))
    if word == "index":
        limit = known[argument.dtype.of[0]]
        return draw(hnp.arrays(dtype, shape, elements=st.integers(0, limit - 1)))
    return draw(hnp.arrays(dtype, shape, elements=_elements(np.dtype(dtype))))


def _elements(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    if dtype.kind == "f":
        return st.integers(-64, 64).map(lambda k: k / 8)
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind == "M":
        return st.integers(0, 9).map(lambda k: np.datetime64(k, "s"))
    return st.integers(0 if dtype.kind == "u" else -9, 9)


@st.composite
def _packed(draw: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows as `pack_rows` makes them."""
    inputs, attributes = draw(calls(registry.get("pack_rows")))
    packed = registry.get("pack_rows").call(**inputs, **attributes)
    names = ("packed", "sources", "piece_lengths", "pieces")
    count = {"num_sequences": len(inputs["lengths"])}
    return {name: getattr(packed, name) for name in names}, count


@st.composite
def _by_ids(draw: Any, weighted: bool, in_order: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows with the id of their segment; `in_order`: ids count up from 0 without gaps."""
    size = draw(st.integers(0, 6))
    if in_order:
        steps = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
        ids, attributes = np.cumsum([-1, 1, *steps[1:]][: size + 1])[1:], {}
    else:
        ids, attributes = draw(hnp.arrays("int64", size, elements=st.integers(0, 4))), {"num_segments": 5}
    data = np.arange(size * 2).reshape(size, 2) - size
    dtype = draw(st.sampled_from(["float32", "int64", "uint8"]))
    inputs = {"data": data.astype(dtype), "ids": ids.astype(draw(st.sampled_from(["int32", "uint64"])))}
    if weighted:
        weights = np.arange(size, dtype="float32") / 2
        inputs = {"data": inputs["data"], "weights": weights, "ids": inputs["ids"]}
    return inputs, attributes


STRATEGIES = {
    "packed": _packed,
    "sorted_ids": lambda: _by_ids(weighted=False, in_order=True),
    "weighted_sorted_ids": lambda: _by_ids(weighted=True, in_order=True),
    "ids": lambda: _by_ids(weighted=False, in_order=False),
    "weighted_ids": lambda: _by_ids(weighted=True, in_order=False),
}
"""Inputs for ops whose signature does not say enough, by the name the op gives as `draw=`."""
