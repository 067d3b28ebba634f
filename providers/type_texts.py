"""Declared schemas: types written as text, such as `list<int64>`, `struct<a: string>` and `map<string, double>`."""

import re
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from seqflow.errors import ProviderOptionError
from seqflow.record.arrow_types import child_fields
from seqflow.record.selection import MAX_DEPTH, check_depth, check_names

SchemaLike: TypeAlias = pa.Schema | Mapping[str, str | pa.DataType]

_TOKEN = re.compile(r"\s*([<>,:]|[^<>,:\s][^<>,:]*)")


def declared_schema(schema: SchemaLike) -> pa.Schema:
    """The Arrow schema of a declaration: a schema, or types by column name, as text or as Arrow types."""
    if not isinstance(schema, pa.Schema):
        if not isinstance(schema, Mapping):
            raise ProviderOptionError(
                f"schema is a {type(schema).__name__}, expected a pyarrow.Schema, or types by column name"
            )
        fields = [
            pa.field(name, parse_type(kind, name) if isinstance(kind, str) else kind)
            for name, kind in schema.items()
        ]
        schema = pa.schema(fields)
    if not len(schema):
        raise ProviderOptionError("schema has no columns")
    check_names(schema)
    for field in schema:
        check_depth(f"column {field.name!r}", field.type)
        _check_nullable(field, field.name)
    return schema


def parse_type(text: str, column: str) -> pa.DataType:
    """The Arrow type that a text names."""
    tokens = _TOKEN.findall(text)
    if text.count("<") >= MAX_DEPTH:
        raise ProviderOptionError(f"schema: the type of {column!r} is nested in {MAX_DEPTH} levels or more")
    try:
        kind = _parse(tokens)
        if tokens:
            raise ValueError(f"{tokens[0]!r} is left")
    except (ValueError, IndexError, TypeError) as error:
        reason = "it is not complete" if isinstance(error, IndexError) else error
        raise ProviderOptionError(
            f"schema: the type of {column!r} is {text!r}: {reason}\n"
            "expected a type of Arrow such as int64, float, string, timestamp[us], list<int64>, "
            "struct<a: int64, b: string> or map<string, double>"
        ) from None
    return kind


def _parse(tokens: list[str]) -> pa.DataType:
    """Take one type from the tokens."""
    name = tokens.pop(0).strip()
    if not tokens or tokens[0] != "<":
        return pa.type_for_alias(name)
    _take(tokens, "<")
    if name in ("list", "large_list"):
        if tokens[1] == ":":  # list<item: int64>, as Arrow shows it
            del tokens[:2]
        kind = pa.list_(_parse(tokens)) if name == "list" else pa.large_list(_parse(tokens))
    elif name == "map":
        key = _parse(tokens)
        _take(tokens, ",")
        kind = pa.map_(key, _parse(tokens))
    elif name == "struct":
        kind = pa.struct(_parse_fields(tokens))
    else:
        raise ValueError(f"{name!r} has no types inside")
    _take(tokens, ">")
    return kind


def _parse_fields(tokens: list[str]) -> list[pa.Field]:
    fields: list[pa.Field] = []
    while not fields or tokens[0] == ",":
        if fields:
            _take(tokens, ",")
        name = tokens.pop(0).strip()
        _take(tokens, ":")
        fields.append(pa.field(name, _parse(tokens)))
    return fields


def _take(tokens: list[str], expected: str) -> None:
    if (found := tokens.pop(0)) != expected:
        raise ValueError(f"found {found!r}, expected {expected!r}")


def _check_nullable(field: pa.Field, path: str, *, is_key: bool = False) -> None:
    """ProviderOptionError for fields without nulls: a missing value of a line is null."""
    if not field.nullable and not is_key:
        raise ProviderOptionError(
            f"schema: {path!r} may have no nulls, but a missing value is null\ndeclare it nullable"
        )
    for part, child in child_fields(field.type):
        _check_nullable(child, f"{path}.{part}", is_key=pa.types.is_map(field.type) and part == "keys")
