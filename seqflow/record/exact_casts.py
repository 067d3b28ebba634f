"""Cast Arrow arrays to types that hold every value; Arrow's own casts cut times and make large numbers infinite."""

import pyarrow as pa
from pyarrow import types

from seqflow.record.arrow_types import LISTS, TEXTS, Predicate, is_any
from seqflow.record.nested_arrays import with_fields, with_values

Families = tuple[tuple[tuple[Predicate, ...], tuple[Predicate, ...]], ...]

_STRINGS = (types.is_string, types.is_large_string, types.is_string_view)
_BYTES = (types.is_binary, types.is_large_binary, types.is_binary_view)
ALIKE: Families = (
    ((types.is_integer,), (types.is_integer, types.is_floating, types.is_decimal)),
    ((types.is_decimal,), (types.is_integer, types.is_decimal)),
    ((types.is_floating,), (types.is_floating,)),
    ((types.is_temporal,), (types.is_temporal,)),
    (_STRINGS, _STRINGS),
    (_BYTES, _BYTES),
)
"""Families of types: values of the first are cast to types of the second."""


def exact_cast(array: pa.Array, kind: pa.DataType, alike: Families = ALIKE) -> pa.Array:
    """Return the array as one of type `kind`; raise ArrowException when that would change a value.

    A float may be rounded, but stays finite. Structs are cast by the names of their fields; missing fields become
    nulls. A list of pairs becomes a map.
    """
    import pyarrow.compute as pc

    found = array.type
    if found == kind:
        return array
    if types.is_null(found):
        return pa.nulls(len(array), kind)
    if types.is_struct(found) and types.is_struct(kind):
        places = [found.get_field_index(child.name) for child in kind]
        if len(set(places) - {-1}) < len(found):
            raise pa.ArrowInvalid(f"there are keys besides {', '.join(child.name for child in kind)}")
        children = [
            pa.nulls(len(array), child.type) if at < 0 else exact_cast(array.field(at), child.type, alike)
            for at, child in zip(places, kind, strict=True)
        ]
        return with_fields(array, kind, children)
    if is_any(found, LISTS) and types.is_map(kind) and types.is_struct(found.value_type):
        return _map(array, kind, alike)
    if is_any(found, LISTS) and is_any(kind, LISTS):
        values = exact_cast(array.values, kind.value_type, alike)
        return with_values(array, pa.list_(kind.value_field), values).cast(kind)
    if not any(is_any(found, ones) and is_any(kind, others) for ones, others in alike):
        raise pa.ArrowInvalid(f"values are {found}")
    made = array.cast(kind)
    if is_any(found, TEXTS):
        return made
    if len({getattr(one, "tz", None) is None for one in (found, kind)}) > 1:
        raise pa.ArrowInvalid(f"values are {found}, and only one of the types has a zone")
    # Arrow cuts times to the coarser unit and lets large numbers overflow to infinity: cast back and compare
    before, after = array, made.cast(pa.float64() if types.is_floating(found) else found)
    if types.is_floating(found):
        before, after = pc.is_finite(before), pc.is_finite(after)
    if not after.equals(before):
        at = pc.index(pc.not_equal(before, after), True).as_py()
        raise pa.ArrowInvalid(f"{array[at]} is not a value of {kind}")
    return made


def _map(array: pa.Array, kind: pa.MapType, alike: Families) -> pa.Array:
    pairs = array.values
    if pairs.null_count or pairs.field(0).null_count:
        raise pa.ArrowInvalid("a map has a pair without a key")
    keys, values = map(exact_cast, pairs.flatten(), (kind.key_type, kind.item_type), (alike, alike))
    entries = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[entries]
    )
