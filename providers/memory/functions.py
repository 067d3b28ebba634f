"""Functions that make a stream for each pass, and Python streams: iterators, cursors, rows as dicts."""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError, ProviderOptionError
from seqflow.providers.memory.rereadable import LazyFrames, Relations, open_rereadable
from seqflow.providers.memory.streams import open_reader
from seqflow.providers.memory.tables import open_table
from seqflow.providers.other_packages import foreign_errors, is_a
from seqflow.providers.provider import Provider
from seqflow.record import as_table
from seqflow.record.python_values import array_of
from seqflow.record.selection import ALL, Picked

_ROWS = 1000
"""Rows of Python values that become Arrow columns together. The first ones decide the schema."""
_READERS = ("fetch_record_batch", "to_arrow_reader")
"""Methods that return the batches of a cursor, in ADBC and in DuckDB."""


@dataclass(frozen=True, slots=True)
class Functions:
    """Streams that a function makes, a new one each time it is called."""

    function: Callable[[], Any]
    declared: pa.Schema | None
    last: list[Any] = field(default_factory=list, compare=False, repr=False)
    """Weak reference to the last result, if it can be read only once."""
    unread: list[Any] = field(default_factory=list, compare=False, repr=False)
    """Reader that was opened for the schema: some drivers lose rows if a reader is not read to its end."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Functions, (self.function, self.declared)

    def schema(self) -> pa.Schema:
        if self.declared is not None:
            return self.declared
        made = self._made()
        if is_a(made, "polars", "LazyFrame"):
            return LazyFrames(made).schema()
        if is_a(made, "duckdb", "DuckDBPyRelation"):
            return Relations(made).schema()
        self.unread.append(reader_of(made, None, name_of(self.function)))
        return self.unread[0].schema

    def stream(self, columns: Sequence[str]) -> Any:
        if self.unread:
            return self.unread.pop()
        made = self._made()
        if is_a(made, "polars", "LazyFrame"):
            return LazyFrames(made).stream(columns)
        if is_a(made, "duckdb", "DuckDBPyRelation"):
            return Relations(made).stream(columns)
        return reader_of(made, self.declared, name_of(self.function))

    def _made(self) -> Any:
        made = self.function()
        if any(reference() is made for reference in self.last):
            raise ProviderError(
                f"{name_of(self.function)} has returned the same {type(made).__name__} again\n"
                "it can be read once: make a new one each time"
            )
        self.last.clear()
        if isinstance(made, Iterator | pa.RecordBatchReader) or is_cursor(made):
            with suppress(TypeError):  # its type does not allow weak references
                self.last.append(weakref.ref(made))
        return made


def open_function(
    function: Callable[[], Any],
    picked: Picked = ALL,
    *,
    batch_bytes: int | None = None,
    schema: pa.Schema | None = None,
) -> Provider:
    """Return a provider of the streams that a function makes; it is called for the schema and for each pass."""
    return open_rereadable(
        Functions(function, schema),
        name_of(function),
        picked,
        batch_bytes=batch_bytes,
    )


def name_of(function: Any) -> str:
    return f"the function {getattr(function, '__name__', type(function).__name__)}"


def is_cursor(value: Any) -> bool:
    """Return whether this is a cursor of DB-API or ADBC, or a DuckDB connection with a result."""
    return hasattr(value, "fetchmany") and hasattr(value, "description")


def reader_of(made: Any, schema: pa.Schema | None, origin: str) -> Any:
    """Return a reader of the batches of a stream, a scanner, a cursor, or an iterable of batches, tables or dicts."""
    if hasattr(made, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(made)
    if is_a(made, "pyarrow", "Scanner"):
        return made.to_reader()
    if is_cursor(made):
        for name in _READERS:
            if hasattr(made, name):
                return getattr(made, name)()
        return _reader(_cursor_batches(made, schema, origin), schema, origin)
    if isinstance(made, Iterable) and not isinstance(made, str | bytes | Mapping):
        return _reader(_iterated(iter(made), schema, origin), schema, origin)
    raise ProviderError(
        f"{origin} gives a {type(made).__name__}, expected an object with __arrow_c_stream__, a cursor, or an "
        "iterator of record batches, tables or dicts"
    )


class BatchReader:
    """Reader of batches of one schema, like pyarrow's; errors raised by the iterator are not changed."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self.schema, self._batches = schema, batches

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def read_next_batch(self) -> pa.RecordBatch:
        return next(self._batches)

    def close(self) -> None:
        self._batches = iter(())


