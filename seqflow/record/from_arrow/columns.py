"""`from_arrow`: Arrow columns as named tensors, and the rows that cannot be converted."""

from collections import abc
from collections.abc import Collection
from typing import Any, NamedTuple

import pyarrow as pa

from seqflow.arguments import Columns, checked
from seqflow.errors import ProviderError, ProviderOptionError
from seqflow.lod import LoD
from seqflow.record.buffers import frozen
from seqflow.record.from_arrow.fills import Fill, Valid, check_fill, check_valid, is_masked
from seqflow.record.from_arrow.importing import as_table, imported_array
from seqflow.record.from_arrow.reader import TensorReader
from seqflow.record.record import Record, Tensor, list_parents
from seqflow.record.rows import concat_tensors
from seqflow.record.run_ends import decoded, plain_schema, plain_type
from seqflow.record.selection import Rename, check_depth, check_names, selection
from seqflow.sequence import Sequence

_ADVICE = "pass fill= to replace nulls, or valid=True for masks"


class _PlaceAndReason(NamedTuple):
    row: int
    column: str
    reason: str


class BadRow(_PlaceAndReason):
    """A row that cannot be converted: its number in the batch, its column, and the reason.

    `kind` is the reason without the values of this row, by which rows are counted; empty if the reason has none.
    `line` is the line that could not be read, in files of lines, else None. Neither is one of the three entries.
    """

    kind: str
    line: bytes | None

    def __new__(
        cls, row: int, column: str, reason: str, kind: str = "", line: bytes | None = None
    ) -> "BadRow":
        found = super().__new__(cls, row, column, reason)
        found.kind, found.line = kind, line
        return found

    def _replace(self, **changes: Any) -> "BadRow":
        return type(self)(*super()._replace(**changes), self.kind, self.line)

    def __reduce__(self) -> tuple[type["BadRow"], tuple[int, str, str, str, bytes | None]]:
        return type(self), (*self, self.kind, self.line)


