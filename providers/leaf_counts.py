"""Counts of the values in each column of a Parquet file, from its footer alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types

from seqflow.providers.footers import ColumnChunk
from seqflow.providers.parquet import ParquetSource
from seqflow.providers.provider import Block

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeafCounts:
    """Counts of one leaf column in one row group."""

    path: Path
    """The names of the fields from the column down to the leaf; lists add `values`, maps `keys` and `values`."""
    entries: int
    """The number of values, nulls included, plus one for each empty list: the sum of `max(length, 1)`."""
    values: int | None
    """The number of values, nulls included; None where the footer does not have it."""
    text_bytes: int | None
    """The number of bytes of all texts; None for other types, or where the footer does not have it."""


def leaf_counts(source: ParquetSource) -> Iterator[tuple[Block, list[LeafCounts]]]:
    """Every row group with the counts of its leaf columns, by the names under which they are read.

    `values` and `text_bytes` come from the size statistics, which newer writers add.
    """
    for origin, file in source.files.items():
        leaves = [leaf for field in file.selection.renamed for leaf in _leaves(field, (), 0)]
        for group, chunks in enumerate(file.chunks(origin)):
            counts = [
                _counts(path, optional, chunk) for (path, optional), chunk in zip(leaves, chunks, strict=True)
            ]
            yield Block(origin, group, file.metadata.row_group(group).num_rows, None), counts


def _counts(path: Path, optional: int, chunk: ColumnChunk) -> LeafCounts:
    by_level = chunk.definition_levels
    values = None if by_level is None else sum(by_level[len(by_level) - 1 - optional :])
    return LeafCounts(path, chunk.num_values, values, chunk.text_bytes)


def _leaves(field: pa.Field, path: Path, optional: int) -> Iterator[tuple[Path, int]]:
    """Each leaf with the number of definition levels above that of a value of its innermost list."""
    kind, path, optional = field.type, (*path, field.name), optional + field.nullable
    if types.is_struct(kind):
        for child in kind:
            yield from _leaves(child, path, optional)
    elif types.is_map(kind):
        yield from _leaves(kind.key_field.with_name("keys"), path, 0)
        yield from _leaves(kind.item_field.with_name("values"), path, 0)
    elif isinstance(kind, pa.BaseExtensionType) or not hasattr(kind, "value_field"):
        yield path, optional
    else:
        yield from _leaves(kind.value_field.with_name("values"), path, 0)
