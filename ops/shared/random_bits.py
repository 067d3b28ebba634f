"""Random numbers that depend only on a seed and a place: the same on every machine.

`random_bits(seed, sequence, position)` is defined by SplitMix64 (Steele, Lea and Flood, 2014). All arithmetic is
modulo 2**64:

    mix(z) = z ^= z >> 30; z *= 0xbf58476d1ce4e5b9; z ^= z >> 27; z *= 0x94d049bb133111eb; z ^ (z >> 31)
    output(state, k) = mix(state + (k + 1) * 0x9e3779b97f4a7c15)
    random_bits(seed, sequence, position) = output(output(output(seed, 0), sequence), position)

Each sequence has its own SplitMix64 stream, and its position k takes the k-th number of the stream. No number depends
on the number of sequences, the lengths of other sequences, or the number of threads.

In a loader, the number of a sequence is replaced by a key of its row, `output(block, row)`, with the number of the
row in its block; a sequence inside a row has `output(key of the row, position)`. A row draws the same in any batch.
"""

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.kernels.draws import drawn_keys
from seqflow.ops.shared.slices import int64, starts_of

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BLOCK = 1 << 15
"""Number of numbers made at a time, few enough to stay in the cache."""


def random_bits(seed: int, lengths: Array, first: int = 0) -> Array:
    """Return a random number for each row of the sequences number `first`, `first + 1`, …: uint64[sum(lengths)]."""
    lengths = int64(lengths)
    streams = sequence_bits(seed, len(lengths), first)
    starts = starts_of(lengths).astype(np.uint64)
    positions = np.arange(int(lengths.sum()), dtype=np.uint64) - kernels.expand(starts, lengths)
    return output(kernels.expand(streams, lengths), positions)


def sequence_bits(seed: int, count: int, first: int = 0) -> Array:
    """Return `output(output(seed, 0), sequence)` for each sequence from `first` on: uint64[count]."""
    if seed >= 2**64:
        raise OpError(f"seed is {seed}, expected less than 2**64")
    start = output(np.array([seed], np.uint64), np.zeros(1, np.uint64))
    keys = drawn_keys()
    if keys is not None:
        return output(start, keys[first : first + count])
    bits = np.empty(count, np.uint64)
    for begin in range(0, count, _BLOCK):
        end = min(begin + _BLOCK, count)
        bits[begin:end] = output(start, np.arange(first + begin, first + end, dtype=np.uint64))
    return bits


def uniform(bits: Array) -> Array:
    """Return float64 in [0, 1): the upper 53 bits of each number, divided by 2**53."""
    return (bits >> np.uint64(11)) * 2.0**-53


def further(bits: Array, k: int) -> Array:
    """Return the k-th number of the stream that starts at each number: for places that need several."""
    return output(bits, np.full_like(bits, k))


def output(state: Array, k: Array) -> Array:
    """Return the k-th number of SplitMix64 started at `state`, element by element: uint64."""
    # one new array, changed in place from here on; uint64 wraps around, as SplitMix64 needs
    z = k + np.uint64(1)
    z *= _GOLDEN
    z += state
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z
