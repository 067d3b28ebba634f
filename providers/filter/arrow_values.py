"""Values of Arrow's expressions, and the types of columns that its functions take."""

from typing import Any

import pyarrow as pa
from pyarrow import types

from seqflow.record.arrow_types import TEXTS, is_any, storage_type
from seqflow.record.buffers import chunks_of


def value_of(expression: Any, table: pa.Table) -> pa.ChunkedArray:
    """Return the value of an expression for each row of a table."""
    from pyarrow.acero import Declaration, ProjectNodeOptions, TableSourceNodeOptions

    from seqflow.providers.filter.own_functions import register

    register()
    read = Declaration("table_source", TableSourceNodeOptions(table))
    project = Declaration("project", ProjectNodeOptions([expression], ["value"]))
    return Declaration.from_sequence([read, project]).to_table(use_threads=False).column(0)


def comparable_schema(schema: pa.Schema, *, halves: bool = False) -> pa.Schema:
    """Return the columns in types that Arrow's functions take; with `halves` float16 keeps its name."""
    return pa.schema([field.with_type(comparable_type(field.type, halves=halves)) for field in schema])


def comparable(table: pa.Table) -> pa.Table:
    """Return the columns in types that Arrow's functions take, also inside structs.

    These have no extensions, maps, float16, narrow decimals, texts of a fixed size, or
    dictionaries of anything but texts.
    """
    kinds = [comparable_type(kind) for kind in table.schema.types]
    if kinds == table.schema.types:
        return table
    columns = [_converted(column, kind) for column, kind in zip(table.columns, kinds, strict=True)]
    return pa.Table.from_arrays(columns, names=table.schema.names)


def comparable_type(kind: pa.DataType, *, halves: bool = False) -> pa.DataType:
    """Return the type in which Arrow's functions take values of a type."""
    kind = storage_type(kind)
    if types.is_struct(kind):
        return pa.struct([field.with_type(comparable_type(field.type, halves=halves)) for field in kind])
    if types.is_dictionary(kind) and not is_any(kind.value_type, TEXTS):
        return comparable_type(kind.value_type, halves=halves)
    if types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_float16(kind) and not halves:
        return pa.float32()
    if types.is_decimal32(kind) or types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return pa.list_(kind.field(0)) if types.is_map(kind) else kind


def _converted(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    return pa.chunked_array([_array(chunk, kind) for chunk in chunks_of(column)], kind)


def _array(chunk: pa.Array, kind: pa.DataType) -> pa.Array:
    found = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
    return found if found.type == kind else found.cast(kind)
