"""Reducing the rows of each segment, in C++."""

from typing import Any

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import Array, counts, mean_dtype, reduced_dtype, rows
from seqflow.kernels.native.forms import computed, computed_fill, is_computed


def segment_reduce(kind: str, data: Array, lengths: Array, empty: Any = 0) -> Array:
    if type(empty) is int and empty == 0:
        try:
            return _native.segment_reduce(kind, data, lengths, None)
        except TypeError:
            pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    dtype = reduced_dtype(kind, data.dtype)
    if not is_computed(data):
        return reference.segment_reduce(kind, data, lengths, empty)
    fill = computed_fill(empty, dtype)
    if kind == "prod":
        return _native.segment_prod(computed(kind, data), lengths, fill)
    return _native.segment_reduce(kind, computed(kind, data), lengths, fill).astype(dtype, copy=False)


def segment_variance(data: Array, lengths: Array, ddof: int = 0, empty: Any = 0) -> Array:
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    if not is_computed(data):
        return reference.segment_variance(data, lengths, ddof, empty)
    fill = computed_fill(empty, mean_dtype(data.dtype))
    return _native.segment_variance(computed("mean", data), lengths, ddof, fill)


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
    if kind == "prod" or not is_computed(table):
        return reference.gather_segment_reduce(kind, table, indices, lengths, empty, ignore_index)
    out = _native.gather_segment_reduce(
        kind, computed(kind, table), indices, lengths, computed_fill(empty, dtype), ignore_index
    )
    return out.astype(dtype, copy=False)
