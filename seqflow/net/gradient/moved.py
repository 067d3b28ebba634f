"""The derivative of ops that move rows: run on the numbers of the rows, they say where gradients go back to."""

from collections.abc import Mapping
from typing import Any

from seqflow.net.gradient.formula import Names, literal
from seqflow.registry import MovedRows, OpDef
from seqflow.signature import Repeated


def moved_rows(op: OpDef, rule: MovedRows, names: Names, attributes: Mapping[str, Any]) -> str:
    """The formula of an op for its first input, whose rows its first output has."""
    moved = op.signature.input_arguments[0].name
    listed = names[moved]
    lines = []
    if isinstance(listed, str):
        numbers = f"row_numbers({moved})"
    else:
        own = ", ".join(f"numbers{i}" for i in range(len(listed or ())))
        lines = [f"{own} = list_numbers({moved}, parts=len({moved}))"]
        numbers = f"[{own}]"
    origins, others = _results(op, attributes)
    lines += [
        f"{', '.join(origins + ['_'] * others)} = {op.name}({_arguments(op, rule, numbers, attributes)})"
    ]
    output = f"d.{op.signature.output_arguments[0].field}"
    origin = origins[0]
    if isinstance(op.signature.outputs[0], Repeated):
        output, origin = f"concat({output})", f"concat([{', '.join(origins)}])"
    back = "scatter_rows" if isinstance(listed, str) else "scatter_rows_of_list"
    parts = "" if isinstance(listed, str) else f", parts=len({moved})"
    return "\n".join([*lines, f"{back}({output}, {origin}, {moved}{parts}, ignore_index=-1)"])


def _arguments(op: OpDef, rule: MovedRows, numbers: str, attributes: Mapping[str, Any]) -> str:
    """The arguments of the call on the numbers of the rows: all others are those of the op."""
    others = op.signature.input_arguments[1:]
    given = [numbers, *(f"{one.name}={one.name}" if one.optional else one.name for one in others)]
    for one in op.attributes:
        if one.name == rule.fill:
            given.append(f"{one.name}=-1")
        elif one.name != "out" and attributes[one.name] != one.default:
            given.append(f"{one.name}={literal(attributes[one.name])}")
    return ", ".join(given)


def _results(op: OpDef, attributes: Mapping[str, Any]) -> tuple[list[str], int]:
    """Names for the numbers of the rows, and how many other results there are."""
    first = op.signature.outputs[0]
    total = len(op.result_names(attributes))
    if not isinstance(first, Repeated):
        return ["origin"], total - 1
    origins = [f"origin{i}" for i in range(first.length(attributes))]
    return origins, total - len(origins)
