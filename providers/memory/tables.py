"""Sources in memory: tables, frames and dicts of arrays."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.lod import LoD
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Wanted
from seqflow.record import Record, to_arrow
from seqflow.record.decoded_sizes import decoded_nbytes
from seqflow.record.python_values import array_of
from seqflow.record.record import Tensor, list_parents, parents_by_name
from seqflow.record.selection import ALL, Picked, Selection, Table, selection
from seqflow.record.validation import reading, validated
from seqflow.sequence import Sequence

BLOCK_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class MemorySource(Source):
    """Table in blocks that are slices of its chunks. A chunk is validated when it is first needed."""

    batches: tuple[pa.RecordBatch, ...]
    chunks: tuple[pa.RecordBatch, ...]
    """Chunk that each of the batches is a slice of."""
    selection: Selection
    origin: str
    valid: set[int] = field(default_factory=set)
    """Numbers of the batches whose chunk has been validated."""

    slicing = "any"
    paths: ClassVar[tuple[str, ...]] = ()

    @property
    def num_rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches)

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        selection = self.selection.to(schema)
        for index, batch in enumerate(self.batches):
            self._validate(index)
            yield Block(self.origin, index, batch.num_rows, decoded_nbytes(selection.apply(batch)))

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema, rows = wanted.block, wanted.schema, wanted.rows
        self._validate(block.index)
        found = self.selection.to(schema).apply(self.batches[block.index])
        yield found if rows is None else found.slice(rows.start, len(rows))

    def _validate(self, index: int) -> None:
        if index not in self.valid:
            chunk = validated(self.chunks[index], self.origin)
            self.valid.update(at for at, other in enumerate(self.chunks) if other is chunk)


def open_table(
    table: Table, picked: Picked = ALL, *, batch_bytes: int | None = None, origin: str = "memory"
) -> Provider:
    """Return a provider of a table or record batch, in blocks of about `batch_bytes` (64 MiB)."""
    with reading(f"{origin} is not valid Arrow data"):
        table.validate()
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    chosen = selection(table.schema, *picked)
    rows = max(1, (batch_bytes or BLOCK_BYTES) * table.num_rows // max(1, decoded_nbytes(table)))
    slices = [
        (chunk.slice(start, rows), chunk)
        for chunk in table.to_batches()
        for start in range(0, chunk.num_rows, rows)
    ]
    batches, chunks = tuple(batch for batch, _ in slices), tuple(chunk for _, chunk in slices)
    source = MemorySource(batches, chunks, chosen, origin)
    return Provider("memory", origin, chosen.schema, source)


def table_of(arrays: Mapping[str, Any]) -> pa.Table:
    """Return a table of arrays by name.

    An array may be a NumPy array, a Sequence, a pair `values, lengths` (lengths may be a LoD), an Arrow array, or a
    list. Tensors of one column under a record's names (`tokens.values`, `tokens.lengths`) become that column.
    Raise ProviderError for arrays that don't have equally many rows.
    """
    tensors: dict[str, Tensor] = {}
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if _is_tensor(array):
            tensors |= _with_mask(name, array)
        elif isinstance(array, Sequence):
            tensors |= _list_tensors(name, array.values, array.lod)
        elif _is_pair(array):
            values, lengths = array
            lod = lengths if isinstance(lengths, LoD) else LoD(lengths)
            tensors |= _list_tensors(name, values, lod)
        else:
            columns[name] = _arrow_array(name, array)
    parents = parents_by_name(tensors)
    rows = {name: len(tensor) for name, tensor in tensors.items() if parents[name] is None}
    rows |= {name: len(column) for name, column in columns.items()}
    if len(set(rows.values())) > 1:
        found = ", ".join(f"{name} {count}" for name, count in rows.items())
        raise ProviderError(f"the arrays don't have equally many rows: {found}")
    if tensors:
        num_rows = next(iter(rows.values()))
        batch = to_arrow(Record(tensors, parents, num_rows))
        columns = dict(zip(batch.schema.names, batch.columns, strict=True)) | columns
    order = {name.partition(".")[0]: place for place, name in reversed(list(enumerate(arrays)))}
    names = sorted(columns, key=lambda name: order[name.partition(".")[0]])
    return pa.table({name: columns[name] for name in names})


def check_arrays(arrays: Mapping[str, Any]) -> None:
    """Raise ProviderError for tables among the arrays, such as the splits of a DatasetDict: a column is an array."""
    for name, array in arrays.items():
        if isinstance(array, str | bytes | os.PathLike):
            raise ProviderError(f"column {name!r} is {array!r}, expected an array or a list")
        if _is_table(array):
            raise ProviderError(
                f"{name!r} of the {type(arrays).__name__} is a table ({type(array).__name__}), expected a column\n"
                f"tables by name, such as the splits of a dataset, are opened one at a time: open(source[{name!r}])"
            )


def _is_table(value: Any) -> bool:
    parts = ("column_names", "columns", "schema")
    # the type is asked first: on an instance, the attribute may be computed
    is_lazy = any(hasattr(type(value), part) for part in parts)
    return is_lazy or isinstance(value, Mapping | Provider) or any(hasattr(value, part) for part in parts)


def _is_tensor(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.ndim > 0 and array.dtype.kind in "biufMmSU"


def _is_pair(array: Any) -> bool:
    """Return whether this is `values, lengths`: a tuple of two arrays, not a list of two rows."""
    if not isinstance(array, tuple) or len(array) != 2:
        return False
    values, lengths = array
    return _is_tensor(values) and (isinstance(lengths, LoD) or _is_tensor(lengths))


def _list_tensors(name: str, values: Tensor, lod: LoD) -> dict[str, Tensor]:
    *levels, last = list_parents(name, lod.num_levels)
    return dict(zip(levels, lod, strict=True)) | _with_mask(last, values)


def _with_mask(name: str, array: Tensor) -> dict[str, Tensor]:
    """Return the tensor of an array and, if it is masked, the mask of its values that are not null."""
    if not isinstance(array, np.ma.MaskedArray):
        return {name: array}
    return {name: array.data, f"{name}.valid": ~np.ma.getmaskarray(array)}


def _arrow_array(name: str, array: Any) -> Any:
    if isinstance(array, pa.Array | pa.ChunkedArray):
        return array
    if isinstance(array, np.ndarray) and array.dtype == object and array.ndim == 1:
        array = array.tolist()
    if isinstance(array, list | tuple):
        return array_of(
            array, None, f"column {name!r}", advice="give all values one type, or pass a pyarrow.Array"
        )
    try:
        return pa.array(array)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ProviderError(f"column {name!r}: {error}") from error
