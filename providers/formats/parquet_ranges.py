"""Ranges of values in Parquet's column chunks and in fragments of datasets, from their statistics."""

import json
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

from seqflow.providers.filter.value_ranges import UNKNOWN, Path, ValueRange, range_of_value
from seqflow.providers.formats.parquet_footers import Statistics
from seqflow.record.arrow_types import TEXTS, is_any
from seqflow.record.selection import leaf_types

_UNPACKED = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d", "BOOLEAN": "<?"}
"""Formats of `struct` for values of Parquet's own types; values of other types are bytes."""
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


def value_range(found: Statistics, kind: pa.DataType, column: Any, num_rows: int) -> ValueRange:
    """Return the range of a column chunk of an Arrow type; `column` of Parquet's schema says how it is stored."""
    low, high = (_unpacked(one, column.physical_type) for one in (found.minimum, found.maximum))
    return stored_range(low, high, found.null_count, kind, column, num_rows)


def stored_range(
    low: Any, high: Any, null_count: int | None, kind: pa.DataType, column: Any, num_rows: int
) -> ValueRange:
    """Return the range of values of Parquet's own types as values of an Arrow type.

    Limits are used only if their meaning is certain: for other types and units of time they are not known.
    """
    low, high = (None if one is None else _meant(one, kind, column) for one in (low, high))
    # NaN does not equal itself; a minimum above the maximum is damage
    if low != low or high != high or (None not in (low, high) and low > high):
        low = high = None
    return ValueRange(low, high, null_count != 0, null_count is None or null_count < num_rows)


def _unpacked(stored: bytes | None, physical: str) -> Any:
    """Return a value of one of Parquet's own types; None if its size is not that of the type."""
    form = _UNPACKED.get(physical)
    if form is None or not isinstance(stored, bytes):
        return stored if isinstance(stored, bytes) else None
    return struct.unpack(form, stored)[0] if len(stored) == struct.calcsize(form) else None


def _meant(value: Any, kind: pa.DataType, column: Any) -> Any:
    """Convert a value of Parquet's own types to an Arrow type, as in ValueRange; None if that is not certain."""
    physical = column.physical_type
    if is_any(kind, TEXTS) or types.is_fixed_size_binary(kind):
        return value if physical in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") else None
    if types.is_decimal(kind):
        return _decimal(value, kind, column)
    if types.is_boolean(kind) or types.is_float32(kind) or types.is_float64(kind):
        return value if physical == {1: "BOOLEAN", 32: "FLOAT", 64: "DOUBLE"}[kind.bit_width] else None
    is_time = types.is_timestamp(kind) and _unit(column) == kind.unit
    if types.is_integer(kind) or types.is_date32(kind) or is_time:
        wide = kind.bit_width == 64
        if physical != ("INT64" if wide else "INT32"):
            return None
        is_signed = not types.is_unsigned_integer(kind)
        # unsigned integers are stored as signed ones of the same bits
        value += 2 ** (64 if wide else 32) * (value < 0 and not is_signed)
        low, high = (
            (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1)) if is_signed else (0, 2**kind.bit_width)
        )
        return value if low <= value < high else None
    return None


def _unit(column: Any) -> str | None:
    """Return the unit in which a file stores times, which may differ from that of its Arrow type."""
    try:
        return _UNITS.get(json.loads(column.logical_type.to_json()).get("timeUnit", ""))
    except (ValueError, AttributeError):
        return None


def _decimal(value: Any, kind: pa.DataType, column: Any) -> Decimal | None:
    if isinstance(value, bytes):
        is_whole = column.physical_type == "FIXED_LEN_BYTE_ARRAY"
        number = int.from_bytes(value, "big", signed=True) if is_whole else None
    else:
        number = value if column.physical_type in ("INT32", "INT64") else None
    if number is None or column.scale != kind.scale or abs(number) >= 10**kind.precision:
        return None
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -kind.scale))


Leaf = tuple[Path, pa.DataType]
"""A leaf column of a dataset: its path, and its type."""


def fragment_ranges(fragment: Any, leaves: Sequence[Leaf | None]) -> list[ValueRange]:
    """Return the ranges of leaf columns in a fragment; UNKNOWN for None, and if its file has another type."""
    keys = _partition_keys(fragment)
    found = [
        range_of_value(keys[leaf[0][0]]) if leaf is not None and leaf[0][0] in keys else UNKNOWN
        for leaf in leaves
    ]
    if not hasattr(fragment, "split_by_row_group") or len(fragment.row_groups) != 1:
        return found
    (group,) = fragment.row_groups
    metadata = fragment.metadata
    places = {path: (at, kind) for at, (path, kind) in enumerate(leaf_types(fragment.physical_schema))}
    row_group = metadata.row_group(group.id)
    for number, leaf in enumerate(leaves):
        if leaf is not None and leaf[0][0] not in keys and leaf[0] in places:
            at, kind = places[leaf[0]]
            if _value_type(kind) == _value_type(leaf[1]):
                statistics, column = row_group.column(at).statistics, metadata.schema.column(at)
                found[number] = _range(statistics, _value_type(kind), column, group.num_rows)
    return found


def _partition_keys(fragment: Any) -> dict[str, Any]:
    """Return the partition keys of a fragment; Lance's fragments have none, and raise an error when asked."""
    from pyarrow.dataset import get_partition_keys

    return {} if hasattr(fragment, "fragment_id") else get_partition_keys(fragment.partition_expression)


def _range(statistics: Any, kind: pa.DataType, column: Any, num_rows: int) -> ValueRange:
    if statistics is None:
        return UNKNOWN
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return stored_range(None, None, nulls, kind, column, num_rows)
    return stored_range(statistics.min_raw, statistics.max_raw, nulls, kind, column, num_rows)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
