"""Rows and slices of rows from one array to another, in C++."""

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import Array, apart, check_pair, check_same_size, counts, integers, output, rows
from seqflow.kernels.native.forms import is_moved, raw


def gather(
    data: Array,
    indices: Array,
    *,
    wrap: bool = False,
    ignore_index: int | None = None,
    out: Array | None = None,
) -> Array:
    if out is None:
        try:
            return _native.gather(data, indices, wrap, ignore_index, None)
        except TypeError:
            pass
    data, indices = rows(data, "data"), integers(indices, "indices")
    if not is_moved(data):
        return reference.gather(data, indices, wrap=wrap, ignore_index=ignore_index, out=out)
    out = output(out, indices.shape + data.shape[1:], data.dtype)
    flat = indices.reshape(-1)
    _native.gather(raw(apart(data, out)), apart(flat, out), wrap, ignore_index, raw(out))
    return out


def move_slices(
    source: Array, source_starts: Array, sizes: Array, target: Array, target_starts: Array
) -> None:
    try:
        return _native.move_slices(source, source_starts, sizes, target, target_starts)
    except TypeError:
        pass
    source, sizes = rows(source, "source"), counts(sizes, "sizes")
    source_starts = counts(source_starts, "source_starts")
    target_starts = counts(target_starts, "target_starts")
    check_same_size(source_starts=source_starts, sizes=sizes, target_starts=target_starts)
    check_pair(source, target)
    if not is_moved(source):
        return reference.move_slices(source, source_starts, sizes, target, target_starts)
    source, source_starts = apart(source, target), apart(source_starts, target)
    sizes, target_starts = apart(sizes, target), apart(target_starts, target)
    return _native.move_slices(raw(source), source_starts, sizes, raw(target), target_starts)
