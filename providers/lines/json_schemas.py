"""Inferred schema of JSON lines, from the first lines of the first files."""

import json
from collections.abc import Callable, Iterator
from math import isfinite, isinf
from typing import Any

import pyarrow as pa
from pyarrow import types

from seqflow.providers.lines.text_lines import LineFiles
from seqflow.providers.lines.typed_lines import check_text, first_lines_of, no_schema
from seqflow.providers.type_texts import with_declared
from seqflow.record.arrow_types import child_fields, with_child_fields

_DEEPEST = 64
_NOT_FINITE = pa.float16()
"""Type of `NaN` and `Infinity`, which JSON does not have: another line must show that the column is double."""
_MIXED = pa.month_day_nano_interval()
"""Type of values of several types under one key, which no column can hold."""
_BLANKS = b" \t\r"
_KINDS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), type(None): pa.null()}


def infer_schema(files: LineFiles, declared: pa.Schema | None = None) -> tuple[pa.Schema, str]:
    """Return the schema of declared keys, and of others by the first lines, see `samples`; and a message about these.

    Integers are int64, other numbers double, texts string, also those that look like times; objects are structs. Keys
    whose values are null or empty in all lines, or of unlike types, are null. Malformed lines do not count: they are
    bad rows when they are read. Raise ProviderError if there is no key.
    """
    kind, counts, fault = pa.struct([]), dict.fromkeys(files.paths[:1], 0), ""
    for path, lines in files.samples(is_row):
        for number, line in enumerate(lines, start=1):
            if not (content := line.strip(_BLANKS)):
                continue
            try:
                kind = _merged(kind, _type_of(parsed(content, _finite), 1))
                counts[path] = counts.get(path, 0) + 1
            except (ValueError, RecursionError) as error:
                fault = fault or f"{path}, line {number}: the schema can't be inferred: {error}"
    inferred = pa.schema([(child.name, _with_nulls(child.type)) for child in kind])
    found = with_declared(inferred, declared)
    if not len(found):
        raise no_schema(files, fault)
    if declared is not None and found.equals(declared):
        return found, ""
    names = () if declared is None else declared.names
    unknown = [
        f"{name!r} is {why}" for name, why in _unknown(kind, "") if name.partition(".")[0] not in names
    ]
    note = f"; schema={{…}} declares the types of others: {', '.join(unknown)}" if unknown else ""
    return found, f"schema inferred from {first_lines_of(counts)}{note}"


def is_row(line: bytes) -> bool:
    return bool(line.strip(_BLANKS))


def _finite(number: str) -> float:
    if isinf(found := float(number)):
        raise ValueError(f"{number[:40]} is beyond double")
    return found


def parsed(line: bytes, parse_float: Callable[[str], float] | None = None) -> dict[str, Any]:
    """Return the object of a line; raise ValueError or RecursionError for a line without one."""
    check_text(line)
    found = json.loads(line, parse_float=parse_float)
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
        if {*map(type, value)} in ({int}, {str}):
            value = [min(value), max(value)]  # which have the types of all others
        kind = pa.null()
        for child in value:
            kind = _merged(kind, _type_of(child, depth + 1))
        return pa.list_(kind)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is beyond int64")
    if isinstance(value, float) and not isfinite(value):
        return _NOT_FINITE
    return _KINDS[type(value)]


def _merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that holds values of both types; _MIXED if there is none."""
    # most are the same object: Arrow compares types much slower
    if one is other or one == other or types.is_null(other):
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


def _with_nulls(kind: pa.DataType) -> pa.DataType:
    """Return the type with null in place of types that are not known."""
    fields = [child.with_type(_with_nulls(child.type)) for _, child in child_fields(kind)]
    if fields:
        return with_child_fields(kind, fields)
    return pa.null() if types.is_struct(kind) or kind in (_MIXED, _NOT_FINITE) else kind


def _unknown(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of fields whose types are not known, and a description of their values."""
    if kind == _MIXED:
        yield path, "of several types"
    elif kind == _NOT_FINITE:
        yield path, "NaN or infinite (NaN is not a number of JSON)"
    elif types.is_null(kind) or (types.is_struct(kind) and not kind.num_fields):
        yield path, "null or empty"
    elif types.is_struct(kind):
        for child in kind:
            yield from _unknown(child.type, f"{path}.{child.name}".removeprefix("."))
    elif types.is_list(kind):
        yield from _unknown(kind.value_type, path)
