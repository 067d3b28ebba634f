"""One budget of rows for several columns of each row."""

from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import int64, int64_or_largest, move_sequences, starts_of
from seqflow.registry import MovedRows, op
from seqflow.shape import InferenceContext
from seqflow.signature import Positive


def _check_columns(ctx: InferenceContext) -> None:
    _refuse_other_number(ctx.attr("columns"), len(ctx.inputs("data")))


def _refuse_other_number(columns: int, given: int) -> None:
    if columns != given:
        raise OpError(f"columns is {columns}, expected {given}, the number of columns that are given")


@op(
    "{like(data) data[sum(lengths), *d], lengths[B]}+, int budget[B]"
    " -> {values[sum(lengths'), *d], int64 lengths'[B] <= maximum(*lengths)}*columns",
    shape=_check_columns,
    depends={"lengths": "lengths, budget"},
    grad=MovedRows(),
)
def truncate_together(
    data: list[Array],
    lengths: list[Array],
    budget: Array,
    *,
    columns: Positive,
    how: Literal["longest_first", "waterfall"] = "longest_first",
    keep: Literal["head", "tail"] = "head",
) -> tuple[list[Array], list[Array]]:
    """Cut the columns of each row so that their lengths together are at most its `budget`.

    Longest first (also round robin): the longest column loses a row until all fit, of equal ones the later.
    "waterfall": the first column takes what it needs, the next one of what is left. `keep` is the end of a column
    that stays. A budget of 0 or less empties the row, an empty column costs nothing, and where all fit nothing
    changes. `columns` is their number; all have one dtype. To keep words whole, cut their numbers:

        numbers = [np.arange(len(pieces_p)), np.arange(len(pieces_q))]    # of the words, with their pieces
        p, q = truncate_together(numbers, [words_p, words_q], budget, columns=2).values
        gather_sequences(tokens_p, p, pieces_p), gather_sequences(tokens_q, q, pieces_q)

    >>> p, q = (np.array([1, 2, 3]), np.array([3])), (np.array([7, 8]), np.array([2]))
    >>> truncate_together([p[0], q[0]], [p[1], q[1]], np.array([3]), columns=2)
    TruncateTogetherResult(values=[array([1, 2]), array([7])], lengths=[array([2]), array([1])])
    """
    _refuse_other_number(columns, len(data))
    sizes = np.stack([int64(one) for one in lengths])
    room = np.maximum(int64_or_largest(budget), 0)
    kept = _poured(sizes, room) if how == "waterfall" else _levelled(sizes, room)
    values = [
        move_sequences(rows, starts_of(whole) + (whole - left if keep == "tail" else 0), left)
        for rows, whole, left in zip(data, sizes, kept, strict=True)
    ]
    return values, list(kept)


def _poured(sizes: Array, room: Array) -> Array:
    before = np.cumsum(sizes, axis=0) - sizes
    kept: Array = np.clip(room - before, 0, sizes)
    return kept


def _levelled(sizes: Array, room: Array) -> Array:
    """Return min(size, level) for each column, at the highest level that fits; the rest goes to the first ones."""
    columns = len(sizes)
    ascending = np.sort(sizes, axis=0)
    shorter = np.cumsum(ascending, axis=0) - ascending
    sharing = np.arange(columns, 0, -1)[:, None]  # the columns that are not shorter than this one
    levels, over = np.divmod(np.maximum(room - shorter, 0), sharing)
    is_cut = levels < ascending
    first = np.argmax(is_cut, axis=0)
    rows = np.arange(sizes.shape[1])
    level = np.where(is_cut.any(axis=0), levels[first, rows], kernels.max_length(sizes.reshape(-1)))
    left = np.where(is_cut.any(axis=0), over[first, rows], 0)
    above = sizes > level
    return np.minimum(sizes, level) + (above & (np.cumsum(above, axis=0) <= left))