def _reader(batches: Iterator[pa.RecordBatch], schema: pa.Schema | None, origin: str) -> BatchReader:
    """Return a reader of batches of one schema; that of the first batch if none is declared."""
    if schema is None:
        first = next(batches, None)
        if first is None:
            raise ProviderError(f"{origin} gives no rows, so that its columns are not known\npass schema=")
        schema, batches = first.schema, chain([first], batches)
    return BatchReader(schema, batches)


def _iterated(items: Iterator[Any], schema: pa.Schema | None, origin: str) -> Iterator[pa.RecordBatch]:
    """Yield record batches from an iterator of batches, tables or other objects with columns, or of rows as dicts."""
    first = next(items, None)
    if first is None:
        return
    items = chain([first], items)
    if isinstance(first, Mapping):
        yield from _row_batches(items, schema, origin)
        return
    for number, item in enumerate(items):
        try:
            table = as_table(item)
        except ProviderError as error:
            raise ProviderError(f"{origin}, item {number}: {error}") from error
        schema = schema or table.schema
        if not table.schema.equals(schema):
            raise ProviderError(
                f"{origin}, item {number} has the schema\n{table.schema.to_string()}\nexpected\n{schema.to_string()}"
            )
        yield from [table] if isinstance(table, pa.RecordBatch) else table.to_batches()


def _row_batches(rows: Iterator[Any], schema: pa.Schema | None, origin: str) -> Iterator[pa.RecordBatch]:
    kind = None if schema is None else pa.struct(list(schema))
    start = 0
    while piece := list(islice(rows, _ROWS)):
        array = _rows_array(piece, kind, origin, start)
        kind = array.type  # later rows must have the types of the first ones
        start += len(piece)
        yield pa.RecordBatch.from_struct_array(array)


def _rows_array(rows: Sequence[Any], kind: pa.DataType | None, origin: str, start: int = 0) -> pa.StructArray:
    """Return rows given as dicts as an array of structs; raise ProviderError for a key or value that does not fit."""
    if not all(issubclass(one, Mapping) for one in set(map(type, rows))):
        number = next(number for number, row in enumerate(rows) if not isinstance(row, Mapping))
        kind_of_row = type(rows[number]).__name__
        raise ProviderError(f"{origin}: row {start + number} is a {kind_of_row}, expected a dict")
    array = array_of(rows, kind, origin, start)
    if not pa.types.is_struct(array.type):
        raise ProviderError(f"{origin}: the rows have no columns")
    return array


def _cursor_batches(cursor: Any, schema: pa.Schema | None, origin: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a DB-API cursor, some at a time. DB-API returns values only as Python objects."""
    if cursor.description is None:
        raise ProviderError(f"{origin}: the cursor has no result\nexecute a query before: cursor.execute(…)")
    names = [str(column[0]) for column in cursor.description]
    if schema is not None and schema.names != names:
        raise ProviderOptionError(
            f"schema has the columns {', '.join(schema.names)}, the query {', '.join(names)}"
        )
    kinds: Sequence[pa.DataType | None] = [None] * len(names) if schema is None else schema.types
    start = 0
    while rows := cursor.fetchmany(_ROWS):
        arrays = [
            _column(values, kind, f"{origin}, column {name!r}", start)
            for values, kind, name in zip(zip(*rows, strict=True), kinds, names, strict=True)
        ]
        kinds = [array.type for array in arrays]
        start += len(rows)
        yield pa.RecordBatch.from_arrays(arrays, names)


def _column(values: Sequence[Any], kind: pa.DataType | None, place: str, start: int) -> pa.Array:
    array = array_of(values, kind, place, start)
    if types.is_null(array.type):
        raise ProviderError(
            f"{place} has only nulls in the first {len(values)} rows\npass schema=, a pyarrow.Schema"
        )
    return array


def open_iterator(source: Any, picked: Picked = ALL, *, schema: pa.Schema | None = None) -> Provider:
    """Return a provider of a scanner, a cursor with a result, or an iterator of batches or rows; it is read once."""
    origin = f"a {type(source).__name__}"
    with foreign_errors(f"{origin} can't be opened"):
        reader = reader_of(source, schema, origin)
    return open_reader(reader, origin, picked)


def open_list(
    items: Sequence[Any],
    picked: Picked = ALL,
    *,
    batch_bytes: int | None = None,
    schema: pa.Schema | None = None,
) -> Provider:
    """Return a provider of a list of record batches or tables of one schema, or of rows as dicts."""
    if isinstance(items[0], Mapping):
        kind = None if schema is None else pa.struct(list(schema))
        table = pa.Table.from_struct_array(_rows_array(items, kind, "the list"))
    else:
        batches = list(_iterated(iter(items), schema, "the list"))
        table = pa.Table.from_batches(batches, schema or as_table(items[0]).schema)
    return open_table(table, picked, batch_bytes=batch_bytes)
