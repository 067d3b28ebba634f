"""Hive partitions: files in folders such as `lang=python/year=2024`, whose names become columns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeGuard
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from seqflow.errors import DamagedFileError, ProviderError, ProviderOptionError, UnknownColumnError
from seqflow.files.local import LOCAL
from seqflow.files.place import Files, Range, absolute, folder_of, join
from seqflow.providers.bad_files import RAISE
from seqflow.providers.block_columns import BlockColumns, ColumnarSource
from seqflow.providers.file_set import FileSet
from seqflow.providers.filter.row_filter import Condition
from seqflow.providers.filter.value_ranges import (
    UNKNOWN,
    Path,
    RangedSource,
    Ranges,
    ValueRange,
    range_of_value,
)
from seqflow.providers.paths import searched_folders
from seqflow.providers.provider import Block, Provider
from seqflow.providers.schemas import UNIFY
from seqflow.providers.source import (
    CountedSource,
    DividedSource,
    FetchedSource,
    JoinedSource,
    SlicedSource,
    Source,
    of_files,
    reads_within,
)
from seqflow.record import BadRow
from seqflow.record.partition_names import folder_value
from seqflow.record.selection import ALL, Picked, Table, check_names, rename_schema, select_schema

_FEW_ROWS, _MOST_FOLDERS = 1 << 12, 1 << 12
"""Most rows of columns from folders that are kept, and most of these columns."""
Partitions = dict[str, dict[str, str | None]]
"""Values in the names of folders, by the path of a file and the column."""


class FilePerRow(Protocol):
    """Source in which each row is a file."""

    def paths_of(self, block: Block) -> Sequence[str]:
        """Return the file of each row of a block."""
        ...


def is_file_per_row(source: object) -> TypeGuard[FilePerRow]:
    return hasattr(source, "paths_of")


class Divided(NamedTuple):
    """A schema, its columns of the files, and the names of those from folders."""

    schema: pa.Schema
    of_files: pa.Schema
    names: tuple[str, ...]
    row_bytes: dict[tuple[Any, ...], int]
    """Bytes of a row's values from folders, by these."""


