"""Inputs for any op, drawn from its signature alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import registry
from seqflow.expression.functions import by_name, table
from seqflow.registry import OpDef
from seqflow.signature import Argument, Attribute, Repeated
from seqflow.signature.language import LIKE, AtLeast, Max, Name, Rest, Sum, evaluate
from strategies.attention import ATTENTION
from strategies.features import FEATURES
from strategies.gradients import GRADIENTS
from strategies.ids import IDS
from strategies.images import IMAGES
from strategies.peers import PEERS
from strategies.quantized import QUANTIZED
from strategies.recurrent import RECURRENT
from strategies.segments import SEGMENTS
from strategies.sequences import SEQUENCES
from strategies.shaping import SHAPING
from strategies.text import TEXT
from strategies.vocabularies import VOCABULARIES

DTYPES = {
    "any": ["float32", "float64", "int32", "int64", "uint8", "bool", "datetime64[s]"],
    "number": ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint64", "bool"],
    "ordered": ["float16", "float32", "float64", "int16", "int64", "uint32", "bool", "datetime64[s]"],
    "float": ["float32", "float64"],
    "int": ["int32", "int64"],
    "index": ["int32", "int64", "uint8"],
    "bool": ["bool"],
    "whole": ["int8", "int32", "int64", "uint8", "bool"],
}
LENGTHS_DTYPES = ["int32", "int64", "uint16"]


@st.composite
def calls(draw: Any, op: OpDef, strategy: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and attributes that the op takes; `strategy` makes them for an op that has no entry in STRATEGIES."""
    strategy = strategy or STRATEGIES.get(op.name)
    if strategy is not None:
        return draw(strategy(op))
    if op.same is not None:
        lengths = draw(hnp.arrays("int64", st.integers(0, 4), elements=st.integers(0, 4)))
        return {name: lengths.copy() for name in op.same}, {}
    attributes = {a.name: draw(_attribute(a)) for a in op.attributes if a.required or a.kind == "choice"}
    known: dict[object, Any] = {name: v for name, v in attributes.items() if isinstance(v, int)}
    for argument in op.signature.input_arguments:
        if argument.dtype.word == "index":
            known[str(argument.dtype.points)] = draw(st.integers(1, 4))
    inputs = _arrays(draw, [item for item in op.signature.inputs if isinstance(item, Argument)], known)
    for item in op.signature.inputs:
        if isinstance(item, Repeated):
            drawn = [_arrays(draw, item.arguments, known) for _ in range(draw(st.integers(1, 3)))]
            inputs |= {a.name: [repetition[a.name] for repetition in drawn] for a in item.arguments}
    return {argument.name: inputs[argument.name] for argument in op.signature.input_arguments}, attributes


def _arrays(draw: Any, arguments: Sequence[Argument], known: dict[object, Any]) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for argument in sorted(arguments, key=_outer_lengths_first):
        shape = [size for dim in argument.dims for size in _sizes(draw, dim, known)]
        dtypes = DTYPES.get(argument.dtype.word, [argument.dtype.word])
        if argument.dtype.word == LIKE:
            dtypes = [arrays[argument.dtype.of[0]].dtype]
        arrays[argument.name] = _array(draw, argument, dtypes, shape, known)
        if argument.is_lengths:
            lengths = arrays[argument.name]
            known[Sum(argument.name)] = int(lengths.sum())
            known[Max(argument.name)] = int(lengths.max()) if len(lengths) else 0
    return arrays


def _outer_lengths_first(argument: Argument) -> tuple[bool, bool, bool]:
    """Lengths come first, of these the outermost: they say how many the inner ones are. What is like another is last."""
    inner = any(isinstance(dim, Sum) for dim in argument.dims)
    return not argument.is_lengths, argument.dtype.word == LIKE, inner


