"""Unify Arrow types: the one type that holds every value of some types without loss, decided over the whole set."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import TypeAlias

import pyarrow as pa
from pyarrow import types

from seqflow.record import arrow_types

Kinds: TypeAlias = Sequence[pa.DataType]
Settle: TypeAlias = Callable[[str, Callable[[], pa.DataType] | None], pa.DataType]
"""Called for types that do not unify, with the reason, and a function that returns a type to declare or None."""

UTC_NAMES = frozenset(
    ["UTC", "Etc/UTC", "Z", "+00:00", "-00:00", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT", "Universal"]
)  # fmt: skip
_UNITS = ("s", "ms", "us", "ns")
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_MAX_DIGITS = {128: 38, 256: 76}
_MISSING = pa.field("", pa.null())


class UnlikeTypes(ValueError):
    """No type holds the values of two types without loss.

    `one` and `other` are the positions of the two, `reason` says why. `advice` is a type to declare with `schema=`,
    as text, under which the values that fit are read; empty if there is none.
    """

    def __init__(self, reason: str, advice: str = "", one: int = 0, other: int = 1) -> None:
        super().__init__(reason)
        self.reason, self.advice, self.one, self.other = reason, advice, one, other


def unified_type(kinds: Kinds) -> pa.DataType:
    """Return the type that holds the values of all types; raise UnlikeTypes for the first two that have none.

    The order of the types decides nothing but the order of the fields of structs. A set unifies if each two of its
    types do. Equal types, and none, are quick: thousands of files mostly agree. Without types, it is `null`.
    """
    first = _distinct(kinds)
    try:
        return _unified([kinds[at] for at in first], _refuse)
    except UnlikeTypes:
        for one, other in combinations(first, 2):
            pair = [kinds[one], kinds[other]]
            try:
                _unified(pair, _refuse)
            except UnlikeTypes as error:
                raise UnlikeTypes(error.reason, _advice(pair), one, other) from None
        raise


def unified_field(name: str, fields: Sequence[pa.Field | None]) -> pa.Field:
    """Return the field that holds the values of all fields, with the metadata of the first; None stands for a file
    without the field, whose values are null. Raises UnlikeTypes.

    It is nullable if one is. Nulls in a field whose own schema declares it not null are not looked for.
    """
    found = [_MISSING if field is None else field for field in fields]
    first = next((field for field in fields if field is not None), _MISSING)
    return _like(first, name, unified_type([field.type for field in found]), found)


def integer_digits(kind: pa.DataType) -> int:
    """Return the most decimal digits of an integer type."""
    return 20 if types.is_uint64(kind) else _DIGITS[kind.bit_width]


def _refuse(reason: str, declared: Callable[[], pa.DataType] | None) -> pa.DataType:
    raise UnlikeTypes(reason)


def _declare(reason: str, declared: Callable[[], pa.DataType] | None) -> pa.DataType:
    return _refuse(reason, None) if declared is None else declared()


def _advice(pair: Kinds) -> str:
    try:
        return declaration(_unified(pair, _declare))
    except UnlikeTypes:
        return ""


def declaration(kind: pa.DataType) -> str:
    """Return a type as text for `schema=`: list items have no names, floats those of NumPy, and nulls are texts."""
    if types.is_null(kind):
        return "string"
    if types.is_struct(kind):
        return f"struct<{', '.join(f'{child.name}: {declaration(child.type)}' for child in kind)}>"
    if types.is_map(kind):
        return f"map<{declaration(kind.key_type)}, {declaration(kind.item_type)}>"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"{str(kind).partition('<')[0]}<{declaration(kind.value_type)}>"
    return f"float{kind.bit_width}" if types.is_floating(kind) else str(kind)


def _distinct(kinds: Kinds) -> list[int]:
    """Return the position of the first of each group of equal types.

    Not by a set: the names of list items count for hashes, but not for equality.
    """
    first, rest = [], list(enumerate(kinds))
    while rest:
        place, first_kind = rest[0]
        first.append(place)
        rest = [(at, kind) for at, kind in rest if kind is not first_kind and kind != first_kind]
    return first


def _unified(given: Kinds, settle: Settle) -> pa.DataType:
    kinds = [given[at] for at in _distinct(given) if not types.is_null(given[at])]
    if len(kinds) < 2:
        return kinds[0] if kinds else pa.null()
    if any(map(types.is_dictionary, kinds)):
        return _dictionary(kinds, settle)
    if any(isinstance(kind, pa.BaseExtensionType) for kind in kinds):
        return _extension(kinds, settle)
    families = sorted({_family(kind) for kind in kinds})
    if families == ["decimal", "integer"]:
        return _decimal(kinds, settle)
    if len(families) == 1 and (rule := _RULES.get(families[0])):
        return rule(kinds, settle)
    one, other = kinds[:2] if len(families) == 1 else families[:2]
    reason, declared = _CONFLICTS.get((one, other), (f"{one} and {other} differ in meaning", None))
    return settle(reason, declared and partial(declared, kinds))


def _family(kind: pa.DataType) -> str:
    return next(
        (name for name, predicates in _FAMILIES.items() if arrow_types.is_any(kind, predicates)), str(kind)
    )


def _dictionary(kinds: Kinds, settle: Settle) -> pa.DataType:
    found = [kind for kind in kinds if types.is_dictionary(kind)]
    values = _unified([kind.value_type if types.is_dictionary(kind) else kind for kind in kinds], settle)
    if len(found) < len(kinds):
        return values
    # codes are never negative, so int64 holds all that occur
    codes = _integer([kind.index_type for kind in found], lambda *_: pa.int64())
    return pa.dictionary(codes, values, ordered=all(kind.ordered for kind in found))


def _extension(kinds: Kinds, settle: Settle) -> pa.DataType:
    extended = [kind for kind in kinds if isinstance(kind, pa.BaseExtensionType)]
    first, has_plain = extended[0], len(extended) < len(kinds)
    if isinstance(first, pa.FixedShapeTensorType):
        is_alike = all(isinstance(kind, pa.FixedShapeTensorType) for kind in extended)
        if has_plain or not is_alike or any(_tensor(kind, first.value_type) != first for kind in extended):
            return settle("a tensor of fixed shape goes with tensors of the same shape only", None)
        return _tensor(first, _unified([kind.value_type for kind in kinds], settle))
    is_json = all(kind.extension_name == "arrow.json" for kind in extended)
    if len(extended) > 1 and not is_json:
        return settle("extension types differ in meaning", None)
    if has_plain and isinstance(first, pa.Bool8Type):
        is_number = all(types.is_integer(kind) for kind in kinds if kind is not first)
        return settle("true is not a number", pa.int64 if is_number else None)
    storage = _unified([arrow_types.storage_type(kind) for kind in kinds], settle)
    return storage if has_plain else pa.json_(storage)


def _tensor(kind: pa.FixedShapeTensorType, value_type: pa.DataType) -> pa.FixedShapeTensorType:
    return pa.fixed_shape_tensor(value_type, kind.shape, kind.dim_names, kind.permutation)


def _integer(kinds: Kinds, settle: Settle) -> pa.DataType:
    signed = max((kind.bit_width for kind in kinds if types.is_signed_integer(kind)), default=0)
    unsigned = max((kind.bit_width for kind in kinds if types.is_unsigned_integer(kind)), default=0)
    bits = max(signed, 2 * unsigned) if signed else unsigned
    if bits > 64:
        return settle("no integer type holds uint64 and negative numbers", pa.int64)
    return pa.type_for_alias(f"{'int' if signed else 'uint'}{bits}")


def _decimal(kinds: Kinds, settle: Settle) -> pa.DataType:
    integers = [kind for kind in kinds if types.is_integer(kind)]
    _unified(integers, settle)  # integers that do not unify do not become decimals either
    decimals = [kind for kind in kinds if types.is_decimal(kind)]
    scale = max(kind.scale for kind in decimals)
    whole = max([kind.precision - kind.scale for kind in decimals] + list(map(integer_digits, integers)))
    bits = max(128, *(kind.bit_width for kind in decimals))
    if whole + scale > _MAX_DIGITS[bits]:
        bits = 256
    if whole + scale > _MAX_DIGITS[bits]:
        return settle(
            f"{whole} digits before the point and {scale} after it are more than {_MAX_DIGITS[bits]}", None
        )
    return (pa.decimal256 if bits == 256 else pa.decimal128)(whole + scale, scale)


def _finest(kinds: Kinds) -> str:
    return _UNITS[max(_UNITS.index(kind.unit) for kind in kinds)]


def _timestamp(kinds: Kinds, settle: Settle) -> pa.DataType:
    zones = {"UTC" if kind.tz in UTC_NAMES else kind.tz for kind in kinds}
    if len(zones) > 1:
        reason = "one has a zone, the other is local time" if None in zones else "zones differ"
        return settle(reason, lambda: pa.timestamp(_finest(kinds), "UTC"))
    return pa.timestamp(_finest(kinds), zones.pop())


def _time(kinds: Kinds, settle: Settle) -> pa.DataType:
    unit = _finest(kinds)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _list(kinds: Kinds, settle: Settle) -> pa.DataType:
    item = _child([kind.value_field for kind in kinds], settle)
    return pa.list_(item) if all(map(types.is_list, kinds)) else pa.large_list(item)


def _fixed_size_list(kinds: Kinds, settle: Settle) -> pa.DataType:
    if len({kind.list_size for kind in kinds}) > 1:
        return settle("sizes differ, and with them an axis of the tensors", partial(_as_lists, kinds))
    return arrow_types.with_child_fields(kinds[0], [_child([kind.value_field for kind in kinds], settle)])


def _as_lists(kinds: Kinds) -> pa.DataType:
    return _list(
        [pa.list_(kind.value_field) if types.is_fixed_size_list(kind) else kind for kind in kinds], _declare
    )


def _struct(kinds: Kinds, settle: Settle) -> pa.DataType:
    parts = [{child.name: child for child in kind} for kind in kinds]
    if any(len(part) < kind.num_fields for part, kind in zip(parts, kinds, strict=True)):
        return settle("a struct has two fields of one name", None)
    names = dict.fromkeys(name for part in parts for name in part)
    return pa.struct([_child([part.get(name, _MISSING) for part in parts], settle, name) for name in names])


def _map(kinds: Kinds, settle: Settle) -> pa.DataType:
    key = _child([kind.key_field for kind in kinds], settle)
    item = _child([kind.item_field for kind in kinds], settle)
    return pa.map_(key, item, keys_sorted=all(kind.keys_sorted for kind in kinds))


def _child(fields: Sequence[pa.Field], settle: Settle, name: str | None = None) -> pa.Field:
    kind = _unified([field.type for field in fields], settle)
    return _like(fields[0], fields[0].name if name is None else name, kind, fields)


def _like(first: pa.Field, name: str, kind: pa.DataType, fields: Sequence[pa.Field]) -> pa.Field:
    return pa.field(name, kind, any(field.nullable for field in fields), first.metadata)


_FAMILIES: dict[str, tuple[arrow_types.Predicate, ...]] = {
    "bool": (types.is_boolean,),
    "integer": (types.is_integer,),
    "floating": (types.is_floating,),
    "decimal": (types.is_decimal,),
    "date": (types.is_date,),
    "timestamp": (types.is_timestamp,),
    "time": (types.is_time,),
    "duration": (types.is_duration,),
    "text": arrow_types.STRINGS,
    "binary": arrow_types.BYTES,
    "fixed_size_binary": (types.is_fixed_size_binary,),
    "fixed_size_list": (types.is_fixed_size_list,),
    "list": arrow_types.LISTS,
    "struct": (types.is_struct,),
    "map": (types.is_map,),
}  # the first that holds: LISTS have fixed-size lists, too
_RULES: dict[str, Callable[[Kinds, Settle], pa.DataType]] = {
    "integer": _integer,
    "floating": lambda kinds, settle: max(kinds, key=lambda kind: kind.bit_width),
    "decimal": _decimal,
    "date": lambda kinds, settle: pa.date64(),
    "timestamp": _timestamp,
    "time": _time,
    "duration": lambda kinds, settle: pa.duration(_finest(kinds)),
    "text": lambda kinds, settle: pa.large_string(),
    "binary": lambda kinds, settle: pa.large_binary(),
    "fixed_size_binary": lambda kinds, settle: settle("sizes differ", pa.large_binary),
    "fixed_size_list": _fixed_size_list,
    "list": _list,
    "struct": _struct,
    "map": _map,
}
_AXES = "one has a fixed size, which is an axis of the tensor"
_CONFLICTS: dict[tuple[str, str], tuple[str, Callable[[Kinds], pa.DataType] | None]] = {
    ("floating", "integer"): ("integers do not become floats", lambda kinds: pa.float64()),
    ("decimal", "floating"): ("a float is not a decimal", None),
    ("bool", "integer"): ("true is not a number", lambda kinds: pa.int64()),
    ("integer", "text"): ("a number is not a text", None),
    ("date", "timestamp"): (
        "a day is not an instant",
        lambda kinds: _timestamp(
            [pa.timestamp("s") if types.is_date(one) else one for one in kinds], _declare
        ),
    ),
    ("binary", "text"): ("bytes need not be text", lambda kinds: pa.large_string()),
    ("binary", "fixed_size_binary"): (_AXES, lambda kinds: pa.large_binary()),
    ("fixed_size_list", "list"): (_AXES, _as_lists),
}
"""Reasons why families of types do not unify, and the type to declare for both."""
