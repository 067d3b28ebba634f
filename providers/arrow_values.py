"""Values of Arrow's expressions, and the types of columns that its functions take."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types

from seqflow.record.arrow_types import storage_type
from seqflow.record.buffers import chunks_of
from seqflow.record.run_ends import decoded, decoded_type


def value_of(expression: Any, table: pa.Table) -> pa.ChunkedArray:
    """The value of an expression for each row of a table."""
    from pyarrow.acero import Declaration, ProjectNodeOptions, TableSourceNodeOptions

    read = Declaration("table_source", TableSourceNodeOptions(table))
    project = Declaration("project", ProjectNodeOptions([expression], ["value"]))
    return Declaration.from_sequence([read, project]).to_table(use_threads=False).column(0)


def comparable_schema(schema: pa.Schema) -> pa.Schema:
    """The columns in types that Arrow's functions take."""
    return pa.schema([field.with_type(_comparable_type(field.type)) for field in schema])


def comparable(table: pa.Table) -> pa.Table:
    """The columns in types that Arrow's functions take: no extensions, run ends, views, maps or float16."""
    kinds = [_comparable_type(kind) for kind in table.schema.types]
    if kinds == table.schema.types:
        return table
    columns = [_converted(column, kind) for column, kind in zip(table.columns, kinds, strict=True)]
    return pa.Table.from_arrays(columns, names=table.schema.names)


def _comparable_type(kind: pa.DataType) -> pa.DataType:
    kind = decoded_type(storage_type(kind), views=True)
    if types.is_float16(kind):
        return pa.float32()
    return pa.list_(kind.field(0)) if types.is_map(kind) else kind


def _converted(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    return pa.chunked_array([_array(chunk, kind) for chunk in chunks_of(column)], kind)


def _array(chunk: pa.Array, kind: pa.DataType) -> pa.Array:
    stored = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
    found = decoded(stored, views=True)
    return found if found.type == kind else found.cast(kind)
