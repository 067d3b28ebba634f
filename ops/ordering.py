"""New orders of the rows of each sequence: sorted, distinct, shuffled."""

from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.random_bits import random_bits
from seqflow.ops.shared.slices import portions, starts_of
from seqflow.registry import MovedRows, NoDerivative, op
from seqflow.signature import NonNegative


@op(
    "ordered data[sum(lengths), *d], lengths[B] -> sorted[sum(lengths), *d]",
    grad={"data": "scatter_within(d.sorted, argsort_within(data, lengths, descending=descending), lengths)"},
)
def sort_within(data: Array, lengths: Array, *, descending: bool = False) -> Array:
    """Sort the values of each sequence in ascending or descending order, each column on its own.

    NaN and NaT count as larger than everything else: they are last in ascending order, as in NumPy, and first in
    descending order. An empty sequence stays empty.

    >>> sort_within(np.array([3, 1, 2]), np.array([2, 0, 1]))
    array([1, 3, 2])
    """
    return kernels.sort_within(data, lengths, descending)


@op("ordered data[sum(lengths), *d], lengths[B] -> position(lengths) positions[sum(lengths), *d]")
def argsort_within(data: Array, lengths: Array, *, descending: bool = False) -> Array:
    """Return the positions in each sequence that sort it as `sort_within` does; equal values keep their order.

    An empty sequence stays empty.

    Of permutations these are the inverses.

    >>> argsort_within(np.array([3, 1, 2]), np.array([2, 0, 1]))
    array([1, 0, 0])
    """
    return kernels.argsort_within(data, lengths, descending)


@op(
    "ordered data[sum(lengths)], lengths[B]"
    " -> values[sum(lengths')], int64 lengths'[B] <= lengths, int64 counts[sum(lengths')] <= max(lengths)",
    grad=NoDerivative("it picks by value"),
)
def unique_within(
    data: Array, lengths: Array, *, order: Literal["sorted", "first"] = "sorted"
) -> tuple[Array, Array, Array]:
    """Return the distinct values of each sequence, and the count of each; an empty sequence stays empty.

    They are in ascending order or, with `order="first"`, in the order of their first occurrence. All NaN are one
    value, and all NaT are one value.

    Of `v, m, c = unique_within(x, n)`:

        mode       topk_within(v, c, m, k=1)                  with order="first" the first of equally frequent values
        entropy    log(n) - lengths_sum(c * log(c), m) / n    in nats, of sequences that are not empty
        inverse    rank_within(x, n, ties="dense")            the place of each row among the sorted values

    >>> unique_within(np.array([3, 1, 3, 5]), np.array([3, 0, 1]))
    UniqueWithinResult(values=array([1, 3, 5]), lengths=array([2, 0, 1]), counts=array([1, 2, 1]))
    """
    parts = [_unique(data[rows], lengths[sequences], order) for sequences, rows in portions(lengths)]
    if len(parts) == 1:
        return parts[0]
    values, kept, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    return values, kept, counts


def _unique(data: Array, lengths: Array, order: Literal["sorted", "first"]) -> tuple[Array, Array, Array]:
    positions = None if order == "sorted" else _ascending(data, lengths)
    ordered = kernels.sort_within(data, lengths) if positions is None else kernels.gather(data, positions)
    opens = _opens_run(ordered, lengths)
    first = np.flatnonzero(opens)
    counts = np.diff(first, append=len(data))
    kept = kernels.segment_reduce("sum", opens, lengths)
    if positions is None:
        return ordered[first], kept, counts
    seen = positions[first]
    by_place = np.argsort(seen)
    return data[seen[by_place]], kept, counts[by_place]


def _opens_run(ordered: Array, lengths: Array) -> Array:
    """Return true for the first occurrence of each value of a sorted sequence."""
    opens = np.ones(len(ordered), bool)
    same = ordered[1:] == ordered[:-1]
    if ordered.dtype.kind in "fmM":
        missing = np.isnan(ordered) if ordered.dtype.kind == "f" else np.isnat(ordered)
        same |= missing[1:] & missing[:-1]
    opens[1:] = ~same
    starts = starts_of(lengths)
    opens[starts[starts < len(ordered)]] = True  # empty sequences at the end start after the last row
    return opens


@op(
    "data[sum(lengths), *d], lengths[B] -> shuffled[sum(lengths), *d]",
    random="seed",
    grad=MovedRows(),
)
def shuffle_within(data: Array, lengths: Array, *, seed: NonNegative) -> Array:
    """Shuffle the rows of each sequence; every order is equally likely. An empty sequence stays empty.

    The same seed gives the same order on every machine: the rows are sorted by their random numbers, which are
    defined in `seqflow.ops.shared.random_bits`, and by position for equal numbers. The order of a sequence depends
    on its index and its length, not on other sequences.

    >>> shuffle_within(np.array([1, 2, 3, 4]), np.array([3, 0, 1]), seed=7)
    array([2, 1, 3, 4])
    """
    shuffled = np.empty_like(data, order="C", subok=False)
    for sequences, rows in portions(lengths):
        bits = random_bits(seed, lengths[sequences], sequences.start)
        shuffled[rows] = kernels.gather(data[rows], _ascending(bits, lengths[sequences]))
    return shuffled


def _ascending(values: Array, lengths: Array) -> Array:
    """Return the row indices that sort the values of each sequence; equal values keep their order."""
    return kernels.argsort_within(values, lengths) + kernels.expand(starts_of(lengths), lengths)
