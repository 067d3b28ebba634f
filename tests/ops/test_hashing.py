"""Ids and strings in buckets: always the same ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import ops
from seqflow.errors import OpError, OpTypeError


def test_the_function_stays_as_it_is():
    """Models are trained on these numbers."""
    ids = np.array([0, 1, -1, 2**40, 2**63 - 1])
    assert ops.hash_indices(ids, num_buckets=2**62).tolist() == [
        3008887562355236763, 3233770081432392663, 1299394637241201967, 659399020133095503, 1206415651419914021
    ]  # fmt: skip
    assert ops.hash_indices(ids, num_buckets=1000, seed=7).tolist() == [721, 649, 455, 112, 458]
    text = np.frombuffer(b"abcdefghijklmnopq", np.uint8)
    assert ops.hash_strings(text, [0, 3, 8, 6], num_buckets=1000, seed=7).tolist() == [721, 946, 937, 796]


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def output(state, k):
    return mix((state + (k + 1) * 0x9E3779B97F4A7C15) % 2**64)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**63 - 1), st.integers(0, 2**64 - 1))
def test_it_is_the_function_of_the_docstring(number, num_buckets, seed):
    expected = output(output(seed, 0), number % 2**64) * num_buckets >> 64
    assert ops.hash_indices(np.array([number]), num_buckets=num_buckets, seed=seed) == expected


@given(st.binary(max_size=20), st.integers(1, 2**63 - 1), st.integers(0, 2**64 - 1))
def test_strings_have_the_function_of_the_docstring(text, num_buckets, seed):
    state = output(seed, 0)
    for start in range(0, len(text), 8):
        state = mix(state ^ int.from_bytes(text[start : start + 8].ljust(8, b"\0"), "little"))
    found = ops.hash_strings(np.frombuffer(text, np.uint8), [len(text)], num_buckets=num_buckets, seed=seed)
    assert found == output(state, len(text)) * num_buckets >> 64


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "uint64"])
def test_the_dtype_of_ids_does_not_matter(dtype):
    ids = np.arange(100).astype(dtype)
    np.testing.assert_array_equal(
        ops.hash_indices(ids, num_buckets=97), ops.hash_indices(np.arange(100), num_buckets=97)
    )
    assert ops.hash_indices(np.array([2**64 - 1], np.uint64), num_buckets=97) == ops.hash_indices(
        [-1], num_buckets=97
    )


def test_buckets_are_equally_full():
    counts = np.bincount(ops.hash_indices(np.arange(100_000), num_buckets=100), minlength=100)
    assert counts.min() > 850
    assert counts.max() < 1150


def test_a_string_is_told_from_one_with_a_zero_more():
    buckets = ops.hash_strings(np.zeros(6, np.uint8), [0, 1, 2, 3], num_buckets=2**60)
    assert len(set(buckets.tolist())) == 4


def caffe2_hash(number, bits, seed, modulo):
    """IndexHash byte by byte, in Python's integers."""
    hashed = seed * 0xDEADBEEF
    for byte in (number % 2**bits).to_bytes(bits // 8, "little"):
        hashed = (hashed * 65537 + (byte - 256 if byte > 127 else byte)) % 2**bits
    hashed = hashed - 2**bits if hashed >= 2 ** (bits - 1) else hashed
    return hashed % modulo


@given(
    ids=hnp.arrays(st.sampled_from(["int32", "int64", "uint8"]), st.integers(0, 5)),
    seed=st.integers(0, 2**63 - 1),
    modulo=st.integers(1, 2**31 - 1),
)
def test_caffe2_hashes_byte_by_byte(ids, seed, modulo):
    bits = 32 if ids.dtype == np.int32 else 64
    expected = [caffe2_hash(int(i), bits, seed, modulo) for i in ids]
    assert ops.hash_indices(ids, num_buckets=modulo, seed=seed, method="caffe2").tolist() == expected


@pytest.mark.parametrize("bad", [0, -1, 2**63])
def test_there_is_one_bucket_at_least(bad):
    for call in (
        lambda: ops.hash_indices([1], num_buckets=bad),
        lambda: ops.hash_strings(np.zeros(1, np.uint8), [1], num_buckets=bad),
    ):
        with pytest.raises(OpError, match=f"num_buckets is {bad}, expected"):
            call()


def test_floats_are_no_ids():
    with pytest.raises(OpTypeError, match="hash_indices: x is float64"):
        ops.hash_indices([1.5], num_buckets=3)
    with pytest.raises(OpError, match="num_buckets is 2147483648, more than int32 can hold"):
        ops.hash_indices(np.zeros(1, np.int32), num_buckets=2**31, method="caffe2")
    with pytest.raises(OpError, match="seed is 18446744073709551616, expected less than"):
        ops.hash_indices([1], num_buckets=3, seed=2**64)


HASHES = {
    0: 6017775124710473527, 1: 6467540162864785327, 2: 3570589976667487115, 7: 2445283482752209519,
    -1: 2598789274482403935, -7: 4828107016678445192, 2147483647: 2582023443904468982,
    -2147483648: 5667626158919609044, 9007199254740993: 5935244592584688230,
    9223372036854775807: 2412831302839828043, -9223372036854775808: 3009226710796046534,
    18446744073709551615: 2598789274482403935,
    "": 6017775124710473527, "a": 4942033975871947269, "a\x00": 978105507120005763,
    "abcdefgh": 6274025876054694824, "abcdefghi": 4236535691337403425, "é": 4794659337341285467,
    "user_12345": 4558561151032081604, bytes(range(16)): 3699239227930923774,
}  # fmt: skip
"""Hashes with seed 0. Data sets are split by these numbers, in filters too: they must not change."""


def hash_of(value):
    """The hash of an integer, a text or bytes, by the op."""
    if isinstance(value, int):
        return int(ops.hash(np.array([value], np.uint64 if value >= 2**63 else np.int64))[0])
    content = value.encode() if isinstance(value, str) else value
    return int(ops.hash_text(np.frombuffer(content, np.uint8), [len(content)])[0])


def test_hashes_stay_as_they_are():
    assert {value: hash_of(value) for value in HASHES} == HASHES


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1))
def test_a_hash_is_the_number_of_the_docstring(number, seed):
    expected = output(output(seed, 0), number % 2**64) >> 1
    assert ops.hash(np.array([number]), seed=seed) == expected
    assert expected >> 1 == ops.hash_indices(np.array([number]), num_buckets=2**62, seed=seed)


@given(hnp.arrays(st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"]), 9))
def test_the_dtype_of_hashed_ids_does_not_matter(ids):
    np.testing.assert_array_equal(ops.hash(ids), ops.hash(ids.astype(np.int64)))


@pytest.mark.parametrize("x", [[1.5], [True], np.array([1], "M8[s]"), np.array([1], "m8[D]")])
def test_only_integers_are_hashed(x):
    with pytest.raises(OpTypeError, match=r"hash: x is .*, expected integers"):
        ops.hash(np.array(x))
    with pytest.raises(OpError, match=r"seed is 18446744073709551616, expected less than 2\*\*64"):
        ops.hash(np.array([1]), seed=2**64)


def test_splits_are_even_and_those_of_other_seeds_independent():
    """Chi-square with 9 and 81 degrees of freedom: above 27.9 and 130 once in a thousand."""
    ids = np.arange(100_000)
    one, other = ops.hash(ids) % 10, ops.hash(ids, seed=1) % 10
    for counts in (np.bincount(one), np.bincount(other), np.bincount(one * 10 + other)):
        expected = len(ids) / len(counts)
        assert np.square(counts - expected).sum() / expected < 28 + len(counts)
