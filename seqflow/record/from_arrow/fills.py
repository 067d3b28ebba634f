"""Fill values: replacements for nulls, for all columns, or by column, field or level; checked against the types."""

import datetime
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.arguments import shown
from seqflow.errors import ProviderOptionError, UnknownColumnError, nearest
from seqflow.kernels.exact import converted
from seqflow.record import arrow_types
from seqflow.record.buffers import unfit_times
from seqflow.record.record import Tensor, join_names
from seqflow.record.run_ends import plain_schema

Fill = Mapping[str, Any] | Any | None
Valid = bool | Collection[str]

_TIMES = (datetime.date, datetime.time, datetime.timedelta)


class UnfitError(Exception):
    """A fill value is not a value of the type."""


def check_fill(fill: Fill, schema: pa.Schema) -> None:
    """Raise an error for names that the schema lacks, and for values that no level under their name can hold."""
    if isinstance(fill, Mapping):
        nodes = {
            name: kind for field in plain_schema(schema) for name, kind in _levels(field.name, field.type)
        }
        for name, value in _entries(fill, "", nodes):
            _check_entry(name, value, nodes)
        return
    try:
        pa.scalar(
            None if isinstance(fill, np.generic) else fill
        )  # NumPy's own scalars are checked against the type later
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        raise ProviderOptionError(
            f"fill is {shown(fill)}, expected a number, text, bytes, a time, a list, or a dict of those by column"
        ) from None


def check_valid(valid: Valid, schema: pa.Schema) -> None:
    """Raise an error for anything other than True, False, or names of columns of `schema`."""
    if isinstance(valid, bool):
        return
    if isinstance(valid, str) or not isinstance(valid, Collection):
        raise ProviderOptionError(f"valid is {valid!r}, expected True, False or a list of columns")
    known = set(schema.names)
    for name in valid:
        if not isinstance(name, str) or name not in known:
            raise UnknownColumnError(f"valid: there is no column {name!r}{nearest(str(name), schema.names)}")


def is_masked(valid: Valid, column: str) -> bool:
    """Return whether `valid` asks for the masks of a column."""
    return valid if isinstance(valid, bool) else column in valid


def fill_of(fill: Fill, name: str) -> Any:
    """Return the fill value for nulls of `name`, or of the closest level above that has one; None if there is
    none.
    """
    if not isinstance(fill, Mapping):
        return fill
    # the longest name first: the entry of the closest level wins
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        key = ".".join(parts[:end])
        if key in fill:
            value, below = fill[key], ".".join(parts[end:])
            return fill_of(value, below) if below else value
    return None


def number_of(fill: Any, kind: pa.DataType) -> Any:
    """Convert `fill` to a scalar of a number, bool or time type; raise UnfitError when that would change its
    value.
    """
    dtype = arrow_types.leaf_dtype(kind)
    assert dtype is not None
    try:
        if dtype.kind in "Mm":
            return _time_of(fill, kind, dtype)
        if not isinstance(fill, bool | int | float | np.bool_ | np.number):
            raise UnfitError
        value, is_changed = converted(np.asarray(fill), dtype)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        raise UnfitError from None
    if is_changed:
        raise UnfitError
    return value


def _time_of(fill: Any, kind: pa.DataType, dtype: np.dtype[Any]) -> Any:
    if isinstance(fill, _TIMES):
        fill = _scalar_of(fill, kind)
    elif isinstance(fill, str) and dtype.kind == "M":
        if fill.lower() in ("", "nat"):  # NumPy gives these no unit, which it deprecates
            raise UnfitError
        fill = np.datetime64(fill)
    if not isinstance(fill, np.datetime64 | np.timedelta64) or fill.dtype.kind != dtype.kind:
        raise UnfitError
    value, is_changed = converted(np.asarray(fill), dtype)
    if np.isnat(fill) or is_changed:
        raise UnfitError
    if unfit_times(value.reshape(1), kind).size:
        raise UnfitError
    return value


