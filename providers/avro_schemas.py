"""The Arrow schema of an Avro schema, and which of its types Polars reads."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.record.arrow_types import child_fields
from seqflow.record.selection import MAX_DEPTH

_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_ONLY_FASTAVRO = (types.is_map, types.is_decimal, types.is_time, types.is_fixed_size_binary)
"""Types that Polars refuses, or gives as others."""


def arrow_schema(text: str) -> pa.Schema:
    """The columns of a record; ProviderError for a type that has no place in a table."""
    schema = json.loads(text)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ProviderError("its rows are no records, so they have no columns")
    return pa.schema(list(_type(schema, {}, "", 0)))


def polars_reads(kind: pa.DataType) -> bool:
    """Whether Polars reads a type as it is."""
    if any(holds(kind) for holds in _ONLY_FASTAVRO) or (types.is_timestamp(kind) and kind.tz is None):
        return False
    return all(polars_reads(child.type) for _, child in child_fields(kind))


def uses_names(text: str) -> bool:
    """Whether a schema has types that are named in one place and used in another, which Polars does not find."""
    return _uses_names(json.loads(text))


def _uses_names(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(map(_uses_names, schema))
    if isinstance(schema, str):
        return schema not in _PLAIN and schema != "null"
    kind = schema["type"]
    if kind in ("record", "error"):
        return any(_uses_names(field["type"]) for field in schema["fields"])
    if kind in ("enum", "fixed"):
        return False
    inner = {"array": "items", "map": "values"}.get(kind if isinstance(kind, str) else "", "type")
    return _uses_names(schema[inner])


def _type(schema: Any, named: dict[str, pa.DataType | None], place: str, depth: int) -> pa.DataType:
    """The type of a schema; `named` are those that were defined before, None while they are being defined."""
    if depth >= MAX_DEPTH:
        raise ProviderError(f"field {place!r} is nested in {MAX_DEPTH} levels or more")
    if isinstance(schema, list):
        return _nullable(schema, named, place, depth)[0]
    if isinstance(schema, str):
        return _named(schema, named, place)
    if not isinstance(schema, dict):
        raise ProviderError(f"field {place!r} has {schema!r} in place of a type")
    kind, logical = schema.get("type"), schema.get("logicalType")
    if kind in ("record", "error", "enum", "fixed"):
        name = str(schema["name"])
        full = name if "." in name or not schema.get("namespace") else f"{schema['namespace']}.{name}"
        named[full] = named[name.rpartition(".")[2]] = None
        found = _defined(schema, named, place, depth)
        named[full] = named[name.rpartition(".")[2]] = found
        return found
    if kind == "array":
        item, is_nullable = _nullable(schema["items"], named, place, depth)
        return pa.list_(pa.field("item", item, is_nullable))
    if kind == "map":
        value, is_nullable = _nullable(schema["values"], named, place, depth)
        return pa.map_(pa.string(), pa.field("value", value, is_nullable))
    if kind == "bytes" and logical == "decimal":
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if logical in _LOGICAL and kind in ("int", "long"):
        return _LOGICAL[logical]
    return _type(kind, named, place, depth + 1)


def _defined(
    schema: dict[str, Any], named: dict[str, pa.DataType | None], place: str, depth: int
) -> pa.DataType:
    if schema["type"] == "enum":
        return pa.string()
    if schema["type"] == "fixed":
        if schema.get("logicalType") == "decimal":
            return pa.decimal128(schema["precision"], schema.get("scale", 0))
        return pa.binary(schema["size"])
    fields = []
    for field in schema["fields"]:
        name = field["name"]
        fields.append(pa.field(name, *_nullable(field["type"], named, f"{place}.{name}".lstrip("."), depth)))
    return pa.struct(fields)


def _nullable(
    schema: Any, named: dict[str, pa.DataType | None], place: str, depth: int
) -> tuple[pa.DataType, bool]:
    """A type, and whether it may be null: of a union of null and one other type the other."""
    if not isinstance(schema, list):
        return _type(schema, named, place, depth + 1), False
    others = [one for one in schema if one != "null"]
    if len(others) != 1:
        raise ProviderError(
            f"field {place!r} is a union of {len(others)} types, expected one, or one and null"
        )
    return _type(others[0], named, place, depth + 1), len(others) < len(schema)


def _named(name: str, named: dict[str, pa.DataType | None], place: str) -> pa.DataType:
    if name in _PLAIN:
        return _PLAIN[name]
    if name == "null":
        raise ProviderError(f"field {place!r} is always null, and has no type")
    found = named.get(name, named.get(name.rpartition(".")[2]))
    if found is None:
        what = "refers to itself" if name in named else f"has the type {name!r}, which is not defined"
        raise ProviderError(f"field {place!r} {what}")
    return found
