"""Permutations that depend on a key alone: the same on every machine, with every version of NumPy."""

from __future__ import annotations

from functools import reduce

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.ops.shared.random_bits import output, sequence_bits


def key_of(*parts: int) -> int:
    """One 64-bit number made of several: the seed, the epoch, the number of a window …

    >>> key_of(7, 0) != key_of(0, 7)
    True
    """
    start = np.zeros(1, np.uint64)
    key = reduce(lambda made, part: output(made, np.array([part], np.uint64)), parts, start)
    return int(key[0])


def permutation(count: int, key: int) -> Array:
    """int64[count]: the numbers 0 … count - 1, sorted by random bits, `sequence_bits(key, count)`.

    The lowest bits, as many as the largest number has, are the number itself, so that no two are alike.

    >>> sorted(permutation(4, key_of(7, 0)).tolist())
    [0, 1, 2, 3]
    """
    bits = sequence_bits(key, count)
    low = np.uint64((1 << max(count - 1, 0).bit_length()) - 1)
    bits &= ~low
    bits |= np.arange(count, dtype=np.uint64)
    bits.sort()  # twice as fast as to sort the numbers by their bits
    bits &= low
    return bits.view(np.int64)
