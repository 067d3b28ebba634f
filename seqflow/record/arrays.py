"""Build nested Arrow arrays over the memory of tensors, and replace the children of others."""

import math
import sys
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.kernels.exact import converted
from seqflow.record.arrow_types import fixed_shape
from seqflow.record.buffers import INT32_MAX, buffer_of, leaf_array, nulls_of, offsets_of, validity
from seqflow.record.record import Tensor


class MisfitError(Exception):
    """The tensors of a column no longer fit its Arrow type in the schema."""


def list_array(kind: pa.DataType, lengths: Tensor, child: pa.Array, nulls: Tensor | None) -> pa.Array:
    """Return a list array of these lengths over `child`; its type becomes a large one if 32-bit offsets would
    overflow.
    """
    field = kind.value_field.with_type(child.type)
    wide = types.is_large_list(kind) or len(child) > INT32_MAX
    kind = pa.large_list(field) if wide else pa.list_(field)
    buffers = [validity(nulls), buffer_of(offsets_of(lengths, wide))]
    return pa.Array.from_buffers(kind, len(lengths), buffers, children=[child])


def text_array(kind: pa.DataType, lengths: Tensor, values: Tensor, nulls: Tensor | None) -> pa.Array:
    """Return a string or binary array. Writeable bytes are checked to be UTF-8: they may have changed since they were
    read.
    """
    text = types.is_string(kind) or types.is_large_string(kind)
    wide = types.is_large_string(kind) or types.is_large_binary(kind) or len(values) > INT32_MAX
    flat = (
        (pa.large_string() if wide else pa.string()) if text else (pa.large_binary() if wide else pa.binary())
    )
    buffers = [validity(nulls), buffer_of(offsets_of(lengths, wide)), buffer_of(values)]
    array = pa.Array.from_buffers(flat, len(lengths), buffers)
    if text and values.flags.writeable:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            raise MisfitError from None
    return array


def fixed_array(kind: pa.DataType, values: Tensor, nulls: list[Tensor | None]) -> pa.Array:
    """Return a fixed-size list or binary array over values[rows, *shape]; `nulls` has a mask for each level, rows
    first.
    """
    if types.is_fixed_size_binary(kind):
        return pa.Array.from_buffers(kind, len(values), [validity(nulls[0]), buffer_of(values)])
    inner = kind.value_type
    below = values.reshape(len(values) * kind.list_size, *values.shape[2:])
    nulls_below = [None if one is None else one.reshape(len(below), *one.shape[2:]) for one in nulls[1:]]
    if fixed_shape(inner) is not None:
        child = fixed_array(inner, below, nulls_below)
    else:
        child = leaf_array(below.reshape(-1), inner, nulls_below[0])
    return fixed_size_lists(kind, len(values), child, nulls[0])


def fixed_size_lists(kind: pa.DataType, rows: int, child: pa.Array, nulls: Tensor | None) -> pa.Array:
    """Return an array of `rows` lists of `kind.list_size` values each; `child` has values for null lists, too."""
    kind = pa.list_(kind.value_field.with_type(child.type), kind.list_size)
    return pa.Array.from_buffers(kind, rows, [validity(nulls)], children=[child])


def tensor_array(name: str, tensor: Tensor, nulls: list[Tensor | None]) -> pa.Array:
    """A tensor as an array of the Arrow type for its dtype; extra axes become fixed-size lists.

    NumPy's strings become text, its bytes binary.
    """
    if tensor.dtype.kind not in "biufMmSU" or (tensor.dtype.itemsize > 8 and tensor.dtype.kind not in "SU"):
        advice = "\n  convert it to texts with astype(str)" if tensor.dtype.kind in "OT" else ""
        raise ProviderError(f"to_arrow: {name} has dtype {tensor.dtype}, which has no Arrow type{advice}")
    tensor = tensor.astype(tensor.dtype.newbyteorder("="), copy=False)
    if tensor.dtype.kind in "SU":
        return _nested_texts(name, tensor, nulls)
    if tensor.dtype.kind in "Mm":
        tensor = _in_arrow_unit(name, tensor)
    kind = pa.from_numpy_dtype(tensor.dtype)
    if tensor.ndim == 1:
        return leaf_array(tensor, kind, nulls[0])
    for size in reversed(tensor.shape[1:]):
        kind = pa.list_(kind, size)
    return fixed_array(kind, tensor, nulls)


