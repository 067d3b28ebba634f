"""Sequences in, sequences out: the new lengths are the last output."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.ops.scalars import cast_scalar
from seqflow.ops.sparse import move_sequences
from seqflow.registry import op
from seqflow.signature import NonNegative, Positive, Scalar

if TYPE_CHECKING:
    from seqflow.shape import InferenceContext

Array = np.ndarray[Any, Any]


def _bound_kept(ctx: "InferenceContext") -> None:
    ctx.limit(ctx.max_of("kept"), ctx.max_of("lengths").minimum(ctx.attr("max_length")))
    ctx.limit(ctx.sum_of("kept"), ctx.sum_of("lengths"))


@op("data[sum(lengths), *d], lengths[B] -> rows[sum(kept), *d], int64 kept[B]", shape=_bound_kept)
def truncate(
    data: Array, lengths: Array, *, max_length: NonNegative, keep: Literal["head", "tail"] = "head"
) -> tuple[Array, Array]:
    """Cut each sequence to at most `max_length` rows, its first ones or its last.

    >>> truncate(np.array([1, 2, 3, 4]), np.array([3, 0, 1]), max_length=2)
    TruncateResult(rows=array([1, 2, 4]), kept=array([2, 0, 1]))
    """
    sizes = lengths.astype(np.int64, copy=False)
    kept = np.minimum(sizes, max_length)
    starts = kernels.lengths_to_offsets(sizes)[:-1]
    if keep == "tail":
        starts = starts + (sizes - kept)
    return move_sequences(data, starts, kept), kept


def _bound_pieces(ctx: "InferenceContext") -> None:
    """Each piece begins `stride` rows after the last and ends with a row that no piece before it has."""
    chunk, stride = ctx.attr("chunk"), ctx.attr("stride") or ctx.attr("chunk")
    total, sequences = ctx.sum_of("lengths"), ctx.dim(ctx.input("lengths"), 0)
    ctx.limit(ctx.max_of("pieces"), ctx.max_of("lengths").minimum(chunk))
    ctx.limit(ctx.sum_of("pieces"), total * -(-chunk // stride))
    ctx.limit(ctx.max_of("counts"), (ctx.max_of("lengths") // stride + 1).minimum(ctx.max_of("lengths")))
    ctx.limit(ctx.sum_of("counts"), (total // stride + sequences).minimum(total))


@op(
    "data[sum(lengths), *d], lengths[B] -> rows[sum(pieces), *d], int64 pieces[sum(counts)], int64 counts[B]",
    shape=_bound_pieces,
)
def split_sequences(
    data: Array, lengths: Array, *, chunk: Positive, stride: Positive | None = None
) -> tuple[Array, Array, Array]:
    """Cut each sequence into pieces of `chunk` rows, the last one shorter: one more level.

    With a `stride` below `chunk` the pieces overlap: one starts every `stride` rows, until the end is covered.
    An empty sequence has no pieces. Without overlap `rows` is `data` itself, not a copy.

    >>> split_sequences(np.array([1, 2, 3, 4]), np.array([3, 0, 1]), chunk=2)
    SplitSequencesResult(rows=array([1, 2, 3, 4]), pieces=array([2, 1, 1]), counts=array([2, 0, 1]))
    """
    step = chunk if stride is None else stride
    if step > chunk:
        raise OpError(f"stride is {step}, expected at most chunk = {chunk}: rows in between would be lost")
    sizes = lengths.astype(np.int64, copy=False)
    counts = np.where(sizes == 0, 0, -(-np.maximum(sizes - chunk, 0) // step) + 1)
    owner = kernels.lengths_to_segment_ids(counts)
    first_piece = kernels.lengths_to_offsets(counts)[:-1]
    start_inside = (np.arange(len(owner)) - first_piece[owner]) * step
    pieces = np.minimum(sizes[owner] - start_inside, chunk)
    if step == chunk:
        return data, pieces, counts
    starts = kernels.lengths_to_offsets(sizes)[:-1][owner] + start_inside
    return move_sequences(data, starts, pieces), pieces, counts


def _bound_longer(ctx: "InferenceContext") -> None:
    ctx.limit(ctx.max_of("longer"), ctx.max_of("lengths") + 1)
    ctx.limit(ctx.sum_of("longer"), ctx.sum_of("lengths") + ctx.dim(ctx.input("lengths"), 0))


@op("data[sum(lengths), *d], lengths[B] -> rows[sum(longer), *d], int64 longer[B]", shape=_bound_longer)
def append_token(data: Array, lengths: Array, *, token: Scalar) -> tuple[Array, Array]:
    """Add one row, filled with `token`, at the end of each sequence, empty ones included.

    >>> append_token(np.array([1, 2, 3]), np.array([2, 0, 1]), token=9)
    AppendTokenResult(rows=array([1, 2, 9, 9, 3, 9]), longer=array([3, 1, 2]))
    """
    fill = cast_scalar("token", token, data.dtype)
    sizes = lengths.astype(np.int64, copy=False)
    longer = sizes + 1
    ends = kernels.lengths_to_offsets(longer)
    rows = np.empty((int(ends[-1]), *data.shape[1:]), data.dtype)
    kernels.move_slices(data, kernels.lengths_to_offsets(sizes)[:-1], sizes, rows, ends[:-1])
    rows[ends[1:] - 1] = fill
    return rows, longer
