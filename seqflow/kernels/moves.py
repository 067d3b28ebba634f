"""Gather rows by index, copy slices of rows between arrays, and choose elements by a condition."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array, apart, check_out, int64_counts, int64_integers, output, rows
from seqflow.kernels.checks import check_same_size, check_slices, checked_indices
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.error import wrong_out
from seqflow.kernels.forms import COUNTS, ELEMENTS, INTEGERS, ROWS

__all__ = ["choose", "gather", "move_slices"]


@kernel(data=ROWS, indices=INTEGERS)
def gather(
    data: Array,
    indices: Array,
    *,
    wrap: bool = False,
    ignore_index: int | None = None,
    out: Array | None = None,
) -> Array:
    """Return the rows of data[R, *d] at indices[N, *i] (any rank): rows[N, *i, *d].

    With `wrap`, an index below 0 counts from the end, once. An index equal to `ignore_index` gives a row of zeros.
    Raises KernelError for any other index outside [0, R).
    """
    data, indices = rows(data, "data"), int64_integers(indices, "indices")
    out = output(out, indices.shape + data.shape[1:], data.dtype)
    data = apart(data, out)
    picked, used = checked_indices(indices, len(data), wrap, ignore_index)
    out[used] = data[picked[used]]
    out[~used] = np.zeros((), data.dtype)
    return out


@kernel(source=ROWS, source_starts=COUNTS, sizes=COUNTS, target_starts=COUNTS)
def move_slices(
    source: Array, source_starts: Array, sizes: Array, target: Array, target_starts: Array
) -> None:
    """Copy slices of rows: target[t : t + n] = source[s : s + n] for each (s, n, t) of the three [K] arrays.

    `target` is writable, C-contiguous, and has the dtype and row shape of `source`. Nothing is written unless all
    slices are inside their arrays. If target slices overlap, the last one wins. A source that shares memory with the
    target is copied first.
    """
    source, sizes = rows(source, "source"), int64_counts(sizes, "sizes")
    source_starts = int64_counts(source_starts, "source_starts")
    target_starts = int64_counts(target_starts, "target_starts")
    check_same_size(source_starts=source_starts, sizes=sizes, target_starts=target_starts)
    _check_pair(source, target)
    source = apart(source, target)
    check_slices(len(source), source_starts, sizes, len(target), target_starts)
    for start, size, to in zip(source_starts.tolist(), sizes.tolist(), target_starts.tolist(), strict=True):
        target[to : to + size] = source[start : start + size]


@kernel(x=ELEMENTS, y=ELEMENTS)
def choose(condition: Array, x: Array, y: Array, out: Array) -> Array:
    """Write the elements of x where the condition holds, else those of y, to `out`, whose shape is that of all three
    broadcast.
    """
    # np.where branches on each element: 5 ns where the condition is random
    np.copyto(out, np.where(condition, x, y))
    return out


def _check_pair(source: Array, target: Any) -> None:
    """Raise ValueError or KernelError when slices of `source` cannot be written into `target`."""
    if not isinstance(target, np.ndarray) or target.ndim == 0:
        raise wrong_out("target", type(target).__name__, "a numpy array with rows")
    check_out(target, target.shape[:1] + source.shape[1:], source.dtype, "target")
