"""Compare two sequences of each pair, and sets by the least of their hashes."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts
from seqflow.kernels.checks import check_same_size, check_sum, offsets_of, total_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS
from seqflow.kernels.memory import check_memory

__all__ = ["edit_distances", "isin_within", "longest_common", "minhash"]

PRIME = 2**61 - 1
"""A Mersenne prime, for which the remainder of a product of 128 bits needs no division."""
_AT_ONCE = 4096
"""Hashes of a long text that are multiplied at once: each is a Python integer for each pair."""


@kernel(data=COUNTS, lengths=COUNTS, other=COUNTS, other_lengths=COUNTS)
def isin_within(data: Array, lengths: Array, other: Array, other_lengths: Array) -> Array:
    """Return whether each value is among those of the other sequence of its pair: bool found[sum(lengths)].

    data[sum(lengths)], lengths[B], other[sum(other_lengths)], other_lengths[B], all integers.
    """
    found = [np.isin(a, b) for a, b in _pairs(data, lengths, other, other_lengths)]
    return np.concatenate([*found, np.zeros(0, bool)])


@kernel(data=COUNTS, lengths=COUNTS, other=COUNTS, other_lengths=COUNTS)
def edit_distances(data: Array, lengths: Array, other: Array, other_lengths: Array) -> Array:
    """Return the Levenshtein distance of both sequences of each pair: int64 distances[B]."""
    pairs = _pairs(data, lengths, other, other_lengths)
    return np.array([_distance(a, b.tolist()) for a, b in pairs], np.int64)


@kernel(data=COUNTS, lengths=COUNTS, other=COUNTS, other_lengths=COUNTS)
def longest_common(data: Array, lengths: Array, other: Array, other_lengths: Array) -> Array:
    """Return the length of the longest common subsequence of both sequences of each pair: int64 sizes[B]."""
    pairs = _pairs(data, lengths, other, other_lengths)
    return np.array([_common(a, b.tolist()) for a, b in pairs], np.int64)


@kernel(shingles=COUNTS, lengths=COUNTS, factors=COUNTS, offsets=COUNTS)
def minhash(shingles: Array, lengths: Array, factors: Array, offsets: Array) -> Array:
    """Return the least of (a * x + b) mod 2**61 - 1 of each segment, for each pair a, b: int64 signatures[B, K].

    shingles[sum(lengths)] are the bits of uint64, factors a[K] and offsets b[K] from 0 to below the prime. An empty
    segment gives the prime.
    """
    shingles, lengths = int64_counts(shingles, "shingles"), int64_counts(lengths, "lengths")
    check_sum(lengths, len(shingles), "shingles")
    check_same_size(factors=factors, offsets=offsets)
    check_memory((len(lengths), len(factors)), np.dtype(np.int64))
    # Python's integers, which do not wrap around
    x, a, b = (one.astype(object) for one in (shingles.view(np.uint64), factors, offsets))
    signatures = np.full((len(lengths), len(factors)), PRIME, np.int64)
    for i, (start, stop) in enumerate(pairwise(offsets_of(lengths).tolist())):
        for first in range(start, stop, _AT_ONCE):
            hashed = (np.outer(x[first : min(first + _AT_ONCE, stop)], a) + b) % PRIME
            signatures[i] = np.minimum(signatures[i], hashed.min(0).astype(np.int64))
    return signatures


def _pairs(data: Array, lengths: Array, other: Array, other_lengths: Array) -> Iterator[tuple[Array, Array]]:
    data, lengths = int64_counts(data, "data"), int64_counts(lengths, "lengths")
    other, other_lengths = int64_counts(other, "other"), int64_counts(other_lengths, "other_lengths")
    # both before the sums are compared, as the native kernel finds errors
    total_of(lengths, "lengths"), total_of(other_lengths, "other_lengths")
    check_sum(lengths, len(data), "data")
    check_sum(other_lengths, len(other), "other", "other_lengths")
    check_same_size(lengths=lengths, other_lengths=other_lengths)
    both = zip(pairwise(offsets_of(lengths)), pairwise(offsets_of(other_lengths)), strict=True)
    return ((data[a:b], other[c:d]) for (a, b), (c, d) in both)


def _distance(a: Array, b: list[int]) -> int:
    row = list(range(len(b) + 1))
    for x in a.tolist():
        new = [row[0] + 1]
        for j, y in enumerate(b):
            new.append(min(row[j] + (x != y), row[j + 1] + 1, new[-1] + 1))
        row = new
    return row[-1]


def _common(a: Array, b: list[int]) -> int:
    row = [0] * (len(b) + 1)
    for x in a.tolist():
        new = [0]
        for j, y in enumerate(b):
            new.append(row[j] + 1 if x == y else max(new[-1], row[j + 1]))
        row = new
    return row[-1]
