"""Convert every list layout of Arrow (offsets, views, fixed size) to lengths and values."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow import kernels
from seqflow.errors import ProviderError
from seqflow.record.arrow_types import LIST_VIEWS, is_any, leaf_dtype
from seqflow.record.buffers import leaf_array, leaf_values, pool_array, view
from seqflow.record.record import Tensor
from seqflow.record.validation import reading, validated


def list_parts(name: str, array: pa.Array, nulls: Tensor | None) -> tuple[Tensor, pa.Array]:
    """Return the length of each list, 0 for nulls, and the values of all lists except those hidden by nulls."""
    if is_any(array.type, LIST_VIEWS):
        return _list_view_parts(name, array, nulls)
    if types.is_fixed_size_list(array.type):
        size = array.type.list_size
        lengths = np.full(len(array), size, np.int64)
        start, total = array.offset * size, len(array) * size
        if start + total > len(array.values):
            raise ProviderError(
                f"{name}: {len(array)} lists of {size} need {start + total} values, but there are {len(array.values)}"
            )
    else:
        dtype = np.dtype(np.int64 if types.is_large_list(array.type) else np.int32)
        offsets = view(array.buffers()[1], dtype, array.offset, len(array) + 1 if len(array) else 0)
        lengths = _lengths_of(name, offsets, len(array.values))
        start, total = (int(offsets[0]), int(offsets[-1]) - int(offsets[0])) if len(offsets) else (0, 0)
    rows = array.values.slice(start, total)
    # Arrow allows a null list to have a length above 0; its values must not become rows of the tensor
    if nulls is not None and lengths[nulls].any():
        starts = np.cumsum(lengths) - lengths
        lengths[nulls] = 0
        rows = _take_ranges(name, rows, starts, lengths)
    return lengths, rows


def _list_view_parts(name: str, array: pa.Array, nulls: Tensor | None) -> tuple[Tensor, pa.Array]:
    dtype = np.dtype(np.int64 if types.is_large_list_view(array.type) else np.int32)
    _, starts_buffer, sizes_buffer, *_ = array.buffers()
    starts = view(starts_buffer, dtype, array.offset, len(array)).astype(np.int64)
    lengths = view(sizes_buffer, dtype, array.offset, len(array)).astype(np.int64)
    if nulls is not None:
        lengths[nulls] = 0
    # empty views may point anywhere, so only the others are checked and compared
    first, sizes = starts[lengths > 0], lengths[lengths > 0]
    _check_views(name, starts, lengths, len(array.values))
    if not len(first):
        return lengths, array.values.slice(0, 0)
    # views that happen to lie one after another need no copy
    if np.array_equal(first[1:], first[:-1] + sizes[:-1]):
        return lengths, array.values.slice(int(first[0]), int(sizes.sum()))
    return lengths, _take_ranges(name, array.values, starts, lengths)


def _check_views(name: str, starts: Tensor, lengths: Tensor, num_rows: int) -> None:
    wrong = (lengths < 0) | ((lengths > 0) & ((starts < 0) | (starts > num_rows - lengths)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ProviderError(
            f"{name}: the Arrow list view of row {row} has {lengths[row]} values from {starts[row]} on, but there "
            f"are {num_rows}"
        )


def _lengths_of(name: str, offsets: Tensor, num_rows: int) -> Tensor:
    """Return int64 lengths[B] of offsets[B+1] into `num_rows` values; raise ProviderError for invalid offsets."""
    try:
        lengths: Tensor = kernels.offsets_to_lengths(offsets)
    except kernels.KernelError as error:
        row = max(0, (error.position or 0) - 1)
        found = offsets[row : row + 2].tolist()
        raise ProviderError(f"{name}: the Arrow offsets decrease at row {row}: {found}") from None
    if len(lengths) and offsets[-1] > num_rows:
        raise ProviderError(
            f"{name}: the Arrow offsets reach to {offsets[-1]}, but there are {num_rows} values"
        )
    return lengths


def filled_lists(
    name: str, lengths: Tensor, rows: pa.Array, nulls: Tensor, fill: pa.Array
) -> tuple[Tensor, pa.Array]:
    """Replace null lists, which are empty in `rows`, by the elements of `fill`."""
    if not len(fill):
        return lengths, rows
    # the fill value is stored once, after the rows; every null list refers to it
    starts = np.cumsum(lengths) - lengths
    starts[nulls] = len(rows)
    lengths = np.where(nulls, len(fill), lengths)
    with reading(f"{name}: null values can't be filled"):
        return lengths, _take_ranges(name, pa.concat_arrays([rows, fill]), starts, lengths)


def _take_ranges(name: str, rows: pa.Array, starts: Tensor, lengths: Tensor) -> pa.Array:
    """Concatenate the ranges `rows[starts : starts + lengths]`; data that Arrow itself copies are validated first."""
    ends = np.cumsum(lengths)
    if leaf_dtype(rows.type) is not None and not rows.null_count:
        values = leaf_values(rows)
        moved = pool_array(int(ends[-1]), values.dtype)
        kernels.move_slices(values, starts, lengths, moved, ends - lengths)
        return leaf_array(moved, rows.type, None)
    validated(rows, name)
    return take_any(rows, np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths))


def take_any(rows: pa.Array, indices: Tensor) -> pa.Array:
    """Take rows by int64 indices[K] from an array of any type, including types that Arrow's `take` does not
    support.
    """
    try:
        return rows.take(pa.array(indices, pa.int64()))
    except pa.ArrowNotImplementedError:
        # slices of consecutive indices: `concat_arrays` takes all types, and one piece for each row would be slow
        breaks = np.flatnonzero(np.diff(indices) != 1) + 1
        limits = [0, *breaks.tolist(), len(indices)]
        pieces = [
            rows.slice(int(indices[start]), stop - start) for start, stop in pairwise(limits) if stop > start
        ]
        return pa.concat_arrays(pieces) if pieces else rows.slice(0, 0)


def bytes_as_lists(array: pa.Array) -> pa.Array:
    """View a string or binary array as a list<uint8> array, which has the same memory layout."""
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    values = pa.Array.from_buffers(pa.uint8(), data.size if data else 0, [None, data or pa.py_buffer(b"")])
    kind = pa.large_list(pa.uint8()) if wide else pa.list_(pa.uint8())
    return pa.Array.from_buffers(kind, len(array), [None, offsets], 0, array.offset, [values])


def checked_views(array: pa.Array) -> pa.Array:
    """Validate text views, and empty those of null rows: Arrow's cast follows them, but its validation skips them."""
    if not validated(array, "a text").null_count:
        return array
    validity, views, *data = array.buffers()
    end = array.offset + len(array)
    emptied = np.frombuffer(views, np.int64, 2 * end).reshape(end, 2).copy()
    emptied[array.offset :][np.asarray(array.is_null())] = 0
    return pa.Array.from_buffers(
        array.type, len(array), [validity, pa.py_buffer(emptied), *data], offset=array.offset
    )
