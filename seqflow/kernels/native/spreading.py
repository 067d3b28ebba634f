"""Rows written more than once, in C++."""

from typing import Any

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import Array, apart, check_same_size, check_width, counts, output, rows, scalar
from seqflow.kernels.native.forms import is_moved, raw
from seqflow.kernels.native.lengths import check_lengths


def expand(data: Array, lengths: Array, *, out: Array | None = None) -> Array:
    if out is None:
        try:
            return _native.expand(data, lengths, None)
        except TypeError:
            pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    check_same_size(data=data, lengths=lengths)
    if not is_moved(data):
        return reference.expand(data, lengths, out=out)
    out = output(out, (check_lengths(lengths), *data.shape[1:]), data.dtype)
    _native.expand(raw(apart(data, out)), apart(lengths, out), raw(out))
    return out


def windows(data: Array, lengths: Array, before: int, after: int, value: Any = 0) -> Array:
    check_width(before, "before")
    check_width(after, "after")
    if type(value) is int and value == 0:
        try:
            return _native.windows(data, lengths, before, after, None, None)
        except TypeError:
            pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    if not is_moved(data):
        return reference.windows(data, lengths, before, after, value)
    fill = scalar(value, data.dtype).tobytes()
    out = output(None, (len(data), before + 1 + after, *data.shape[1:]), data.dtype)
    _native.windows(raw(data), lengths, before, after, fill, raw(out))
    return out
