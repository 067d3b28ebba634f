"""Arrow schemas of Avro schemas, and the types that Polars reads."""

import json
from dataclasses import dataclass, field
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
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}
_ONLY_FASTAVRO = (types.is_map, types.is_decimal, types.is_time, types.is_fixed_size_binary)
"""Types that Polars refuses or converts to other types."""


def arrow_schema(text: str) -> pa.Schema:
    """Return the columns of a record; raise ProviderError for a type that no column can have."""
    schema = json.loads(text)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ProviderError("its rows are not records, so they have no columns")
    return pa.schema(list(_type(schema, _Names(), "", 0)))


@dataclass(slots=True)
class _Names:
    """Named types, by their full names; None for one that is being defined."""

    types: dict[str, pa.DataType | None] = field(default_factory=dict)
    namespace: str = ""
    """Namespace of the type that is being defined, which names inside it inherit."""

    def full(self, name: str) -> str:
        return name if "." in name or not self.namespace else f"{self.namespace}.{name}"


def polars_reads(kind: pa.DataType) -> bool:
    """Return whether Polars reads a type unchanged."""
    if any(holds(kind) for holds in _ONLY_FASTAVRO) or (types.is_timestamp(kind) and kind.tz is None):
        return False
    return all(polars_reads(child.type) for _, child in child_fields(kind))


def _type(schema: Any, names: _Names, place: str, depth: int) -> pa.DataType:
    """Return the type of a schema; remember it if it is named, for later references."""
    if depth >= MAX_DEPTH:
        raise ProviderError(f"field {place!r} is nested in {MAX_DEPTH} levels or more")
    if isinstance(schema, list):
        return _nullable(schema, names, place, depth)[0]
    if isinstance(schema, str):
        return _named(schema, names, place)
    if not isinstance(schema, dict):
        raise ProviderError(f"field {place!r} has {schema!r} in place of a type")
    kind, logical = schema.get("type"), schema.get("logicalType")
    if kind in ("record", "error", "enum", "fixed"):
        outer = names.namespace
        names.namespace = str(schema.get("namespace", outer))
        full = names.full(str(schema["name"]))
        # None until it is defined: a type that refers to itself is found, and refused
        names.namespace, names.types[full] = full.rpartition(".")[0], None
        names.types[full] = found = _defined(schema, names, place, depth)
        names.namespace = outer
        return found
    if kind == "array":
        item, is_nullable = _nullable(schema["items"], names, place, depth)
        return pa.list_(pa.field("item", item, is_nullable))
    if kind == "map":
        value, is_nullable = _nullable(schema["values"], names, place, depth)
        return pa.map_(pa.string(), pa.field("value", value, is_nullable))
    if kind == "bytes" and logical == "decimal":
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if logical in _LOGICAL and kind in ("int", "long"):
        return _LOGICAL[logical]
    return _type(kind, names, place, depth + 1)


def _defined(schema: dict[str, Any], names: _Names, place: str, depth: int) -> pa.DataType:
    if schema["type"] == "enum":
        return pa.string()
    if schema["type"] == "fixed":
        if schema.get("logicalType") == "decimal":
            return pa.decimal128(schema["precision"], schema.get("scale", 0))
        return pa.binary(schema["size"])
    fields = []
    for one in schema["fields"]:
        name = one["name"]
        fields.append(pa.field(name, *_nullable(one["type"], names, f"{place}.{name}".lstrip("."), depth)))
    return pa.struct(fields)


def _nullable(schema: Any, names: _Names, place: str, depth: int) -> tuple[pa.DataType, bool]:
    """Return a type and whether it may be null; of a union of null and one other type, the other type."""
    if not isinstance(schema, list):
        return _type(schema, names, place, depth + 1), False
    others = [one for one in schema if one != "null"]
    if len(others) != 1:
        raise ProviderError(
            f"field {place!r} is a union of {len(others)} types, expected one, or one and null"
        )
    return _type(others[0], names, place, depth + 1), len(others) < len(schema)


def _named(name: str, names: _Names, place: str) -> pa.DataType:
    if name in _PLAIN:
        return _PLAIN[name]
    if name == "null":
        raise ProviderError(f"field {place!r} is always null, and has no type")
    full = names.full(name)
    found = names.types.get(full)
    if found is None:
        what = "refers to itself" if full in names.types else f"has the type {name!r}, which is not defined"
        raise ProviderError(f"field {place!r} {what}")
    return found
