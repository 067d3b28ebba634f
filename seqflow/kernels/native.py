"""The kernels in C++. The functions of `seqflow.kernels`, whose docstrings hold here as well.

Each first hands its arguments over as they are. What the C++ side does not take (TypeError: other dtypes,
strides, byte orders) is brought into a form that it does, and only what has no such form is left to NumPy.
"""

from math import prod
from typing import Any

import numpy as np

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import (
    Array,
    DType,
    PackingPlan,
    apart,
    check_padded,
    check_pair,
    check_room,
    check_same_size,
    check_side,
    check_strategy,
    check_width,
    counts,
    integers,
    output,
    reduced_dtype,
    rows,
    scalar,
)

isa = _native.isa
isas = _native.isas
set_isa = _native.set_isa
num_threads = _native.num_threads
set_num_threads = _native.set_num_threads
enter_single_thread = _native.enter_single_thread
leave_single_thread = _native.leave_single_thread
quick_check_lengths = _native.check_lengths


def check_lengths(lengths: Array) -> int:
    try:
        return _native.check_lengths(lengths)
    except TypeError:
        return _native.check_lengths(counts(lengths, "lengths"))


def max_length(lengths: Array) -> int:
    try:
        return _native.max_length(lengths)
    except TypeError:
        return _native.max_length(counts(lengths, "lengths"))


def lengths_to_offsets(lengths: Array) -> Array:
    try:
        return _native.lengths_to_offsets(lengths)
    except TypeError:
        return _native.lengths_to_offsets(counts(lengths, "lengths"))


def lengths_to_segment_ids(lengths: Array) -> Array:
    try:
        return _native.lengths_to_segment_ids(lengths)
    except TypeError:
        return _native.lengths_to_segment_ids(counts(lengths, "lengths"))


def segment_reduce(kind: str, data: Array, lengths: Array, empty: Any = 0) -> Array:
    if type(empty) is int and empty == 0:
        try:
            return _native.segment_reduce(kind, data, lengths, None)
        except TypeError:
            pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    dtype = reduced_dtype(kind, data.dtype)
    if not _is_computed(data):
        return reference.segment_reduce(kind, data, lengths, empty)
    out = _native.segment_reduce(kind, _computed(kind, data), lengths, _computed_fill(empty, dtype))
    return out.astype(dtype, copy=False)


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
    if not _is_moved(data):
        return reference.gather(data, indices, wrap=wrap, ignore_index=ignore_index, out=out)
    out = output(out, indices.shape + data.shape[1:], data.dtype)
    flat = indices.reshape(-1)
    _native.gather(_raw(apart(data, out)), apart(flat, out), wrap, ignore_index, _raw(out))
    return out


def gather_segment_reduce(
    kind: str, table: Array, indices: Array, lengths: Array, empty: Any = 0, ignore_index: int | None = None
) -> Array:
    if type(empty) is int and empty == 0:
        try:
            return _native.gather_segment_reduce(kind, table, indices, lengths, None, ignore_index)
        except TypeError:
            pass
    table, indices, lengths = rows(table, "table"), counts(indices, "indices"), counts(lengths, "lengths")
    dtype = reduced_dtype(kind, table.dtype)
    if not _is_computed(table):
        return reference.gather_segment_reduce(kind, table, indices, lengths, empty, ignore_index)
    out = _native.gather_segment_reduce(
        kind, _computed(kind, table), indices, lengths, _computed_fill(empty, dtype), ignore_index
    )
    return out.astype(dtype, copy=False)


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
    if not _is_moved(source):
        return reference.move_slices(source, source_starts, sizes, target, target_starts)
    source, source_starts = apart(source, target), apart(source_starts, target)
    sizes, target_starts = apart(sizes, target), apart(target_starts, target)
    return _native.move_slices(_raw(source), source_starts, sizes, _raw(target), target_starts)


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
    if not _is_moved(data):
        return reference.pad(data, lengths, width, value, side, truncate=truncate, out=out, mask=mask)
    fill = scalar(value, data.dtype).tobytes()
    shape = (len(lengths), width)
    out = output(out, shape + data.shape[1:], data.dtype)
    mask = output(mask, shape, np.dtype(bool), "mask")
    data = apart(apart(data, out), mask)
    _native.pad(_raw(data), lengths, width, fill, left, truncate, _raw(out), mask)
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
    if not _is_moved(padded):
        return reference.unpad(padded, lengths, side, out=out)
    total = check_lengths(lengths)
    check_room(lengths, padded.shape[1])
    out = output(out, (total, *padded.shape[2:]), padded.dtype)
    _native.unpad(_raw(apart(padded, out)), lengths, side == "left", _raw(out))
    return out


def plan_packing(lengths: Array, capacity: int, strategy: str = "best_fit") -> PackingPlan:
    check_strategy(capacity, strategy)
    return PackingPlan(*_native.plan_packing(counts(lengths, "lengths"), capacity, strategy))


def fill_packed(
    data: Array,
    lengths: Array,
    plan: tuple[Array, Array, Array, Array],
    capacity: int,
    value: Any = 0,
    *,
    out: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array]:
    check_width(capacity)
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    if not _is_moved(data):
        return reference.fill_packed(data, lengths, plan, capacity, value, out=out)
    sources, starts, sizes, pieces = (
        counts(array, name) for array, name in zip(plan, PackingPlan._fields, strict=True)
    )
    check_same_size(sources=sources, starts=starts, piece_lengths=sizes)
    fill = scalar(value, data.dtype).tobytes()
    shape = (len(pieces), capacity)
    given = out or (None, None, None)
    packed = output(given[0], shape + data.shape[1:], data.dtype)
    segment_ids = output(given[1], shape, np.dtype(np.int32), "segment_ids")
    position_ids = output(given[2], shape, np.dtype(np.int32), "position_ids")
    _native.fill_packed(
        _raw(apart(data, packed)), lengths, sources, starts, sizes, pieces, capacity, fill,
        _raw(packed), segment_ids, position_ids,
    )  # fmt: skip
    return packed, segment_ids, position_ids


def _is_moved(data: Array) -> bool:
    """Rows are bytes, at least one, that may be copied as they are."""
    return not data.dtype.hasobject and data.dtype.itemsize * prod(data.shape[1:]) > 0


def _raw(array: Array) -> Array:
    """The array, or its bytes where the buffer protocol cannot describe its elements (times, strings …)."""
    return array if array.dtype.kind in "biufc" else array.reshape(*array.shape, 1).view(np.uint8)


def _is_computed(data: Array) -> bool:
    """Elements are numbers the C++ side computes with, or float16."""
    plain = data.dtype.kind in "biu" or data.dtype in (np.float16, np.float32, np.float64)
    return plain and prod(data.shape[1:]) > 0


def _computed(kind: str, data: Array) -> Array:
    if data.dtype != np.float16:
        return data
    return data.astype(np.float64 if kind == "mean" else np.float32)


def _computed_fill(empty: Any, dtype: DType) -> bytes:
    """`empty` as `dtype` can hold it, in the type that is computed with."""
    value = scalar(empty, dtype)
    return (value.astype(np.float32) if dtype == np.float16 else value).tobytes()
