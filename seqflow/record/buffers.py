"""Convert Arrow buffers to NumPy arrays and back, without copies unless a docstring says otherwise."""

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.kernels.exact import changed
from seqflow.record.arrow_types import leaf_dtype
from seqflow.record.record import Tensor

INT32_MAX = 2**31 - 1


def leaf_values(array: pa.Array) -> Tensor:
    """Return the values of an array of numbers, bools or times, including those under nulls, as a read-only view.

    Bools (bits in Arrow), date32 and time32 (32 bits, but 64 in NumPy) are copied.
    """
    dtype = leaf_dtype(array.type)
    assert dtype is not None
    buffer = array.buffers()[1]
    if dtype == np.bool_:
        return bits(buffer, array.offset, len(array))
    if array.type.bit_width == 32 and dtype.kind in "Mm":
        return frozen(view(buffer, np.dtype(np.int32), array.offset, len(array)).astype(np.int64).view(dtype))
    return view(buffer, dtype, array.offset, len(array))


def leaf_array(values: Tensor, kind: pa.DataType, nulls: Tensor | None) -> pa.Array:
    """Return the Arrow array of type `kind` over 1-D values of `leaf_dtype(kind)`: the inverse of leaf_values.

    Raises ProviderError for a time, not null, that a type of 32 bits cannot hold.
    """
    if types.is_boolean(kind):
        data = pa.py_buffer(np.packbits(values, bitorder="little"))
    elif kind.bit_width == 32 and values.dtype.kind in "Mm":
        data = pa.py_buffer(_with_32_bits(values, kind, nulls))
    else:
        data = buffer_of(values)
    return pa.Array.from_buffers(kind, len(values), [validity(nulls), data])


def _with_32_bits(values: Tensor, kind: pa.DataType, nulls: Tensor | None) -> Tensor:
    if (unfit := unfit_times(values, kind, nulls)).size:
        raise ProviderError(f"to_arrow: {unfit[0]} is not a value of {kind}, which has 32 bits")
    return values.view(np.int64).astype(np.int32)


def unfit_times(values: Tensor, kind: pa.DataType, nulls: Tensor | None = None) -> Tensor:
    """Return the times that a type cannot hold, or that readers cut: beyond 32 bits or a day, or within a day for
    date64.
    """
    wrong = np.zeros(len(values), np.bool_)
    if types.is_time(kind):
        wrong = ~((values >= np.timedelta64(0, "D")) & (values < np.timedelta64(1, "D")))
    elif types.is_date64(kind):
        # date64 counts milliseconds, but the format allows whole days only
        wrong = changed(values, values.astype("M8[D]")) | np.isnat(values)
    elif types.is_date32(kind):
        wrong = values.view(np.int64) != values.view(np.int64).astype(np.int32)
    unfit: Tensor = values[wrong if nulls is None else wrong & ~nulls]
    return unfit


def chunks_of(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """Return the arrays of a column: its chunks, or the array itself."""
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def view(buffer: pa.Buffer | None, dtype: np.dtype[Any], start: int, count: int) -> Tensor:
    """Return `count` values from position `start` as a read-only array that keeps the buffer alive."""
    if count == 0 or buffer is None:
        return frozen(np.empty(0, dtype))
    # buffers of memory maps and of other libraries may be shorter than their array claims
    size, first = count * dtype.itemsize, start * dtype.itemsize
    if first + size > buffer.size:
        raise ProviderError(
            f"an Arrow buffer has {buffer.size} bytes, but its array reaches to byte {first + size}"
        )
    return frozen(np.frombuffer(buffer, np.uint8, size, first).view(dtype))


def bits(buffer: pa.Buffer | None, start: int, count: int) -> Tensor:
    """Return `count` bits from bit `start`, unpacked to bools."""
    first = start // 8
    packed = view(buffer, np.dtype(np.uint8), first, (start + count + 7) // 8 - first)
    unpacked = np.unpackbits(packed, count=start % 8 + count, bitorder="little")
    return frozen(unpacked[start % 8 :].view(np.bool_))


def nulls_of(array: pa.Array) -> Tensor | None:
    """Return bool[rows], true where the array is null; None for an array without nulls."""
    if array.null_count == 0:
        return None
    # the offset of a sliced array counts bits in this buffer
    return ~bits(array.buffers()[0], array.offset, len(array))


def validity(nulls: Tensor | None) -> pa.Buffer | None:
    """Return the validity bitmap of a mask of nulls; None if nothing is null."""
    if nulls is None or not nulls.any():
        return None
    return pa.py_buffer(np.packbits(~nulls, bitorder="little"))


def buffer_of(values: Tensor) -> pa.Buffer:
    """Return the memory of an array as an Arrow buffer; copied only if it is not contiguous."""
    if values.size == 0:
        return pa.py_buffer(b"")
    return pa.py_buffer(np.ascontiguousarray(values).reshape(-1).view(np.uint8))


def pool_array(count: int, dtype: np.dtype[Any]) -> Tensor:
    """Return a new array of `count` values in memory of Arrow's pool, whose pages are in use already.

    When large arrays are made one after another, half of the time goes to the system for new pages; the pool avoids
    that.
    """
    if not count:
        return np.empty(0, dtype)
    return np.frombuffer(pa.allocate_buffer(count * dtype.itemsize), dtype)


def offsets_of(lengths: Tensor, wide: bool) -> Tensor:
    """Return the exclusive prefix sum of lengths with the total at the end, in 32 or 64 bits."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets if wide else offsets.astype(np.int32)


def frozen(values: Tensor) -> Tensor:
    """Make the array read-only and return it."""
    values.flags.writeable = False
    return values
