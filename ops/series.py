"""Numbers in steps for each row, and pairs of places of two sequences."""

from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.slices import int64, move_sequences, starts_of
from seqflow.registry import op
from seqflow.shape import InferenceContext
from seqflow.signature import NonNegative, Positive


def _bound_total(ctx: InferenceContext) -> None:
    if ctx.attr("max_total") is not None:
        ctx.limit(ctx.sum_of("lengths"), ctx.attr("max_total"))


@op(
    "int start[B], int stop[B], int step[B]? -> int64 values[sum(lengths)], int64 lengths[B]",
    shape=_bound_total,
)
def lengths_range(
    start: Array,
    stop: Array,
    step: Array | None,
    *,
    inclusive: bool = False,
    max_total: NonNegative | None = None,
) -> tuple[Array, Array]:
    """Return start, start + step, … before stop for each row; `inclusive` includes stop itself.

    A row whose stop is not ahead is empty. Steps are 1 if not given; a step of 0 is an error, also a total above
    `max_total`, or above the memory, before any memory is taken.

    >>> lengths_range(np.array([0, 8]), np.array([3, 2]), np.array([1, -2]))
    LengthsRangeResult(values=array([0, 1, 2, 8, 6, 4]), lengths=array([3, 3]))
    """
    begin, end = int64_integers(start, "start"), int64_integers(stop, "stop")
    by = np.ones(len(begin), np.int64) if step is None else int64_integers(step, "step")
    wrong = np.flatnonzero(by == 0)
    if len(wrong):
        raise OpError(f"step[{wrong[0]}] is 0, expected a step up or down")
    # in Python's integers, without len(): a difference of two of int64 may not fit int64
    rows = zip(begin.tolist(), end.tolist(), by.tolist(), strict=True)
    sizes = [max(0, -((a - b - (1 if c > 0 else -1) * inclusive) // c)) for a, b, c in rows]
    total = sum(sizes)
    if max_total is not None and total > max_total:
        raise OpError(f"the ranges have {total} numbers, expected at most max_total = {max_total}")
    check_memory((total,), np.dtype(np.int64))
    lengths = np.array(sizes, np.int64)
    values = kernels.lengths_to_positions(lengths)
    values *= kernels.expand(by, lengths)
    values += kernels.expand(begin, lengths)
    return values, lengths


@op(
    "lengths[B], lens other[B]"
    " -> position(lengths) left[sum(lengths')], position(other) right[sum(lengths')],"
    " int64 lengths'[B] := lengths*other",
)
def product_within(lengths: Array, other: Array) -> tuple[Array, Array, Array]:
    """Return the places of all pairs of rows of two sequences, in the order of two loops.

    `gather_within` takes the rows at the places, with `lengths` of the result as `picked`. There are none if one side
    is empty. Too many for the memory are an error, before any memory is taken.

    Relations of spans compare the rows at both places. The last place that is related to each row, or -1:

        left, right, pairs = product_within(n, m)
        lengths_max(where(related, right, -1), expand(m, n), empty=-1)

    >>> product_within(np.array([2]), np.array([3]))
    ProductWithinResult(left=array([0, 0, 0, 1, 1, 1]), right=array([0, 1, 2, 0, 1, 2]), lengths=array([6]))
    """
    one, two = int64(lengths), int64(other)
    check_memory((int(one.astype(np.float64) @ two.astype(np.float64)), 2), np.dtype(np.int64))
    pairs = one * two
    places, widths = kernels.lengths_to_positions(pairs), kernels.expand(two, pairs)
    left, right = np.divmod(places, np.maximum(widths, 1))
    return left, right, pairs


def _number(n: int, k: int, replacement: bool) -> int:
    return comb(n + k - 1, k) if replacement and n else comb(n, k)


def _bound_combinations(ctx: InferenceContext) -> None:
    longest = ctx.equalities.resolve(ctx.max_of("lengths")).max_length
    rows = ctx.equalities.resolve(ctx.dim(ctx.input("lengths"), 0)).max_length
    if longest is not None:
        most = _number(longest, min(ctx.attr("k"), 32), ctx.attr("replacement"))
        if most < 2**62:
            ctx.limit(ctx.max_of("lengths'"), most)
            if rows is not None:
                ctx.limit(ctx.sum_of("lengths'"), most * rows)


@op(
    "lengths[B] -> position(lengths) values[sum(lengths'), k], int64 lengths'[B]",
    shape=_bound_combinations,
)
def combinations_within(lengths: Array, *, k: Positive = 2, replacement: bool = False) -> tuple[Array, Array]:
    """Return the places of all `k` rows of each sequence, in ascending order; with `replacement`, a row may repeat.

    A sequence with fewer than `k` rows has none; an empty one stays empty. Too many for the memory are an error,
    before any memory is taken.

    >>> combinations_within(np.array([3]))
    CombinationsWithinResult(values=array([[0, 1],
           [0, 2],
           [1, 2]]), lengths=array([3]))
    """
    if k > 32:
        raise OpError(f"k is {k}, expected at most 32")
    distinct, codes = np.unique(int64(lengths), return_inverse=True)
    numbers = [_number(n, k, replacement) for n in distinct.tolist()]
    repeats = np.bincount(codes, minlength=len(distinct)).tolist()
    check_memory((sum(n * times for n, times in zip(numbers, repeats, strict=True)), k), np.dtype(np.int64))
    sizes = np.array(numbers, np.int64)
    choose = combinations_with_replacement if replacement else combinations
    made = [np.array([*choose(range(n), k)], np.int64).reshape(-1, k) for n in distinct.tolist()]
    table = np.concatenate([*made, np.zeros((0, k), np.int64)])
    found = sizes[codes] if len(sizes) else np.zeros(0, np.int64)
    return move_sequences(table, starts_of(sizes)[codes] if len(sizes) else found, found), found
