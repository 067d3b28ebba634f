"""Between flat rows and padded ones, in C++."""

from typing import Any

import numpy as np

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import (
    Array,
    apart,
    check_packed,
    check_padded,
    check_room,
    check_side,
    check_width,
    counts,
    output,
    rows,
    scalar,
)
from seqflow.kernels.native.forms import is_moved, raw
from seqflow.kernels.native.lengths import check_lengths


def pad(
    data: Array,
    lengths: Array,
    width: int,
    value: Any = 0,
    side: str = "right",
    *,
    truncate: bool = False,
    out: Array | None = None,
    mask: Array | None = None,
) -> tuple[Array, Array]:
    check_side(side)
    check_width(width)
    left = side == "left"
    if out is None and mask is None and type(value) is int and value == 0:
        try:
            return _native.pad(data, lengths, width, None, left, truncate, None, None)
        except TypeError:
            pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    if not is_moved(data):
        return reference.pad(data, lengths, width, value, side, truncate=truncate, out=out, mask=mask)
    fill = scalar(value, data.dtype).tobytes()
    shape = (len(lengths), width)
    out = output(out, shape + data.shape[1:], data.dtype)
    mask = output(mask, shape, np.dtype(bool), "mask")
    data = apart(apart(data, out), mask)
    _native.pad(raw(data), lengths, width, fill, left, truncate, raw(out), mask)
    return out, mask


def unpad(padded: Array, lengths: Array, side: str = "right", *, out: Array | None = None) -> Array:
    check_side(side)
    if out is None:
        try:
            return _native.unpad(padded, lengths, side == "left", None)
        except TypeError:
            pass
    padded, lengths = rows(padded, "padded"), counts(lengths, "lengths")
    check_padded(padded, lengths)
    if not is_moved(padded):
        return reference.unpad(padded, lengths, side, out=out)
    total = check_lengths(lengths)
    check_room(lengths, padded.shape[1])
    out = output(out, (total, *padded.shape[2:]), padded.dtype)
    _native.unpad(raw(apart(padded, out)), lengths, side == "left", raw(out))
    return out


def pack_by_time(
    data: Array, lengths: Array, num_steps: int, value: Any = 0, *, out: Array | None = None
) -> Array:
    check_width(num_steps)
    if out is None and type(value) is int and value == 0:
        try:
            return _native.pack_by_time(data, lengths, num_steps, None, None)
        except TypeError:
            pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    if not is_moved(data):
        return reference.pack_by_time(data, lengths, num_steps, value, out=out)
    fill = scalar(value, data.dtype).tobytes()
    out = output(out, (num_steps, len(lengths), *data.shape[1:]), data.dtype)
    _native.pack_by_time(raw(apart(data, out)), lengths, num_steps, fill, raw(out))
    return out


def unpack_by_time(packed: Array, lengths: Array, *, out: Array | None = None) -> Array:
    if out is None:
        try:
            return _native.unpack_by_time(packed, lengths, None)
        except TypeError:
            pass
    packed, lengths = rows(packed, "packed"), counts(lengths, "lengths")
    check_packed(packed, lengths)
    if not is_moved(packed):
        return reference.unpack_by_time(packed, lengths, out=out)
    total = check_lengths(lengths)
    check_room(lengths, len(packed))
    out = output(out, (total, *packed.shape[2:]), packed.dtype)
    _native.unpack_by_time(raw(apart(packed, out)), lengths, raw(out))
    return out
