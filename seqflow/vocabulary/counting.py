"""The keys of a column, and how often each occurs, over many blocks."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyarrow import compute, types

from seqflow.errors import UnknownColumnError, nearest
from seqflow.providers import open
from seqflow.vocabulary.keys import as_keys

_FEW = 1 << 20
"""As many counts of blocks may wait before they are added up."""


def keys_of_column(source: Any, column: str) -> Iterator[pa.Array]:
    """The keys of a column, block by block, those in lists at any depth; nulls are left out.

    A path names a part: `keys` and `values` of a map, `values` of a list, a field of a struct.
    """
    provider = open(source)
    outer, *inner = column.split(".")
    if outer not in provider.schema.names:
        guess = nearest(outer, provider.schema.names)
        raise UnknownColumnError(f"{provider.origin} has no column {outer!r}{guess}")
    for block in provider.blocks():
        found = provider.read(block, [outer]).column(outer)
        for chunk in found.chunks if isinstance(found, pa.ChunkedArray) else [found]:
            part = chunk
            for name in inner:
                part = _part(part.drop_null(), name, column)
            yield as_keys(_without_nulls(part))


def _part(array: pa.Array, name: str, column: str) -> pa.Array:
    kind = array.type
    if types.is_map(kind) and name in ("keys", "values"):
        whole = array.keys if name == "keys" else array.items
        first, last = (array.offsets[0].as_py(), array.offsets[-1].as_py()) if len(array) else (0, 0)
        return whole.slice(first, last - first)
    if types.is_struct(kind) and kind.get_field_index(name) >= 0:
        return compute.struct_field(array, name)
    if _is_list(kind) and name == "values":
        return array.flatten()
    raise UnknownColumnError(f"{column}: {kind} has no part {name!r}")


def _is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _without_nulls(array: pa.Array) -> pa.Array:
    array = array.drop_null()
    return _without_nulls(array.flatten()) if _is_list(array.type) else array


def count(blocks: Iterable[pa.Array]) -> pa.Table:
    """The distinct keys of all blocks as column `key`, and how often each occurs as `count`."""
    counts: list[pa.Table] = []
    for keys in blocks:
        counts.append(pa.Table.from_arrays(compute.value_counts(keys).flatten(), ["key", "count"]))
        if sum(len(one) for one in counts[1:]) > max(_FEW, len(counts[0])):
            counts = [_added(counts)]
    return _added(counts) if counts else pa.table({"key": pa.nulls(0), "count": pa.array([], pa.int64())})


def _added(counts: list[pa.Table]) -> pa.Table:
    typed = [one for one in counts if len(one)] or counts[:1]
    sums = pa.concat_tables(typed).group_by("key").aggregate([("count", "sum")])
    return sums.rename_columns({"key": "key", "count_sum": "count"})


def most_frequent(counts: pa.Table, min_count: int, most: int | None) -> pa.Array:
    """The keys that occur `min_count` times or more, by falling count, equal ones in ascending order."""
    frequent = counts.filter(compute.greater_equal(counts["count"], min_count))
    order = [("count", "descending"), ("key", "ascending")]
    if not len(frequent):
        return as_keys(frequent["key"])
    picked = compute.sort_indices(frequent, order)
    return as_keys(frequent["key"].take(picked if most is None else picked.slice(0, most)))
