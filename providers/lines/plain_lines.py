"""Lines of a common form, which a native kernel parses; all others are left to the parsers that report errors."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.kernels.files.line_columns import Column, Parsed
from seqflow.record.arrow_types import leaf_dtype
from seqflow.record.buffers import buffer_of, leaf_array, validity
from seqflow.record.record import Tensor


class PlainLines(NamedTuple):
    """Rows of lines; those that are not plain have null rows, with these numbers and places in the data."""

    rows: pa.RecordBatch
    odd: Tensor
    starts: Tensor
    stops: Tensor


def kind_of(kind: pa.DataType) -> str | None:
    """Return the kind of a column for `kernels.parse_json`; None for a type that it does not parse."""
    if types.is_list(kind):
        inner = kind_of(kind.value_type)
        return None if inner is None or inner == "null" or inner[0] == "[" else f"[{inner}]"
    if types.is_string(kind) or types.is_null(kind):
        return "text" if types.is_string(kind) else "null"
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind):
        return str(leaf_dtype(kind))
    return None


def plain_lines(parsed: Parsed | None, fields: Iterable[pa.Field], schema: pa.Schema) -> PlainLines | None:
    """Return the rows of parsed lines with the columns of `schema`; `fields` names the parsed ones."""
    if parsed is None:
        return None
    columns, odd, starts, stops = parsed
    arrays = {
        field.name: _array(column, field.type)
        for field, column in zip(fields, columns, strict=True)
        if field is not None
    }
    rows = pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
    return PlainLines(rows, odd, starts, stops)


def _array(column: Column, kind: pa.DataType) -> pa.Array:
    values, offsets, text_offsets, missing = column
    nulls = missing if missing.any() else None
    if offsets is None:
        return _leaves(values, text_offsets, kind, nulls, len(missing))
    items = _leaves(values, text_offsets, kind.value_type, None, int(offsets[-1]))
    return pa.Array.from_buffers(kind, len(missing), [validity(nulls), buffer_of(offsets)], children=[items])


def _leaves(
    values: Tensor | None, text_offsets: Tensor | None, kind: pa.DataType, nulls: Tensor | None, count: int
) -> pa.Array:
    if values is None:
        return pa.nulls(count)
    if text_offsets is None:
        return leaf_array(values, kind, nulls)
    return pa.Array.from_buffers(kind, count, [validity(nulls), buffer_of(text_offsets), buffer_of(values)])


def in_place(plain: PlainLines, others: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with those of the lines that were not plain in their places."""
    if all(column.null_count == len(plain.odd) for column in others.columns):
        return plain.rows  # all of them are malformed
    order = np.arange(plain.rows.num_rows)
    order[plain.odd] = len(order) + np.arange(len(plain.odd))
    table = pa.Table.from_batches([plain.rows, others]).take(pa.array(order)).combine_chunks()
    return table.to_batches()[0]
