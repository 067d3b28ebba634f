"""Rows and slices of rows from one array to another."""

# mypy: disable-error-code="no-any-return"

from seqflow.kernels import choice
from seqflow.kernels.arrays import Array


def gather(
    data: Array,
    indices: Array,
    *,
    wrap: bool = False,
    ignore_index: int | None = None,
    out: Array | None = None,
) -> Array:
    """The rows of data[R, *d] at indices[N, *i] (any rank): rows[N, *i, *d].

    With `wrap` an index below 0 counts from the end, once. An index equal to `ignore_index` gives a row of
    zeros. Any other index outside [0, R) is a KernelError.
    """
    return choice.chosen.gather(data, indices, wrap=wrap, ignore_index=ignore_index, out=out)


def move_slices(
    source: Array, source_starts: Array, sizes: Array, target: Array, target_starts: Array
) -> None:
    """Copy slices of rows: target[t : t + n] = source[s : s + n] for each (s, n, t) of the three [K] arrays.

    `target` is writable, C-contiguous, and has the dtype and row shape of `source`. Nothing is written unless
    all slices are inside their arrays. Where target slices overlap the last one wins. A source that shares
    memory with the target is read as it was before.
    """
    choice.chosen.move_slices(source, source_starts, sizes, target, target_starts)
