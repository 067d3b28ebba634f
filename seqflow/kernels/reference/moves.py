"""Rows and slices of rows from one array to another, in NumPy."""

import numpy as np

from seqflow.kernels.arrays import Array, apart, check_pair, check_same_size, output, rows
from seqflow.kernels.reference.checks import check_slices, checked_indices, counts, integers


def gather(
    data: Array,
    indices: Array,
    *,
    wrap: bool = False,
    ignore_index: int | None = None,
    out: Array | None = None,
) -> Array:
    data, indices = rows(data, "data"), integers(indices, "indices")
    out = output(out, indices.shape + data.shape[1:], data.dtype)
    data = apart(data, out)
    picked, used = checked_indices(indices, len(data), wrap, ignore_index)
    out[used] = data[picked[used]]
    out[~used] = np.zeros((), data.dtype)
    return out


def move_slices(
    source: Array, source_starts: Array, sizes: Array, target: Array, target_starts: Array
) -> None:
    source, sizes = rows(source, "source"), counts(sizes, "sizes")
    source_starts = counts(source_starts, "source_starts")
    target_starts = counts(target_starts, "target_starts")
    check_same_size(source_starts=source_starts, sizes=sizes, target_starts=target_starts)
    check_pair(source, target)
    source = apart(source, target)
    check_slices(len(source), source_starts, sizes, len(target), target_starts)
    for start, size, to in zip(source_starts.tolist(), sizes.tolist(), target_starts.tolist(), strict=True):
        target[to : to + size] = source[start : start + size]
