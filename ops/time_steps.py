"""Time as the first axis: sequences side by side, padded, or packed without padding."""

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpError, OpIndexError
from seqflow.kernels.arrays import Array, integers
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.scalars import with_fill
from seqflow.ops.shared.slices import int64
from seqflow.registry import MovedRows, op
from seqflow.signature import Fill, NonNegative


def _unpack_by_time(max_length: int | None) -> str | MovedRows:
    return "unpack_by_time(d.packed, lengths)" if max_length is None else MovedRows(fill="fill")


@op(
    "data[sum(lengths), *d], lengths[B] -> packed[max_length|max(lengths), B, *d]",
    caffe2="PackRNNSequence",
    grad={"data": _unpack_by_time},
)
def pack_by_time(
    data: Array,
    lengths: Array,
    *,
    max_length: NonNegative | None = None,
    fill: Fill = 0,
    out: Array | None = None,
) -> Array:
    """Pad with time as the first axis: step t of all sequences side by side, `fill` after their ends.

    `max_length` is by default the longest length; a longer sequence is an error. An empty sequence is a column of
    padding. `out` is an array for the result.

    >>> pack_by_time(np.array([1, 2, 3]), np.array([2, 0, 1]))
    array([[1, 0, 3],
           [2, 0, 0]])
    """
    steps = kernels.max_length(lengths) if max_length is None else max_length
    data, fill = with_fill("fill", fill, data)
    return kernels.pack_by_time(data, lengths, steps, fill, out=out)


@op(
    "packed[T>=max(lengths), B, *d], lengths[B] -> data[sum(lengths), *d]",
    caffe2="UnpackRNNSequence",
    inverse="pack_by_time",
    grad={"packed": "pack_by_time_like(d.data, packed, lengths)"},
)
def unpack_by_time(packed: Array, lengths: Array, *, out: Array | None = None) -> Array:
    """Flatten a time-major array, without its padding: the inverse of `pack_by_time`.

    An empty sequence has no rows; its column is ignored. `out` is an array for the result.

    >>> unpack_by_time(np.array([[1, 0, 3], [2, 0, 0]]), np.array([2, 0, 1]))
    array([1, 2, 3])
    """
    return kernels.unpack_by_time(packed, lengths, out=out)


@op(
    "data[sum(lengths), *d], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[max(lengths)] <= B, index(B) order[P=B],"
    " sum(lengths') <= sum(lengths)",
    depends={"lengths": "lengths", "order": "lengths"},
    grad=MovedRows(),
)
def pack_sequence(data: Array, lengths: Array) -> tuple[Array, Array, Array]:
    """Pack sequences as torch's PackedSequence does: all first rows, then all second rows …, longest first.

    The new lengths are the numbers of sequences that reach each time step: torch's `batch_sizes`. `order` has the
    sequences by length: torch's `sorted_indices`; equal lengths keep their order. Empty sequences, which torch
    refuses, are last in `order` and have no rows.

    >>> pack_sequence(np.array([1, 2, 3, 4, 5]), np.array([2, 0, 3]))
    PackSequenceResult(values=array([3, 1, 4, 2, 5]), lengths=array([2, 2, 1]), order=array([2, 0, 1]))
    """
    sizes = int64(lengths)
    order = np.argsort(-sizes, kind="stable")
    # bincount makes an entry for each length up to the longest, even for a batch of one sequence
    check_memory((kernels.max_length(sizes) + 1,), sizes.dtype)
    batch_sizes = len(sizes) - np.cumsum(np.bincount(sizes))[:-1] if len(sizes) else sizes
    starts = kernels.lengths_to_offsets(sizes)[order]
    step, rank = kernels.lengths_to_segment_ids(batch_sizes), kernels.lengths_to_positions(batch_sizes)
    return kernels.gather(data, starts[rank] + step), batch_sizes, order


@op(
    "data[sum(lengths), *d], int order[B], lengths[T]"
    " -> values[sum(lengths'), *d], int64 lengths'[P=B] <= T, sum(lengths') <= sum(lengths)",
    depends={"lengths": "order, lengths"},
    inverse="pack_sequence",
    grad=MovedRows(),
)
def unpack_sequence(data: Array, order: Array, lengths: Array) -> tuple[Array, Array]:
    """Restore the sequences that `pack_sequence` or torch packed, in their original order.

    `lengths` are those of the time steps, torch's `batch_sizes`. They must not increase, and the first must not be
    larger than the number of sequences in `order`, which has each sequence once. Sequences without a step are empty.

    >>> unpack_sequence(np.array([3, 1, 4, 2, 5]), np.array([2, 0, 1]), np.array([2, 2, 1]))
    UnpackSequenceResult(values=array([1, 2, 3, 4, 5]), lengths=array([2, 0, 3]))
    """
    batch_sizes = int64(lengths)
    rank = _ranks(integers(order, "order").copy())
    _check_batch_sizes(batch_sizes, len(order))
    by_rank = np.searchsorted(-batch_sizes, -np.arange(len(order)))
    sizes = by_rank[rank]
    step_starts = kernels.lengths_to_offsets(batch_sizes)
    positions = kernels.lengths_to_positions(sizes)
    return kernels.gather(data, step_starts[positions] + kernels.expand(rank, sizes)), sizes


def _ranks(order: Array) -> Array:
    """Return the place of each sequence in `order`; raise an error unless it has each sequence once."""
    count = len(order)
    bad = np.flatnonzero((order < 0) | (order >= count))
    if len(bad):
        raise OpIndexError(f"order[{bad[0]}] = {order[bad[0]]} is outside [0, {count})")
    rank = np.full(count, -1)
    rank[order] = np.arange(count)
    if count and rank.min() < 0:
        raise OpError(f"order does not hold {np.argmin(rank)}, expected each of 0 to {count - 1} once")
    return rank


def _check_batch_sizes(batch_sizes: Array, count: int) -> None:
    rises = np.flatnonzero(np.diff(batch_sizes, prepend=count) > 0)
    if len(rises):
        t = rises[0]
        found = f"there are {count} sequences" if t == 0 else f"lengths[{t - 1}] is {batch_sizes[t - 1]}"
        raise LodError(f"lengths[{t}] is {batch_sizes[t]} but {found}, expected no more")
