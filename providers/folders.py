"""Folders: columns of files from the names of their folders, one value for each file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.record.selection import Table

_FEW_ROWS, _MOST_FOLDERS = 1 << 12, 1 << 12
"""Most rows of columns from folders that are kept, and most of these columns."""


class Divided(NamedTuple):
    """A schema, its columns of the files, and the names of those from folders."""

    schema: pa.Schema
    of_files: pa.Schema
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FolderKeys:
    """Values in the names of folders, before it is known which of them are columns, and of which types."""

    texts: Mapping[str, Mapping[str, str | None]]
    """Values by the path of a file and the key."""
    types: Mapping[str, pa.DataType]
    """Types of columns that are declared or recorded."""

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(key for texts in self._folders() for key in texts))

    def _folders(self) -> Iterable[Mapping[str, str | None]]:
        """Return the values of each folder once: files of a folder share theirs."""
        return {id(of): of for of in self.texts.values()}.values()

    def field(self, name: str, kinds: Iterable[pa.DataType] = ()) -> pa.Field:
        """Return the column of a key: of the type that is declared or recorded, else of one of these `kinds` (those
        of files with the column) that holds all values; else int64 if all are written as integers, or text.
        """
        found = {text for of in self._folders() if (text := of.get(name)) is not None}
        if name in self.types:
            return pa.field(name, self.types[name])
        fitting = (kind for kind in kinds if all(_holds(kind, text) for text in found))
        are_integers = found and all(map(_is_integer, found))
        return pa.field(name, next(fitting, pa.int64() if are_integers else pa.string()))

    def values(self, paths: Iterable[str], fields: Mapping[str, pa.Field]) -> dict[str, dict[str, Any]]:
        """Return the values of some keys by path, under the names and with the types of these `fields`."""
        found: dict[int, dict[str, Any]] = {}
        # each text is converted once: there may be a million folders, but few values
        known: dict[tuple[str, str | None], Any] = {}
        by_path = {}
        for path in paths:
            of = self.texts[path]
            if id(of) not in found:
                for key, column in fields.items():
                    if (pair := (key, of.get(key))) not in known:
                        known[pair] = _value(column, pair[1])
                found[id(of)] = {column.name: known[key, of.get(key)] for key, column in fields.items()}
            by_path[path] = found[id(of)]
        return by_path


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    # leading zeros stay text, since a column of integers would drop them; 19 digits may exceed int64
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text


def _value(column: pa.Field, text: str | None) -> Any:
    """Convert a text from the name of a folder to the type; raise ProviderError if it is not a value of it."""
    try:
        return pa.array([text], pa.string()).cast(column.type)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ProviderError(
            f"the folder of {column.name} = {text!r} is not of type {column.type}: {error}"
        ) from None


def _holds(kind: pa.DataType, text: str) -> bool:
    try:
        _value(pa.field("", kind), text)
    except ProviderError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Folders:
    """Columns from the names of folders."""

    schema: pa.Schema
    values: Mapping[str, Mapping[str, Any]]
    """Values of these columns by the path of a file, without those that all rows of the file have themselves."""
    shared: frozenset[str] = frozenset()
    """Columns that some of the files or rows have themselves."""
    known: dict[pa.Schema, pa.Schema] = field(default_factory=dict, compare=False)
    """Columns of the files in each schema that was read: selections are cached for the same object."""
    latest: dict[None, Divided] = field(default_factory=dict, compare=False)
    """The schema that was read last: hashing a schema takes a part of a small read."""
    arrays: dict[Any, dict[str, pa.Array]] = field(default_factory=dict, compare=False)
    """Columns for a few rows, by their names, values and number of rows."""

    def of(self, paths: Collection[str]) -> Folders:
        """Return those of some files."""
        values = {path: self.values[path] for path in paths if path in self.values}
        return replace(self, values=values, known={}, latest={}, arrays={})

    def divided(self, schema: pa.Schema) -> Divided:
        """Return the columns of a schema that are read from files, and the names of those from folders."""
        latest = self.latest.get(None)
        if latest is None or latest.schema is not schema:
            alone = {*self.schema.names} - self.shared
            if schema not in self.known:
                self.known[schema] = pa.schema([one for one in schema if one.name not in alone])
            names = set(schema.names)
            found = tuple(name for name in self.schema.names if name in names)
            latest = self.latest[None] = Divided(schema, self.known[schema], found)
        return latest

    def joined(self, table: Table, schema: pa.Schema, paths: Sequence[str]) -> Table:
        """Return rows with the columns from folders added: of one file, or each of its own file."""
        import pyarrow.compute as pc

        if not schema.names:
            return table
        columns = dict(zip(table.schema.names, table.columns, strict=True))
        for name, values in self.columns(schema, paths, table.num_rows).items():
            if name in columns and columns[name].null_count < table.num_rows:
                values = pc.coalesce(columns[name], values)
            columns[name] = values
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def row_bytes(self, schema: pa.Schema, paths: Sequence[str]) -> int:
        """Return the bytes that these columns add to a row, on average over files."""
        nbytes: int = sum(array.nbytes for array in self.columns(schema, paths, len(paths)).values())
        return -(-nbytes // len(paths))

    def columns(self, schema: pa.Schema, paths: Sequence[str], rows: int) -> dict[str, pa.Array]:
        """Return the columns of `schema` from folders, for rows of one file, or each of its own file."""
        names, values = self.divided(schema).names, self.values[paths[0]]
        if len(paths) > 1:
            found = [self.values[path] for path in paths]
            return {
                name: pa.array([values[name] for values in found], self.schema.field(name).type)
                for name in names
                if name in values
            }
        # folders, not blocks, differ
        key = rows, names, *map(values.get, names), *map(values.__contains__, names)
        arrays = self.arrays.get(key)
        if arrays is None:
            arrays = {
                name: pa.repeat(pa.scalar(values[name], self.schema.field(name).type), rows)
                for name in names
                if name in values
            }
            if rows <= _FEW_ROWS and len(self.arrays) < _MOST_FOLDERS:
                self.arrays[key] = arrays
        return arrays
