"""Python values as Arrow arrays. Each value is kept exactly, or an error names the first that is not."""

import datetime
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.printable import printable_line
from seqflow.record.arrow_types import LISTS, is_any, is_any_level
from seqflow.record.buffers import buffer_of, offsets_of
from seqflow.record.exact_casts import exact_cast

DECLARE = "the first 1,000 rows tell the types: where later rows have others, pass schema=, a pyarrow.Schema"
_PLAIN = {int, str, bytes, datetime.date, datetime.timedelta}
_KINDS = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, str, np.floating, np.bool_)
_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def array_of(
    values: Sequence[Any], kind: pa.DataType | None, origin: str, start: int = 0, advice: str = DECLARE
) -> pa.Array:
    """Convert values to a type, or to the one that Arrow infers; raise ProviderError for the first that would change.

    `start` is the row of the first value.
    """
    try:
        return _converted(values, kind)
    except _ERRORS as error:
        raise _located(values, kind, origin, start, error, advice) from error


def _converted(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
    if kind is not None and is_any_level(kind, types.is_map):
        return _not_inferred(values, kind)
    try:
        array = pa.array(values)
    except _ERRORS as error:
        if kind is None and not isinstance(error, OverflowError):
            raise
        return _not_inferred(values, kind)
    check_alike(values, array.type)
    return array if kind is None else exact_cast(array, kind)


def _not_inferred(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
    """Convert values of types that Arrow does not infer: uint64 and maps."""
    rows = [one for one in values if one is not None]
    if (kind is None or types.is_struct(kind)) and all(isinstance(one, Mapping) for one in rows):
        names = dict.fromkeys(chain.from_iterable(rows))
        kinds = dict.fromkeys(names) if kind is None else {field.name: field.type for field in kind}
        if names.keys() - kinds.keys():
            raise ValueError(f"there are keys besides {', '.join(kinds)}")
        columns = [
            _converted([None if row is None else row.get(name) for row in values], kinds[name])
            for name in kinds
        ]
        return pa.StructArray.from_arrays(
            columns, list(kinds), mask=pa.array([one is None for one in values])
        )
    if kind is not None and is_any(kind, (types.is_map, types.is_list, types.is_large_list)):
        return _not_inferred_lists(values, kind)
    array = pa.array(values, kind or pa.uint64())
    # compared: Arrow may convert a value to another one without an error
    if array.to_pylist() != list(values):
        raise ValueError(f"a value is none of {array.type}")
    return array


def _not_inferred_lists(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Convert lists, or dicts and lists of pairs to maps, by converting all of their elements."""
    listed = [list(one.items()) if types.is_map(kind) and isinstance(one, Mapping) else one for one in values]
    if any(isinstance(one, str | bytes | Mapping) for one in listed):
        raise ValueError(f"a value is none of {kind}")
    elements = list(chain.from_iterable(one for one in listed if one is not None))
    if types.is_map(kind):
        if not all(
            isinstance(one, tuple | list) and len(one) == 2 and one[0] is not None for one in elements
        ):
            raise ValueError("a map has a value that is not a pair of a key and a value")
        pairs = [
            _converted([one[at] for one in elements], part)
            for at, part in enumerate((kind.key_type, kind.item_type))
        ]
        inner = pa.StructArray.from_arrays(pairs, fields=[kind.key_field, kind.item_field])
    else:
        inner = _converted(elements, kind.value_type)
    lengths = np.array([0 if one is None else len(one) for one in listed], np.int64)
    offsets = offsets_of(lengths, wide=types.is_large_list(kind))
    validity = pa.array([one is not None for one in listed], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(kind, len(listed), [validity, buffer_of(offsets)], children=[inner])


def check_alike(values: Sequence[Any], kind: pa.DataType) -> None:
    """Raise ValueError for unlike values that Arrow converts to one type, losing hours, zones, masks or fractions."""
    if types.is_struct(kind):
        for child in kind:
            check_alike([one.get(child.name) for one in values if one is not None], child.type)
    elif is_any(kind, LISTS):
        if any(issubclass(one, np.ma.MaskedArray) for one in set(map(type, values))):
            raise ValueError("a masked array among lists: fill it first, with filled(…)")
        if types.is_integer(kind.value_type) and _has_halves(values):
            raise ValueError("Arrow would cut a float16 among integers")
        if types.is_nested(kind.value_type) or _merges(kind.value_type):
            check_alike(list(chain.from_iterable(one for one in values if one is not None)), kind.value_type)
    elif (types.is_integer(kind) or _merges(kind)) and (
        len(kinds := set(map(type, values)) - {type(None)}) > 1 or kinds - _PLAIN
    ):
        given = [one for one in values if one is not None]
        is_cut = any(getattr(one, "nanosecond", 0) or getattr(one, "nanoseconds", 0) for one in given)
        if is_cut or len(natures := set(map(_nature, given))) > 1 or (datetime.time, True) in natures:
            raise ValueError(
                "Arrow would give values of several kinds one type, or leave out zones or nanoseconds"
            )


def _has_halves(rows: Sequence[Any]) -> bool:
    """Return whether lists that Arrow infers as integers have a float16, from which it infers no type."""
    lists = [one for one in rows if isinstance(one, list | tuple)]
    if any(one.dtype == np.float16 for one in rows if isinstance(one, np.ndarray)):
        return True
    return np.float16 in set(map(type, chain.from_iterable(lists)))


def _merges(kind: pa.DataType) -> bool:
    """Return whether Arrow infers this type for values of several kinds."""
    return bool(types.is_temporal(kind) or types.is_binary(kind))


def _nature(value: Any) -> tuple[type | None, bool]:
    """Return the kind of a value, and whether it has a zone."""
    kind = next((one for one in _KINDS if isinstance(value, one)), None)
    return kind, getattr(value, "tzinfo", None) is not None


def _located(
    values: Sequence[Any], kind: pa.DataType | None, origin: str, start: int, error: Exception, advice: str
) -> ProviderError:
    """Return the error of the first value that cannot be converted, with row, column, value and expected type."""

    def failure(taken: Sequence[Any], kind: pa.DataType | None) -> Exception | None:
        try:
            _converted(taken, kind)
        except _ERRORS as found:
            return found
        return None

    # the fewest first values that fail: if these do, more of them do, too, so bisection finds the first bad one
    count = bisect_left(range(1, len(values)), True, key=lambda n: failure(values[:n], kind) is not None) + 1
    taken, place = values[:count], f"{origin}, row {start + count - 1}"
    if isinstance(taken[-1], Mapping) and (kind is None or types.is_struct(kind)):
        for name in taken[-1]:
            if kind is not None and kind.get_field_index(name) < 0:
                return ProviderError(
                    f"{place}: column {name!r} is not in the rows before, or the schema\n{advice}"
                )
            child = None if kind is None else kind.field(name).type
            column = [None if row is None else row.get(name) for row in taken]
            if found := failure(column, child):
                return _located(column, child, f"{origin}, column {name!r}", start, found, advice)
    if kind is None:
        with suppress(*_ERRORS):
            kind = pa.array(taken[:-1]).type
    expected = "" if kind is None or types.is_null(kind) else f", expected {kind}"
    return ProviderError(f"{place}: found {_shown(taken[-1])}{expected}: {error}\n{advice}")


def _shown(value: Any) -> str:
    text = printable_line(repr(value))
    return text if len(text) <= 60 else f"{text[:59]}…"
