"""Rows at positions inside their sequence: in a given order, the best k, or at positions that another op returned."""

import numpy as np

from seqflow import kernels
from seqflow.errors import OpIndexError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.ops.shared.scalars import with_fill
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import MovedRows, NoDerivative, op
from seqflow.signature import Fill, Positive


@op(
    "data[sum(lengths), *d], position(lengths) positions[sum(picked)], lengths[B], lens picked[B]"
    " -> rows[sum(picked), *d]",
    grad=MovedRows(fill="fill"),
)
def gather_within(
    data: Array,
    positions: Array,
    lengths: Array,
    picked: Array,
    *,
    fill: Fill | None = None,
    wrap: bool = False,
) -> Array:
    """Gather the rows of each sequence at positions counted inside it, `picked[i]` of sequence i.

    For positions from `argsort_within`, for instance, `picked` are the lengths themselves. Positions may repeat, in
    any order. A position outside its sequence is an error; with `fill`, the position -1 gives a row of `fill`. With
    `wrap`, positions below 0 count from the end, and `fill` is for all positions outside the sequence. A sequence of
    which no rows are picked becomes empty; an empty one has no rows to pick, so it needs `fill`. Each sequence cut or
    filled to a length of its own, `m`:

        p = lengths_to_positions(m)
        gather_within(x, where(p < expand(n, m), p, -1), n, m, fill=0)

    >>> data, positions = np.array([10, 11, 12, 20]), np.array([2, 0, 0])
    >>> gather_within(data, positions, np.array([3, 1]), np.array([2, 1]))
    array([12, 10, 20])
    """
    rows = kernels.lengths_to_segment_ids(picked)
    return _at(data, int64_integers(positions, "positions"), int64(lengths), rows, fill, wrap)


@op(
    "data[sum(lengths), *d], position(lengths) positions[B, K], lengths[B] -> rows[B, K, *d]",
    grad=MovedRows(fill="fill"),
    several="gather_within",
)
def gather_within_padded(
    data: Array, positions: Array, lengths: Array, *, fill: Fill | None = None, wrap: bool = False
) -> Array:
    """Gather K rows of each sequence at positions counted inside it, for instance those of `lengths_topk`.

    A position outside its sequence is an error; with `fill`, the position -1 gives a row of `fill`. With `wrap`,
    positions below 0 count from the end, and `fill` is for all positions outside the sequence. An empty sequence has
    no rows to pick, so it needs `fill`.

    >>> ids, scores, lengths = np.array([7, 8, 9]), np.array([0.1, 0.3, 0.2]), np.array([2, 1])
    >>> gather_within_padded(ids, lengths_topk(scores, lengths, k=2).positions, lengths, fill=0)
    array([[8, 7],
           [9, 0]])
    """
    rows = np.broadcast_to(np.arange(len(lengths))[:, None], positions.shape)
    return _at(data, int64_integers(positions, "positions"), int64(lengths), rows, fill, wrap)


def _at(
    data: Array, positions: Array, lengths: Array, sequences: Array, fill: Fill | None, wrap: bool
) -> Array:
    """Return the rows of `data` at `positions` inside `sequences`, which has the shape of `positions`."""
    rows = _rows_of(positions, lengths, sequences, fill is not None, wrap)
    data, value = with_fill("fill", 0 if fill is None else fill, data)
    gathered = kernels.gather(data, rows, ignore_index=-1)
    if fill is not None and fill != 0:
        gathered[rows == -1] = value
    return gathered


def _rows_of(
    positions: Array, lengths: Array, sequences: Array, may_be_missing: bool, wrap: bool = False
) -> Array:
    """Return the rows at `positions` inside `sequences`, and -1 for missing ones if they are allowed."""
    sizes = lengths[sequences]
    outside = (positions < (-sizes if wrap else 0)) | (positions >= sizes)
    missing = (outside if wrap else positions == -1) & may_be_missing
    outside &= ~missing
    if outside.any():
        place = np.unravel_index(int(np.argmax(outside)), positions.shape)
        found, row = f"positions[{', '.join(map(str, place))}] = {positions[place]}", sequences[place]
        low = -lengths[row] if wrap else 0
        raise OpIndexError(f"{found} is outside [{low}, {lengths[row]}), the rows of sequence {row}")
    if wrap:
        positions = np.where(positions < 0, positions + sizes, positions)
    return np.where(missing, -1, positions + starts_of(lengths)[sequences])