@dataclass(frozen=True, slots=True)
class PartitionedSource:
    """Files whose rows have more columns, from the names of folders: one value for each file."""

    files: Source
    schema: pa.Schema
    """Columns from the names of folders."""
    values: Mapping[str, Mapping[str, Any]]
    """Values of these columns, by the path of a file."""
    known: dict[pa.Schema, pa.Schema] = field(default_factory=dict, compare=False)
    """Columns of the files in each schema that was read: selections are cached for the same object."""
    latest: dict[None, Divided] = field(default_factory=dict, compare=False)
    """The schema that was read last: hashing a schema takes a part of a small read."""
    folders: dict[Any, list[pa.Array]] = field(default_factory=dict, compare=False)
    """Columns from folders for a few rows, by their names, values and number of rows."""

    @property
    def num_rows(self) -> int | None:
        return self.files.num_rows

    @property
    def paths(self) -> tuple[str, ...]:
        return self.files.paths

    @property
    def store(self) -> Files:
        return getattr(self.files, "store", LOCAL)

    def of_files(self, paths: Collection[str]) -> PartitionedSource:
        if not isinstance(self.files, DividedSource):
            return self
        values = {path: self.values[path] for path in paths if path in self.values}
        return replace(
            self, files=of_files(self.files, paths), values=values, known={}, latest={}, folders={}
        )

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        return (self._with_folders(block, schema) for block in self.files.blocks(self._of_files(schema)))

    def block_columns(self, schema: pa.Schema) -> BlockColumns:
        if not isinstance(self.files, ColumnarSource) or is_file_per_row(self.files):
            return BlockColumns.of(self.blocks(schema))
        blocks = self.files.block_columns(self._of_files(schema))
        firsts = (Block(path, 0, 1, 0) for path in blocks.origins)
        row_bytes = np.array([self._row_bytes(block, schema) for block in firsts], np.int64)
        return replace(blocks, nbytes=blocks.nbytes + row_bytes[blocks.file] * blocks.rows)

    def ranged_blocks(
        self, schema: pa.Schema, paths: Sequence[Path]
    ) -> Iterator[tuple[Block, Sequence[ValueRange]]]:
        of_files, own = self._of_files(schema), [path for path in paths if path[0] not in self.schema.names]
        found: Iterator[tuple[Block, Sequence[ValueRange]]]
        if isinstance(self.files, RangedSource):
            found = self.files.ranged_blocks(of_files, own)
        else:
            found = ((block, ()) for block in self.files.blocks(of_files))
        for block, ranges in found:
            known = dict(zip(own, ranges, strict=False))
            known |= {path: self._range(block, path[0]) for path in paths if path not in own}
            yield self._with_folders(block, schema), [known.get(path, UNKNOWN) for path in paths]

    def _with_folders(self, block: Block, schema: pa.Schema) -> Block:
        """Return the block with the bytes of the columns from folders added to its size."""
        if block.nbytes is None:
            return block
        size = self._row_bytes(block, schema) * (block.num_rows or 0)
        return Block(block.origin, block.index, block.num_rows, block.nbytes + size)

    def _range(self, block: Block, column: str) -> ValueRange:
        """Return the range of a column from the names of folders."""
        if is_file_per_row(self.files):
            return UNKNOWN
        return range_of_value(self.values[block.origin].get(column))

    def read(self, block: Block, schema: pa.Schema, bad_rows: list[BadRow] | None) -> Table:
        return self._joined(self.files.read(block, self._of_files(schema), bad_rows), block, schema)

    def read_joined(self, blocks: Sequence[Block], schema: pa.Schema, max_bytes: int) -> Table | None:
        if not isinstance(self.files, JoinedSource):
            return None
        table = self.files.read_joined(blocks, self._of_files(schema), max_bytes)
        return None if table is None else self._joined(table, blocks[0], schema)

    def ranges(self, block: Block, schema: pa.Schema) -> Collection[Range]:
        if not isinstance(self.files, FetchedSource):
            return ()
        return self.files.ranges(block, self._of_files(schema))

    def rows_of(self, block: Block) -> int | None:
        """Return the number of rows of a block, if the files tell it."""
        return self.files.rows_of(block) if isinstance(self.files, CountedSource) else block.num_rows

    def _of_files(self, schema: pa.Schema) -> pa.Schema:
        return self._divided(schema).of_files

    def _divided(self, schema: pa.Schema) -> Divided:
        latest = self.latest.get(None)
        if latest is None or latest.schema is not schema:
            own = self.schema.names
            if schema not in self.known:
                self.known[schema] = pa.schema([one for one in schema if one.name not in own])
            names = set(schema.names)
            found = tuple(name for name in own if name in names)
            latest = self.latest[None] = Divided(schema, self.known[schema], found, {})
        return latest

    def _row_bytes(self, block: Block, schema: pa.Schema) -> int:
        """Return the approximate bytes of a row's values from folders."""
        if is_file_per_row(self.files):
            return _mean_bytes(self._of_folders(block, schema, 1))
        known, key = self._divided(schema).row_bytes, tuple(self.values[block.origin].values())
        if key not in known:
            known[key] = _mean_bytes(self._of_folders(block, schema, 1))
        return known[key]

    def _of_folders(self, block: Block, schema: pa.Schema, rows: int) -> list[pa.Array]:
        """Return the columns of `schema` from the names of folders, for this number of rows of a block."""
        names = self._divided(schema).names
        if is_file_per_row(self.files):
            found = [self.values[path] for path in self.files.paths_of(block)]
            return [
                pa.array([values.get(name) for values in found], self.schema.field(name).type)
                for name in names
            ]
        values = self.values[block.origin]
        # folders, not blocks, differ
        key = rows, names, *map(values.get, names)
        arrays = self.folders.get(key)
        if arrays is None:
            arrays = [
                pa.repeat(pa.scalar(values.get(name), self.schema.field(name).type), rows) for name in names
            ]
            if rows <= _FEW_ROWS and len(self.folders) < _MOST_FOLDERS:
                self.folders[key] = arrays
        return arrays

    def _joined(self, table: Table, block: Block, schema: pa.Schema) -> Table:
        columns = dict(zip(table.schema.names, table.columns, strict=True))
        columns |= zip(
            self._divided(schema).names, self._of_folders(block, schema, table.num_rows), strict=True
        )
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _mean_bytes(columns: Sequence[pa.Array]) -> int:
    """Return the bytes of a row, rounded up."""
    return -(-sum(array.nbytes for array in columns) // max(1, len(columns[0]))) if columns else 0


class SlicedPartitionedSource(PartitionedSource):
    """PartitionedSource of files that can be read in slices."""

    def read_within(
        self,
        block: Block,
        schema: pa.Schema,
        rows: range | None,
        max_bytes: int,
        bad_rows: list[BadRow] | None = None,
    ) -> Table:
        if reads_within(self.files):
            table = self.files.read_within(block, self._of_files(schema), rows, max_bytes, bad_rows)
            return self._joined(table, block, schema)
        if rows is None:
            return self.read(block, schema, bad_rows)
        return self.read_rows(block, schema, rows, bad_rows)

    def read_rows(
        self, block: Block, schema: pa.Schema, rows: range, bad_rows: list[BadRow] | None = None
    ) -> Table:
        assert isinstance(self.files, SlicedSource)
        return self._joined(
            self.files.read_rows(block, self._of_files(schema), rows, bad_rows), block, schema
        )


def recorded_types(source: object, store: Files = LOCAL) -> dict[str, pa.DataType]:
    """Return the types of partitions by column, from the manifests of the folders that are searched."""
    found: dict[str, pa.DataType] = {}
    for top in searched_folders(source):
        path = join(top, "_manifest.json")
        if (entry := store.entry(path)) is None:
            continue
        content = bytes(store.read(path, 0, entry.size))
        try:
            partitions = json.loads(content)["partitions"]
            found |= {name: pa.type_for_alias(kind) for name, kind in partitions.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return found


def find_partitions(
    source: object, paths: Sequence[str], names: Sequence[str] | None = None
) -> Partitions | None:
    """Return the values that the names of each file's folders hold, below the searched folder; None if none do.

    A folder is called `column=value`; or only `value`, one level for each column, if the `names` are given.
    """
    if isinstance(names, str) or (names is not None and not all(isinstance(name, str) for name in names)):
        raise ProviderOptionError(f"partitioning is {names!r}, expected a list of names of columns")
    tops = searched_folders(source)
    folders = [*map(folder_of, paths)]
    by_folder = {folder: _values(folder, tops, names) for folder in {*folders}}
    if not any(by_folder.values()):
        return None
    return {path: by_folder[folder] for path, folder in zip(paths, folders, strict=True)}


def open_partitioned(
    open_files: Callable[[FileSet], Provider],
    files: FileSet,
    partitions: Partitions,
    types: Mapping[str, pa.DataType],
    condition: Condition | None = None,
) -> Provider:
    """Return a provider of the columns in files, followed by the columns from folders, of these `types`.

    A file is not opened if its folders show that no row fulfils the `condition`; the first one is always opened.

    A column that the files have is read from them. A file outside the folders of a column has null there. If no
    type is recorded, it is int64 if all values are written as integers, else text.
    """
    columns, rename = files.picked
    paths = list(partitions)
    own = _own_schema(open_files, files)
    names = [
        name
        for name in dict.fromkeys(key for values in partitions.values() for key in values)
        if name not in own.names
    ]
    if not names or isinstance(columns, str):
        return open_files(files)
    new_names = {name: name for name in names}
    if isinstance(rename, Mapping):
        new_names |= {name: rename[name] for name in names if name in rename}
        rename = {old: new for old, new in rename.items() if old not in names}
    # folders, not files, differ: those of one folder share their values
    values = {id(of): {new_names[name]: of.get(name) for name in names} for of in partitions.values()}
    fields = [
        pa.field(new, types.get(name) or _type_of([of[new] for of in values.values()]))
        for name, new in new_names.items()
    ]
    of_folders = _typed(values, fields)
    typed = {path: of_folders[id(of)] for path, of in partitions.items()}
    if condition is not None:
        by_source = pa.schema([one.with_name(name) for one, name in zip(fields, names, strict=True)])
        found = [{name: typed[path][new] for name, new in new_names.items()} for path in paths]
        paths = [
            path
            for path, keep in zip(paths, _may_fulfil(condition, own, by_source, found), strict=True)
            if keep
        ]
        paths = paths or list(partitions)[:1]  # a provider needs a file for its schema
    inner = None
    if columns is not None:
        select_schema(pa.schema([*(own if rename is None else rename_schema(own, rename)), *fields]), columns)
        inner = [one for one in columns if one.partition(".")[0] not in new_names.values()]
    found_files = open_files(replace(files, paths=tuple(paths), picked=Picked(inner, rename)))
    schema = pa.schema([*found_files.schema, *fields])
    check_names(schema)
    kind = SlicedPartitionedSource if isinstance(found_files.source, SlicedSource) else PartitionedSource
    source = kind(found_files.source, pa.schema(fields), typed)
    return replace(
        found_files, schema=schema if columns is None else select_schema(schema, columns), source=source
    )


def _own_schema(open_files: Callable[[FileSet], Provider], files: FileSet) -> pa.Schema:
    """Return the columns of the first file that is not damaged."""
    for path in files.paths:
        alone = replace(files, paths=(path,), picked=ALL, schema=UNIFY, bad_files=RAISE, damaged={}, notes=[])
        try:
            return open_files(alone).schema
        except DamagedFileError:
            if not files.bad_files.leaves_out:
                raise
    return open_files(files).schema  # raises: all are damaged


def _may_fulfil(
    condition: Condition, own: pa.Schema, folders: pa.Schema, found: Sequence[Mapping[str, Any]]
) -> Sequence[bool]:
    """Return whether rows of each file may fulfil a condition, from the values in the names of folders."""
    try:
        tree = condition.bind(pa.schema([*own, *folders]))
    except UnknownColumnError:  # reported with a better message when the files are open
        return [True] * len(found)
    columns: dict[Path, tuple[pa.DataType, Sequence[ValueRange]]] = {
        (one.name,): (one.type, [range_of_value(values[one.name]) for values in found]) for one in folders
    }
    return Ranges(len(found), columns).possible(tree).true.tolist()  # type: ignore[no-any-return]


def _values(folder: str, tops: Sequence[str], names: Sequence[str] | None) -> dict[str, str | None]:
    """Return the values in the names of a folder and of the folders above it, up to one of `tops`."""
    path = absolute(folder).rstrip(os.sep) + os.sep
    above = [top.rstrip(os.sep) + os.sep for top in tops if path.startswith(top.rstrip(os.sep) + os.sep)]
    folders = list(filter(None, path.removeprefix(max(above, key=len)).split(os.sep))) if above else []
    if names is None:
        return dict(pair for one in folders if (pair := folder_value(one)) is not None)
    if len(folders) != len(names):
        raise ProviderError(
            f"{folder} is {len(folders)} folders deep, expected {len(names)} for partitioning={list(names)}\n"
            "open the folder above all of them, or leave others out with exclude="
        )
    return {name: unquote(one) for name, one in zip(names, folders, strict=True)}


def _type_of(values: Sequence[str | None]) -> pa.DataType:
    """Return int64 if all values are written as integers, else text."""
    found = [value for value in values if value is not None]
    return pa.int64() if found and all(map(_is_integer, found)) else pa.string()


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    # leading zeros stay text, since a column of integers would drop them; 19 digits may exceed int64
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text


def _typed(
    values: Mapping[int, Mapping[str, str | None]], fields: Sequence[pa.Field]
) -> dict[int, dict[str, Any]]:
    kinds = {field.name: field.type for field in fields}
    # each text is converted once: there may be a million folders, but few values
    texts = {pair for of in values.values() for pair in of.items()}
    known = {(name, text): _value(name, text, kinds[name]) for name, text in texts}
    return {key: {name: known[name, text] for name, text in of.items()} for key, of in values.items()}


def _value(column: str, text: str | None, kind: pa.DataType) -> Any:
    """Convert a text from the name of a folder to the type; raise ProviderError if it is not a value of it."""
    try:
        return pa.array([text], pa.string()).cast(kind)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ProviderError(f"the folder of {column} = {text!r} is not of type {kind}: {error}") from None
