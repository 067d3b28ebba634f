"""Decode run-end encoded arrays, at any depth of nesting."""

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.record.arrays import fixed_size_lists, list_array, map_array, struct_array
from seqflow.record.arrow_types import (
    TEXT_VIEWS,
    child_fields,
    holds_text,
    is_any,
    is_any_level,
    storage_type,
    with_child_fields,
)
from seqflow.record.buffers import chunks_of, nulls_of
from seqflow.record.lists import list_parts, take_any
from seqflow.record.record import Tensor


def run_lengths(array: pa.Array) -> tuple[int, Tensor]:
    """Return the first run of a (sliced) run-end encoded array, and the length of each run from there on."""
    first, count = array.find_physical_offset(), array.find_physical_length()
    # run ends count from the start of the unsliced array
    ends = np.asarray(array.run_ends)[first : first + count].astype(np.int64) - array.offset
    lengths = np.diff(np.clip(ends, 0, len(array)), prepend=0)
    if (lengths < 0).any() or lengths.sum() != len(array):
        raise ProviderError(f"run ends of {len(array)} rows decrease, or end before: {ends[:8].tolist()}")
    return first, lengths


def decoded(array: pa.Array, *, views: bool = False) -> pa.Array:
    """Decode run ends: each row gets its own value. Rows outside a slice are not decoded.

    With `views`, text views become large texts as well.
    """
    kind = array.type
    if not _is_encoded(kind, views):
        return array
    if not len(array):
        return pa.array([], decoded_type(kind, views=views))
    # the storage is decoded: an extension type cannot change its storage type
    if isinstance(kind, pa.BaseExtensionType):
        return decoded(array.storage, views=views)
    if is_any(kind, TEXT_VIEWS):
        return array.cast(decoded_type(kind, views=views))
    if types.is_run_end_encoded(kind):
        first, lengths = run_lengths(array)
        values = decoded(array.values.slice(first, len(lengths)), views=views)
        return take_any(values, np.repeat(np.arange(len(lengths)), lengths))
    nulls = nulls_of(array)
    if types.is_struct(kind):
        children = [decoded(array.field(at), views=views) for at in range(kind.num_fields)]
        return struct_array(kind, children, len(array), nulls)
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        values = decoded(array.values.slice(array.offset * size, len(array) * size), views=views)
        return fixed_size_lists(kind, len(array), values, nulls)
    lengths, rows = list_parts("a column", array, nulls)
    if types.is_map(kind):
        keys, items = (decoded(rows.field(at), views=views) for at in (0, 1))
        return map_array(kind, lengths, keys, items, nulls)
    return list_array(kind, lengths, decoded(rows, views=views), nulls)


def _is_encoded(kind: pa.DataType, views: bool) -> bool:
    return is_any_level(
        kind, lambda one: types.is_run_end_encoded(one) or (views and is_any(one, TEXT_VIEWS))
    )


def without_views_in_structs(table: pa.Table) -> pa.Table:
    """Replace text views inside structs, which Arrow cannot write to Parquet, by large texts."""
    for at, field in enumerate(table.schema):
        if _has_views_in_structs(field.type):
            chunks = [decoded(chunk, views=True) for chunk in table.column(at).chunks]
            column = pa.chunked_array(chunks, decoded_type(field.type, views=True))
            table = table.set_column(at, field.with_type(column.type), column)
    return table


def _has_views_in_structs(kind: pa.DataType) -> bool:
    if types.is_struct(kind):
        return _is_encoded(kind, views=True)
    return any(_has_views_in_structs(kind.field(at).type) for at in range(kind.num_fields))


def take_table(table: pa.RecordBatch | pa.Table, rows: Tensor) -> pa.Table:
    """Take rows int64[K] from a table of any types; run ends are decoded."""
    columns = [_taken(table.column(at), rows) for at in range(table.num_columns)]
    if not columns:
        # a table without columns forgets its number of rows, so one column is made and dropped
        return pa.table({"": pa.nulls(len(rows))}).select([])
    fields = [field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)]
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def _taken(column: pa.Array | pa.ChunkedArray, rows: Tensor) -> pa.Array:
    chunks = chunks_of(column)
    if len(chunks) == 1:
        return decoded(take_any(chunks[0], rows))
    ends = np.cumsum([len(chunk) for chunk in chunks])
    places = np.searchsorted(ends, rows, side="right")
    starts = ends - [len(chunk) for chunk in chunks]
    # slices of single rows: joining whole chunks would copy them, and could overflow 32-bit offsets
    pieces = [chunks[at].slice(int(row - starts[at]), 1) for row, at in zip(rows, places, strict=True)]
    return decoded(pa.concat_arrays(pieces) if pieces else pa.array([], decoded_type(column.type)))


def decoded_type(kind: pa.DataType, *, views: bool = False) -> pa.DataType:
    """Return the type of arrays of this type after `decoded`."""
    if not _is_encoded(kind, views):
        return kind
    kind = storage_type(kind)
    if is_any(kind, TEXT_VIEWS):
        return pa.large_string() if holds_text(kind) else pa.large_binary()
    if types.is_run_end_encoded(kind):
        return decoded_type(kind.value_type, views=views)
    fields = [child.with_type(decoded_type(child.type, views=views)) for _, child in child_fields(kind)]
    return with_child_fields(kind, fields)