def _nested_texts(name: str, tensor: Tensor, nulls: list[Tensor | None]) -> pa.Array:
    try:
        array = _texts(np.ascontiguousarray(tensor.reshape(-1)))
    except UnicodeError:
        raise ProviderError(f"to_arrow: {name} has a text that cannot be encoded as UTF-8") from None
    if nulls[-1] is not None:
        import pyarrow.compute as pc

        array = pc.if_else(pa.array(~nulls[-1].reshape(-1)), array, None)
    for axis in range(tensor.ndim - 1, 0, -1):
        above, rows = nulls[axis - 1], math.prod(tensor.shape[:axis])
        of_rows = None if above is None else above.reshape(rows)
        array = fixed_size_lists(pa.list_(array.type, tensor.shape[axis]), rows, array, of_rows)
    return array


def _texts(array: Tensor) -> pa.Array:
    """Return texts and bytes without their padding of NULs; Arrow's own conversion would end at the first NUL."""
    is_text, wide = array.dtype.kind == "U", array.nbytes > INT32_MAX
    unit = np.uint32 if is_text else np.uint8
    width = array.dtype.itemsize // np.dtype(unit).itemsize
    units = array.reshape(-1, 1).view(unit) if width else np.empty((len(array), 0), unit)
    # the sentinel of ones in front of the reversed units makes an all-NUL text end at 0
    lengths = width - np.argmax(np.pad(units[:, ::-1], ((0, 0), (0, 1)), constant_values=1) != 0, axis=1)
    chosen = units[np.arange(width) < lengths[:, None]]
    ends = np.append(0, np.cumsum(lengths))
    if is_text:
        # a character takes 1 to 4 bytes in UTF-8: the limits are those of the encoding
        sizes = 1 + (chosen >= 0x80).astype(np.int64) + (chosen >= 0x800) + (chosen >= 0x10000)
        ends = np.append(0, np.cumsum(sizes))[ends]
        encoded = chosen.tobytes().decode(f"utf-32-{sys.byteorder[0]}e").encode()
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(encoded)]
        texts = pa.Array.from_buffers(pa.large_string(), len(array), buffers)
        return texts if wide else texts.cast(pa.string())
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(chosen)]
    data = pa.Array.from_buffers(pa.large_binary(), len(array), buffers)
    return data if wide else data.cast(pa.binary())


def _in_arrow_unit(name: str, tensor: Tensor) -> Tensor:
    """Convert times to a unit of Arrow; raise ProviderError when that would change a value."""
    kind, (unit, _) = tensor.dtype.kind, np.datetime_data(tensor.dtype)
    if unit not in ("s", "ms", "us", "ns") and (kind, unit) != ("M", "D"):
        exact = ("m", "h", "D", "W", "M", "Y") if kind == "M" else ("m", "h", "D", "W")
        if unit not in exact:
            raise ProviderError(f"to_arrow: {name} has dtype {tensor.dtype}, which has no Arrow type")
        unit = "s"
    times, is_changed = converted(tensor, f"{kind}8[{unit}]")
    if is_changed.any():
        raise ProviderError(f"to_arrow: {name} has {tensor.dtype} that {times.dtype} cannot hold")
    return times


def struct_array(kind: pa.DataType, children: list[pa.Array], rows: int, nulls: Tensor | None) -> pa.Array:
    fields = [field.with_type(child.type) for field, child in zip(kind, children, strict=True)]
    return pa.Array.from_buffers(pa.struct(fields), rows, [validity(nulls)], children=children)


def map_array(
    kind: pa.DataType, lengths: Tensor, keys: pa.Array, items: pa.Array, nulls: Tensor | None
) -> pa.Array:
    """Return maps with these numbers of keys and items; raise MisfitError when their 32-bit offsets would
    overflow.
    """
    if len(keys) > INT32_MAX:
        raise MisfitError
    key, item = kind.key_field.with_type(keys.type), kind.item_field.with_type(items.type)
    entries = struct_array(pa.struct([key, item]), [keys, items], len(keys), None)
    buffers = [validity(nulls), buffer_of(offsets_of(lengths, wide=False))]
    kind = pa.map_(key, item, kind.keys_sorted)
    return pa.Array.from_buffers(kind, len(lengths), buffers, children=[entries])


_NUM_BUFFERS = {
    pa.list_(pa.null()).id: 2,
    pa.large_list(pa.null()).id: 2,
    pa.list_(pa.null(), 1).id: 1,
    pa.map_(pa.string(), pa.null()).id: 2,
}
"""The number of buffers of a list array by type id, without those of its child."""


def with_fields(array: pa.StructArray, kind: pa.StructType, children: Sequence[pa.Array]) -> pa.StructArray:
    """Replace the children of a struct array."""
    # not StructArray.from_arrays, which takes the number of rows from the children: there may be none
    buffers = [validity(nulls_of(array))]
    return pa.Array.from_buffers(kind, len(array), buffers, children=list(children))


def with_values(array: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Replace the values of an array of lists, or the entries of an array of maps."""
    buffers = array.buffers()[: _NUM_BUFFERS[array.type.id]]
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset, [values])
