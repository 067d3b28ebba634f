"""Syntax trees of `pyarrow.compute.Expression`, which pyarrow itself does not show.

An expression is pickled as an Arrow file: its calls, in prefix order, are the metadata of the schema, and its
literals are the columns of one record batch. Arrow returns metadata as a dict, which keeps one of several equal keys,
so the file's Flatbuffers are read here. The tree of an expression in another form is None: nothing is known of it.
"""

import struct
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
    """A function of Arrow, with its arguments and its options by name."""

    function: str
    arguments: "tuple[Node, ...]"
    options: dict[str, pa.Scalar]


Node = Field | ArrowLiteral | ArrowCall


def structure(expression: Any) -> Node | None:
    """Return the syntax tree of an expression; None if it has a form that is not known here."""
    # A form of another version of pyarrow costs speed only: no block is skipped by its ranges.
    try:
        (content,) = expression.__reduce__()[1]
        values = pa.ipc.open_file(content).get_batch(0)
        items = list(_metadata(memoryview(content)))
        return _parsed(items, values)
    except (ValueError, TypeError, LookupError, struct.error, pa.ArrowException, AttributeError):
        return None


def fields_of(node: Node) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the columns in a tree."""
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, Field):
            yield one.path
        elif isinstance(one, ArrowCall):
            stack.extend(reversed(one.arguments))  # so that the first one is on top


def canonical(node: Node) -> str:
    """Return the tree as text, as filters are written; trees with equal texts keep the same rows."""
    pieces: list[str] = []
    # not recursive: a chain of conditions is nested as deep as it is long
    stack: list[Node | str] = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            pieces.append(one)
        elif isinstance(one, Field):
            pieces.append(".".join(map(_name, one.path)))
        elif isinstance(one, ArrowLiteral):
            pieces.append(_literal(one.value))
        else:
            stack.extend(reversed(_written(one)))
    return "".join(pieces)


OPERATORS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "and_kleene": "and", "or_kleene": "or",
}  # fmt: skip
_ENDINGS = {"is_null": "is None", "is_valid": "is not None"}


def _written(call: ArrowCall) -> list[Node | str]:
    """Return the pieces of a call; an operator is in brackets."""
    options = {
        name: value for name, value in call.options.items() if name not in _USUAL or value.as_py() != 0
    }
    match call:
        case ArrowCall(function, (left, right)) if function in OPERATORS and not options:
            return ["(", left, f" {OPERATORS[function]} ", right, ")"]
        case ArrowCall("invert", (inner,)):
            return ["(not ", inner, ")"]
        case ArrowCall(function, (inner,)) if function in _ENDINGS and not options:
            return ["(", inner, f" {_ENDINGS[function]})"]
        case ArrowCall("is_in", (inner,)) if list(options) == ["value_set"]:
            return ["(", inner, f" in {_literal(options['value_set'])})"]
    pieces: list[Node | str] = [f"{call.function}("]
    for at, argument in enumerate(call.arguments):
        pieces += [", ", argument] if at else [argument]
    return [*pieces, *(f", {name}={_literal(value)}" for name, value in sorted(options.items())), ")"]


_USUAL = ("nan_is_null", "null_matching_behavior")
"""Options that are left out of the text if they are 0 or False."""


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


def _parsed(items: list[tuple[str, str]], values: pa.RecordBatch) -> Node:
    """Return the tree of the items; raise ValueError or LookupError if they are not a tree."""
    open_calls: list[tuple[str, list[Node], dict[str, pa.Scalar]]] = [("", [], {})]
    rest = iter(items)
    for key, value in rest:
        _, arguments, options = open_calls[-1]
        if key == "field_ref":
            arguments.append(Field((value,)))
        elif key == "nested_field_ref":
            parts = [next(rest) for _ in range(int(value))]
            if any(name != "field_ref" for name, _ in parts):
                raise ValueError("a reference to a field by its number")
            arguments.append(Field(tuple(part for _, part in parts)))
        elif key == "literal":
            arguments.append(ArrowLiteral(values.column(int(value))[0]))
        elif key == "options":
            found = values.column(int(value))[0]
            options |= {name: found[name] for name in found.type.names if name != "_type_name"}
        elif key == "call":
            open_calls.append((value, [], {}))
        elif key == "end" and open_calls[-1][0] == value and len(open_calls) > 1:
            open_calls.pop()
            open_calls[-1][1].append(ArrowCall(value, tuple(arguments), options))
        else:
            raise ValueError(f"an expression with {key}")
    ((_, (tree,), _),) = open_calls
    return tree


# Slots of Arrow's tables in Flatbuffers, numbered as in format/Message.fbs and format/Schema.fbs.
_HEADER, _CUSTOM_METADATA, _KEY, _VALUE = 2, 2, 0, 1
_START = 16
"""Position of the first message of an Arrow file: after its magic word, a marker and a size."""


def _metadata(file: memoryview) -> Iterator[tuple[str, str]]:
    """Yield the metadata of the schema of an Arrow file, in order and with repeated keys."""
    message = _START + _uint(file, _START)
    schema = _target(file, message, _HEADER)
    vector = _target(file, schema, _CUSTOM_METADATA)
    for at in range(_uint(file, vector)):
        # an entry of a vector is an offset from its own position
        place = vector + 4 + 4 * at
        pair = place + _uint(file, place)
        yield _string(file, _target(file, pair, _KEY)), _string(file, _target(file, pair, _VALUE))


def _target(file: memoryview, table: int, slot: int) -> int:
    """Return the position of the value in a slot of a table; raise LookupError if the slot is empty."""
    # a table begins with the distance back to its vtable, which has its own size, that of the table, and an offset
    # for each slot; it ends after the last slot that is set
    (back,) = struct.unpack_from("<i", file, table)
    size, _, *_ = struct.unpack_from("<HH", file, table - back)
    entry = 4 + 2 * slot
    (offset,) = struct.unpack_from("<H", file, table - back + entry) if entry < size else (0,)
    if not offset:
        raise LookupError("a slot that is empty")
    place = table + int(offset)
    return place + _uint(file, place)


def _string(file: memoryview, place: int) -> str:
    size = _uint(file, place)
    return bytes(file[place + 4 : place + 4 + size]).decode()


def _uint(file: memoryview, place: int) -> int:
    (found,) = struct.unpack_from("<I", file, place)
    return int(found)
