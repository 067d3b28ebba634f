"""Count how often each key of a column occurs, block by block."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from seqflow.errors import UnknownColumnError, nearest
from seqflow.progress import over
from seqflow.providers import open
from seqflow.providers.lenient import LenientReader
from seqflow.record.arrow_types import LISTS, is_any
from seqflow.record.buffers import nulls_of
from seqflow.record.lists import list_parts, take_any
from seqflow.vocabulary.keys import as_keys

_FEW = 1 << 20
"""Counts of blocks are added up when there are more rows than this."""


def keys_of_column(source: Any, column: str, lenient: LenientReader | None = None) -> Iterator[pa.Array]:
    """Yield the keys of a column, block by block, also from lists at any depth; nulls are left out.

    A path selects a part: `keys` and `values` of a map, `values` of a list, a field of a struct. `lenient` counts
    the rows and the files that are left out.
    """
    provider, lenient = open(source), lenient or LenientReader()
    blocks = over(provider.blocks(), "blocks", lambda: provider.num_blocks)
    outer, *inner = column.split(".")
    if outer not in provider.schema.names:
        guess = nearest(outer, provider.schema.names)
        raise UnknownColumnError(f"{provider.origin} has no column {outer!r}{guess}")
    for block in provider.ahead(blocks, [outer]):
        found = lenient.read(provider, block, [outer]).column(outer)
        for chunk in found.chunks if isinstance(found, pa.ChunkedArray) else [found]:
            for name in inner:
                chunk = _part(_known(chunk), name, column)
            yield as_keys(_elements(chunk, column))


def _part(array: pa.Array, name: str, column: str) -> pa.Array:
    kind = array.type
    if types.is_map(kind) and name in ("keys", "values"):
        return list_parts(column, array, None)[1].field(0 if name == "keys" else 1)
    if types.is_struct(kind) and kind.get_field_index(name) >= 0:
        return array.field(kind.get_field_index(name))
    if is_any(kind, LISTS) and name == "values":
        return list_parts(column, array, None)[1]
    raise UnknownColumnError(f"{column}: {kind} has no part {name!r}")


def _known(array: pa.Array) -> pa.Array:
    """Return the rows that are not null."""
    nulls = nulls_of(array)
    return array if nulls is None else take_any(array, np.flatnonzero(~nulls))


def _elements(array: pa.Array, column: str) -> pa.Array:
    """Return the values that are not null, also from lists."""
    array = _known(array)
    return _elements(list_parts(column, array, None)[1], column) if is_any(array.type, LISTS) else array


def count(blocks: Iterable[pa.Array]) -> pa.Table:
    """Return the distinct keys of all blocks as column `key`, and their numbers of occurrences as `count`."""
    counts: list[pa.Table] = []
    for keys in blocks:
        counts.append(pa.Table.from_arrays(compute.value_counts(keys).flatten(), ["key", "count"]))
        if sum(len(one) for one in counts[1:]) > max(_FEW, len(counts[0])):
            counts = [_added(counts)]
    return _added(counts) if counts else pa.table({"key": pa.nulls(0), "count": pa.array([], pa.int64())})


def _added(counts: list[pa.Table]) -> pa.Table:
    typed = [one for one in counts if len(one)] or counts[:1]
    if len(typed) == 1:
        return typed[0]
    sums = pa.concat_tables(typed).group_by("key").aggregate([("count", "sum")])
    return sums.rename_columns({"key": "key", "count_sum": "count"})


def most_frequent(counts: pa.Table, min_count: int, most: int | None) -> tuple[pa.Array, pa.Array]:
    """Return the keys that occur `min_count` times or more, most frequent first, ties in ascending order; and the
    counts.
    """
    frequent = counts.filter(compute.greater_equal(counts["count"], min_count))
    if len(frequent):
        picked = compute.sort_indices(frequent, [("count", "descending"), ("key", "ascending")])
        frequent = frequent.take(picked if most is None else picked.slice(0, most))
    return as_keys(frequent["key"]), frequent["count"].combine_chunks()
