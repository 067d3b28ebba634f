"""Packing several sequences into each row, for training without padding waste."""

from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpError, OpIndexError
from seqflow.kernels.arrays import Array, integers
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.scalars import with_fill
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import MovedRows, op
from seqflow.shape import InferenceContext
from seqflow.signature import Fill, NonNegative, Positive

MAX_INT32 = np.iinfo(np.int32).max


def _infer_packed(ctx: InferenceContext) -> None:
    """Declare that the int32 position ids are positions, which the signature does not express."""
    ctx.set_points("position_ids", ctx.positions_in("piece_lengths"))


def _unpacked(fill: object) -> str | MovedRows:
    if fill != 0:
        return MovedRows(fill="fill")
    return """
        numbers, _, _, _, _, _ = pack_rows(row_numbers(data), lengths, capacity=capacity, strategy=strategy)
        origin = where(out.segment_ids == 0, -1, numbers)
        scatter_rows(d.packed, origin, data, ignore_index=-1)
    """


@op(
    "data[sum(lengths), *d], lengths[B]"
    " -> packed[R, capacity, *d], int32 segment_ids[R, capacity], int32 position_ids[R, capacity],"
    " index(B) sources[sum(pieces)], lens piece_lengths[sum(pieces)] <= minimum(max(lengths), capacity),"
    " int64 pieces[R] <= capacity, R <= minimum(2*sum(lengths)//capacity + 1, sum(lengths)),"
    " sum(pieces) <= sum(lengths), sum(piece_lengths) <= sum(lengths)",
    shape=_infer_packed,
    depends=dict.fromkeys(
        ("segment_ids", "position_ids", "sources", "piece_lengths", "pieces", "R"), "lengths"
    ),
    grad={"data": _unpacked},
)
def pack_rows(
    data: Array,
    lengths: Array,
    *,
    capacity: Positive,
    strategy: Literal["best_fit", "first_fit", "concat"] = "best_fit",
    fill: Fill = 0,
) -> tuple[Array, ...]:
    """Pack several sequences into each row of `capacity`, for training without padding waste.

    `best_fit` places the longest sequences first, each in the row where it leaves the least room; `first_fit` keeps
    the input's order and takes the first row with room; `concat` cuts the stream of all sequences into rows of
    `capacity`. A sequence longer than `capacity` is cut into pieces; nothing is lost. With `first_fit`, each of these
    pieces opens a row of its own, also the last, whose room later sequences may take. An empty sequence has no piece.

    `segment_ids` count from 1 in each row and `position_ids` from 0 in each piece; both are 0 in padding, and
    `packed` has `fill` there. `sources` is the index of each piece's sequence, row by row; `piece_lengths` is the
    length of each piece; `pieces` is the number of pieces of each row.

    >>> packed = pack_rows(np.array([1, 2, 3, 4, 5, 6]), np.array([2, 3, 1]), capacity=3)
    >>> packed.packed
    array([[3, 4, 5],
           [1, 2, 6]])
    >>> packed.segment_ids
    array([[1, 1, 1],
           [1, 1, 2]], dtype=int32)
    """
    data, fill = with_fill("fill", fill, data)
    plan = kernels.plan_packing(lengths, capacity, strategy)
    packed, segment_ids, position_ids = kernels.fill_packed(data, lengths, plan, capacity, fill)
    sources, _, piece_lengths, pieces = plan
    return packed, segment_ids, position_ids, sources, piece_lengths, pieces


