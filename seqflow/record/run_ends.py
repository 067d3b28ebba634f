"""Plain arrays in place of run ends and views, at any depth of nesting: data are decoded where they come in."""

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.record.arrays import fixed_size_lists, list_array, map_array, struct_array
from seqflow.record.arrow_types import (
    LIST_VIEWS,
    TEXT_VIEWS,
    child_fields,
    is_any,
    is_any_level,
    storage_type,
    with_child_fields,
)
from seqflow.record.buffers import chunks_of, nulls_of
from seqflow.record.lists import checked_views, list_parts, take_any
from seqflow.record.record import Tensor

_ENCODED = (types.is_run_end_encoded, *TEXT_VIEWS, *LIST_VIEWS)


def run_lengths(array: pa.Array) -> tuple[int, Tensor]:
    """Return the first run of a (sliced) run-end encoded array, and the length of each run from there on."""
    first, count = array.find_physical_offset(), array.find_physical_length()
    # run ends count from the start of the unsliced array
    ends = np.asarray(array.run_ends)[first : first + count].astype(np.int64) - array.offset
    lengths = np.diff(np.clip(ends, 0, len(array)), prepend=0)
    if (lengths < 0).any() or lengths.sum() != len(array):
        raise ProviderError(f"run ends of {len(array)} rows decrease, or end before: {ends[:8].tolist()}")
    return first, lengths


def decoded(array: pa.Array) -> pa.Array:
    """Return the array with run ends and views decoded: each row gets its own value. Rows outside a slice are not."""
    kind = array.type
    if (made := plain_type(kind)) == kind:
        return array
    if not len(array):
        return pa.nulls(0, made)
    # the storage is decoded: an extension type cannot change its storage type
    if isinstance(kind, pa.BaseExtensionType):
        return decoded(array.storage)
    if is_any(kind, TEXT_VIEWS):
        return checked_views(array).cast(made)
    if types.is_run_end_encoded(kind):
        first, lengths = run_lengths(array)
        values = decoded(array.values.slice(first, len(lengths)))
        return take_any(values, np.repeat(np.arange(len(lengths)), lengths))
    if types.is_dictionary(kind):
        values = decoded(array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=kind.ordered, safe=False)
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
        keys, items = (decoded(rows.field(at)) for at in (0, 1))
        return map_array(kind, lengths, keys, items, nulls)
    return list_array(made, lengths, decoded(rows), nulls)


def _is_encoded(kind: pa.DataType) -> bool:
    if types.is_dictionary(kind):
        return is_any_level(kind.value_type, _is_encoded)
    return is_any(kind, _ENCODED)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of an array after `decoded`: large texts for views of texts, lists for views of lists."""
    if not is_any_level(kind, _is_encoded):
        return kind
    kind = storage_type(kind)
    if is_any(kind, TEXT_VIEWS):
        return pa.large_string() if types.is_string_view(kind) else pa.large_binary()
    if types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    fields = [child.with_type(plain_type(child.type)) for _, child in child_fields(kind)]
    return with_child_fields(kind, fields)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the types that its columns have in tensors and outputs; itself if it has no others."""
    if not any(is_any_level(kind, _is_encoded) for kind in schema.types):
        return schema
    return pa.schema([field.with_type(plain_type(field.type)) for field in schema], schema.metadata)


def take_table(table: pa.RecordBatch | pa.Table, rows: Tensor) -> pa.Table:
    """Take rows int64[K] from a table of any types."""
    columns = [_taken(table.column(at), rows) for at in range(table.num_columns)]
    if not columns:
        # a table without columns forgets its number of rows, so one column is made and dropped
        return pa.table({"": pa.nulls(len(rows))}).select([])
    fields = [field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)]
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def _taken(column: pa.Array | pa.ChunkedArray, rows: Tensor) -> pa.Array:
    chunks = chunks_of(column)
    if len(chunks) == 1:
        return take_any(chunks[0], rows)
    ends = np.cumsum([len(chunk) for chunk in chunks])
    places = np.searchsorted(ends, rows, side="right")
    starts = ends - [len(chunk) for chunk in chunks]
    # slices of single rows: joining whole chunks would copy them, and could overflow 32-bit offsets
    pieces = [chunks[at].slice(int(row - starts[at]), 1) for row, at in zip(rows, places, strict=True)]
    return pa.concat_arrays(pieces) if pieces else pa.array([], column.type)
