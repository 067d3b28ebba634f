"""Rows at positions inside their sequence: in an order, the best k, or wherever an op found something."""

from typing import TYPE_CHECKING

import numpy as np

from seqflow import kernels
from seqflow.errors import OpIndexError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import op
from seqflow.signature import Positive, Scalar

if TYPE_CHECKING:
    from seqflow.shape import InferenceContext


@op(
    "data[sum(lengths), *d], position(lengths) positions[sum(picked)], lengths[B], lens picked[B]"
    " -> rows[sum(picked), *d]"
)
def gather_within(
    data: Array, positions: Array, lengths: Array, picked: Array, *, fill: Scalar | None = None
) -> Array:
    """Gather the rows of each sequence at positions counted inside it, `picked[i]` of sequence i.

    The positions that `argsort_within` gives, for instance; then `picked` are the lengths themselves. Repeats and any
    order are fine. A position outside its sequence is an error, but -1 gives a row of `fill` where that is given. A
    sequence of which nothing is picked becomes empty; an empty one has no positions but -1.

    >>> data, positions = np.array([10, 11, 12, 20]), np.array([2, 0, 0])
    >>> gather_within(data, positions, np.array([3, 1]), np.array([2, 1]))
    array([12, 10, 20])
    """
    rows = kernels.lengths_to_segment_ids(picked)
    return _at(data, int64(positions), int64(lengths), rows, fill)


@op("data[sum(lengths), *d], position(lengths) positions[B, K], lengths[B] -> rows[B, K, *d]")
def gather_within_padded(
    data: Array, positions: Array, lengths: Array, *, fill: Scalar | None = None
) -> Array:
    """Gather K rows of each sequence at positions counted inside it: those that `lengths_topk` gives, for instance.

    A position outside its sequence is an error, but -1 gives a row of `fill` where that is given. An empty sequence
    has no positions but -1.

    >>> ids, scores, lengths = np.array([7, 8, 9]), np.array([0.1, 0.3, 0.2]), np.array([2, 1])
    >>> gather_within_padded(ids, lengths_topk(scores, lengths, k=2).positions, lengths, fill=0)
    array([[8, 7],
           [9, 0]])
    """
    rows = np.broadcast_to(np.arange(len(lengths))[:, None], positions.shape)
    return _at(data, int64(positions), int64(lengths), rows, fill)


def _at(data: Array, positions: Array, lengths: Array, rows: Array, fill: Scalar | None) -> Array:
    """The rows of `data` at `positions` inside the sequences `rows`, which has the shape of `positions`."""
    filled = np.zeros(positions.shape, bool) if fill is None else positions == -1
    outside = ((positions < 0) | (positions >= lengths[rows])) & ~filled
    if outside.any():
        place = np.unravel_index(int(np.argmax(outside)), positions.shape)
        found, row = f"positions[{', '.join(map(str, place))}] = {positions[place]}", rows[place]
        raise OpIndexError(f"{found} is outside [0, {lengths[row]}), the rows of sequence {row}")
    gathered = kernels.gather(
        data, np.where(filled, -1, positions + starts_of(lengths)[rows]), ignore_index=-1
    )
    if fill is not None and fill != 0:
        gathered[filled] = cast_scalar("fill", fill, data.dtype)
    return gathered


def _bound_best(ctx: "InferenceContext") -> None:
    ctx.limit(ctx.max_of("lengths'"), ctx.max_of("lengths").minimum(ctx.attr("k")))
    ctx.limit(ctx.sum_of("lengths'"), ctx.sum_of("lengths"))
    ctx.limit(ctx.max_of("positions"), ctx.max_of("lengths"))


@op(
    "data[sum(lengths), *d], ordered scores[sum(lengths)], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[B], position(lengths) positions[sum(lengths')]",
    shape=_bound_best,
    depends={"positions": "scores, lengths"},
    defines={"lengths": "minimum(lengths, k)"},
)
def topk_within(data: Array, scores: Array, lengths: Array, *, k: Positive) -> tuple[Array, Array, Array]:
    """Keep the `k` rows of each sequence that have the largest scores, best first; also their positions in it.

    Of equal scores those at lower positions come first. NaN and NaT count as larger than everything else, as in
    torch. A sequence with fewer rows keeps all of them; an empty one stays empty.

    >>> topk_within(np.array([7, 8, 9, 5]), np.array([0.1, 0.3, 0.2, 0.0]), np.array([3, 1]), k=2)
    TopkWithinResult(values=array([8, 9, 5]), lengths=array([2, 1]), positions=array([1, 2, 0]))
    """
    sizes = int64(lengths)
    kept = np.minimum(sizes, k)
    order = kernels.argsort_within(scores, sizes, descending=True)
    first = kernels.lengths_to_positions(sizes) < k
    positions = order[first]
    return kernels.gather(data, positions + kernels.expand(starts_of(sizes), kept)), kept, positions
