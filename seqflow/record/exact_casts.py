"""Cast Arrow arrays to other types, value by value: each is kept, or found not to fit.

Nested arrays are taken apart and rebuilt, and Arrow casts only their leaves: its own casts convert values that nulls
or slices hide, take the offsets of list views for those of lists, and make invalid lists of lists of nulls.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.printable import printable_line
from seqflow.record.arrays import fixed_size_lists, list_array, map_array, struct_array
from seqflow.record.arrow_types import BYTES, LISTS, STRINGS, TEXTS, Predicate, holds_text, is_any
from seqflow.record.buffers import INT32_MAX, nulls_of
from seqflow.record.lists import filled_lists, list_parts
from seqflow.record.record import Tensor
from seqflow.record.unified_types import UTC_NAMES, UnlikeTypes, integer_digits, unified_type
from seqflow.record.validation import validated

Families = tuple[tuple[tuple[Predicate, ...], tuple[Predicate, ...]], ...]


def _is_zoned(kind: pa.DataType) -> bool:
    return types.is_timestamp(kind) and kind.tz is not None


def _is_local(kind: pa.DataType) -> bool:
    return types.is_date(kind) or (types.is_timestamp(kind) and kind.tz is None)


def _is_utc(kind: pa.DataType) -> bool:
    return types.is_timestamp(kind) and kind.tz in UTC_NAMES


ALIKE: Families = (
    ((types.is_integer,), (types.is_integer, types.is_floating, types.is_decimal)),
    ((types.is_decimal,), (types.is_integer, types.is_decimal)),
    ((types.is_floating,), (types.is_floating,)),
    ((_is_local,), (_is_local,)),
    ((_is_zoned,), (_is_zoned,)),
    ((types.is_time,), (types.is_time,)),
    ((types.is_duration,), (types.is_duration,)),
    (STRINGS, STRINGS),
    (BYTES, BYTES),
)
"""Families of types: values of the first are cast to types of the second. None changes the nature of a value."""

CONVERTIBLE: Families = (
    *ALIKE,
    ((types.is_boolean, types.is_floating), (types.is_integer,)),
    ((_is_local,), (_is_utc,)),
    (STRINGS, BYTES),
    ((*BYTES, types.is_fixed_size_binary), (*BYTES, types.is_fixed_size_binary, *STRINGS)),
)
"""Families of types under a declared type: true is 1, 7.0 an integer, local time is UTC, and UTF-8 is text."""


class UnfitValues(pa.ArrowInvalid):  # type: ignore[misc]  # pyarrow has no types
    """Values that a type does not hold. `rows` is bool[rows], true for rows with one; the text is about the first."""

    def __init__(self, reason: str, rows: Tensor) -> None:
        super().__init__(reason)
        self.rows = rows


class Cast(NamedTuple):
    """An array of another type, and its rows bool[rows] with a value that does not fit; None if all fit.

    Such rows are null. `unfit_reason` says why one is.
    """

    values: pa.Array
    unfit: Tensor | None


def cast_values(array: pa.Array, kind: pa.DataType, alike: Families = CONVERTIBLE) -> Cast:
    """Return the array as one of type `kind`, with a mask of the rows that hold a value that does not fit.

    Raises ArrowException if no value of the type becomes one of `kind`, which an empty array shows as well.
    """
    unfit = None
    while True:
        try:
            return Cast(exact_cast(array, kind, alike), unfit)
        except UnfitValues as error:
            unfit = error.rows if unfit is None else unfit | error.rows
            array = _hidden(array, unfit)


def unfit_reason(array: pa.Array, kind: pa.DataType, row: int, alike: Families = CONVERTIBLE) -> str:
    """Return why a row does not fit, `7.5 is not a value of int64`; empty if it does."""
    try:
        exact_cast(array.slice(row, 1), kind, alike)
    except UnfitValues as error:
        return str(error)
    return ""


def exact_cast(array: pa.Array, kind: pa.DataType, alike: Families = ALIKE) -> pa.Array:
    """Return the array as one of type `kind`; raise UnfitValues when that would change a value.

    A float may be rounded, but stays finite. Structs are cast by the names of their fields; missing fields become
    nulls. A list of pairs becomes a map. Dictionaries are decoded for another type; extension types are
    cast by their storage. What nulls or slices hide is not converted. Raises another ArrowException for types that
    are not `alike`.
    """
    found = array.type
    if found == kind:
        return array
    if isinstance(found, pa.BaseExtensionType) or isinstance(kind, pa.BaseExtensionType):
        return _extension(array, kind, alike)
    if types.is_null(found):
        return pa.nulls(len(array), kind)
    if types.is_dictionary(found):
        return _dictionary(array, kind, alike)
    if types.is_struct(kind) and types.is_struct(found):
        return _struct(array, kind, alike)
    if is_any(found, LISTS) and is_any(kind, LISTS):
        return _list(array, kind, alike)
    if types.is_map(kind) and (types.is_map(found) or _is_list_of_pairs(found)):
        return _map(array, kind, alike)
    if not _are_among(found, kind, alike):
        raise pa.ArrowInvalid(f"values are {found}")
    return _leaf(array, kind)


def _are_among(found: pa.DataType, kind: pa.DataType, families: Families) -> bool:
    return any(is_any(found, ones) and is_any(kind, others) for ones, others in families)


def _hidden(array: pa.Array, nulls: Tensor | None) -> pa.Array:
    """Return the array with nulls in place of some rows."""
    if nulls is None or types.is_null(array.type):
        return array
    kind = pa.struct([pa.field("", array.type)])
    return struct_array(kind, [array], len(array), nulls).flatten()[0]


def _extension(array: pa.Array, kind: pa.DataType, alike: Families) -> pa.Array:
    found = array.type
    if isinstance(found, pa.BaseExtensionType):
        if isinstance(kind, pa.BaseExtensionType):
            try:
                unified_type([found, kind])
            except UnlikeTypes:
                raise pa.ArrowInvalid(f"values are {found}") from None
        array = array.storage
    if not isinstance(kind, pa.BaseExtensionType):
        return exact_cast(array, kind, alike)
    return pa.ExtensionArray.from_storage(kind, exact_cast(array, kind.storage_type, alike))


def _dictionary(array: pa.DictionaryArray, kind: pa.DataType, alike: Families) -> pa.Array:
    value_type = kind.value_type if types.is_dictionary(kind) else kind
    entries, unfit = cast_values(array.dictionary, value_type, alike)
    if unfit is not None:
        # no row may have the entries that do not fit
        rows = np.asarray(pa.array(unfit).take(array.indices).fill_null(False))
        if rows.any():
            entry = array.indices[int(np.argmax(rows))].as_py()
            raise UnfitValues(unfit_reason(array.dictionary, value_type, entry, alike), rows)
    if types.is_dictionary(kind):
        codes = array.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(codes, entries, ordered=kind.ordered)
    return validated(entries, "a dictionary").take(array.indices)


def _struct(array: pa.Array, kind: pa.StructType, alike: Families) -> pa.Array:
    places = [array.type.get_field_index(child.name) for child in kind]
    if len(set(places) - {-1}) < len(array.type):
        raise pa.ArrowInvalid(f"there are keys besides {', '.join(child.name for child in kind)}")
    nulls = nulls_of(array)
    children = []
    for at, child in zip(places, kind, strict=True):
        values = pa.nulls(len(array)) if at < 0 else array.field(at)
        is_cast = values.type != child.type
        children.append(exact_cast(_hidden(values, nulls), child.type, alike) if is_cast else values)
    return struct_array(kind, children, len(array), nulls)


def _list(array: pa.Array, kind: pa.DataType, alike: Families) -> pa.Array:
    lengths, rows, nulls = _lists(array, kind)
    size = kind.list_size if types.is_fixed_size_list(kind) else None
    if size is not None:
        unfit = lengths != size if nulls is None else (lengths != size) & ~nulls
        if unfit.any():
            raise UnfitValues(f"a list of {lengths[np.argmax(unfit)]} is not a value of {kind}", unfit)
    with _of_rows(lengths):
        values = exact_cast(rows, kind.value_type, alike)
    if size is None:
        return list_array(kind, lengths, values, nulls)
    if nulls is not None:
        _, values = filled_lists("a column", lengths, values, nulls, exact_cast(pa.nulls(size), values.type))
    return fixed_size_lists(kind, len(array), values, nulls)


def _is_list_of_pairs(kind: pa.DataType) -> bool:
    return is_any(kind, LISTS) and types.is_struct(kind.value_type) and kind.value_type.num_fields == 2


def _map(array: pa.Array, kind: pa.MapType, alike: Families) -> pa.Array:
    lengths, pairs, nulls = _lists(array, kind)
    missing = nulls_of(pairs)
    with _of_rows(lengths):
        keys, items = (
            exact_cast(_hidden(pairs.field(at), missing), child.type, alike)
            for at, child in enumerate((kind.key_field, kind.item_field))
        )
        if (missing := nulls_of(keys)) is not None:
            raise UnfitValues("a map has a pair without a key", missing)
    return map_array(kind, lengths, keys, items, nulls)


def _lists(array: pa.Array, kind: pa.DataType) -> tuple[Tensor, pa.Array, Tensor | None]:
    """Return the lengths of lists or maps, their rows without those that nulls hide, and their nulls."""
    nulls = nulls_of(array)
    lengths, rows = list_parts("a column", array, nulls)
    if len(rows) > INT32_MAX and (types.is_list(kind) or types.is_map(kind)):
        raise pa.ArrowInvalid(f"{len(rows)} values are too many for {kind}, which has offsets of 32 bits")
    return lengths, rows, nulls


@contextmanager
def _of_rows(lengths: Tensor) -> Iterator[None]:
    """Attribute unfit values in lists to the rows of the lists."""
    try:
        yield
    except UnfitValues as error:
        rows = np.zeros(len(lengths), np.bool_)
        rows[np.repeat(np.arange(len(lengths)), lengths)[error.rows]] = True
        raise UnfitValues(str(error), rows) from None


def _leaf(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not (is_any(array.type, TEXTS) and is_any(kind, TEXTS)):
        return _by_value(array, kind)
    is_checked = holds_text(kind) and not holds_text(array.type)
    if is_checked:
        validated(array, "a text")  # this cast reads the bytes, not only the offsets
        array = _by_value(array, pa.large_string() if types.is_large_binary(array.type) else kind)
    # no value is refused here, only more bytes than the offsets count
    return array.cast(kind)


def _by_value(array: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return _checked(array, kind)
    except pa.ArrowInvalid:
        unfit = _refused(array, kind)
        if not unfit.any():
            raise  # about the whole array, such as too many bytes for offsets of 32 bits
        raise UnfitValues(f"{_shown(array[int(np.argmax(unfit))])} is not a value of {kind}", unfit) from None


def _refused(array: pa.Array, kind: pa.DataType) -> Tensor:
    """Return bool[rows], true for values that cannot be cast, found by halving."""
    try:
        _checked(array, kind)
    except pa.ArrowInvalid:
        half = len(array) // 2
        if not half:
            return np.ones(len(array), np.bool_)
        return np.concatenate([_refused(array[:half], kind), _refused(array[half:], kind)])
    return np.zeros(len(array), np.bool_)


def _checked(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast a leaf; raise ArrowInvalid when that would change a value. Nulls are not converted."""
    import pyarrow.compute as pc

    found = array.type
    if (
        types.is_integer(found)
        and types.is_decimal(kind)
        and kind.precision - kind.scale < integer_digits(found)
    ):
        # Arrow refuses the type whatever the values are
        return _decimals(array.cast(pa.decimal128(20, 0)), kind)
    if types.is_decimal(found):
        return _decimals(array, kind)
    # Arrow refuses integers beyond 2**53, of which float64 holds every other one and more
    made = array.cast(kind, safe=not (types.is_integer(found) and types.is_floating(kind)))
    if not _are_among(found, kind, _UNCHECKED) or kind.bit_width > found.bit_width:
        return made
    if types.is_floating(found):
        before, after = pc.is_finite(array), pc.is_finite(made)
    else:
        before, after = array, made.cast(found)
    if not after.equals(before):
        raise pa.ArrowInvalid("a value would change")
    return made


_UNCHECKED: Families = (
    ((types.is_integer, types.is_floating), (types.is_floating,)),
    ((types.is_timestamp,), (types.is_date,)),
)
"""Casts that Arrow does not check unless the bits become more: it cuts times, wraps days, rounds integers, and makes
large numbers infinite.
"""


def _decimals(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast decimals to decimals or integers, around two faults of Arrow."""
    found, scale = array.type, kind.scale if types.is_decimal(kind) else 0
    if found.scale - scale > 9:
        # divided by more than 10**9, quotients with 32 bits of ones, such as 2**64 - 1, are refused
        wide = pa.decimal256 if types.is_decimal256(found) else pa.decimal128
        return _decimals(array.cast(wide(found.precision, found.scale - 9)), kind)
    if types.is_decimal(kind) and kind.bit_width < 128:
        # digits are cut off before the scale changes
        array = array.cast(pa.decimal128(kind.precision, kind.scale))
    return array.cast(kind)


def _shown(value: pa.Scalar) -> str:
    try:
        text = printable_line(str(value))
    except (OverflowError, ValueError):  # Python has no times after the year 9999
        text = f"{value.value} of {value.type}"
    return text if len(text) <= 80 else f"{text[:79]}…"