def _scalar_of(time: Any, kind: pa.DataType) -> Any:
    """Return a Python time in its own unit; raise UnfitError when its time zone or time of day does not match
    `kind`.
    """
    given = pa.scalar(time)
    zoned = types.is_timestamp(kind) and kind.tz is not None
    if (
        types.is_time(given.type) != types.is_time(kind)
        or (getattr(time, "tzinfo", None) is not None) != zoned
    ):
        raise UnfitError
    dtype = arrow_types.leaf_dtype(given.type)
    assert dtype is not None
    return np.asarray(given.value).astype(np.int64).view(dtype)[()]


def bytes_of(fill: Any, kind: pa.DataType) -> Tensor:
    """Convert `fill` to the bytes of a text; raise UnfitError for other types, and for bytes that are not UTF-8."""
    try:
        data = fill.encode() if isinstance(fill, str) else fill
        if isinstance(data, bytes) and arrow_types.holds_text(kind):
            data.decode()
    except UnicodeError:
        raise UnfitError from None
    if not isinstance(data, bytes):
        raise UnfitError
    return np.frombuffer(data, np.uint8)


def fixed_of(fill: Any, element: pa.DataType, shape: tuple[int, ...]) -> Any:
    """Convert `fill` to one row of numbers: a number is repeated, an array or bytes must have the row's shape."""
    if types.is_fixed_size_binary(element):
        element, fill = pa.uint8(), _with_integers(fill)
    if isinstance(fill, str) or not isinstance(fill, Sequence | np.ndarray):
        return number_of(fill, element)
    if np.shape(fill) != shape:
        raise UnfitError
    values = [number_of(one, element) for one in np.asarray(_listed(fill, element), object).reshape(-1)]
    return np.array(values, arrow_types.leaf_dtype(element)).reshape(shape)


def _with_integers(fill: Any) -> Any:
    """Replace bytes, also inside lists, by lists of integers."""
    if isinstance(fill, bytes):
        return list(fill)
    return [_with_integers(one) for one in fill] if isinstance(fill, list | tuple) else fill


def rows_of(fill: Any, kind: pa.DataType) -> pa.Array:
    """Convert `fill` to the elements of one list, or the entries of one map; raise UnfitError for anything else."""
    fill = _listed(fill, kind)
    array = _one(fill, kind)
    return _entries_of(array) if types.is_map(kind) else array.values


def _one(value: Any, kind: pa.DataType) -> pa.Array:
    """Convert a value to an Arrow array of one element; raise UnfitError for a value that is not of the type."""
    if not holds(kind, value):
        raise UnfitError
    try:
        return pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise UnfitError from None


def _listed(fill: Any, kind: pa.DataType) -> Any:
    if isinstance(fill, np.ndarray):
        return fill.tolist()
    return list(fill.items()) if isinstance(fill, Mapping) and types.is_map(kind) else fill


def _entries_of(array: pa.MapArray) -> pa.StructArray:
    fields = [array.type.key_field, array.type.item_field]
    return pa.StructArray.from_arrays([array.keys, array.items], fields=fields)


