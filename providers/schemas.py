"""The common schema of several files, and what to read from each."""

from collections.abc import Sequence

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.record.selection import Rename, Selection, rename_schema, select_schema, selection


def agreeing(
    paths: Sequence[str], schemas: Sequence[pa.Schema], columns: Sequence[str] | None, rename: Rename | None
) -> list[Selection]:
    """What to read from each file so that all come out with the first one's schema.

    Columns may be in another order, and columns that are not asked for may differ. ProviderError, with both
    files, the column and its types, for any other difference.
    """
    first = selection(schemas[0], columns, rename)
    found = [first]
    for path, schema in zip(paths[1:], schemas[1:], strict=True):
        if schema.equals(schemas[0]):
            found.append(first)
            continue
        renamed = schema if rename is None else rename_schema(schema, rename)
        _check(first.schema, renamed, columns, paths[0], path)
        found.append(Selection(schema, renamed, first.schema))
    return found


def _check(
    expected: pa.Schema, found: pa.Schema, columns: Sequence[str] | None, here: str, there: str
) -> None:
    for name in expected.names:
        if name not in found.names:
            raise ProviderError(f"column {name!r} is in {here}, but not in {there}")
    if columns is None and len(found) > len(expected):
        extra = next(name for name in found.names if name not in expected.names)
        raise ProviderError(
            f"column {extra!r} is in {there}, but not in {here}\nchoose columns with columns="
        )
    chosen = found if columns is None else select_schema(found, columns)
    for field in expected:
        other = chosen.field(field.name).type
        if other != field.type:
            raise ProviderError(f"column {field.name!r} is {field.type} in {here}, but {other} in {there}")
