"""Between flat and dense: padded batches, and rows packed full."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpError
from seqflow.ops.scalars import cast_scalar
from seqflow.registry import op
from seqflow.signature import NonNegative, Positive, Scalar

if TYPE_CHECKING:
    from seqflow.shape import InferenceContext

Array = np.ndarray[Any, Any]
Side = Literal["right", "left"]


def _round_width_up(ctx: "InferenceContext") -> None:
    """`multiple_of`, which the signature leaves out."""
    multiple = ctx.attr("multiple_of")
    if multiple == 1:
        return
    for i in range(2):
        output = ctx.output(i)
        if output.rank.is_static:
            width = (output[1] + (multiple - 1)) // multiple * multiple
            ctx.set_output(i, ctx.replace_dim(output, 1, width), rows=ctx.rows("lengths"))


@op(
    "data[sum(lengths), *d], lengths[B]"
    " -> padded[B, max_length|max(lengths), *d], bool mask[B, max_length|max(lengths)]",
    caffe2="PackSegments",
    shape=_round_width_up,
)
def pad(
    data: Array,
    lengths: Array,
    *,
    max_length: NonNegative | None = None,
    value: Scalar = 0,
    side: Side = "right",
    truncate: bool = False,
    multiple_of: Positive = 1,
    out: Array | tuple[Array, Array] | None = None,
) -> tuple[Array, Array]:
    """One row of `max_length` a sequence, filled up with `value`; and a mask, true where data are.

    Without `max_length` the longest sequence decides; `multiple_of` rounds the width up, that of `max_length`
    too. `side` is where the padding goes. A longer sequence is an error, unless `truncate` cuts it (at its end;
    with `side="left"` at its start). `out` is an array for the padded rows, or a pair with one for the mask. An
    empty sequence is a row of padding. Caffe2 truncates without being asked.

    >>> pad(np.array([1, 2, 3]), np.array([2, 0, 1])).padded
    array([[1, 2],
           [0, 0],
           [3, 0]])
    """
    width = kernels.max_length(lengths) if max_length is None else max_length
    width = -(-width // multiple_of) * multiple_of
    fill = cast_scalar("value", value, data.dtype)
    padded, mask = out if isinstance(out, tuple) and len(out) == 2 else (out, None)
    return kernels.pad(data, lengths, width, fill, side, truncate=truncate, out=padded, mask=mask)


@op("padded[B, T>=max(lengths), *d], lengths[B] -> data[sum(lengths), *d]", caffe2="UnpackSegments")
def unpad(padded: Array, lengths: Array, *, side: Side = "right", out: Array | None = None) -> Array:
    """The data of a padded array, flat again: the inverse of `pad` with the same `side`.

    `out` is an array for the result.

    >>> unpad(np.array([[1, 2], [0, 0], [3, 0]]), np.array([2, 0, 1]))
    array([1, 2, 3])
    """
    return kernels.unpad(padded, lengths, side, out=out)


def _bound_packed(ctx: "InferenceContext") -> None:
    """All rows but one are more than half full, counted in pairs; each piece holds something."""
    capacity, total = ctx.attr("capacity"), ctx.sum_of("lengths")
    ctx.limit(ctx.dim(ctx.output(0), 0), (2 * total // capacity + 1).minimum(total))
    ctx.limit(ctx.max_of("pieces"), capacity)
    ctx.limit(ctx.sum_of("pieces"), total)
    ctx.limit(ctx.max_of("piece_lengths"), ctx.max_of("lengths").minimum(capacity))
    ctx.limit(ctx.sum_of("piece_lengths"), total)


@op(
    "data[sum(lengths), *d], lengths[B]"
    " -> packed[R, capacity, *d], int32 segment_ids[R, capacity], int32 position_ids[R, capacity],"
    " int64 sources[sum(pieces)], int64 piece_lengths[sum(pieces)], int64 pieces[R]",
    shape=_bound_packed,
)
def pack_rows(
    data: Array,
    lengths: Array,
    *,
    capacity: Positive,
    strategy: Literal["best_fit", "first_fit", "concat"] = "best_fit",
    value: Scalar = 0,
) -> tuple[Array, ...]:
    """Several sequences in each row of `capacity`, for training without padding waste.

    `best_fit` places the longest first, each where it leaves the least room; `first_fit` keeps the input's
    order and takes the first row with room; `concat` cuts the stream of all sequences every `capacity`. A
    sequence longer than `capacity` is cut into pieces; nothing is lost. An empty sequence has no piece.

    `segment_ids` count from 1 in each row and `position_ids` from 0 in each piece; padding is 0 in both, and
    `value` in `packed`. `sources` is the input sequence of each piece, row by row, `piece_lengths` its length,
    `pieces` the number of pieces of each row.

    >>> packed = pack_rows(np.array([1, 2, 3, 4, 5, 6]), np.array([2, 3, 1]), capacity=3)
    >>> packed.packed
    array([[3, 4, 5],
           [1, 2, 6]])
    >>> packed.segment_ids
    array([[1, 1, 1],
           [1, 1, 2]], dtype=int32)
    """
    fill = cast_scalar("value", value, data.dtype)
    plan = kernels.plan_packing(lengths, capacity, strategy)
    packed, segment_ids, position_ids = kernels.fill_packed(data, lengths, plan, capacity, fill)
    sources, _, piece_lengths, pieces = plan
    return packed, segment_ids, position_ids, sources, piece_lengths, pieces


@op(
    "packed[R, C, *d], int sources[sum(pieces)], lens piece_lengths[sum(pieces)], pieces[R]"
    " -> data[sum(lengths), *d], int64 lengths[num_sequences|B]",
    draw="packed",
)
def unpack_rows(
    packed: Array,
    sources: Array,
    piece_lengths: Array,
    pieces: Array,
    *,
    num_sequences: NonNegative | None = None,
) -> tuple[Array, Array]:
    """The sequences that `pack_rows` packed, in their old order, and their lengths.

    `num_sequences` counts empty sequences at the end, which have no piece; without it the last source is the
    last sequence.

    >>> packed = pack_rows(np.array([1, 2, 3, 4, 5, 6]), np.array([2, 3, 1]), capacity=3)
    >>> unpack_rows(packed.packed, packed.sources, packed.piece_lengths, packed.pieces)
    UnpackRowsResult(data=array([1, 2, 3, 4, 5, 6]), lengths=array([2, 3, 1]))
    """
    sizes = piece_lengths.astype(np.int64, copy=False)
    lengths = _source_lengths(sources, sizes, num_sequences)
    starts = _piece_starts(packed, sizes, pieces)
    order = np.argsort(sources, kind="stable")
    data = np.empty((int(sizes.sum()), *packed.shape[2:]), packed.dtype)
    flat = packed.reshape(packed.shape[0] * packed.shape[1], *packed.shape[2:])
    kernels.move_slices(
        flat, starts[order], sizes[order], data, kernels.lengths_to_offsets(sizes[order])[:-1]
    )
    return data, lengths


def _source_lengths(sources: Array, sizes: Array, num_sequences: int | None) -> Array:
    count = (int(sources.max()) + 1 if len(sources) else 0) if num_sequences is None else num_sequences
    bad = np.flatnonzero((sources < 0) | (sources >= count))
    if len(bad):
        raise OpError(f"sources[{bad[0]}] = {sources[bad[0]]} is outside [0, {count})")
    lengths = np.zeros(count, np.int64)
    np.add.at(lengths, sources, sizes)
    return lengths


def _piece_starts(packed: Array, sizes: Array, pieces: Array) -> Array:
    """Where each piece starts among all elements of all rows."""
    capacity = packed.shape[1]
    first = kernels.lengths_to_offsets(pieces)
    ends = kernels.lengths_to_offsets(sizes)
    used = ends[first[1:]] - ends[first[:-1]]
    over = np.flatnonzero(used > capacity)
    if len(over):
        raise LodError(
            f"the pieces of row {over[0]} have {used[over[0]]} elements, expected at most {capacity}"
        )
    row = kernels.lengths_to_segment_ids(pieces)
    starts: Array = ends[:-1] - ends[first[:-1]][row] + row * capacity
    return starts
