"""Inferred schema of JSON lines, from the first lines of a file."""

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.providers.lines.text_lines import first_sample
from seqflow.providers.lines.typed_lines import inferred_from

_DECLARE = "declare the types with schema={…}"
_DEEPEST = 64
_NOT_FINITE = pa.float16()
"""Type of `NaN` and `Infinity`, which JSON does not have: another line must show that the column is double."""
_BLANKS = b" \t\r"


def infer_schema(paths: Sequence[str]) -> tuple[pa.Schema, str]:
    """Return the schema of the first 64 KiB of lines of the first file that is not blank, and a message about it.

    Integers are int64, other numbers double, texts string, also those that look like times; objects are structs.
    Raise ProviderError for a malformed line, for lines of unlike types, and for values that are null or empty in
    all lines.
    """
    path, lines = first_sample(paths, lambda line: line.strip(_BLANKS))
    kind, count = pa.null(), 0
    for number, line in enumerate(lines, start=1):
        content = line.strip(_BLANKS)
        if content:
            try:
                kind = _merged(kind, _type_of(_parsed(content), 1), "the line")
            except (ValueError, RecursionError) as error:
                raise ProviderError(
                    f"{path}, line {number}: the schema can't be inferred: {error}\n{_DECLARE}"
                ) from None
            count += 1
    if not count or not types.is_struct(kind) or not kind.num_fields:
        raise ProviderError(f"{path}: there is no line to infer a schema from\n{_DECLARE}")
    for name, found in _unknown(kind, ""):
        raise ProviderError(
            f"{path}: {name!r} is {found} in the first {count:,} lines, so its type is not known\n{_DECLARE}"
        )
    return pa.schema(list(kind)), inferred_from(path, count)


def _parsed(line: bytes) -> dict[str, Any]:
    found = json.loads(line.decode())
    if not isinstance(found, dict):
        raise ValueError("expected an object, {…}")
    return found


def _type_of(value: Any, depth: int) -> pa.DataType:
    """Return the type of a parsed value."""
    if depth > _DEEPEST:
        raise ValueError(f"nested in more than {_DEEPEST} levels")
    if isinstance(value, dict):
        return pa.struct([(name, _type_of(child, depth + 1)) for name, child in value.items()])
    if isinstance(value, list):
        kind = pa.null()
        for child in value:
            kind = _merged(kind, _type_of(child, depth + 1), "a list")
        return pa.list_(kind)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is beyond int64")
    if isinstance(value, float) and not isfinite(value):
        return _NOT_FINITE
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    return kinds.get(type(value), pa.null())


def _merged(one: pa.DataType, other: pa.DataType, path: str) -> pa.DataType:
    """Return the type that holds values of both types; raise ValueError if there is none."""
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if {one, other} <= {pa.int64(), pa.float64(), _NOT_FINITE}:
        return pa.float64()
    if types.is_list(one) and types.is_list(other):
        return pa.list_(_merged(one.value_type, other.value_type, path))
    if types.is_struct(one) and types.is_struct(other):
        fields = {child.name: child.type for child in one}
        for child in other:
            fields[child.name] = _merged(fields.get(child.name, pa.null()), child.type, repr(child.name))
        return pa.struct(list(fields.items()))
    raise ValueError(f"{path} has values of {one} and of {other}")


def _unknown(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of fields whose type is not known, and a description of their values."""
    if kind == _NOT_FINITE:
        yield path, "NaN or infinite (NaN is not a number of JSON)"
    elif types.is_null(kind) or (types.is_struct(kind) and not kind.num_fields):
        yield path, "null or empty"
    elif types.is_struct(kind):
        for child in kind:
            yield from _unknown(child.type, f"{path}.{child.name}".removeprefix("."))
    elif types.is_list(kind):
        yield from _unknown(kind.value_type, path)