def _attribute(attribute: Attribute) -> st.SearchStrategy[Any]:
    if attribute.kind == "choice":
        return st.sampled_from(attribute.choices)
    if attribute.kind == "int":
        low = attribute.minimum or 0
        return st.integers(low, low + 4)
    return st.just(1)


def _sizes(draw: Any, dim: Any, known: dict[object, Any]) -> list[int]:
    if isinstance(dim, Rest):
        if dim not in known or dim.name == "_":
            known[dim] = draw(st.lists(st.integers(1, 3), max_size=2))
        return known[dim]
    if isinstance(dim, AtLeast):
        known[dim.name] = evaluate(dim.bound, known) + draw(st.integers(0, 2))
        return [known[dim.name]]
    if isinstance(dim, Name) and dim.name not in known:
        known[dim.name] = draw(st.integers(0, 4))
    return [evaluate(dim, known)]


def _array(
    draw: Any, argument: Argument, dtypes: list[Any], shape: list[int], known: dict[object, Any]
) -> np.ndarray[Any, Any]:
    if argument.is_lengths:
        dtype = draw(st.sampled_from(LENGTHS_DTYPES))
        return draw(hnp.arrays(dtype, shape, elements=st.integers(0, 4)))
    dtype = draw(st.sampled_from(dtypes))
    if argument.dtype.word == "index":
        limit = known[str(argument.dtype.points)]
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
def _packed(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows as `pack_rows` makes them."""
    inputs, attributes = draw(calls(registry.get("pack_rows")))
    packed = registry.get("pack_rows").call(**inputs, **attributes)
    names = ("packed", "sources", "piece_lengths", "pieces")
    count = {"num_sequences": len(inputs["lengths"])}
    return {name: getattr(packed, name) for name in names}, count


@st.composite
def _elementwise(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Operands that broadcast, of the dtypes the function takes; no integer is divided by zero."""
    row = by_name[op.name]
    kinds = "number" if "f" in row.kinds else "whole"
    operands = _broadcasting(draw, row.parameters, kinds, positive=True)
    if np.dtype(row.rule([operands[name].dtype for name in row.parameters])) == np.float16:
        operands = {name: array.astype(np.float32) for name, array in operands.items()}
    return operands, {}


@st.composite
def _expression(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    operands = _broadcasting(draw, ("x", "y"), "number", positive=False)
    return {"operands": list(operands.values())}, {"expr": "sqrt((2*x + y)/12)"}


def _broadcasting(draw: Any, names: Sequence[str], kinds: str, positive: bool) -> dict[str, Any]:
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=len(names), max_dims=3, max_side=3))
    operands = {}
    for name, shape in zip(names, shapes.input_shapes, strict=True):
        dtype = np.dtype(draw(st.sampled_from(DTYPES[kinds])))
        elements = _elements(dtype)
        if positive:
            elements = st.just(True) if dtype.kind == "b" else st.integers(1, 3)
        operands[name] = draw(hnp.arrays(dtype, shape, elements=elements))
    return operands


