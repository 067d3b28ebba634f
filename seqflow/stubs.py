"""The typed face of the ops, `ops/__init__.pyi`, written from the registry by `python -m seqflow.stubs`."""

import math
from pathlib import Path

from seqflow import registry
from seqflow.registry import OpDef
from seqflow.signature import Attribute, Repeated

_HEAD = '''\
"""The ops, as type checkers see them. Written by `python -m seqflow.stubs`; do not edit."""

import builtins
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

Array = np.ndarray[Any, Any]
Scalar = builtins.bool | int | float | np.generic
'''
_TYPES = {
    "int": "int", "float": "float", "bool": "builtins.bool", "str": "str", "scalar": "Scalar", "object": "Any",
    "ints": "int | Sequence[int]", "parts": "int | Sequence[int]", "dtype": "DTypeLike",
}  # fmt: skip


def stub() -> str:
    """The text of the stub file."""
    ops = [registry.get(name) for name in registry.names()]
    return "\n".join([_HEAD, *(_op(op) for op in ops if op.function.__module__.startswith("seqflow.ops."))])


def _op(op: OpDef) -> str:
    repeated = {a.name for item in op.signature.outputs if isinstance(item, Repeated) for a in item.arguments}
    kinds = {name: "list[Array]" if name in repeated else "Array" for name in op.output_names}
    returns, result = next(iter(kinds.values()), "None"), ""
    if op.result is not None:
        returns = op.result.__name__
        fields = [f"    {name}: {kind}" for name, kind in kinds.items()]
        result = f"class {returns}(NamedTuple):\n" + "\n".join(fields) + "\n\n"
    return f"{result}def {op.name}({', '.join(_parameters(op))}) -> {returns}: ...\n"


def _parameters(op: OpDef) -> list[str]:
    parameters: list[str] = []
    for item in op.signature.inputs:
        if isinstance(item, Repeated):
            kind = "*{}: ArrayLike" if op.spread else "{}: Sequence[ArrayLike]"
            parameters += [kind.format(argument.name) for argument in item.arguments]
        else:
            parameters.append(f"{item.name}: ArrayLike{' | None = None' if item.optional else ''}")
    if op.attributes and not op.spread:
        parameters.append("*")
    return parameters + [_attribute(attribute) for attribute in op.attributes]


def _attribute(attribute: Attribute) -> str:
    kind = _TYPES.get(attribute.kind) or f"Literal[{', '.join(map(repr, attribute.choices))}]"
    kind = f"{kind} | None" if attribute.optional and kind != "Any" else kind
    default = "..." if attribute.default in (math.inf, -math.inf) else repr(attribute.default)
    return f"{attribute.name}: {kind}{'' if attribute.required else f' = {default}'}"


if __name__ == "__main__":
    Path(registry.__file__).parents[1].joinpath("ops", "__init__.pyi").write_text(stub())
