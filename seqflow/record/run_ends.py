"""Run-end encoded arrays, at any depth, as arrays of one value a row."""

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.record.arrays import fixed_size_lists, list_array, map_array, struct_array
from seqflow.record.buffers import nulls_of
from seqflow.record.lists import list_parts, take_any
from seqflow.record.record import Tensor
from seqflow.record.selection import list_like


def has_run_ends(kind: pa.DataType) -> bool:
    """Whether the type is run-end encoded, or holds one that is."""
    kind = _storage(kind)
    return types.is_run_end_encoded(kind) or any(
        has_run_ends(kind.field(at).type) for at in range(kind.num_fields)
    )


def run_lengths(array: pa.Array) -> tuple[int, Tensor]:
    """The first run of a run-end encoded array, and how many of its rows are of each run from there on."""
    first, count = array.find_physical_offset(), array.find_physical_length()
    ends = np.asarray(array.run_ends)[first : first + count].astype(np.int64) - array.offset
    lengths = np.diff(np.clip(ends, 0, len(array)), prepend=0)
    if (lengths < 0).any() or lengths.sum() != len(array):
        raise ProviderError(f"run ends of {len(array)} rows decrease, or end before: {ends[:8].tolist()}")
    return first, lengths


def decoded(array: pa.Array) -> pa.Array:
    """The array without run ends: each row has a value of its own. Only rows of the array itself are copied."""
    kind = array.type
    if not has_run_ends(kind):
        return array
    if not len(array):
        return pa.array([], decoded_type(kind))
    if isinstance(kind, pa.BaseExtensionType):
        return decoded(array.storage)
    if types.is_run_end_encoded(kind):
        first, lengths = run_lengths(array)
        values = decoded(array.values.slice(first, len(lengths)))
        return take_any(values, np.repeat(np.arange(len(lengths)), lengths))
    nulls = nulls_of(array)
    if types.is_struct(kind):
        children = [decoded(array.field(at)) for at in range(kind.num_fields)]
        return struct_array(kind, children, len(array), nulls)
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        values = decoded(array.values.slice(array.offset * size, len(array) * size))
        return fixed_size_lists(kind, len(array), values, nulls)
    lengths, rows = list_parts("a column", array, nulls)
    if types.is_map(kind):
        return map_array(kind, lengths, decoded(rows.field(0)), decoded(rows.field(1)), nulls)
    return list_array(kind, lengths, decoded(rows), nulls)


def take_table(table: pa.RecordBatch | pa.Table, rows: Tensor) -> pa.Table:
    """The rows int64[K] of a table of any types, without run ends."""
    columns = [_taken(table.column(at), rows) for at in range(table.num_columns)]
    if not columns:
        return pa.table({"": pa.nulls(len(rows))}).select([])
    return pa.table(columns, schema=pa.schema(map(_field_of, table.schema, columns), table.schema.metadata))


def _taken(column: pa.Array | pa.ChunkedArray, rows: Tensor) -> pa.Array:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if len(chunks) == 1:
        return decoded(take_any(chunks[0], rows))
    ends = np.cumsum([len(chunk) for chunk in chunks])
    places = np.searchsorted(ends, rows, side="right")
    starts = ends - [len(chunk) for chunk in chunks]
    pieces = [chunks[at].slice(int(row - starts[at]), 1) for row, at in zip(rows, places, strict=True)]
    return decoded(pa.concat_arrays(pieces) if pieces else pa.array([], decoded_type(column.type)))


def _field_of(field: pa.Field, column: pa.Array) -> pa.Field:
    return field.with_type(column.type)


def decoded_type(kind: pa.DataType) -> pa.DataType:
    """The type of `decoded` arrays of this type."""
    if not has_run_ends(kind):
        return kind
    kind = _storage(kind)
    if types.is_run_end_encoded(kind):
        return decoded_type(kind.value_type)
    if types.is_struct(kind):
        return pa.struct([_decoded_field(child) for child in kind])
    if types.is_map(kind):
        return pa.map_(_decoded_field(kind.key_field), _decoded_field(kind.item_field), kind.keys_sorted)
    return list_like(kind, _decoded_field(kind.value_field))


def _decoded_field(field: pa.Field) -> pa.Field:
    return field.with_type(decoded_type(field.type))


def _storage(kind: Any) -> Any:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