@checked(ProviderOptionError)
def from_arrow(
    obj: Any,
    *,
    columns: Columns | None = None,
    fill: Fill = None,
    valid: Valid = False,
    rename: Rename | None = None,
) -> Any:
    """Convert Arrow columns to tensors that share their memory.

    A RecordBatch, a Table, a struct array, or any other object with columns and `__arrow_c_stream__` or
    `__arrow_c_array__` gives a Record. A column `c` of lists becomes the tensors `c.lengths` (int64) and
    `c.values`, a struct `c.field…`, a map `c.lengths`, `c.keys…` and `c.values…`, a text the lengths and
    uint8 values of its bytes, and so on at any depth.

    One array of lists or texts, or an object that offers one (a Polars Series), gives a Sequence with a level
    of lengths for each level of lists. An array of numbers gives a NumPy array. Maps, lists of structs, and
    arrays with `valid=True` give a Record, whose names lack the column's own (`lengths`, `values.field`).

    Tensors are read-only and keep the Arrow memory alive. Only these are copied: bools (bits in Arrow),
    32-bit dates and times, string views, run ends, columns of several chunks, and values that nulls hide or
    fill.

    A null, of any type at any level, is a ProviderError unless `fill` or `valid` covers it. `fill` is a value
    that replaces nulls wherever the type can hold it, or a mapping by column, field or level (`{"c": [],
    "c.values": 0, "docs.title": ""}`): numbers and times for columns of these, str or bytes for texts, lists
    for lists, dicts for maps, a value of the dictionary for codes (or -1), and a number or a row for
    fixed-size lists. `valid` is True, or a list of columns, and asks for masks, true where not null:
    `c.valid` for the rows of `c` (numbers, lists, texts or structs), `c.values.valid` for values in lists.
    Masked nulls become 0, or empty.

    Args:
        obj: RecordBatch, Table, array, or any object with `__arrow_c_stream__` or `__arrow_c_array__`.
        columns: Columns, or fields of them (`docs.title`); None takes all.
        fill: Values in place of nulls: one for all columns that can hold it, or a mapping by column, field or
            level.
        valid: True, or a list of columns: adds masks, true where not null.
        rename: New names of columns by their old ones, or a list of all names.

    Raises UnknownColumnError for names in `columns`, `rename`, `fill` and `valid` that do not exist, and
    ProviderOptionError for a fill that nothing under its name can hold.

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
    check_fill(fill, table.schema)
    check_valid(valid, table.schema)
    check_names(table.schema)
    return without_bad(*convert(table, fill=fill, valid=valid))


def without_bad(record: Record, bad_rows: list[BadRow]) -> Record:
    """Return the record of `convert`; raise ProviderError for its first bad row."""
    if bad_rows:
        bad = bad_rows[0]
        raise ProviderError(f"column {bad.column!r}, row {bad.row}: {bad.reason}\n{_ADVICE}")
    return record


def convert(
    table: pa.RecordBatch | pa.Table,
    *,
    fill: Fill = None,
    valid: Valid = False,
    read: Collection[str] | None = None,
) -> tuple[Record, list[BadRow]]:
    """Convert a table to a record, and list its bad rows, which from_arrow refuses; their nulls become 0.

    `read` has the names of the tensors that are read later, if not all are: other nulls make no row bad. The names of
    the columns must have been checked.
    """
    valid = valid if isinstance(valid, bool) else frozenset(valid)
    whole = TensorReader(fill, valid if isinstance(valid, bool) else len(valid) > 0)
    bad_rows: list[BadRow] = []
    for position, field in enumerate(table.schema):
        tensors, bad = _read_column(field.name, field, _chunks(table.column(position)), fill, valid, read)
        whole.update(tensors)
        bad_rows += bad
    record = Record(
        whole.tensors, whole.parents, table.num_rows, plain_schema(table.schema), whole.dictionaries
    )
    return record, sorted(bad_rows, key=lambda bad: bad.row)


def _tensors_of_array(
    array: pa.Array | pa.ChunkedArray, fill: Fill, valid: Valid
) -> Sequence | Tensor | Record:
    """Convert one array: lists to a Sequence, numbers to an array, anything else to a Record."""
    check_depth("the array", array.type)
    check_fill(fill, pa.schema([pa.field("", array.type)]))
    check_valid(valid, pa.schema([]))
    return column_from_arrow("", array, fill, valid)


def column_from_arrow(
    name: str, array: pa.Array | pa.ChunkedArray, fill: Fill, valid: Valid = False
) -> Sequence | Tensor | Record:
    """Convert one column, called `name` in `fill`; tensors of a resulting Record are named without this prefix."""
    check_depth("the array", array.type)
    reader, bad_rows = _read_column(name, pa.field(name, array.type), _chunks(array), fill, valid)
    if bad_rows:
        advice = "fill= of open replaces nulls; batches of a Loader have masks" if name else _ADVICE
        raise ProviderError(f"row {bad_rows[0].row}: {bad_rows[0].reason}\n{advice}")
    names = list(reader.tensors)
    if names == [name]:
        return reader.tensors[name]
    if names == list(list_parents(name, len(names) - 1)):
        *lengths, values = reader.tensors.values()
        return Sequence(values, LoD(*lengths))
    short = {key: key.removeprefix(f"{name}.") for key in names}
    return Record(
        {short[key]: tensor for key, tensor in reader.tensors.items()},
        {short[key]: parent and short[parent] for key, parent in reader.parents.items()},
        len(array),
        plain_schema(pa.schema(list(array.type))) if pa.types.is_struct(array.type) else None,
        {short[key]: values for key, values in reader.dictionaries.items()},
    )


def _read_column(
    name: str,
    field: pa.Field,
    chunks: abc.Sequence[pa.Array],
    fill: Fill,
    valid: Valid,
    read: Collection[str] | None = None,
) -> tuple[TensorReader, list[BadRow]]:
    """Read the tensors of one column. Chunks are joined as tensors: a joined Arrow array could overflow its
    offsets.
    """
    parts = []
    bad: dict[int, BadRow] = {}
    start = 0
    for chunk in chunks:
        part = TensorReader(fill, is_masked(valid, name), read, field)
        part.read(name, decoded(chunk), parent=None, nullable=field.nullable)
        for reason, rows in part.bad_rows():
            for row in (rows + start).tolist():
                bad.setdefault(row, BadRow(row, name, reason))
        parts.append(part)
        start += len(chunk)
    whole = parts[0]
    if not whole.tensors and not bad:
        raise ProviderError(
            f"column {name!r}: {name} has type {field.type}, which has no tensor form\n"
            "it has no fields: leave the column out with columns="
        )
    if len(parts) > 1:
        whole.tensors, whole.dictionaries = concat_tensors(
            [part.tensors for part in parts], [part.dictionaries for part in parts]
        )
        for joined in whole.tensors.values():
            frozen(joined)
    return whole, list(bad.values())


def _chunks(array: pa.Array | pa.ChunkedArray) -> abc.Sequence[pa.Array]:
    """Return the chunks that have rows; if there are none, one empty plain chunk."""
    if not isinstance(array, pa.ChunkedArray):
        return [array]
    return [chunk for chunk in array.chunks if len(chunk)] or [pa.nulls(0, plain_type(array.type))]
