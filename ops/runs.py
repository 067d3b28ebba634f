"""Runs of equal values inside sequences, and pieces that starts mark."""

import math
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import NoDerivative, op


def _are_far(after: Array, before: Array, gap: float) -> Array:
    """Return whether after - before is above the gap, exactly; no difference to NaT is."""
    if after.dtype.kind not in "bmMiu":
        with np.errstate(all="ignore"):
            return np.asarray(after - before > gap)
    known = np.ones(after.shape, bool)
    if after.dtype.kind in "mM":
        known = ~(np.isnat(after) | np.isnat(before))
        after, before = after.view(np.int64), before.view(np.int64)
    rises = after > before
    # an unsigned integer holds the distance of any two integers of 64 bits
    way = (np.maximum(after, before).astype(np.int64) - np.minimum(after, before).astype(np.int64)).view(
        np.uint64
    )
    whole = math.floor(gap) if math.isfinite(gap) else gap
    return known & (rises | (way < -whole) if gap < 0 else rises & (way > whole))


def _opens(data: Array, gap: Any) -> Array:
    """Return whether a run begins at each row, as if all rows were one sequence."""
    opens = np.ones(len(data), bool)
    after, before = data[1:], data[:-1]
    if gap is not None:
        differs = _are_far(after, before, gap)
    else:
        missing = after == after
        differs = (after != before) & (missing | (before == before))  # NaN and NaT equal themselves here
    opens[1:] = differs.any(axis=tuple(range(1, data.ndim)))
    return opens


@op(
    "ordered data[sum(lengths), *d], lengths[B]"
    " -> values[sum(counts), *d], int64 lengths'[sum(counts)] <= max(lengths), int64 counts[B] <= lengths,"
    " sum(lengths') <= sum(lengths)",
    grad=NoDerivative("it picks by value"),
)
def run_lengths(data: Array, lengths: Array, *, gap: float | None = None) -> tuple[Array, Array, Array]:
    """Return the runs of equal values of each sequence: the first row of each, its length, and the number of runs.

    With `gap`, a run ends where the difference to the next row is above it: the sessions of sorted times (in their
    unit). NaN is equal to NaN. A run never goes on in the next sequence, and an empty sequence has none.

    >>> run_lengths(np.array([1, 1, 2, 2]), np.array([3, 1]))
    RunLengthsResult(values=array([1, 2, 2]), lengths=array([2, 1, 1]), counts=array([2, 1]))
    """
    sizes = int64(lengths)
    opens = _opens(data, gap)
    opens[starts_of(sizes)[sizes > 0]] = True
    first = np.flatnonzero(opens)
    return data[first], np.diff(first, append=len(data)), kernels.segment_reduce("sum", opens, sizes)


@op(
    "bool starts[sum(lengths)], lengths[B]"
    " -> int64 lengths'[sum(counts)] <= max(lengths), int64 counts[B] <= lengths, sum(lengths') <= sum(lengths)",
    describes={"lengths": "sum(lengths)"},
)
def starts_to_lengths(starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Return the lengths of the pieces of each sequence that starts mark, and the number of pieces.

    A sequence begins with a piece, marked or not; an empty one has none. `lengths_to_positions` of the lengths counts
    again from each start, and `lengths_to_segment_ids` numbers the pieces.

    Each NaN replaced by the last number before it:

        runs = starts_to_lengths(logical_not(isnan(x)), n).lengths
        expand(lengths_first(x, runs), runs)

    By the next one: runs that begin after each number, `np.append(True, ~isnan(x))[:-1]`, and `lengths_last`.

    >>> starts_to_lengths(np.array([True, False, True, False]), np.array([3, 1]))
    StartsToLengthsResult(lengths=array([2, 1, 1]), counts=array([2, 1]))
    """
    sizes, opens = int64(lengths), starts.copy()
    opens[starts_of(sizes)[sizes > 0]] = True
    return np.diff(np.flatnonzero(opens), append=len(opens)), kernels.segment_reduce("sum", opens, sizes)