@st.composite
def _offsets(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    steps = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    return {"offsets": np.cumsum(steps).astype(draw(st.sampled_from(LENGTHS_DTYPES)))}, {}


@st.composite
def _segment_ids(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ids in ascending order, with or without the number of segments."""
    ids = np.array(
        sorted(draw(st.lists(st.integers(0, 4), max_size=6))), draw(st.sampled_from(LENGTHS_DTYPES))
    )
    return {"ids": ids}, draw(st.sampled_from([{}, {"num_segments": 5}, {"num_segments": 7}]))


@st.composite
def _equal_lengths(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    shape, length = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    return {"lengths": np.full(shape, length, draw(st.sampled_from(LENGTHS_DTYPES)))}, {}


@st.composite
def _target_length(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sequences for `pad`, and a length that none exceeds."""
    inputs, _ = draw(calls(registry.get("pad")))
    return inputs, {"target_length": int(inputs["lengths"].max(initial=0)) + draw(st.integers(0, 2))}


@st.composite
def _padding_rows(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sequences, and a row for each end of them."""
    lengths = draw(
        hnp.arrays(draw(st.sampled_from(LENGTHS_DTYPES)), st.integers(0, 4), elements=st.integers(0, 4))
    )
    dtype, width = draw(st.sampled_from(DTYPES["any"])), draw(st.integers(0, 3))
    elements = _elements(np.dtype(dtype))
    data = draw(hnp.arrays(dtype, (int(lengths.sum()), width), elements=elements))
    start, end = (draw(hnp.arrays(dtype, width, elements=elements)) for _ in range(2))
    sides = {"before": draw(st.integers(0, 2)), "after": draw(st.integers(0, 2))}
    return {"data": data, "lengths": lengths, "start": start, "end": end}, sides


@st.composite
def _padding(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sequences of numbers with at least as many rows as the padding has."""
    inputs, _ = draw(calls(registry.get("lengths_sum")))
    sides = {"before": draw(st.integers(0, 2)), "after": draw(st.integers(0, 2))}
    rows, longer = registry.get("add_padding").call(**inputs, **sides)
    return {"data": rows, "lengths": longer}, sides


@st.composite
def _pieces(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pieces of packed rows, and the capacity of the rows."""
    inputs, attributes = draw(calls(registry.get("pack_rows")))
    packed = registry.get("pack_rows").call(**inputs, **attributes)
    return {name: getattr(packed, name) for name in ("piece_lengths", "pieces")}, {
        "capacity": attributes["capacity"]
    }


@st.composite
def _packed_sequence(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `pack_sequence` makes."""
    inputs, _ = draw(calls(registry.get("pack_sequence")))
    packed = registry.get("pack_sequence").call(**inputs)
    return {"data": packed.values, "order": packed.order, "lengths": packed.lengths}, {}


@st.composite
def _sequence_mask(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scores, and one bound for each row of their matrices."""
    shape = draw(st.lists(st.integers(0, 3), min_size=2, max_size=4))
    axis = draw(st.integers(1, len(shape) - 1))
    x = draw(hnp.arrays("float32", shape, elements=st.integers(-9, 9)))
    bounds = draw(hnp.arrays("int32", int(np.prod(shape[:axis])), elements=st.integers(0, 4)))
    mode = draw(st.sampled_from(["sequence", "window"]))
    return {"x": x, "bounds": bounds}, {"mode": mode, "axis": axis, "radius": draw(st.integers(0, 2))}


@st.composite
def _same_rows(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two tensors with as many rows."""
    rows = draw(st.integers(0, 4))
    shapes = [(rows, *draw(st.lists(st.integers(0, 3), max_size=2))) for _ in range(2)]
    return {
        name: np.zeros(shape, np.float32) for name, shape in zip(("data", "other"), shapes, strict=True)
    }, {}


STRATEGIES = {
    **FEATURES,
    **ATTENTION,
    **GRADIENTS,
    **IDS,
    **IMAGES,
    **PEERS,
    **QUANTIZED,
    **RECURRENT,
    **SEGMENTS,
    **SEQUENCES,
    **SHAPING,
    **TEXT,
    **VOCABULARIES,
    **{row.name: _elementwise for row in table},
    "add_padding": _padding_rows,
    "expression": _expression,
    "gather_padding": _padding,
    "lengths_to_shape": _equal_lengths,
    "offsets_to_lengths": _offsets,
    "packed_cu_seqlens": _pieces,
    "pad_lengths": _target_length,
    "remove_padding": _padding,
    "same_rows": _same_rows,
    "segment_ids_to_lengths": _segment_ids,
    "segment_ids_to_ranges": _segment_ids,
    "sequence_mask": _sequence_mask,
    "unpack_rows": _packed,
    "unpack_sequence": _packed_sequence,
}
"""Strategies for the inputs of ops whose signature does not say enough, by the name of the op."""
