"""`from_arrow`: Arrow columns as named tensors, and the rows that cannot be converted."""

from collections import abc
from typing import Any, NamedTuple

import pyarrow as pa

from seqflow.errors import ProviderError, ProviderOptionError
from seqflow.lod import LoD
from seqflow.record.buffers import frozen
from seqflow.record.from_arrow.importing import as_table, imported_array
from seqflow.record.from_arrow.reader import Fill, TensorReader
from seqflow.record.record import Record, Tensor, list_parents
from seqflow.record.rows import concat_tensors
from seqflow.record.selection import Rename, check_depth, check_names, selection
from seqflow.sequence import Sequence


class BadRow(NamedTuple):
    """A row that cannot become tensors: its number in the batch, its column, and the reason."""

    row: int
    column: str
    reason: str


def from_arrow(
    obj: Any,
    *,
    columns: abc.Sequence[str] | None = None,
    fill: Fill = None,
    valid: bool = False,
    rename: Rename | None = None,
) -> Any:
    """Convert Arrow columns to tensors that share their memory.

    A RecordBatch, a Table, a struct array, or any other object with columns and `__arrow_c_stream__` or
    `__arrow_c_array__` gives a Record. A column `c` of lists becomes the tensors `c.lengths` (int64) and
    `c.values`, a struct `c.field…`, a map `c.lengths`, `c.keys…` and `c.values…`, a text the lengths and uint8
    values of its bytes, and so on at any depth. `columns` picks columns, or fields of them (`docs.title`);
    `rename` maps old names to new ones, or lists all new names.

    One array of lists or texts, or an object that offers one (a Polars Series), gives a Sequence with a level of
    lengths for each level of lists. An array of numbers gives a NumPy array. Maps, lists of structs, and arrays
    with `valid=True` give a Record, whose names lack the column's own (`lengths`, `values.field`).

    Tensors are read-only and keep the Arrow memory alive. Only these are copied: bools (bits in Arrow), 32-bit
    dates and times, string views, columns of several chunks, and values that nulls hide or fill.

    A null list is empty. A null value is a ProviderError, unless `fill` gives a value for all columns, or by
    column or tensor, or `valid=True` asks for masks: `c.valid`, `c.values.valid`, true where not null.

    >>> from_arrow(pa.array([[1, 2], [], [3]])).unpack()
    (array([1, 2, 3]), array([2, 0, 1]))
    """
    imported = imported_array(obj)
    if isinstance(imported, pa.Array | pa.ChunkedArray) and not pa.types.is_struct(imported.type):
        if columns is not None or rename is not None:
            raise ProviderOptionError(f"an array of {imported.type} has no columns to pick or rename")
        return _tensors_of_array(imported, fill, valid)
    table = as_table(imported)
    if columns is not None or rename is not None:
        table = selection(table.schema, columns, rename).apply(table)
    record, bad_rows = convert(table, fill=fill, valid=valid)
    if bad_rows:
        row, name, reason = bad_rows[0]
        raise ProviderError(
            f"column {name!r}, row {row}: {reason}\npass fill= to replace nulls, or valid=True for masks"
        )
    return record


def find_bad_rows(obj: Any, *, fill: Fill = None, valid: bool = False) -> list[BadRow]:
    """The rows that from_arrow would refuse, in order, with the first reason for each row and column."""
    return convert(as_table(obj), fill=fill, valid=valid)[1]


def convert(
    table: pa.RecordBatch | pa.Table, *, fill: Fill = None, valid: bool = False
) -> tuple[Record, list[BadRow]]:
    """The record of from_arrow, and the rows that it would refuse; null values of these are 0."""
    check_names(table.schema)
    whole = TensorReader(fill, valid)
    bad_rows: list[BadRow] = []
    for position, field in enumerate(table.schema):
        tensors, bad = _read_column(field.name, field, _chunks(table.column(position)), fill, valid)
        whole.update(tensors)
        bad_rows += bad
    record = Record(whole.tensors, whole.parents, table.num_rows, table.schema, whole.dictionaries)
    return record, sorted(bad_rows, key=lambda bad: bad.row)


def _tensors_of_array(
    array: pa.Array | pa.ChunkedArray, fill: Fill, valid: bool
) -> Sequence | Tensor | Record:
    """One array: a Sequence of lists, an array of numbers, or a Record of anything else."""
    check_depth("the array", array.type)
    reader, bad_rows = _read_column("", pa.field("", array.type), _chunks(array), fill, valid)
    if bad_rows:
        raise ProviderError(f"row {bad_rows[0].row}: {bad_rows[0].reason}\npass fill= or valid=True")
    *levels, last = reader.tensors
    if not levels:
        return reader.tensors[last]
    if list(reader.tensors) == list(list_parents("", len(levels))):
        *lengths, values = reader.tensors.values()
        return Sequence(values, LoD(*lengths))
    return Record(reader.tensors, reader.parents, len(array), None, reader.dictionaries)


def _read_column(
    name: str, field: pa.Field, chunks: abc.Sequence[pa.Array], fill: Fill, valid: bool
) -> tuple[TensorReader, list[BadRow]]:
    """The tensors of one column. Chunks are joined as tensors, because a joined Arrow array could be too long."""
    parts = []
    bad: dict[int, BadRow] = {}
    start = 0
    for chunk in chunks:
        part = TensorReader(fill, valid)
        part.read(name, chunk, parent=None, nullable=field.nullable)
        for tensor, rows in part.bad_rows():
            for row in (rows + start).tolist():
                bad.setdefault(row, BadRow(row, name, f"null value in {tensor or 'the array'}"))
        parts.append(part)
        start += len(chunk)
    whole = parts[0]
    if len(parts) > 1:
        whole.tensors, whole.dictionaries = concat_tensors(
            [part.tensors for part in parts], [part.dictionaries for part in parts]
        )
        for joined in whole.tensors.values():
            frozen(joined)
    return whole, list(bad.values())


def _chunks(array: pa.Array | pa.ChunkedArray) -> abc.Sequence[pa.Array]:
    if isinstance(array, pa.ChunkedArray):
        return [chunk for chunk in array.chunks if len(chunk)] or [pa.array([], array.type)]
    return [array]