@op(
    "position(lengths) positions[B, *k], lengths[B] -> index(sum(lengths)) rows[B, *k]",
    several="to_rows_within",
)
def to_rows(positions: Array, lengths: Array, *, keep_missing: bool = False) -> Array:
    """Turn positions inside sequences into indices of all rows that the lengths describe.

    Row i of `positions` belongs to sequence i, as in the results of `lengths_argmax` and `lengths_topk`; see
    `to_rows_within` for positions of flat sequences. A position outside its sequence is an error. With `keep_missing`
    a -1 stays -1. An empty sequence can only have the position -1.

    >>> values, lengths = np.array([5, 9, 7, 3]), np.array([3, 1])
    >>> to_rows(lengths_argmax(values, lengths), lengths)
    array([1, 3])
    """
    first = np.arange(len(lengths)).reshape(-1, *[1] * (positions.ndim - 1))
    sequences = np.broadcast_to(first, positions.shape)
    return _rows_of(int64_integers(positions, "positions"), int64(lengths), sequences, keep_missing)


@op(
    "position(lengths) positions[sum(picked), *d], lengths[B], lens picked[B]"
    " -> index(sum(lengths)) rows[sum(picked), *d]",
)
def to_rows_within(positions: Array, lengths: Array, picked: Array, *, keep_missing: bool = False) -> Array:
    """Turn positions inside sequences, `picked[i]` of sequence i, into indices of all rows that the lengths describe.

    For positions from `topk_within`, `picked` are the lengths that it returns; for those of `argsort_within`, the
    lengths themselves. A position outside its sequence is an error. With `keep_missing` a -1 stays -1. An empty
    sequence can only have the position -1.

    >>> values, lengths = np.array([5, 9, 7, 3]), np.array([3, 1])
    >>> to_rows_within(argsort_within(values, lengths), lengths, lengths)
    array([0, 2, 1, 3])
    """
    first = kernels.lengths_to_segment_ids(picked).reshape(-1, *[1] * (positions.ndim - 1))
    sequences = np.broadcast_to(first, positions.shape)
    return _rows_of(int64_integers(positions, "positions"), int64(lengths), sequences, keep_missing)


@op(
    "data[sum(lengths), *d], ordered scores[sum(lengths)], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[B] := minimum(lengths, k),"
    " position(lengths) positions[sum(lengths')]",
    depends={"positions": "scores, lengths"},
    grad={"data": MovedRows(), "scores": NoDerivative("they only determine which rows are picked")},
)
def topk_within(data: Array, scores: Array, lengths: Array, *, k: Positive) -> tuple[Array, Array, Array]:
    """Keep the `k` rows of each sequence with the largest scores, best first; also return their positions in it.

    Rows with equal scores keep their order. NaN and NaT count as larger than everything else, as in torch. A sequence
    with fewer rows keeps all of them; an empty one stays empty.

    >>> topk_within(np.array([7, 8, 9, 5]), np.array([0.1, 0.3, 0.2, 0.0]), np.array([3, 1]), k=2)
    TopkWithinResult(values=array([8, 9, 5]), lengths=array([2, 1]), positions=array([1, 2, 0]))
    """
    sizes = int64(lengths)
    kept = np.minimum(sizes, k)
    order = kernels.argsort_within(scores, sizes, descending=True)
    first = kernels.lengths_to_positions(sizes) < k
    positions = order[first]
    return kernels.gather(data, positions + kernels.expand(starts_of(sizes), kept)), kept, positions
