"""Ids and strings hashed into buckets: the rows of a table with fewer rows than there are ids."""

from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.registry import op
from seqflow.signature import NonNegative, Positive


@op(
    "int x[N, *i] -> int64 ids[N, *i] <= num_buckets-1",
    caffe2="IndexHash",
)
def hash_indices(
    x: Array,
    *,
    num_buckets: Positive,
    seed: NonNegative = 0,
    method: Literal["splitmix", "caffe2"] = "splitmix",
) -> Array:
    """Hash each id into a bucket from 0 to `num_buckets - 1`; the same on every machine, and for any integer dtype.

    Models are trained on this function, so it will not change. Ids are taken in two's complement; all arithmetic is
    modulo 2**64:

        mix(z)           = z ^= z >> 30; z *= 0xbf58476d1ce4e5b9; z ^= z >> 27; z *= 0x94d049bb133111eb; z ^ (z >> 31)
        output(state, k) = mix(state + (k + 1) * 0x9e3779b97f4a7c15)
        bucket           = output(output(seed, 0), id) * num_buckets >> 64, of the product in 128 bits

    That is number `id` of the SplitMix64 stream of the seed, scaled down. With `method="caffe2"` it is Caffe2's
    IndexHash: start with h = seed * 0xdeadbeef; for each byte of the id from the lowest on, taken as int8, h = h *
    65537 + byte, in int32 for int32 ids and in int64 for all others; then take h modulo `num_buckets`. For floats see
    `bucketize`, for strings `hash_strings`.

    >>> hash_indices(np.array([7, 8, 10**12, 7]), num_buckets=100)
    array([26, 37, 65, 26])
    """
    _check_num_buckets(num_buckets)
    if method == "caffe2":
        return _as_caffe2(x, num_buckets, seed)
    return kernels.hash_ids(_signed(x), _state(seed), num_buckets)


def _as_caffe2(x: Array, num_buckets: int, seed: int) -> Array:
    bits = 32 if x.dtype == np.int32 else 64
    if seed >= 2**63 or num_buckets >= 2 ** (bits - 1):
        name, value = ("seed", seed) if seed >= 2**63 else ("num_buckets", num_buckets)
        raise OpError(f"{name} is {value}, more than int{bits if name == 'num_buckets' else 64} can hold")
    signed, unsigned = np.dtype(f"int{bits}"), np.dtype(f"uint{bits}")
    ids = x.astype(signed).astype(unsigned)
    hashed = np.full(x.shape, seed * 0xDEADBEEF % 2**bits, unsigned)
    for byte in range(bits // 8):
        hashed *= unsigned.type(65537)
        hashed += (ids >> unsigned.type(8 * byte)).astype(np.int8).astype(unsigned)
    return hashed.view(signed).astype(np.int64) % num_buckets


@op("uint8 data[sum(lengths)], lengths[B] -> int64 ids[B] <= num_buckets-1")
def hash_strings(data: Array, lengths: Array, *, num_buckets: Positive, seed: NonNegative = 0) -> Array:
    """Hash each string, a sequence of bytes, into a bucket from 0 to `num_buckets - 1`; the same on every machine.

    With `mix` and `output` as in `hash_indices`: the bytes are read as little-endian words of 8, the last one
    filled up with zeros. The state is first `output(seed, 0)`; for each word it becomes `mix(state ^ word)`. The
    bucket is `output(state, length) * num_buckets >> 64`. An empty string has a bucket like any other string.

    >>> hash_strings(np.frombuffer(b"catdogcat", np.uint8), np.array([3, 3, 3, 0]), num_buckets=100)
    array([71, 68, 71, 65])
    """
    _check_num_buckets(num_buckets)
    return kernels.hash_strings(data, lengths, _state(seed), num_buckets)


@op("int x[N, *i] -> int64 hashes[N, *i]")
def hash(x: Array, *, seed: NonNegative = 0) -> Array:
    """Hash each integer, for splits and samples; the same on every machine, for any integer dtype, and in filters.

    `hash(user_id) % 10 == 0` is true for a tenth of all ids, whatever the order and the files of the rows; a split
    inside of a split needs another `seed`. The hash is an integer from 0 to 2**63 - 1, and will not change:

        hash(x) = output(output(seed, 0), x) >> 1

    with `output` as in `hash_indices`, which takes the upper bits: `hash_indices(x, num_buckets=10)` differs from
    `hash(x) % 10`. Ids are taken in two's complement. Codes of a dictionary column are hashed as codes; `where=`
    hashes its values. For the bytes of texts see `hash_text`.

    >>> hash(np.array([7, 2, 7])) % 10
    array([9, 5, 9])
    """
    return kernels.hash_ids(_signed(x), _state(seed), kernels.HASHES)


@op("uint8 data[sum(lengths)], lengths[B] -> int64 hashes[B]")
def hash_text(data: Array, lengths: Array, *, seed: NonNegative = 0) -> Array:
    """Hash each text, a sequence of bytes, for splits and samples; the same on every machine, and in filters.

    In nets a text column `name` is `hash_text(name.values, name.lengths)`, in filters `hash(name)`. The hash is
    `output(state, length) >> 1`, with the state of `hash_strings`: an integer from 0 to 2**63 - 1, which will not
    change. An empty text has the hash of the integer 0.

    >>> hash_text(np.frombuffer(b"catdogcat", np.uint8), np.array([3, 3, 3, 0])) % 10
    array([3, 3, 3, 7])
    """
    return kernels.hash_strings(data, lengths, _state(seed), kernels.HASHES)


def _signed(ids: Array) -> Array:
    return ids.view(np.int64) if ids.dtype == np.uint64 else ids


def _state(seed: int) -> int:
    """Return `output(seed, 0)` as int64."""
    if seed >= 2**64:
        raise OpError(f"seed is {seed}, expected less than 2**64")
    return kernels.hash_state(seed)


def _check_num_buckets(num_buckets: int) -> None:
    if num_buckets >= 2**63:
        raise OpError(f"num_buckets is {num_buckets}, expected less than 2**63")
