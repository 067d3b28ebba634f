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
def _recurrent(draw: Any, op: str, gates: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights of all sizes that fit together, small enough not to blow up what rounding differs in."""
    lengths = draw(
        hnp.arrays(draw(st.sampled_from(LENGTHS_DTYPES)), st.integers(0, 4), elements=st.integers(0, 4))
    )
    inputs, hidden = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    dtype = draw(st.sampled_from(DTYPES["float"]))
    directions = 2 if op.startswith("bidirectional") else 1
    shapes = {
        "x": (int(lengths.sum()), inputs), "w_ih": (gates * hidden, inputs), "w_hh": (gates * hidden, hidden),
        "bias": (gates * hidden,), "h0": (len(lengths), directions * hidden),
    }  # fmt: skip
    shapes["c0"] = shapes["h0"]
    arrays = {"lengths": lengths}
    for argument in registry.get(op).signature.input_arguments:
        if not argument.is_lengths:
            parts = argument.name.removesuffix("_reverse").split("_")
            shape = shapes["_".join(parts[:1] if parts[0] == "bias" else parts)]
            values = draw(hnp.arrays("int64", shape, elements=st.integers(-8, 8)))
            arrays[argument.name] = (values / 16).astype(dtype)
    names = [argument.name for argument in registry.get(op).signature.input_arguments]
    choices = [a for a in registry.get(op).attributes if a.kind == "choice"]
    booleans = [a for a in registry.get(op).attributes if a.kind == "bool"]
    attributes = {a.name: draw(st.sampled_from(a.choices)) for a in choices}
    attributes |= {a.name: draw(st.booleans()) for a in booleans}
    return {name: arrays[name] for name in names}, attributes


@st.composite
def _label_scores(draw: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    lengths = draw(
        hnp.arrays(draw(st.sampled_from(LENGTHS_DTYPES)), st.integers(0, 4), elements=st.integers(0, 4))
    )
    labels = draw(st.integers(1, 3))
    dtype = draw(st.sampled_from(DTYPES["number"]))
    scores = draw(hnp.arrays(dtype, (int(lengths.sum()), labels), elements=_elements(np.dtype(dtype))))
    blank, merge = draw(st.integers(0, labels - 1)), draw(st.booleans())
    return {"scores": scores, "lengths": lengths}, {"blank": blank, "merge_repeated": merge}


STRATEGIES = {
    "packed": _packed,
    "label_scores": _label_scores,
    "rnn": lambda: _recurrent("rnn", 1),
    "gru": lambda: _recurrent("gru", 3),
    "lstm": lambda: _recurrent("lstm", 4),
    "bidirectional_rnn": lambda: _recurrent("bidirectional_rnn", 1),
    "bidirectional_gru": lambda: _recurrent("bidirectional_gru", 3),
    "bidirectional_lstm": lambda: _recurrent("bidirectional_lstm", 4),
}
"""Inputs for ops whose signature does not say enough, by the name the op gives as `draw=`."""
