"""Schemas of ops in torch, from their signatures: `pad(Tensor data, Tensor lengths, *, …) -> (Tensor, Tensor)`."""

from typing import Any

import numpy as np

from seqflow.errors import OpError
from seqflow.registry import OpDef
from seqflow.signature import Attribute, Repeated

_TYPES = {
    "int": "int", "float": "float", "bool": "bool", "ints": "int[]", "parts": "int[]", "choice": "str", "str": "str",
    "scalar": "Scalar", "fill": "Scalar", "dtype": "ScalarType", "texts": "str[]",
}  # fmt: skip
_WITHOUT_DEFAULT = ("str[]", "ScalarType")
"""Types for which torch's parser takes no default: the schema has None, and the kernel takes the op's default."""


def schema_of(op: OpDef) -> str:
    """Return the schema; raise OpError with the reason for an op that torch cannot express."""
    reason = why_not(op)
    if reason is not None:
        raise OpError(f"{reason}: call seqflow.ops.{op.name} on arrays").in_op(op.name)
    return f"{op.name}({', '.join([*_inputs(op), *_keywords(op)])}) -> {_outputs(op)}"


def why_not(op: OpDef) -> str | None:
    """Return the reason why torch cannot express an op; None if it can."""
    odd = next((one.name for one in attributes_of(op) if one.kind == "object"), None)
    if odd is not None:
        return f"torch has no type for its attribute {odd}"
    arguments = (*op.signature.input_arguments, *op.signature.output_arguments)
    text = next((one.name for one in arguments if one.dtype.word == "str"), None)
    return None if text is None else f"torch has no tensors of text, which {text} is"


def attributes_of(op: OpDef) -> list[Attribute]:
    """Return the attributes of calls in torch: all except `out`, since results are new tensors."""
    return [one for one in op.attributes if one.name != "out"]


def _inputs(op: OpDef) -> list[str]:
    found = []
    for item in op.signature.inputs:
        if isinstance(item, Repeated):
            found += [f"Tensor[] {one.name}" for one in item.arguments]
        else:
            found.append(f"Tensor? {item.name}=None" if item.optional else f"Tensor {item.name}")
    return found


def _keywords(op: OpDef) -> list[str]:
    found = [_keyword(one) for one in attributes_of(op)]
    if op.takes_total:
        found.append("SymInt? total=None")
    return ["*", *found] if found else []


def _keyword(attribute: Attribute) -> str:
    kind = _TYPES[attribute.kind]
    if attribute.required:
        return f"{kind} {attribute.name}"
    if attribute.optional or attribute.default is None or kind in _WITHOUT_DEFAULT:
        return (
            f"{kind}? {attribute.name}={'None' if kind in _WITHOUT_DEFAULT else _literal(attribute.default)}"
        )
    return f"{kind} {attribute.name}={_literal(attribute.default)}"


def _literal(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value.item() if isinstance(value, np.generic) else value)


def _outputs(op: OpDef) -> str:
    found = []
    for item in op.signature.outputs:
        if isinstance(item, Repeated):
            found += ["Tensor[]"] * len(item.arguments)
        else:
            found.append("Tensor")
    return found[0] if len(found) == 1 else f"({', '.join(found)})"
