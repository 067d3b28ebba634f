"""Counts of the values in each column of a Parquet file, from its footer alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyarrow import types

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
        sizes = _size_statistics(file.metadata)
        for group in range(file.metadata.num_row_groups):
            row_group = file.metadata.row_group(group)
            counts = [
                _counts(path, optional, row_group.column(i).num_values, sizes[group][i])
                for i, (path, optional) in enumerate(leaves)
            ]
            yield Block(origin, group, row_group.num_rows, None), counts


def _counts(path: Path, optional: int, entries: int, sizes: dict[int, Any]) -> LeafCounts:
    by_level = sizes.get(_DEFINITION_LEVELS)
    values = None if by_level is None else sum(by_level[len(by_level) - 1 - optional :])
    return LeafCounts(path, entries, values, sizes.get(_TEXT_BYTES))


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


# Field numbers of the format's Thrift definition.
_ROW_GROUPS, _COLUMNS, _COLUMN_METADATA, _SIZE_STATISTICS = 4, 1, 3, 16
_TEXT_BYTES, _DEFINITION_LEVELS = 1, 3


def _size_statistics(metadata: Any) -> list[list[dict[int, Any]]]:
    """The size statistics of each column of each row group, which pyarrow keeps but does not show."""
    file = BytesIO()
    metadata.write_metadata_file(file)
    footer = _Compact(file.getvalue()[4:-8]).struct()
    return [
        [column[_COLUMN_METADATA].get(_SIZE_STATISTICS, {}) for column in group[_COLUMNS]]
        for group in footer[_ROW_GROUPS]
    ]


class _Compact:
    """Reads Thrift's compact protocol: structs as dicts by field number."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2 | 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._unsigned())
            case 9 | 10:
                head = self._byte()
                size = head >> 4 if head >> 4 < 15 else self._unsigned()
                return [self._value(head & 15) for _ in range(size)]
            case 12:
                return self.struct()
        raise ValueError(f"found a field of type {kind} in a footer")

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        self._at += size
        return self._content[self._at - size : self._at]

    def _unsigned(self) -> int:
        number = shift = 0
        while (part := self._byte()) >= 128:
            number |= (part & 127) << shift
            shift += 7
        return number | part << shift

    def _integer(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)
