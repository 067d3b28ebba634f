"""Convert keys (integers or strings in NumPy, Arrow or Python) to one Arrow array."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from seqflow.errors import OpError, OpTypeError
from seqflow.kernels import KernelError, check_lengths, lengths_to_offsets
from seqflow.kernels.arrays import Array, is_masked
from seqflow.record.arrow_types import LISTS, TEXTS, is_any
from seqflow.record.lists import list_parts
from seqflow.record.run_ends import decoded
from seqflow.sequence import Sequence

INTEGERS, STRINGS = pa.int64(), pa.large_binary()
"""The two types of keys."""


def as_keys(keys: Any, lengths: Any = None) -> pa.Array:
    """Return keys as an array of INTEGERS or STRINGS; raise OpTypeError for others, and OpError for a null.

    With `lengths`, `keys` are the uint8 values of strings. Lists and Sequences are flattened; if the values of a
    Sequence are uint8, its innermost lengths are those of strings.
    """
    if lengths is not None:
        return strings_of(np.asanyarray(keys), np.asarray(lengths))
    if isinstance(keys, Sequence):
        values, *levels = keys.unpack()
        return strings_of(values, levels[-1]) if values.dtype == np.uint8 else as_keys(values)
    array = _flat(_as_arrow(keys))
    if array.null_count:
        row = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        raise OpError(f"keys[{row}] is null, expected a key")
    return array


def strings_of(values: Array, lengths: Array) -> pa.Array:
    """Return strings from their bytes and lengths."""
    if values.dtype != np.uint8 or values.ndim != 1 or is_masked(type(values)):
        raise OpTypeError(f"keys is {values.dtype}{list(values.shape)}, expected the uint8 values of strings")
    try:
        offsets = lengths_to_offsets(lengths)
        total = check_lengths(lengths)
    except KernelError as error:
        raise OpError(str(error)) from error
    if total != len(values):
        raise OpError(f"sum(lengths) is {total} but keys has {len(values)} bytes")
    bytes_buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.LargeBinaryArray.from_buffers(
        STRINGS, len(lengths), [None, pa.py_buffer(offsets), bytes_buffer]
    )


def bytes_of(keys: pa.Array) -> tuple[Array, Array]:
    """Return the uint8 values of strings, and their lengths."""
    _, offsets_buffer, values_buffer = keys.buffers()
    if not len(keys):
        return np.empty(0, np.uint8), np.empty(0, np.int64)
    offsets = np.frombuffer(offsets_buffer, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    values = np.frombuffer(values_buffer, np.uint8) if values_buffer else np.empty(0, np.uint8)
    return values[offsets[0] : offsets[-1]], np.diff(offsets)


def _as_arrow(keys: Any) -> Any:
    if isinstance(keys, pa.Array | pa.ChunkedArray):
        return keys
    if hasattr(keys, "__arrow_c_stream__"):
        return pa.chunked_array(keys)
    if hasattr(keys, "__arrow_c_array__"):
        return pa.array(keys)
    if isinstance(keys, np.ndarray):
        return pa.array(keys.ravel().tolist() if keys.dtype.kind in "OUS" else keys.ravel())
    if isinstance(keys, Iterable) and not isinstance(keys, str | bytes | dict):
        listed = list(keys)
        try:
            return pa.array(listed) if listed else pa.array([], pa.null())
        except (pa.ArrowException, OverflowError) as error:
            raise OpTypeError(f"keys are neither all integers nor all strings: {error}") from None
    raise OpTypeError(f"keys is {type(keys).__name__}, expected integers or strings")


def _flat(array: Any) -> pa.Array:
    """Return the elements of an array, also from lists, as INTEGERS or STRINGS; an array without elements may have no
    type.
    """
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    array = decoded(array)
    kind = array.type
    if types.is_dictionary(kind):
        return _flat(array.dictionary_decode())
    if is_any(kind, LISTS):
        if array.null_count:
            raise OpError(f"keys[{int(np.argmax(array.is_null()))}] is null, expected a list of keys")
        return _flat(list_parts("keys", array, None)[1])
    if types.is_null(kind):
        return array
    try:
        if types.is_integer(kind):
            return compute.cast(array, INTEGERS)
        if is_any(kind, (*TEXTS, types.is_fixed_size_binary)):
            return compute.cast(array, STRINGS)
    except pa.ArrowInvalid as error:
        raise OpError(f"keys do not fit {INTEGERS}: {error}") from None
    raise OpTypeError(f"keys are {kind}, expected integers or strings")
