"""Joining several columns of sequences into one, sequence by sequence or row by row."""

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import int64, slice_positions, starts_of
from seqflow.registry import MovedRows, op


@op(
    "{like(data) data[sum(lengths), *d], lengths[B]}+"
    " -> values[sum(lengths'), *d], int64 lengths'[B] := add(*lengths)",
    grad=MovedRows(),
)
def concat_sequences(data: list[Array], lengths: list[Array]) -> tuple[Array, Array]:
    """Join sequence i of every input into one sequence: a title, then its text.

    All data have one dtype. An empty sequence adds nothing.

    >>> concat_sequences([np.array([1, 2, 3]), np.array([7, 8])], [np.array([2, 1]), np.array([0, 2])])
    ConcatSequencesResult(values=array([1, 2, 3, 7, 8]), lengths=array([2, 3]))
    """
    joined = _added(lengths)
    offsets = kernels.lengths_to_offsets(joined)
    rows = np.empty((int(offsets[-1]), *data[0].shape[1:]), data[0].dtype)
    targets = offsets[:-1]
    for values, sizes in zip(data, map(int64, lengths), strict=True):
        kernels.move_slices(values, starts_of(sizes), sizes, rows, targets)
        targets = targets + sizes
    return rows, joined


@op(
    "{like(data) data[sum(lengths), *d], lengths[B]}+"
    " -> values[sum(lengths'), *d], int64 lengths'[B] := add(*lengths)",
    grad=MovedRows(),
)
def interleave(data: list[Array], lengths: list[Array]) -> tuple[Array, Array]:
    """Join sequence i of every input, taking rows in turn: first rows, second rows, and so on.

    An input is skipped after the end of its sequence, so no row is lost, and an empty sequence adds nothing. All
    data have one dtype.

    >>> interleave([np.array([1, 2, 3]), np.array([7])], [np.array([2, 1]), np.array([1, 0])])
    InterleaveResult(values=array([1, 7, 2, 3]), lengths=array([3, 1]))
    """
    all_sizes = [int64(one) for one in lengths]
    joined = _added(all_sizes)
    rows = np.empty((int(joined.sum()), *data[0].shape[1:]), data[0].dtype)
    for i, (values, sizes) in enumerate(zip(data, all_sizes, strict=True)):
        turn = slice_positions(np.zeros(len(sizes), np.int64), sizes)
        targets = kernels.expand(starts_of(joined), sizes)
        targets += turn
        # before row t come rows 0 to t-1 of every other input, and row t of the inputs before this one
        for j, others in enumerate(all_sizes):
            if j != i:
                targets += np.minimum(kernels.expand(others, sizes), turn + (j < i))
        rows[targets] = values
    return rows, joined


def _added(lengths: list[Array]) -> Array:
    """Return the sum of several lengths, sequence by sequence."""
    total = np.zeros(len(lengths[0]), np.int64)
    for sizes in lengths:
        total += int64(sizes)
    return total
