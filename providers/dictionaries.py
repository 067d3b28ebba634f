"""Unify the dictionaries of a column over all blocks, so that a code means the same in each."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.fork_locks import ForkLock
from seqflow.record.arrays import with_fields, with_values
from seqflow.record.arrow_types import child_fields, with_child_fields
from seqflow.record.buffers import chunks_of
from seqflow.record.selection import Table

Path = tuple[str, ...]


@dataclass(slots=True)
class SharedDictionaries:
    """Dictionaries of a source by the path of the column, values in the order in which they were found."""

    merged: dict[Path, pa.Array] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    lock: ForkLock = field(default_factory=ForkLock, compare=False, repr=False)
    _latest: tuple[pa.Schema | None, list[str]] = field(default=(None, []), compare=False, repr=False)

    def columns_in(self, schema: pa.Schema) -> list[str]:
        """Return the dictionary columns of a schema; looking at all types takes as long as reading a small block."""
        if self._latest[0] is not schema:
            self._latest = schema, [column.name for column in schema if has_dictionaries(column.type)]
        return self._latest[1]

    def __reduce__(self) -> tuple[Any, ...]:
        with self.lock:
            return SharedDictionaries, (dict(self.merged), set(self.complete))

    def find(self, columns: Iterable[str], read: Callable[[list[str]], Iterable[Table]]) -> None:
        """Complete the dictionaries of these columns by reading the columns that were not read yet."""
        with self.lock:
            # held while reading: a second thread waits for the dictionaries instead of reading all blocks, too
            missing = [name for name in columns if name not in self.complete]
            if missing:
                for table in read(missing):
                    self._add(table)
            self.complete.update(missing)  # last: if reading has failed, it is done again

    def grow(self, table: Table) -> None:
        """Add new values of this table's dictionaries to the shared ones."""
        with self.lock:
            self._add(table)

    def _add(self, table: Table) -> None:
        for path, dictionary in _dictionaries(table):
            before = self.merged.get(path)
            if before is not None and types.is_nested(before.type) and not before.equals(dictionary):
                raise ProviderError(
                    f"column {'.'.join(path)!r} has dictionaries of {before.type} that differ from block to block, "
                    "which cannot be joined: Arrow does not compare lists\n  write one dictionary, or plain lists"
                )
            self.merged[path] = dictionary if before is None else _joined(before, dictionary)

    def apply(self, table: Table) -> Table:
        """Renumber the codes of a table to the shared dictionaries."""
        names = {path[0] for path in self.merged}
        for position, column in enumerate(table.schema):
            if column.name in names:
                arrays = [self._recoded(chunk, (column.name,)) for chunk in chunks_of(table.column(position))]
                recoded = pa.chunked_array(arrays, arrays[0].type if arrays else column.type)
                table = _set_column(table, position, column.with_type(recoded.type), recoded)
        return table

    def unknown(self, table: Table) -> Iterator[tuple[str, Any, int]]:
        """Yield values of a table that are not in the shared dictionaries: column or field, value, number of known
        values.
        """
        import pyarrow.compute as pc

        for path, dictionary in _dictionaries(table):
            known = self.merged.get(path, dictionary[:0])
            new = dictionary.filter(pc.index_in(dictionary, known).is_null())
            yield from ((".".join(path), value, len(known)) for value in new.to_pylist() if value is not None)

    def _recoded(self, array: pa.Array, path: Path) -> pa.Array:
        kind = array.type
        if types.is_dictionary(kind):
            return _with_dictionary(array, self.merged[path], path, may_widen=path[0] in self.complete)
        if not has_dictionaries(kind):
            return array
        if types.is_struct(kind):
            children = [self._recoded(array.field(at), (*path, part.name)) for at, part in enumerate(kind)]
            fields = [part.with_type(child.type) for part, child in zip(kind, children, strict=True)]
            return with_fields(array, pa.struct(fields), children)
        values = self._recoded(array.values, path)
        below = list(values.type) if types.is_map(kind) else [kind.value_field.with_type(values.type)]
        return with_values(array, with_child_fields(kind, below), values)


def has_dictionaries(kind: pa.DataType) -> bool:
    """Return whether the type is a dictionary or contains one."""
    return types.is_dictionary(kind) or any(
        has_dictionaries(kind.field(at).type) for at in range(kind.num_fields)
    )


def without_dictionaries(kind: pa.DataType) -> pa.DataType:
    """Return the type with the type of their values in place of dictionaries."""
    if types.is_dictionary(kind):
        return kind.value_type
    if not has_dictionaries(kind):
        return kind
    fields = [child.with_type(without_dictionaries(child.type)) for _, child in child_fields(kind)]
    return with_child_fields(kind, fields)


def _dictionaries(table: Table) -> Iterator[tuple[Path, pa.Array]]:
    for position, name in enumerate(table.schema.names):
        for chunk in chunks_of(table.column(position)):
            yield from _below(chunk, (name,))


def _below(array: pa.Array, path: Path) -> Iterator[tuple[Path, pa.Array]]:
    kind = array.type
    if types.is_dictionary(kind):
        yield path, array.dictionary
    elif has_dictionaries(kind) and types.is_struct(kind):
        for at, part in enumerate(kind):
            yield from _below(array.field(at), (*path, part.name))
    elif has_dictionaries(kind):
        yield from _below(array.values, path)


def _joined(one: pa.Array, other: pa.Array) -> pa.Array:
    # new values go to the end: codes that were already returned keep their meaning
    return one if one.equals(other) else pa.concat_arrays([one, other]).unique()


def _with_dictionary(array: pa.Array, shared: pa.Array, path: Path, *, may_widen: bool) -> pa.Array:
    """Return the array with codes of the shared dictionary; they are wider if that has too many values for them.

    Codes are widened only if the dictionary is complete, so that those of all blocks have one type.
    """
    width = array.type.index_type
    if may_widen and len(shared) > 2 ** (width.bit_width - types.is_signed_integer(width)):
        wider = (pa.int16(), pa.int32(), pa.int64())
        width = next(kind for kind in wider if len(shared) <= 2 ** (kind.bit_width - 1))
    if width == array.type.index_type and (array.dictionary is shared or array.dictionary.equals(shared)):
        return array
    import pyarrow.compute as pc

    try:
        recoded = pc.index_in(array.dictionary, shared).take(array.indices)
    except pa.ArrowIndexError as error:
        raise ProviderError(f"column {'.'.join(path)!r} has codes outside its dictionary: {error}") from error
    try:
        codes = recoded.cast(width)
    except pa.ArrowInvalid as error:
        raise ProviderError(
            f"column {'.'.join(path)!r} has {len(shared)} different values so far, too many for codes of type "
            f"{width}\nread it as text: schema={{{path[0]!r}: 'string'}}"
        ) from error
    return pa.DictionaryArray.from_arrays(codes, shared, ordered=array.type.ordered)


def _set_column(table: Table, position: int, column: pa.Field, recoded: pa.ChunkedArray) -> Table:
    if isinstance(table, pa.RecordBatch):
        return table.set_column(position, column, recoded.chunk(0))
    return table.set_column(position, column, recoded)
