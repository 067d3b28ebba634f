"""Random integers and noise, which follow the seed and the row."""

from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.random_bits import further, random_bits, uniform
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import op
from seqflow.signature import NonNegative, Positive

_TRIES = 32
"""Number of draws for an element before those that are left are drawn exactly, one by one."""
_LEAST = 1e-290
"""Least sum of weights whose shares float64 holds with all their bits."""


@op(
    "int positives[sum(positive_lengths)], lengths[B], lens positive_lengths[B], float weights[V]?"
    " -> int64 values[sum(lengths)] <= high-1",
    random="seed",
)
def random_integers(
    positives: Array,
    lengths: Array,
    positive_lengths: Array,
    weights: Array | None,
    *,
    high: Positive,
    seed: NonNegative,
) -> Array:
    """Draw `lengths[i]` integers from 0 to `high - 1` for each sequence, without the `positives` of the same row.

    They are uniform, or as frequent as their `weights`, one for each integer, which need not add up to 1. Integers
    may repeat. Without positives, their lengths are 0: `random_integers(ids, n, n * 0, …)` needs empty `ids`. An
    empty sequence stays empty. A row whose positives leave nothing is an error. The same seed draws the same
    numbers on every machine; in a loader they follow seed, epoch and row.

    >>> clicked = np.array([2, 0, 1])
    >>> random_integers(clicked, np.array([3, 2]), np.array([1, 2]), high=3, seed=1)
    array([1, 0, 1, 2, 2])
    """
    if high > 2**53:
        raise OpError(f"high is {high}, expected at most 2**53")
    sizes, excluded = int64(lengths), int64(positive_lengths)
    by = np.ones(0) if weights is None else _checked(weights, high)
    total = np.cumsum(by)
    bits, unwanted = random_bits(seed, sizes), positives.astype(np.int64)
    values = _drawn(bits, total, high)
    open_ = np.flatnonzero(kernels.isin_within(values, sizes, unwanted, excluded))
    rows = kernels.lengths_to_segment_ids(sizes)
    for attempt in range(_TRIES):
        if not len(open_):
            return values
        values[open_] = _drawn(further(bits[open_], attempt), total, high)
        here = np.bincount(rows[open_], minlength=len(sizes))
        open_ = open_[kernels.isin_within(values[open_], here, unwanted, excluded)]
    starts = starts_of(excluded)
    for i in open_.tolist():
        row = int(rows[i])
        values[i] = _exactly(bits[i], by, high, unwanted[starts[row] : starts[row] + excluded[row]], row)
    return values


def _checked(weights: Array, high: int) -> Array:
    by: Array = weights.astype(np.float64)
    if len(by) != high:
        raise OpError(f"weights has {len(by)} entries, expected high = {high}")
    wrong = np.flatnonzero(~((by >= 0) & np.isfinite(by)))
    if len(wrong):
        raise OpError(f"weights[{wrong[0]}] is {by[wrong[0]]}, expected 0 or more")
    if not by.any():
        raise OpError("weights are all 0, expected one that is not")
    with np.errstate(over="ignore"):
        # a sum that is infinite, or has only a few bits, tells no weights apart
        return by if _LEAST < by.sum() < np.inf else by / by.max()


def _drawn(bits: Array, total: Array, high: int) -> Array:
    """Return integers by the upper bits: uniform, or those in whose part of the total weight the number lies."""
    shares = uniform(bits)
    if not len(total):
        return (shares * high).astype(np.int64)
    found: Array = np.searchsorted(total, shares * total[-1], side="right").astype(np.int64)
    within: Array = np.minimum(found, len(total) - 1)
    return within


def _exactly(bits: Array, by: Array, high: int, unwanted: Array, row: int) -> int:
    """Return one integer that is not unwanted, drawn among the others alone."""
    mask = np.ones(high, bool)
    mask[unwanted[(unwanted >= 0) & (unwanted < high)]] = False
    allowed = np.flatnonzero(mask & (by > 0) if len(by) else mask)
    if not len(allowed):
        raise OpError(f"the positives of sequence {row} leave no integer below {high} to draw")
    place = _drawn(
        further(np.atleast_1d(bits), _TRIES),
        np.cumsum(by[allowed]) if len(by) else by,
        len(allowed),
    )
    return int(allowed[place[0]])


@op(
    "float x[N, *d] -> noise[N, *d]",
    random="seed",
    moves="",
    grad={"x": None},
)
def noise(
    x: Array, *, scale: float = 1.0, kind: Literal["normal", "uniform"] = "normal", seed: NonNegative
) -> Array:
    """Draw random numbers in the shape of `x`: normal with the deviation `scale`, or uniform from -scale to scale.

    The same seed draws the same numbers for a row on every machine, up to the last bit of a logarithm and a cosine;
    in a loader they follow seed, epoch and row. `x + noise(x, scale=0.1, seed=1)` adds some.

    >>> noise(np.zeros((2, 3)), seed=1).shape
    (2, 3)
    """
    width = int(np.prod(x.shape[1:], dtype=np.int64))
    bits = random_bits(seed, np.full(len(x), width, np.int64))
    one = uniform(bits)
    if kind == "uniform":
        drawn = 2 * one - 1
    else:  # Box and Muller (1958); 1 - u is never 0
        drawn = np.sqrt(-2 * np.log(1 - one)) * np.cos(2 * np.pi * uniform(further(bits, 0)))
    with np.errstate(all="ignore"):
        return (drawn * scale).reshape(x.shape).astype(x.dtype)
