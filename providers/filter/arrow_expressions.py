"""Trees of filters that are bound to columns: their text, and the expressions of Arrow that evaluate them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of one."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArrowLiteral:
    """A literal."""

    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class ArrowCall:
    """A function of Arrow, or one that is registered with it, such as `seqflow.remainder`."""

    function: str
    arguments: "tuple[Node, ...]"
    kind: pa.DataType | None = None
    """Type to which `cast` converts."""
    safe: bool = True
    """Whether `cast` refuses values that it would change."""
    members: pa.Array | None = None
    """Values that `is_in` looks for."""


Node = Field | ArrowLiteral | ArrowCall


def call(function: str, *arguments: Node) -> ArrowCall:
    return ArrowCall(function, arguments)


def cast(node: Node, kind: pa.DataType, *, safe: bool = True) -> ArrowCall:
    return ArrowCall("cast", (node,), kind, safe)


def expression_of(node: Node) -> Any:
    """Return the `pyarrow.compute.Expression` of a tree."""
    import pyarrow.compute as pc

    if isinstance(node, Field):
        return pc.field(*node.path)
    if isinstance(node, ArrowLiteral):
        return pc.scalar(node.value)
    arguments = [expression_of(one) for one in node.arguments]
    if node.function == "cast":
        return arguments[0].cast(node.kind, safe=node.safe)
    if node.function == "is_in":
        return arguments[0].isin(node.members)
    if node.function.startswith("seqflow."):
        return pc.Expression._call(node.function, arguments)
    return getattr(pc, node.function)(*arguments)


def fields_of(node: Node) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the columns in a tree."""
    if isinstance(node, Field):
        yield node.path
    elif isinstance(node, ArrowCall):
        for one in node.arguments:
            yield from fields_of(one)


OPERATORS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "and_kleene": "and", "or_kleene": "or",
}  # fmt: skip
_ENDINGS = {"is_null": "is None", "is_valid": "is not None"}
_UNSAFE = (
    "decimal_truncate",
    "float_truncate",
    "int_overflow",
    "invalid_utf8",
    "time_overflow",
    "time_truncate",
)
"""Options of Arrow's cast, which states compare as a part of the text."""


def canonical(node: Node) -> str:
    """Return the tree as text, as filters are written; trees with equal texts keep the same rows."""
    if isinstance(node, Field):
        return ".".join(map(_name, node.path))
    if isinstance(node, ArrowLiteral):
        return _literal(node.value)
    function, parts = node.function, [canonical(one) for one in node.arguments]
    if function in OPERATORS:
        return f"({f' {OPERATORS[function]} '.join(parts)})"
    if function in _ENDINGS:
        return f"({parts[0]} {_ENDINGS[function]})"
    if function == "invert":
        return f"(not {parts[0]})"
    if node.members is not None:
        (members,) = pa.ListArray.from_arrays([0, len(node.members)], node.members)
        return f"({parts[0]} in {_literal(members)})"
    if function == "cast":
        parts += [f"allow_{name}={not node.safe}" for name in _UNSAFE] + [f"to_type=None as {node.kind}"]
    return f"{function}({', '.join(parts)})"


def _name(name: str) -> str:
    return name if name.isidentifier() else f"`{name!r}`"


def _literal(value: pa.Scalar) -> str:
    """Return a literal as text, with its Arrow type unless Python's literal implies it."""
    kind = value.type
    of = kind.value_type if pa.types.is_list(kind) else kind
    if value.is_valid and (pa.types.is_integer(of) or of in (pa.bool_(), pa.string(), pa.float64())):
        return repr(value.as_py())
    return f"{_python(value)} as {kind}"


def _python(value: pa.Scalar) -> str:
    try:
        return repr(value.as_py())
    except (ValueError, OverflowError):  # a time that no Python object can hold
        return str(value)
