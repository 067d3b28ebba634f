"""SQLite databases: a table in blocks of rowids; views, and tables without rowids, as streams."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError, ProviderOptionError, nearest
from seqflow.files.local import LOCAL
from seqflow.files.place import Files
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.formats.row_files import open_copies, provider_of_row_files
from seqflow.providers.memory.functions import BatchReader
from seqflow.providers.memory.rereadable import open_rereadable
from seqflow.providers.provider import Provider
from seqflow.providers.type_texts import SchemaLike, declared_schema
from seqflow.record.exact_casts import exact_cast
from seqflow.record.python_values import array_of
from seqflow.record.selection import Table
from seqflow.record.validation import reading

_MAGIC = b"SQLite format 3\0"
_FETCHED = 1000
"""Rows that Python's sqlite3 fetches, and that become Arrow columns, together."""
_BATCH_ROWS = "adbc.sqlite.query.batch_rows"
"""Option of the driver: rows from which it infers types. It is set to all rows of a block."""
_OF_STORAGE = {"integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "blob": pa.binary()}
_PYTHON = {"integer": int, "real": float, "text": str, "blob": bytes}


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """A table and the first rowid of each block."""

    table: str
    rowid: str
    schema: pa.Schema
    starts: tuple[int, ...]
    rows: tuple[int, ...]
    row_bytes: int

    @property
    def sizes(self) -> list[tuple[int, int]]:
        return [(rows, rows * self.row_bytes) for rows in self.rows]

    def read(self, path: str, index: int, columns: Sequence[str]) -> Table:
        schema = pa.schema([self.schema.field(name) for name in columns or self.schema.names[:1]])
        stop = self.starts[index + 1] if index + 1 < len(self.starts) else None
        where = f"{self.rowid} >= {self.starts[index]}" + (
            f" AND {self.rowid} < {stop}" if stop is not None else ""
        )
        query = f"FROM {_quoted(self.table)} WHERE {where} ORDER BY {self.rowid}"
        try:
            import adbc_driver_sqlite.dbapi as adbc
        except ImportError:
            batches = list(_batches(path, query, schema))
            return pa.Table.from_batches(batches, schema)
        # before the driver reads: it converts values of other types without an error
        with closing(_connected(path)) as connection:
            _check_storage(connection, query.partition(" ORDER")[0], schema, self.rowid)
        names = ", ".join(map(_quoted, schema.names))
        with adbc.connect(_uri(path)) as reading, reading.cursor() as cursor:
            cursor.adbc_statement.set_options(**{_BATCH_ROWS: str(max(1, self.rows[index]))})
            cursor.execute(f"SELECT {names} {query}")
            return _typed(cursor.fetch_arrow_table(), schema)


@dataclass(frozen=True, slots=True)
class SqliteRows:
    """Streams of all rows of a view, or of a table without rowids."""

    path: str
    table: str
    columns: pa.Schema
    store: Files = LOCAL

    def schema(self) -> pa.Schema:
        return self.columns

    def stream(self, columns: Sequence[str]) -> BatchReader:
        schema = pa.schema([self.columns.field(name) for name in columns])
        return BatchReader(
            schema, _batches(self.store.local_copy(self.path), f"FROM {_quoted(self.table)}", schema)
        )


@file_format("sqlite")
class Sqlite(Format):
    """Options of SQLite databases."""

    table: str | None = None
    """Table or view to read; None reads the only table."""
    schema: SchemaLike | None = None
    """Types by column, `{"id": "int64"}`; None takes what the table declares."""
    batch_bytes: int | str = "8 MiB"
    """Bytes of rows that are read, and prepared, together."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of a table of SQLite databases, by default the only one. Nothing is written.

        Types are those of `schema`, else those that the table declares: int64, float64, string and binary. If it
        declares none of these, the first value decides. A value of another type is an error.
        """
        declared = None if self.schema is None else declared_schema(self.schema)
        batch_bytes = byte_count(self.batch_bytes)

        def open_one(_: str, copy: str) -> SqliteFile | SqliteRows:
            return _open_file(copy, self.table, declared, batch_bytes)

        found = open_copies(files, open_one, "sqlite file", has_options=True)
        (path, rows), *others = found.items()
        if not others and isinstance(rows, SqliteRows):
            rows = replace(rows, path=path, store=files.store)
            return open_rereadable(rows, path, files.picked, batch_bytes=batch_bytes)
        return provider_of_row_files("sqlite", files, {path: _of_table(one) for path, one in found.items()})


def _of_table(one: SqliteFile | SqliteRows) -> SqliteFile:
    if isinstance(one, SqliteRows):
        raise ProviderError(
            f"{one.table!r} has no rowids, and is read as a stream\nopen one database at a time"
        )
    return one


def _open_file(
    path: str, table: str | None, declared: pa.Schema | None, batch_bytes: int
) -> SqliteFile | SqliteRows:
    with open(path, "rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ProviderError("it does not begin as a database of SQLite does")
    with closing(_connected(path)) as connection:
        name, is_table = _chosen(connection, table)
        schema = _schema(connection, name, declared)
        rowid = _rowid(connection, name, schema) if is_table else None
        if rowid is None:
            return SqliteRows(path, name, schema)
        quoted = _quoted(name)
        (count,) = connection.execute(f"SELECT count(*) FROM {quoted}").fetchone()
        row_bytes = max(1, os.path.getsize(path) // max(1, count))
        rows = max(1, batch_bytes // row_bytes)
        starts = list(_starts(connection, quoted, rowid, rows))
    counts = [min(rows, count - start) for start in range(0, count, rows)]
    return SqliteFile(name, rowid, schema, tuple(starts), tuple(counts), row_bytes)


def _starts(connection: sqlite3.Connection, quoted: str, rowid: str, rows: int) -> Iterator[int]:
    """Yield the rowid of every row whose number is a multiple of `rows`, in one pass."""
    found = connection.execute(f"SELECT {rowid} FROM {quoted} ORDER BY {rowid} LIMIT 1").fetchone()
    while found is not None:
        yield found[0]
        # from the last start, not from the first row: OFFSET walks over the rows that it skips
        next_start = f"SELECT {rowid} FROM {quoted} WHERE {rowid} >= ? ORDER BY {rowid} LIMIT 1 OFFSET {rows}"
        found = connection.execute(next_start, found).fetchone()


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(_uri(path), uri=True)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _uri(path: str) -> str:
    return f"file:{quote(os.path.abspath(path))}?mode=ro"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _chosen(connection: sqlite3.Connection, table: str | None) -> tuple[str, bool]:
    """Return the named table, or the only one, and whether it is a table rather than a view."""
    query = "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND substr(name, 1, 7) != 'sqlite_'"
    found = dict(connection.execute(query).fetchall())
    tables = [name for name, kind in found.items() if kind == "table"]
    if table is not None:
        if table not in found:
            there = ", ".join(found) or "none"
            raise ProviderOptionError(f"it has no table {table!r}{nearest(table, found)}; there are {there}")
        return table, found[table] == "table"
    if len(tables) != 1:
        raise ProviderOptionError(
            f"it has {len(tables)} tables: {', '.join(tables)}\n"
            "choose one: format=sf.Sqlite(table=…), in a job table= under [source.sqlite]"
        )
    return tables[0], True


def _schema(connection: sqlite3.Connection, table: str, declared: pa.Schema | None) -> pa.Schema:
    fields = []
    found = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
    # table_xinfo, since table_info omits generated columns (2 or 3); 1 marks hidden columns of virtual tables
    columns = [(name, kind) for _, name, kind, *_, hidden in found if hidden != 1]
    names = [name for name, _ in columns]
    for name in [] if declared is None else declared.names:
        if name not in names:
            raise ProviderOptionError(
                f"schema: there is no column {name!r}{nearest(name, names)} in {table!r}"
            )
    for name, kind in columns:
        if declared is not None and name in declared.names:
            fields.append(declared.field(name))
            _storage(declared.field(name))
        else:
            fields.append(pa.field(name, _affinity(kind) or _first_type(connection, table, name)))
    return pa.schema(fields)


def _affinity(declared: str) -> pa.DataType | None:
    """Return the type of a declaration by SQLite's rules of affinity; None if it does not decide the stored type."""
    kind = declared.upper()
    # the order is SQLite's: FLOATING POINT has integer affinity, since it contains INT
    if "INT" in kind:
        return pa.int64()
    if any(word in kind for word in ("CHAR", "CLOB", "TEXT")):
        return pa.string()
    if "BLOB" in kind:
        return pa.binary()
    if any(word in kind for word in ("REAL", "FLOA", "DOUB")):
        return pa.float64()
    return None


def _first_type(connection: sqlite3.Connection, table: str, column: str) -> pa.DataType:
    name = _quoted(column)
    query = f"SELECT typeof({name}) FROM {_quoted(table)} WHERE {name} IS NOT NULL LIMIT 1"
    found = connection.execute(query).fetchone()
    if found is None:
        raise ProviderOptionError(
            f"column {column!r} of {table!r} declares no type of values, and has none\npass schema={{{column!r}: …}}"
        )
    return _OF_STORAGE[found[0]]


def _rowid(connection: sqlite3.Connection, table: str, schema: pa.Schema) -> str | None:
    """Return a name of a table's rowids that no column has; None if the table has no rowids."""
    taken = {name.lower() for name in schema.names}
    for name in ("rowid", "_rowid_", "oid"):
        if name in taken:
            continue
        try:
            connection.execute(f"SELECT {name} FROM {_quoted(table)} LIMIT 0")
        except sqlite3.OperationalError:
            return None
        return name
    return None


def _storage(field: pa.Field) -> tuple[str, ...]:
    """Return the storage classes whose values a type can hold."""
    kind = field.type
    if types.is_integer(kind):
        return ("integer",)
    if types.is_floating(kind):
        return ("real", "integer")
    if types.is_string(kind) or types.is_large_string(kind):
        return ("text",)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return ("blob",)
    raise ProviderOptionError(
        f"schema: {field.name!r} is {kind}, expected integers, floats, string or binary"
    )


def _check_storage(connection: sqlite3.Connection, query: str, schema: pa.Schema, rowid: str) -> None:
    """Raise ProviderError if a value is stored as a type other than its column's."""
    names = [f"typeof({_quoted(name)})" for name in schema.names]
    kinds = [(*_storage(field), "null") for field in schema]
    others = " OR ".join(
        f"{name} NOT IN ({', '.join(map(repr, known))})" for name, known in zip(names, kinds, strict=True)
    )
    row = connection.execute(f"SELECT {rowid}, {', '.join(names)} {query} AND ({others}) LIMIT 1").fetchone()
    if row is not None:
        found = zip(schema, kinds, row[1:], strict=True)
        field, kind = next((field, kind) for field, known, kind in found if kind not in known)
        raise _wrong(field, kind, f"row {row[0]}")


def _wrong(field: pa.Field, found: str, place: str) -> ProviderError:
    return ProviderError(
        f"{place}, column {field.name!r}: the value is stored as {found}, expected {field.type}"
        "\nwhere all are such, schema= says so; else convert them in a view, CAST(… AS …)"
    )


def _typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.table([_cast(*one) for one in zip(table.columns, schema, strict=True)], schema=schema)


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    # the driver cannot infer a type from nulls alone, so the column has any
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), field.type)])
    with reading(f"column {field.name!r}"):
        return pa.chunked_array([exact_cast(chunk, field.type) for chunk in column.chunks], field.type)


def _batches(path: str, query: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query by Python's sqlite3, which makes a Python object for each value."""
    names = ", ".join(map(_quoted, schema.names))
    with closing(_connected(path)) as connection:
        cursor = connection.execute(f"SELECT {names} {query}")
        start = 0
        while rows := cursor.fetchmany(_FETCHED):
            columns = [
                _array(values, field, start)
                for values, field in zip(zip(*rows, strict=True), schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            start += len(rows)


def _array(values: Sequence[Any], field: pa.Field, start: int) -> pa.Array:
    expected = tuple(_PYTHON[kind] for kind in _storage(field))
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, expected):
            found = next(kind for kind, one in _PYTHON.items() if isinstance(value, one))
            raise _wrong(field, found, f"row {start + row}, counted from 0")
    return array_of(values, field.type, f"column {field.name!r}", start, "declare another type with schema=")
