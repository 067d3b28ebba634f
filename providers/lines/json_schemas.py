"""Inferred schema of JSON lines, from the first lines of the first files."""

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.providers.lines.text_lines import samples
from seqflow.providers.lines.typed_lines import DECLARE, first_lines_of
from seqflow.providers.type_texts import with_declared
from seqflow.record.arrow_types import child_fields, is_any_level, with_child_fields

_DEEPEST = 64
_NOT_FINITE = pa.float16()
"""Type of `NaN` and `Infinity`, which JSON does not have: another line must show that the column is double."""
_MIXED = pa.month_day_nano_interval()
"""Type of values of several types under one key, which no column can hold."""
_BLANKS = b" \t\r"


class Inferred(NamedTuple):
    """What the first lines tell about the keys of all lines."""

    schema: pa.Schema
    """Keys whose types are known."""
    keys: pa.Schema
    """All keys, with null in place of types that are not known."""
    left_out: frozenset[str]
    """Paths of the keys whose types are not known."""
    message: str


def infer_schema(paths: Sequence[str], declared: pa.Schema | None = None) -> Inferred:
    """Return the declared keys, and others by the first lines of the first files, see `samples`.

    Integers are int64, other numbers double, texts string, also those that look like times; objects are structs. Keys
    whose values are null or empty in all lines, or of unlike types, are left out. Malformed lines do not count: they
    are bad rows when they are read. Raise ProviderError if that leaves no column.
    """
    kind, counts, fault = pa.null(), dict.fromkeys(paths[:1], 0), ""
    for path, lines in samples(paths, lambda line: line.strip(_BLANKS)):
        for number, line in enumerate(lines, start=1):
            if not (content := line.strip(_BLANKS)):
                continue
            try:
                kind = _merged(kind, _type_of(_parsed(content), 1))
                counts[path] = counts.get(path, 0) + 1
            except (ValueError, RecursionError) as error:
                fault = fault or f"{path}, line {number}: the schema can't be inferred: {error}"
    of_declared = () if declared is None else declared.names
    known, sampled = _known(kind), first_lines_of(counts)
    left_out = {
        name: found for name, found in _unknown(kind, "") if name.partition(".")[0] not in of_declared
    }
    unknown = [f"{name!r} is {found}" for name, found in left_out.items()]
    if known is None and declared is None:
        fault = fault or f"{paths[0]}: there is no line to infer a schema from"
        if unknown:
            fault = f"{', '.join(unknown)} in {sampled}, so that no type is known"
        raise ProviderError(f"{fault}\n{DECLARE}")
    message = f"schema inferred from {sampled}"
    if unknown:
        message += f"; left out until schema={{…}} declares their types: {', '.join(unknown)}"
    schema = with_declared(pa.schema(list(known or ())), declared)
    is_declared = not unknown and set(schema.names) == set(of_declared)
    keys = with_declared(pa.schema(list(_with_nulls(kind)) if types.is_struct(kind) else ()), declared)
    return Inferred(schema, keys, frozenset(left_out), "" if is_declared else message)


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
            kind = _merged(kind, _type_of(child, depth + 1))
        return pa.list_(kind)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is beyond int64")
    if isinstance(value, float) and not isfinite(value):
        return _NOT_FINITE
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    return kinds.get(type(value), pa.null())


def _merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that holds values of both types; _MIXED if there is none."""
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if {one, other} <= {pa.int64(), pa.float64(), _NOT_FINITE}:
        return pa.float64()
    if types.is_list(one) and types.is_list(other):
        return pa.list_(_merged(one.value_type, other.value_type))
    if types.is_struct(one) and types.is_struct(other):
        fields = {child.name: child.type for child in one}
        for child in other:
            fields[child.name] = _merged(fields.get(child.name, pa.null()), child.type)
        return pa.struct(list(fields.items()))
    return _MIXED


def _known(kind: pa.DataType) -> pa.DataType | None:
    """Return the type without the fields whose types are not known; None if nothing is left."""
    if kind in (pa.null(), _MIXED, _NOT_FINITE):
        return None
    fields = [child.with_type(_known(child.type)) for _, child in child_fields(kind) if _known(child.type)]
    if types.is_nested(kind):
        return with_child_fields(kind, fields) if fields else None
    return kind


def _with_nulls(kind: pa.DataType) -> pa.DataType:
    """Return the type with null in place of types that are not known."""
    fields = [child.with_type(_with_nulls(child.type)) for _, child in child_fields(kind)]
    if fields:
        return with_child_fields(kind, fields)
    return pa.null() if kind in (_MIXED, _NOT_FINITE) else kind


def _unknown(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of fields whose types are not known, and a description of their values."""
    if path and _known(kind) is None:
        is_mixed, has_nan = is_any_level(kind, types.is_interval), is_any_level(kind, types.is_float16)
        not_a_number = "NaN or infinite (NaN is not a number of JSON)"
        yield path, "of several types" if is_mixed else not_a_number if has_nan else "null or empty"
    elif types.is_struct(kind):
        for child in kind:
            yield from _unknown(child.type, f"{path}.{child.name}".removeprefix("."))
    elif types.is_list(kind):
        yield from _unknown(kind.value_type, path)
