"""Folders: columns of files from the names of their folders, one value for each file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from seqflow.record.selection import Table

_FEW_ROWS, _MOST_FOLDERS = 1 << 12, 1 << 12
"""Most rows of columns from folders that are kept, and most of these columns."""


class Divided(NamedTuple):
    """A schema, its columns of the files, and the names of those from folders."""

    schema: pa.Schema
    of_files: pa.Schema
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Folders:
    """Columns from the names of folders."""

    schema: pa.Schema
    values: Mapping[str, Mapping[str, Any]]
    """Values of these columns, by the path of a file."""
    known: dict[pa.Schema, pa.Schema] = field(default_factory=dict, compare=False)
    """Columns of the files in each schema that was read: selections are cached for the same object."""
    latest: dict[None, Divided] = field(default_factory=dict, compare=False)
    """The schema that was read last: hashing a schema takes a part of a small read."""
    arrays: dict[Any, list[pa.Array]] = field(default_factory=dict, compare=False)
    """Columns for a few rows, by their names, values and number of rows."""

    def of(self, paths: Collection[str]) -> Folders:
        """Return those of some files."""
        values = {path: self.values[path] for path in paths if path in self.values}
        return replace(self, values=values, known={}, latest={}, arrays={})

    def divided(self, schema: pa.Schema) -> Divided:
        """Return the columns of a schema that are read from files, and those that are not."""
        latest = self.latest.get(None)
        if latest is None or latest.schema is not schema:
            own = self.schema.names
            if schema not in self.known:
                self.known[schema] = pa.schema([one for one in schema if one.name not in own])
            names = set(schema.names)
            found = tuple(name for name in own if name in names)
            latest = self.latest[None] = Divided(schema, self.known[schema], found)
        return latest

    def joined(self, table: Table, schema: pa.Schema, paths: Sequence[str]) -> Table:
        """Return rows with the columns from folders added: of one file, or each of its own file."""
        if not schema.names:
            return table
        columns = dict(zip(table.schema.names, table.columns, strict=True))
        columns |= zip(self.divided(schema).names, self.columns(schema, paths, table.num_rows), strict=True)
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def row_bytes(self, schema: pa.Schema, paths: Sequence[str]) -> int:
        """Return the bytes that these columns add to a row, on average over files."""
        nbytes: int = sum(array.nbytes for array in self.columns(schema, paths, len(paths)))
        return -(-nbytes // len(paths))

    def columns(self, schema: pa.Schema, paths: Sequence[str], rows: int) -> list[pa.Array]:
        """Return the columns of `schema` from folders, for rows of one file, or each of its own file."""
        names = self.divided(schema).names
        if len(paths) > 1:
            found = [self.values[path] for path in paths]
            return [
                pa.array([values.get(name) for values in found], self.schema.field(name).type)
                for name in names
            ]
        values = self.values[paths[0]]
        # folders, not blocks, differ
        key = rows, names, *map(values.get, names)
        arrays = self.arrays.get(key)
        if arrays is None:
            arrays = [
                pa.repeat(pa.scalar(values.get(name), self.schema.field(name).type), rows) for name in names
            ]
            if rows <= _FEW_ROWS and len(self.arrays) < _MOST_FOLDERS:
                self.arrays[key] = arrays
        return arrays
