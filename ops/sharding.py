"""Sequences divided among the ranks of context parallelism, and joined again."""

from typing import Literal

import numpy as np

from seqflow.errors import LodError, OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import int64, move_sequences, starts_of
from seqflow.registry import MovedRows, op
from seqflow.shape import InferenceContext
from seqflow.signature import NonNegative, Positive

Order = Literal["zigzag", "zigzag_row", "contiguous"]


def _infer_shares(ctx: InferenceContext) -> None:
    """Infer new rows for shares of all rows: the part of a sequence in them depends on the sequences before it."""
    if ctx.attr("order") != "zigzag":
        ctx.set_output("lengths", [ctx.dim(ctx.input("lengths"), 0)], rows="new")


@op(
    "data[sum(lengths), *d], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[B] <= lengths, sum(lengths') <= sum(lengths)",
    shape=_infer_shares,
    depends={"lengths": "lengths"},
    grad=MovedRows(),
)
def shard_sequences(
    data: Array, lengths: Array, *, parts: Positive, part: NonNegative, order: Order = "zigzag"
) -> tuple[Array, Array]:
    """Return the share of one of `parts` ranks in each sequence, for context parallelism.

    "zigzag" cuts each sequence into `2 * parts` chunks; rank r gets chunks r and `2 * parts - 1 - r`, so all ranks
    have the same work under a causal mask: the rule of TransformerEngine and Megatron. "zigzag_row" applies this rule
    to all rows together, as torch's context parallelism does; "contiguous" gives one consecutive share of all rows.
    These two may cut a sequence anywhere, and leave other sequences empty. An empty sequence has no share. Each
    length, or the sum of lengths, must be a multiple of the number of chunks: `Packed(…, multiple_of=2 * parts)` pads
    them. Divide tokens, labels and position ids in the same way. Shift labels before, since the next token may be on
    another rank.

    >>> shard_sequences(np.arange(8), np.array([4, 4]), parts=2, part=0)
    ShardSequencesResult(values=array([0, 3, 4, 7]), lengths=array([2, 2]))
    >>> shard_sequences(np.arange(8), np.array([5, 3]), parts=2, part=1, order="contiguous")
    ShardSequencesResult(values=array([4, 5, 6, 7]), lengths=array([1, 3]))
    """
    if part >= parts:
        raise OpError(f"part is {part}, expected less than parts = {parts}")
    sizes = int64(lengths)
    starts, shares = _slices(sizes, parts, part, order)
    values = move_sequences(data, starts, shares)
    if order == "zigzag":
        return values, sizes // parts
    ends = starts_of(sizes) + sizes
    inside = [
        np.clip(np.minimum(ends, start + share) - np.maximum(ends - sizes, start), 0, None)
        for start, share in zip(starts, shares, strict=True)
    ]
    return values, np.stack(inside).sum(axis=0)


def _infer_whole(ctx: InferenceContext) -> None:
    """Infer new sequences: the lengths do not describe the shares that they are made of."""
    ctx.set_output("lengths", [ctx.dim(ctx.input("lengths"), 0)], rows="new")


@op(
    "data[R, *d], lengths[B] -> values[sum(lengths'), *d], int64 lengths'[B] <= lengths",
    shape=_infer_whole,
    depends={"lengths": "lengths"},
    grad=MovedRows(),
)
def unshard_sequences(
    data: Array, lengths: Array, *, parts: Positive, order: Order = "zigzag"
) -> tuple[Array, Array]:
    """Join the shares of all ranks into sequences: the inverse of `shard_sequences`.

    `data` are the shares of ranks 0 to `parts - 1`, one after another, as from gathering over the ranks. `lengths`
    are those of the whole sequences, some of which may be empty.

    >>> shares = [shard_sequences(np.arange(8), np.array([4, 4]), parts=2, part=part).values for part in (0, 1)]
    >>> unshard_sequences(np.concatenate(shares), np.array([4, 4]), parts=2).values
    array([0, 1, 2, 3, 4, 5, 6, 7])
    """
    sizes = int64(lengths)
    if len(data) != int(sizes.sum()):
        raise LodError(f"data has {len(data)} rows, expected the sum of lengths, {int(sizes.sum())}")
    of_parts = [_slices(sizes, parts, part, order) for part in range(parts)]
    starts, shares = (np.concatenate(of) for of in zip(*of_parts, strict=True))
    back = np.argsort(starts, kind="stable")
    return move_sequences(data, starts_of(shares)[back], shares[back]), sizes


def _slices(sizes: Array, parts: int, part: int, order: Order) -> tuple[Array, Array]:
    """Return the starts and the sizes of the slices of all rows that make a rank's share, in order."""
    if order == "contiguous":
        share = _share(int(sizes.sum()), parts, "all sequences together have", f"parts = {parts}")
        return np.array([part * share]), np.array([share])
    if order == "zigzag":
        wrong = np.flatnonzero(sizes % (2 * parts))
        if len(wrong):
            i = int(wrong[0])
            _share(int(sizes[i]), 2 * parts, f"sequence {i} has", f"2 * parts = {2 * parts}")
        firsts, chunks = starts_of(sizes), sizes // (2 * parts)
    else:
        total = int(sizes.sum())
        chunk = _share(total, 2 * parts, "all sequences together have", f"2 * parts = {2 * parts}")
        firsts, chunks = np.zeros(1, np.int64), np.array([chunk])
    starts = np.stack([firsts + part * chunks, firsts + (2 * parts - 1 - part) * chunks], axis=1)
    return starts.reshape(-1), np.repeat(chunks, 2)


def _share(rows: int, chunks: int, what: str, expected: str) -> int:
    """Return the number of rows of each chunk; raise LodError if the chunks cannot have the same number."""
    if rows % chunks:
        raise LodError(
            f"{what} {rows} rows, expected a multiple of {expected}\n  Packed(…, multiple_of=…) pads pieces"
        )
    return rows // chunks
