"""The common schema of several files, and the selection to read from each."""

from collections.abc import Sequence

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.record.arrow_types import child_fields, with_child_fields
from seqflow.record.selection import (
    Picked,
    Selection,
    check_names,
    rename_schema,
    select_schema,
    selection,
)


def common_selections(paths: Sequence[str], schemas: Sequence[pa.Schema], picked: Picked) -> list[Selection]:
    """Return the selection to read from each file, so that all give the schema of the first.

    Columns may be in another order, and columns that are not read may differ. A field that may be null in one file
    may be null in that schema. Raise ProviderError, with both files, the column and its types, for any other
    difference.
    """
    first = selection(schemas[0], *picked)
    common = first.schema
    found = [first]
    for path, schema in zip(paths[1:], schemas[1:], strict=True):
        if schema.equals(schemas[0]):
            found.append(first)
            continue
        renamed = schema if picked.rename is None else rename_schema(schema, picked.rename)
        common = _agreed(common, renamed, picked.columns, paths[0], path)
        found.append(Selection(schema, renamed, common))
    parts = {id(one): one.to(common) for one in found}  # files of one schema share their selection
    return [parts[id(one)] for one in found]


def _agreed(
    expected: pa.Schema, found: pa.Schema, columns: Sequence[str] | None, here: str, there: str
) -> pa.Schema:
    """Return the expected schema; a field is nullable if it is nullable in either."""
    chosen = found if columns is None else select_schema(found, columns)
    check_names(chosen)
    names, found_names = set(expected.names), set(found.names)
    for name in expected.names:
        if name not in found_names:
            raise ProviderError(f"column {name!r} is in {here}, but not in {there}")
    if columns is None and len(found) > len(expected):
        extra = next(name for name in found.names if name not in names)
        raise ProviderError(
            f"column {extra!r} is in {there}, but not in {here}\nchoose columns with columns="
        )
    others = {field.name: field for field in chosen}
    fields = []
    for field in expected:
        agreed = _nullable(field, others[field.name])
        if agreed is None:
            kinds = f"{field.type} in {here}, but {others[field.name].type} in {there}"
            raise ProviderError(f"column {field.name!r} is {kinds}")
        fields.append(agreed)
    return pa.schema(fields, expected.metadata)


def _nullable(field: pa.Field, other: pa.Field) -> pa.Field | None:
    """Return the field, nullable at each level if either is; None if their types differ otherwise."""
    kind = field.type
    if kind != other.type:
        ones, others = child_fields(kind), child_fields(other.type)
        if kind.id != other.type.id or not ones or len(ones) != len(others):
            return None
        pairs = zip(ones, others, strict=True)
        fields = [_nullable(one, two) if one.name == two.name else None for (_, one), (_, two) in pairs]
        if any(one is None for one in fields):
            return None
        kind = with_child_fields(kind, fields)
        if kind != with_child_fields(other.type, fields):
            return None  # such as fixed-size lists of another size
    return field.with_type(kind).with_nullable(field.nullable or other.nullable)
