"""Arrow types: predicates for lists and texts, nested types, and the dtype and axes of tensors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

Predicate = Callable[[pa.DataType], bool]

TEXT_VIEWS: tuple[Predicate, ...] = (types.is_string_view, types.is_binary_view)
STRINGS: tuple[Predicate, ...] = (types.is_string, types.is_large_string)
BYTES: tuple[Predicate, ...] = (types.is_binary, types.is_large_binary)
TEXTS: tuple[Predicate, ...] = (*STRINGS, *BYTES)
LIST_VIEWS: tuple[Predicate, ...] = (types.is_list_view, types.is_large_list_view)
LISTS: tuple[Predicate, ...] = (types.is_list, types.is_large_list, *LIST_VIEWS, types.is_fixed_size_list)


def is_any(kind: pa.DataType, predicates: tuple[Predicate, ...]) -> bool:
    """Whether one of pyarrow's type predicates holds; never for an extension type."""
    return not isinstance(kind, pa.BaseExtensionType) and any(holds(kind) for holds in predicates)


def holds_text(kind: pa.DataType) -> bool:
    """Return whether the bytes of the type are UTF-8."""
    return is_any(kind, STRINGS)


def storage_type(kind: pa.DataType) -> pa.DataType:
    """Return the storage type of an extension type; any other type itself."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def is_any_level(kind: pa.DataType, predicate: Predicate) -> bool:
    """Return whether a predicate holds for a type or for one nested in it; extension types count as their storage."""
    kind = storage_type(kind)
    return predicate(kind) or any(
        is_any_level(kind.field(at).type, predicate) for at in range(kind.num_fields)
    )


def child_fields(kind: pa.DataType) -> list[tuple[str, pa.Field]]:
    """Return the fields of a struct, keys and values of a map, or values of a list, with their names in tensor names.

    Empty for all other types, and for extension types.
    """
    if types.is_struct(kind):
        return [(child.name, child) for child in kind]
    if types.is_map(kind):
        return [("keys", kind.key_field), ("values", kind.item_field)]
    return [("values", kind.value_field)] if is_any(kind, LISTS) else []


def with_child_fields(kind: pa.DataType, fields: Sequence[pa.Field]) -> pa.DataType:
    """Return a struct, map or list type with these fields in place of `child_fields(kind)`; no view of lists."""
    if types.is_struct(kind):
        return pa.struct(fields)
    if types.is_map(kind):
        return pa.map_(*fields, kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    is_large = types.is_large_list(kind) or types.is_large_list_view(kind)
    return pa.large_list(fields[0]) if is_large else pa.list_(fields[0])


def leaf_dtype(kind: pa.DataType) -> np.dtype[Any] | None:
    """Return the dtype of a tensor of this Arrow type; None for a type that is not one number per row.

    Timestamps and dates are datetime64, durations and times of day timedelta64, all in Arrow's unit.
    """
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return dtype
    if types.is_timestamp(kind):
        return np.dtype(f"M8[{kind.unit}]")
    if types.is_duration(kind) or types.is_time(kind):
        return np.dtype(f"m8[{kind.unit}]")
    if types.is_date32(kind):
        return np.dtype("M8[D]")
    if types.is_date64(kind):
        return np.dtype("M8[ms]")
    return None


def fixed_shape(kind: pa.DataType) -> tuple[int, ...] | None:
    """Return the extra axes of a type whose rows hold numbers and all have one shape; None for other types."""
    if types.is_fixed_size_binary(kind) and not isinstance(kind, pa.BaseExtensionType):
        return (kind.byte_width,)
    if not types.is_fixed_size_list(kind):
        return None
    if leaf_dtype(kind.value_type) is not None:
        return (kind.list_size,)
    inner = fixed_shape(kind.value_type)
    return None if inner is None else (kind.list_size, *inner)


def innermost(kind: pa.DataType) -> pa.DataType:
    """Return the type of the elements of fixed-size lists, nested or not."""
    while types.is_fixed_size_list(kind):
        kind = kind.value_type
    return kind


def tensor_order(kind: pa.FixedShapeTensorType) -> tuple[int, ...]:
    """Return the axes of the stored tensor in the order of the type, rows first."""
    order = kind.permutation or range(len(kind.shape))
    return (0, *(axis + 1 for axis in order))