def _levels(name: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield every level of a column that may have nulls, with its type: the column, fields of structs, values of
    lists.
    """
    yield name, kind
    for part, child in arrow_types.child_fields(arrow_types.storage_type(kind)):
        yield from _levels(join_names(name, part), child.type)


def _entries(
    fill: Mapping[str, Any], prefix: str, nodes: Mapping[str, pa.DataType]
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a mapping by full name; mappings for structs and lists give those of their fields and
    values.
    """
    for key, value in fill.items():
        name = join_names(prefix, str(key))
        kind = nodes.get(name)
        if isinstance(value, Mapping) and kind is not None and not types.is_map(kind):
            yield from _entries(value, name, nodes)
        else:
            yield name, value


def _check_entry(name: str, value: Any, nodes: Mapping[str, pa.DataType]) -> None:
    if name not in nodes:
        raise UnknownColumnError(
            f"fill: there is no column {name!r}{nearest(name, nodes)}; there are {', '.join(nodes)}"
        )
    if not any(holds(kind, value) for _, kind in _levels(name, nodes[name])):
        raise ProviderOptionError(unfit_message(value, name, nodes[name]))


def unfit_message(value: Any, name: str, kind: pa.DataType) -> str:
    found = f"fill={value!r} is not a value of {name or 'the array'}, which has type {kind}"
    return found + _for_lists(value, name, kind)


def _for_lists(value: Any, name: str, kind: pa.DataType) -> str:
    """Return the fill of a column of lists, at each level, whose values can hold this value; else ""."""
    levels = []
    while arrow_types.is_any(kind, arrow_types.LISTS) and not types.is_fixed_size_list(kind):
        levels.append(name)
        name, kind = join_names(name, "values"), kind.value_type
    if not (levels and holds(kind, value)):
        return ""
    lists = "".join(f'"{level}": [], ' for level in levels)
    return f'; expected fill={{{lists}"{name}": {value!r}}}'


def holds(kind: pa.DataType, value: Any) -> bool:
    """Return whether a type can hold a value exactly; a value that contains nulls never fits."""
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.FixedShapeTensorType):
        return holds(kind.storage_type, value)
    try:
        if arrow_types.leaf_dtype(kind) is not None:
            number_of(value, kind)
        elif (shape := _row_shape(kind)) is not None:
            fixed_of(value, arrow_types.innermost(arrow_types.storage_type(kind)), shape)
        elif arrow_types.is_any(kind, arrow_types.TEXTS):
            bytes_of(value, kind)
        elif types.is_dictionary(kind):
            return is_null_code(value, kind) or holds(kind.value_type, value)
        else:
            return _holds_children(kind, value)
    except UnfitError:
        return False
    return True


def _holds_children(kind: pa.DataType, value: Any) -> bool:
    if types.is_struct(kind):
        names = {child.name for child in kind}
        return (
            isinstance(value, Mapping)
            and set(value) == names
            and all(holds(child.type, value[child.name]) for child in kind)
        )
    value = _listed(value, kind)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    if types.is_map(kind):
        pairs = all(isinstance(entry, Sequence) and len(entry) == 2 for entry in value)
        return pairs and all(holds(kind.key_type, key) and holds(kind.item_type, item) for key, item in value)
    if types.is_fixed_size_list(kind) and len(value) != kind.list_size:
        return False
    return arrow_types.is_any(kind, arrow_types.LISTS) and all(holds(kind.value_type, one) for one in value)


def _row_shape(kind: pa.DataType) -> tuple[int, ...] | None:
    if isinstance(kind, pa.FixedShapeTensorType):
        return tuple(kind.shape[axis - 1] for axis in arrow_types.tensor_order(kind)[1:])
    return arrow_types.fixed_shape(kind)


def is_null_code(value: Any, kind: pa.DictionaryType) -> bool:
    """Return whether a fill value is the code -1, which means no value of the dictionary."""
    # signed codes only; and a dictionary of integers may have -1 as a value
    return (
        isinstance(value, int | np.integer)
        and value == -1
        and types.is_signed_integer(kind.index_type)
        and not types.is_integer(kind.value_type)
    )


def code_of(fill: Any, dictionary: pa.Array, kind: pa.DictionaryType) -> tuple[int, pa.Array]:
    """Return the code of a value in a dictionary, and the dictionary, to which a new value is appended."""
    if is_null_code(fill, kind):
        return -1, dictionary
    value = _one(fill, kind.value_type)
    import pyarrow.compute as pc

    code = pc.index_in(value, dictionary)[0].as_py()
    if code is None:
        code, dictionary = len(dictionary), pa.concat_arrays([dictionary, value])
    if code > np.iinfo(kind.index_type.to_pandas_dtype()).max:
        raise UnfitError
    return code, dictionary
