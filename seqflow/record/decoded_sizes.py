"""Sizes of Arrow rows as tensors: a tensor stores for each row a value that views and run ends store once."""

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.record.arrow_types import LIST_VIEWS, LISTS, TEXT_VIEWS, TEXTS, is_any, is_any_level, leaf_dtype
from seqflow.record.buffers import chunks_of, nulls_of, view
from seqflow.record.record import Tensor
from seqflow.record.run_ends import run_lengths

_LENGTH = 8
"""Bytes of the length of a list or text."""


def decoded_nbytes(table: pa.RecordBatch | pa.Table) -> int:
    """Return the bytes that a table takes as tensors."""
    return sum(_column_nbytes(table.column(at)) for at in range(table.num_columns))


def _column_nbytes(column: pa.Array | pa.ChunkedArray) -> int:
    if not is_compact(column.type):
        try:
            return int(column.nbytes)
        except pa.ArrowTypeError:  # Arrow 21 knows no part of views in a dictionary
            return int(column.get_total_buffer_size())
    return sum(int(row_bytes(chunk).sum()) for chunk in chunks_of(column))


def is_compact(kind: pa.DataType) -> bool:
    """Return whether arrays of the type may store a value once for several rows, at any level: views and run ends."""
    return is_any_level(kind, lambda one: is_any(one, (*TEXT_VIEWS, *LIST_VIEWS, types.is_run_end_encoded)))


def row_bytes(array: pa.Array, *, with_dictionaries: bool = True) -> Tensor:
    """Return int64[rows]: the bytes that each row takes as tensors; without dictionaries, the bytes of the decoded
    values.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return row_bytes(array.storage, with_dictionaries=with_dictionaries)
    if types.is_run_end_encoded(kind):
        first, lengths = run_lengths(array)
        values = array.values.slice(first, len(lengths))
        return np.repeat(row_bytes(values, with_dictionaries=with_dictionaries), lengths)
    if types.is_dictionary(kind) and not with_dictionaries:
        values = np.append(row_bytes(array.dictionary), _LENGTH)  # the last entry is the size of a null
        codes = np.asarray(array.indices.fill_null(len(array.dictionary)))
        return values.take(codes, mode="clip")
    if types.is_struct(kind):
        fields = (
            row_bytes(array.field(at), with_dictionaries=with_dictionaries) for at in range(kind.num_fields)
        )
        return sum(fields, np.zeros(len(array), np.int64))
    if is_any(kind, (*TEXTS, *TEXT_VIEWS)):
        return _text_lengths(array) + _LENGTH
    if types.is_map(kind) or is_any(kind, LISTS):
        starts, lengths = _ranges(array)
        # only sizes are estimated here: ranges of damaged data are cut, and the reader raises the error
        ends = np.clip(starts + lengths, 0, len(array.values))
        starts = np.clip(starts, 0, ends)
        if (width := _width(array.values.type)) is not None:
            of_values: Tensor = (ends - starts) * width + _LENGTH
            return of_values
        is_filled = ends > starts
        first = int(starts[is_filled].min(initial=len(array.values)))
        last = int(ends[is_filled].max(initial=first))
        below = row_bytes(array.values.slice(first, last - first), with_dictionaries=with_dictionaries)
        sums: Tensor = np.append(0, np.cumsum(below))
        starts, ends = (np.clip(at - first, 0, len(below)) for at in (starts, ends))
        sizes: Tensor = sums[ends] - sums[starts] + _LENGTH
        return sizes
    width = _width(kind)
    return np.full(len(array), max(1, kind.bit_width // 8) if width is None else width, np.int64)


def _width(kind: pa.DataType) -> int | None:
    """Return the bytes of a value of a type of numbers, bools or times; None for other types."""
    if types.is_null(kind):
        return 0
    dtype = None if isinstance(kind, pa.BaseExtensionType) else leaf_dtype(kind)
    return None if dtype is None or types.is_dictionary(kind) else dtype.itemsize


def _text_lengths(array: pa.Array) -> Tensor:
    """Return the bytes of each text. A view is 16 bytes, of which the first int32 is the length."""
    if not is_any(array.type, TEXT_VIEWS):
        return _ranges(array)[1]
    views = view(array.buffers()[1], np.dtype(np.int32), 4 * array.offset, 4 * len(array))
    return _without_nulls(array, views[::4])


def _ranges(array: pa.Array) -> tuple[Tensor, Tensor]:
    """Return start and length of each list, map or text in its values."""
    kind, rows = array.type, len(array)
    if types.is_fixed_size_list(kind):
        return (np.arange(rows) + array.offset) * kind.list_size, np.full(rows, kind.list_size)
    if is_any(kind, LIST_VIEWS):
        wide = types.is_large_list_view(kind)
        starts, lengths = (_positions(array, buffer, wide, rows) for buffer in (1, 2))
        return starts, _without_nulls(array, lengths)
    wide = is_any(kind, (types.is_large_list, types.is_large_string, types.is_large_binary))
    offsets = _positions(array, 1, wide, rows + 1)
    return offsets[:-1], np.diff(offsets)


def _positions(array: pa.Array, buffer: int, wide: bool, count: int) -> Tensor:
    """Return the offsets or sizes in a buffer; an array without rows may have no buffer."""
    dtype = np.dtype(np.int64 if wide else np.int32)
    found = array.buffers()[buffer]
    if found is None or found.size == 0:
        return np.zeros(count, np.int64)
    return view(found, dtype, array.offset, count).astype(np.int64)


def _without_nulls(array: pa.Array, lengths: Tensor) -> Tensor:
    """Return the lengths of views as int64, 0 for nulls: Arrow leaves the length under a null undefined."""
    nulls = nulls_of(array)
    found = np.maximum(lengths.astype(np.int64), 0)
    return found if nulls is None else np.where(nulls, 0, found)
