"""Ranges of values in Parquet's column chunks and in fragments of datasets, from their statistics."""

import json
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types

from seqflow.providers.filter.value_ranges import UNKNOWN, Path, ValueRange, range_of_value
from seqflow.providers.formats.parquet_footers import Statistics
from seqflow.record.arrow_types import TEXTS, is_any
from seqflow.record.selection import leaf_types

_UNPACKED = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d", "BOOLEAN": "<?"}
"""Formats of `struct` for values of Parquet's own types; values of other types are bytes."""
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


class StoredLimits(NamedTuple):
    """How the limits of a leaf column are stored; found once for all of its chunks, of which there may be many."""

    physical: str
    """Parquet's own type."""
    meant: Callable[[Any], Any]
    """Converts a value of that type to the Arrow type, as in ValueRange; gives None if its meaning is not certain."""


def value_range(found: Statistics, stored: StoredLimits, num_rows: int) -> ValueRange:
    """Return the range of a column chunk."""
    low, high = (_unpacked(one, stored.physical) for one in (found.minimum, found.maximum))
    return _range(low, high, found.null_count, stored, num_rows)


def _range(low: Any, high: Any, null_count: int | None, stored: StoredLimits, num_rows: int) -> ValueRange:
    """Return the range of values of Parquet's own types as values of an Arrow type."""
    low, high = (None if one is None else stored.meant(one) for one in (low, high))
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


def stored_limits(kind: pa.DataType, column: Any) -> StoredLimits:
    """Return how values of an Arrow type are stored; `column` is that of Parquet's schema.

    The meaning of other types and units of time than those below is not certain.
    """
    kind = _value_type(kind)
    physical = column.physical_type
    if types.is_decimal(kind):
        return StoredLimits(physical, partial(_decimal, kind=kind, column=column))
    if types.is_boolean(kind) or types.is_float32(kind) or types.is_float64(kind):
        expected: tuple[str, ...] = ({1: "BOOLEAN", 32: "FLOAT", 64: "DOUBLE"}[kind.bit_width],)
    elif is_any(kind, TEXTS) or types.is_fixed_size_binary(kind):
        expected = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
    elif types.is_integer(kind) or types.is_date32(kind) or _is_time(kind, column):
        if physical == ("INT64" if kind.bit_width == 64 else "INT32"):
            return StoredLimits(
                physical, partial(_whole, kind.bit_width, not types.is_unsigned_integer(kind))
            )
        expected = ()
    else:
        expected = ()
    return StoredLimits(physical, lambda value: value if physical in expected else None)


def _whole(bits: int, is_signed: bool, value: int) -> int | None:
    """Return an integer of this many bits; None for one that they do not hold."""
    # unsigned integers are stored as signed ones of the same bits
    value += 2 ** (64 if bits == 64 else 32) * (value < 0 and not is_signed)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if is_signed else (0, 2**bits)
    return value if low <= value < high else None


def _is_time(kind: pa.DataType, column: Any) -> bool:
    return bool(types.is_timestamp(kind) and _unit(column) == kind.unit)


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
                found[number] = _known_range(statistics, stored_limits(kind, column), group.num_rows)
    return found


def _partition_keys(fragment: Any) -> dict[str, Any]:
    """Return the partition keys of a fragment; Lance's fragments have none, and raise an error when asked."""
    from pyarrow.dataset import get_partition_keys

    return {} if hasattr(fragment, "fragment_id") else get_partition_keys(fragment.partition_expression)


def _known_range(statistics: Any, stored: StoredLimits, num_rows: int) -> ValueRange:
    if statistics is None:
        return UNKNOWN
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return _range(None, None, nulls, stored, num_rows)
    return _range(statistics.min_raw, statistics.max_raw, nulls, stored, num_rows)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
