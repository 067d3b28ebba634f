"""The 94 types of the recorded pairs of `tests/record/unified_types.json`, and values of any Arrow type as plain Python."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import types

RECORDED = json.loads((Path(__file__).parents[1] / "record" / "unified_types.json").read_text())
"""Names of types, pairs that unify (two positions, the result, true if values are checked), and pairs that do not."""

_I = pa.int32()
_ROLE, _CONTENT = pa.field("role", pa.string()), pa.field("content", pa.string())
KINDS: list[pa.DataType] = [
    pa.null(), pa.bool_(), pa.bool8(),
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(),
    pa.decimal32(5, 2), pa.decimal128(10, 2), pa.decimal128(12, 5), pa.decimal128(38, 10),
    pa.decimal256(40, 2), pa.decimal256(76, 38),
    pa.date32(), pa.date64(),
    *map(pa.timestamp, ["s", "ms", "us", "ns"]),
    pa.timestamp("us", "UTC"), pa.timestamp("us", "+00:00"), pa.timestamp("ns", "UTC"),
    pa.timestamp("us", "Europe/Paris"), pa.timestamp("ms", "Europe/Paris"),
    pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), *map(pa.duration, ["s", "ms", "us", "ns"]),
    pa.string(), pa.large_string(), pa.binary(), pa.large_binary(),
    pa.binary(4), pa.binary(16), pa.uuid(), pa.json_(pa.string()), pa.json_(pa.large_string()),
    pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.string(), ordered=True),
    pa.dictionary(pa.uint8(), pa.string()), pa.dictionary(_I, pa.string()), pa.dictionary(pa.uint32(), pa.string()),
    pa.dictionary(_I, pa.large_string()), pa.dictionary(_I, pa.int64()),
    pa.list_(_I), pa.list_(pa.int64()), pa.large_list(_I), pa.list_(pa.float32()), pa.list_(pa.null()), pa.list_(pa.string()),
    pa.large_list(pa.large_string()), pa.list_(pa.field("element", _I, nullable=False)),
    pa.list_(pa.dictionary(_I, pa.string())), pa.list_(pa.list_(pa.int16())),
    pa.list_(_I, 3), pa.list_(pa.int64(), 3), pa.list_(_I, 4), pa.list_(_I, 6),
    pa.fixed_shape_tensor(_I, [2, 3]), pa.fixed_shape_tensor(pa.int64(), [2, 3]), pa.fixed_shape_tensor(_I, [3, 2]),
    pa.struct({"a": pa.null()}), pa.struct({"a": _I}), pa.struct({"a": pa.float64()}), pa.struct({"c": pa.float64()}),
    pa.struct({"a": _I, "b": pa.string()}), pa.struct({"b": pa.large_string(), "a": pa.int64()}),
    pa.struct({"a": pa.struct({"x": pa.int8()})}),
    pa.list_(pa.struct([_ROLE, _CONTENT])),
    pa.list_(pa.struct([_CONTENT.with_type(pa.large_string()), _ROLE, pa.field("name", pa.string())])),
    pa.list_(pa.struct({"key": pa.string(), "value": _I})),
    pa.map_(pa.string(), _I), pa.map_(pa.string(), _I, keys_sorted=True), pa.map_(pa.large_string(), pa.int64()),
    pa.map_(_I, pa.list_(pa.int64())),
]  # fmt: skip


def named(kind: pa.DataType) -> str:
    """Return the name of a type in the recorded pairs."""
    if isinstance(kind, pa.FixedShapeTensorType):
        return f"fixed_shape_tensor({kind.value_type}, {list(kind.shape)})"
    if isinstance(kind, pa.BaseExtensionType):
        name = kind.extension_name.removeprefix("arrow.")
        return f"json({kind.storage_type})" if name == "json" else name
    return str(kind)


@cache
def recorded_kinds() -> list[pa.DataType]:
    """The types in the order of the recorded pairs."""
    by_name = {named(kind): kind for kind in KINDS}
    assert len(by_name) == len(KINDS)
    return [by_name[name] for name in RECORDED["types"]]


_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def plain_rows(array: pa.Array) -> list[Any]:
    """Rows as Python values that do not depend on the form of the type: times in nanoseconds since 1970, floats in hex,
    structs without their nulls, lists and maps as tuples. Arrow casts nothing.
    """
    return [plain(array[at]) for at in range(len(array))]


def plain(value: pa.Scalar) -> Any:
    """Return one value as in plain_rows."""
    kind = value.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(value.value) if value.is_valid else None
    if types.is_dictionary(kind):
        value = value.value if value.is_valid else None
        return None if value is None else plain(value)
    if not value.is_valid:
        return None
    if types.is_struct(kind):
        found = {child.name: plain(value[child.name]) for child in kind}
        return {name: one for name, one in found.items() if one is not None}
    if types.is_map(kind):
        pairs = value.values
        return tuple(zip(*(plain_rows(pairs.field(at)) for at in (0, 1)), strict=True))
    if types.is_nested(kind):
        return tuple(plain_rows(value.values))
    if types.is_date(kind):
        return value.value * (86400 * 10**9 if types.is_date32(kind) else 10**6)
    if types.is_temporal(kind):
        return value.value * _NANOSECONDS[kind.unit]
    found = value.as_py()
    if types.is_floating(kind):
        found = float(found)
        return "nan" if math.isnan(found) else found.hex()
    return found
