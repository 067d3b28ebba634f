"""Order inside segments, in C++."""

from math import prod

import numpy as np

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import Array, check_column, check_extreme, counts, rows
from seqflow.kernels.error import MAX_INT64
from seqflow.kernels.native.forms import is_computed
from seqflow.kernels.reference.checks import check_sum


def sort_within(data: Array, lengths: Array, descending: bool = False) -> Array:
    try:
        return _native.sort_within(data, lengths, descending)
    except TypeError:
        pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    plain = _comparable(data)
    if plain is None:
        return reference.sort_within(data, lengths, descending)
    columns, repeated = _one_column(plain, lengths)
    ordered = _native.sort_within(columns, repeated, descending)
    return _as_before(_rows_of_columns(ordered, plain), data.dtype)


def argsort_within(data: Array, lengths: Array, descending: bool = False) -> Array:
    try:
        return _native.argsort_within(data, lengths, descending)
    except TypeError:
        pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    plain = _comparable(data)
    if plain is None:
        return reference.argsort_within(data, lengths, descending)
    columns, repeated = _one_column(plain, lengths)
    return _rows_of_columns(_native.argsort_within(columns, repeated, descending), plain)


def segment_topk(data: Array, lengths: Array, k: int) -> tuple[Array, Array]:
    try:
        return _native.segment_topk(data, lengths, k)
    except TypeError:
        pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    check_column(data, "data")
    plain = _comparable(data)
    if plain is None or data.dtype.kind in "mM" or k > MAX_INT64:
        return reference.segment_topk(data, lengths, k)
    values, positions = _native.segment_topk(plain, lengths, k)
    return _as_before(values, data.dtype), positions


def segment_arg(kind: str, data: Array, lengths: Array) -> Array:
    check_extreme(kind)
    try:
        return _native.segment_arg(data, lengths, kind == "min")
    except TypeError:
        pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    plain = _comparable(data)
    if plain is None or data.dtype.kind in "mM":
        return reference.segment_arg(kind, data, lengths)
    return _native.segment_arg(plain, lengths, kind == "min")


def _comparable(data: Array) -> Array | None:
    """Numbers in the same order, in a dtype that the C++ side compares."""
    if prod(data.shape[1:]) == 0:
        return None
    if data.dtype.kind in "mM":
        return data.view(np.int64) - 1  # NaT, the smallest integer, becomes the largest
    if data.dtype == np.float16:
        return data.astype(np.float32)
    return data if is_computed(data) else None


def _as_before(ordered: Array, dtype: np.dtype[np.generic]) -> Array:
    """The inverse of `_comparable`."""
    if dtype.kind in "mM":
        return (ordered + 1).view(dtype)
    return ordered.astype(dtype, copy=False)


def _one_column(data: Array, lengths: Array) -> tuple[Array, Array]:
    """All columns one below the other, with lengths to match."""
    check_sum(lengths, len(data), "data")
    columns = prod(data.shape[1:])
    return np.ascontiguousarray(data.reshape(len(data), columns).T).reshape(-1), np.tile(lengths, columns)


def _rows_of_columns(ordered: Array, like: Array) -> Array:
    """The inverse of `_one_column`."""
    return np.ascontiguousarray(ordered.reshape(prod(like.shape[1:]), len(like)).T).reshape(like.shape)
