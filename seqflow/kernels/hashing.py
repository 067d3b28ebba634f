"""Hash ids and strings into buckets, by SplitMix64 (Steele, Lea and Flood, 2014).

All arithmetic is modulo 2**64; integers are taken in two's complement.

    mix(z) = z ^= z >> 30; z *= 0xbf58476d1ce4e5b9; z ^= z >> 27; z *= 0x94d049bb133111eb; z ^ (z >> 31)
    output(state, k) = mix(state + (k + 1) * 0x9e3779b97f4a7c15)
    bucket(bits) = bits * num_buckets >> 64, the upper half of the product in 128 bits
"""

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, int64_integers, rows
from seqflow.kernels.checks import check_sum, offsets_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import BYTES, COUNTS, INTEGERS
from seqflow.kernels.memory import check_memory

__all__ = [
    "HASHES",
    "MOST_BINS",
    "hash_grams",
    "hash_ids",
    "hash_state",
    "hash_strings",
    "least_of_bins",
    "random_output",
]

HASHES = 2**63
"""Number of buckets for whole hashes: a bucket is the upper 63 bits of the hash, which int64 holds."""

MOST_BINS = 4096
"""Most bins of a set: to fill the empty ones takes the square of their number of steps, if the set is small."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@kernel(ids=INTEGERS)
def hash_ids(ids: Array, state: int, num_buckets: int) -> Array:
    """Return the bucket of each id: ids[*i] -> int64 buckets[*i], bucket(output(state, id)). `state` is given as
    int64.
    """
    _check_buckets(num_buckets)
    copied = int64_integers(ids, "ids")
    numbers = copied.reshape(-1).view(np.uint64)
    return _bucket(random_output(_unsigned(state), numbers), num_buckets).reshape(copied.shape)


@kernel(data=BYTES, lengths=COUNTS)
def hash_strings(data: Array, lengths: Array, state: int, num_buckets: int) -> Array:
    """Return the bucket of each string: uint8 data[sum(lengths)], lengths[B] -> int64 buckets[B].

    The bytes are read as little-endian words of 8 bytes; the last word is filled up with zeros. For each word the
    state becomes mix(state ^ word); the bucket is that of output(state, length).
    """
    _check_buckets(num_buckets)
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    if data.dtype != np.uint8 or data.ndim != 1:
        raise TypeError(f"data is {data.dtype} with {data.ndim} dimensions, expected one of uint8")
    check_sum(lengths, len(data), "data")
    # 7 more bytes: the last word of a string is read whole, also past the end of the data
    words = np.append(data, np.zeros(7, np.uint8))
    starts, states = offsets_of(lengths)[:-1], np.full(len(lengths), _unsigned(state))
    for at in range(0, int(lengths.max(initial=0)), 8):
        alive = np.flatnonzero(lengths > at)
        held = words[starts[alive, None] + at + np.arange(8)].astype(np.uint64)
        held[np.arange(at, at + 8) >= lengths[alive, None]] = 0
        word = (held << np.arange(0, 64, 8, dtype=np.uint64)).sum(1, dtype=np.uint64)
        states[alive] = mix(states[alive] ^ word)
    return _bucket(random_output(states, lengths.view(np.uint64)), num_buckets)


@kernel(tokens=COUNTS, lengths=COUNTS)
def hash_grams(tokens: Array, lengths: Array, n: int, state: int) -> Array:
    """Hash each run of n tokens of a segment: tokens[sum(lengths)] -> uint64[sum(maximum(lengths - (n - 1), 0))].

    For each token in turn the state becomes output(state, token). `state` is given as int64.
    """
    tokens, lengths = int64_counts(tokens, "tokens"), int64_counts(lengths, "lengths")
    check_sum(lengths, len(tokens), "tokens")
    if n < 1:
        raise ValueError(f"n is {n}, expected 1 or more")
    counts = np.maximum(lengths - min(n - 1, len(tokens)), 0)
    first = np.arange(counts.sum()) + np.repeat(offsets_of(lengths)[:-1] - offsets_of(counts)[:-1], counts)
    states, numbers = np.full(len(first), _unsigned(state)), tokens.view(np.uint64)
    for k in range(n if len(first) else 0):
        states = random_output(states, numbers[first + k])
    return states


@kernel(shingles=COUNTS, lengths=COUNTS)
def least_of_bins(shingles: Array, lengths: Array, state: int, count: int) -> Array:
    """Return the least hash in each bin of a segment's numbers: shingles[sum(lengths)] -> uint64 least[B, count].

    The hash of x is output(state, x), its bin bucket(hash) of `count`. A bin without any takes the hash of the first
    bin with one among bucket(output(stream, k)), k = 0, 1, …, where the stream of bin j is output(state, j). An empty
    segment has 2**64 - 1 everywhere, the number that marks a bin without a hash. `state` is given as int64.
    """
    if not 1 <= count <= MOST_BINS:
        raise ValueError(f"count is {count}, expected 1 to {MOST_BINS}")
    shingles, lengths = int64_counts(shingles, "shingles"), int64_counts(lengths, "lengths")
    check_memory((len(lengths), count), np.dtype(np.uint64))
    check_sum(lengths, len(shingles), "shingles")
    hashes = random_output(_unsigned(state), shingles.view(np.uint64))
    empty = np.uint64(2**64 - 1)
    least = np.full((len(lengths), count), empty)
    np.minimum.at(least, (np.repeat(np.arange(len(lengths)), lengths), _bucket(hashes, count)), hashes)
    is_full = least != empty
    row, bin_ = np.nonzero(~is_full & is_full.any(axis=1)[:, None])
    streams, k = random_output(_unsigned(state), bin_.astype(np.uint64)), 0
    while len(row):
        taken = _bucket(random_output(streams, np.full_like(streams, k)), count)
        found, k = is_full[row, taken], k + 1
        least[row[found], bin_[found]] = least[row[found], taken[found]]
        row, bin_, streams = row[~found], bin_[~found], streams[~found]
    return least


def hash_state(seed: int) -> int:
    """Return `output(seed, 0)`, the state for a seed from 0 to 2**64 - 1, as int64."""
    return int(random_output(_unsigned(seed), np.zeros(1, np.uint64)).view(np.int64)[0])


def _unsigned(number: int) -> np.uint64:
    return np.uint64(number % 2**64)


def random_output(state: Array | np.uint64, k: Array) -> Array:
    """Return the k-th number of the SplitMix64 stream started at `state`, element by element: uint64."""
    return mix((k + np.uint64(1)) * _GOLDEN + state)


def mix(z: Array) -> Array:
    """The finalizer of splitmix64 (Steele et al., 2014): a bijection of uint64 that changes half of all bits."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


def _bucket(bits: Array, num_buckets: int) -> Array:
    """Return the upper half of a product in 128 bits, computed from halves of 32 bits."""
    high, low = np.uint64(num_buckets >> 32), np.uint64(num_buckets & 0xFFFFFFFF)
    upper, lower = bits >> _HALF, bits & _LOW
    middle = upper * low + (lower * low >> _HALF)
    carried = lower * high + (middle & _LOW)
    buckets: Array = upper * high + (middle >> _HALF) + (carried >> _HALF)
    return buckets.view(np.int64)


def _check_buckets(num_buckets: int) -> None:
    """Raise ValueError when the number of buckets is 0, or above the number of hashes."""
    if not 1 <= num_buckets <= HASHES:
        raise ValueError(f"num_buckets is {num_buckets}, expected 1 to 2**63")
