"""Order: permutations that depend on numbers alone, the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.random_bits import output, sequence_bits


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Blocks in a random order each epoch, and rows in a random order inside each window.

    The order depends on `seed` and the epoch alone. A window that holds all rows is shuffled exactly.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed < 2**64:
            raise OpError(f"Shuffle: seed is {self.seed!r}, expected an integer from 0 to 2**64 - 1")


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