@op(
    "packed[R, C, *d], int sources[sum(pieces)], lens piece_lengths[sum(pieces)], pieces[R]"
    " -> values[sum(lengths), *d], int64 lengths[num_sequences|B], B <= max(sources)+1,"
    " sum(lengths) <= minimum(sum(piece_lengths), R*C)",
    depends={"lengths": "sources, piece_lengths"},
    inverse="pack_rows if num_sequences",
    grad={
        "packed": """
            origin, _ = unpack_rows(cell_numbers(packed), sources, piece_lengths, pieces, num_sequences=num_sequences)
            reshape_like(scatter_rows(d.values, origin, flatten_rows(packed)), packed)
        """
    },
)
def unpack_rows(
    packed: Array,
    sources: Array,
    piece_lengths: Array,
    pieces: Array,
    *,
    num_sequences: NonNegative | None = None,
) -> tuple[Array, Array]:
    """Restore the sequences that `pack_rows` packed, in their original order.

    Empty sequences have no piece: give `num_sequences` if there are some at the end. Without it the largest source
    is the last sequence.

    >>> packed = pack_rows(np.array([1, 2, 3, 4, 5, 6]), np.array([2, 3, 1]), capacity=3)
    >>> unpack_rows(packed.packed, packed.sources, packed.piece_lengths, packed.pieces)
    UnpackRowsResult(values=array([1, 2, 3, 4, 5, 6]), lengths=array([2, 3, 1]))
    """
    sizes, pieces = int64(piece_lengths), int64(pieces)
    sources = integers(sources, "sources").copy()
    lengths = _source_lengths(sources, sizes, num_sequences)
    starts = _piece_starts(sizes, pieces, packed.shape[1])
    order = np.argsort(sources, kind="stable")
    data = np.empty((int(sizes.sum()), *packed.shape[2:]), packed.dtype)
    flat = packed.reshape(packed.shape[0] * packed.shape[1], *packed.shape[2:])
    kernels.move_slices(flat, starts[order], sizes[order], data, starts_of(sizes[order]))
    return data, lengths


@op(
    "lens piece_lengths[sum(pieces)], pieces[R]"
    " -> int32 cu_seqlens[S] <= R*capacity, S <= sum(pieces) + R + 1",
)
def packed_cu_seqlens(piece_lengths: Array, pieces: Array, *, capacity: Positive) -> Array:
    """Return the offsets of the pieces of packed rows, for variable-length attention over all rows laid end to end.

    If a row has padding, the padding is its last segment, so the last offset is always `R*capacity`. An empty piece
    starts where the next one does. Offsets that int32 cannot hold are an error.

    >>> packed = pack_rows(np.array([1, 2, 3, 4, 5]), np.array([2, 3]), capacity=3)
    >>> packed_cu_seqlens(packed.piece_lengths, packed.pieces, capacity=3)
    array([0, 3, 5, 6], dtype=int32)
    """
    if len(pieces) * capacity > MAX_INT32:
        raise OpError(f"{len(pieces)} rows of {capacity} are more elements than int32 can count")
    sizes = int64(piece_lengths)
    ends, first = kernels.lengths_to_offsets(sizes), kernels.lengths_to_offsets(pieces)
    room = capacity - _used(ends, first, capacity)
    padded = np.flatnonzero(room)
    return kernels.lengths_to_offsets(np.insert(sizes, first[1:][padded], room[padded])).astype(np.int32)


def _source_lengths(sources: Array, sizes: Array, num_sequences: int | None) -> Array:
    count = int(sources.max(initial=-1)) + 1 if num_sequences is None else num_sequences
    bad = np.flatnonzero((sources < 0) | (sources >= count))
    if len(bad):
        raise OpIndexError(f"sources[{bad[0]}] = {sources[bad[0]]} is outside [0, {count})")
    check_memory((count,), sizes.dtype)
    lengths = np.zeros(count, np.int64)
    np.add.at(lengths, sources, sizes)
    return lengths


def _piece_starts(sizes: Array, pieces: Array, capacity: int) -> Array:
    """Return the offset of each piece among all elements of all rows."""
    ends, first = kernels.lengths_to_offsets(sizes), kernels.lengths_to_offsets(pieces)
    _used(ends, first, capacity)
    row = kernels.lengths_to_segment_ids(pieces)
    starts: Array = ends[:-1] - ends[first[:-1]][row] + row * capacity
    return starts


def _used(ends: Array, first: Array, capacity: int) -> Array:
    """Return the number of elements in the pieces of each row; raise LodError if it is more than `capacity`."""
    used: Array = ends[first[1:]] - ends[first[:-1]]
    over = np.flatnonzero(used > capacity)
    if len(over):
        raise LodError(
            f"the pieces of row {over[0]} have {used[over[0]]} elements, expected at most {capacity}"
        )
    return used
