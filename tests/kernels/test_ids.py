"""Hashing, bucketing and telling ids apart: every kind of kernel gives what plain Python gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import assert_same, lengths_arrays

from seqflow import kernels
from seqflow.kernels import KernelError

WORD = 2**64
STATES = st.integers(-(2**63), 2**63 - 1)
NUM_BUCKETS = st.sampled_from([1, 2, 1000, 2**32 - 1, 2**32, 2**40 + 7, 2**63 - 1, 2**63])
IDS = hnp.arrays(
    st.sampled_from(["int32", "int64", "uint8", "uint32"]),
    hnp.array_shapes(min_dims=0, max_dims=2, min_side=0),
)


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def output(state, k):
    return mix((state + (k + 1) * 0x9E3779B97F4A7C15) % WORD)


def test_the_reference_is_splitmix64():
    assert output(0, 0) == 0xE220A8397B1DCDAF


@given(ids=IDS, state=STATES, num_buckets=NUM_BUCKETS)
def test_ids_are_hashed_to_the_bit(any_kernels, ids, state, num_buckets):
    expected = [output(state % WORD, int(i) % WORD) * num_buckets >> 64 for i in ids.ravel()]
    assert_same(kernels.hash_ids(ids, state, num_buckets), np.array(expected, np.int64).reshape(ids.shape))


@given(data=st.data(), lengths=lengths_arrays(longest=20), state=STATES, num_buckets=NUM_BUCKETS)
def test_strings_are_hashed_to_the_bit(any_kernels, data, lengths, state, num_buckets):
    values = data.draw(hnp.arrays("uint8", int(lengths.sum())))
    expected, first = [], 0
    for length in lengths.tolist():
        text, now = values[first : first + length].tobytes(), state % WORD
        first += length
        for at in range(0, length, 8):
            now = mix(now ^ int.from_bytes(text[at : at + 8], "little"))
        expected.append(output(now, length) * num_buckets >> 64)
    assert_same(kernels.hash_strings(values, lengths, state, num_buckets), np.array(expected, np.int64))


@given(data=st.data(), lengths=lengths_arrays(longest=20), state=STATES, n=st.integers(1, 25))
def test_runs_of_tokens_are_hashed_to_the_bit(any_kernels, data, lengths, state, n):
    tokens = data.draw(hnp.arrays(st.sampled_from(["int32", "int64", "uint8"]), int(lengths.sum())))
    expected, first = [], 0
    for length in lengths.tolist():
        for at in range(first, first + length - n + 1):
            now = state % WORD
            for token in tokens[at : at + n].tolist():
                now = output(now, token % WORD)
            expected.append(now)
        first += length
    assert_same(kernels.hash_grams(tokens, lengths, n, state), np.array(expected, np.uint64))


def test_long_segments_are_hashed_in_blocks(any_kernels):
    tokens = np.arange(1000)
    found = kernels.hash_grams(tokens, np.array([400, 600]), 3, 7)
    parts = [kernels.hash_grams(tokens[i : i + 3], np.array([3]), 3, 7) for i in (0, 127, 128, 397, 400, 997)]
    assert_same(found[[0, 127, 128, 397, 398, 995]], np.concatenate(parts))


def test_lengths_of_runs_must_fit(any_kernels):
    with pytest.raises(KernelError, match=r"sum\(lengths\) is 3 but tokens has 2 rows"):
        kernels.hash_grams(np.zeros(2, int), np.array([3]), 1, 0)
    with pytest.raises(ValueError, match="n is 0, expected 1 or more"):
        kernels.hash_grams(np.zeros(2, int), np.array([2]), 0, 0)


def test_what_cannot_be_hashed_is_named(any_kernels):
    for num_buckets in (0, -1, 2**63 + 1, 2**64):
        with pytest.raises(ValueError, match=f"num_buckets is {num_buckets}, expected 1 to"):
            kernels.hash_ids(np.arange(2), 0, num_buckets)
    with pytest.raises(KernelError, match=r"sum\(lengths\) is 3 but data has 2 rows"):
        kernels.hash_strings(np.zeros(2, np.uint8), np.array([3]), 0, 5)
    with pytest.raises(TypeError, match="data is int8 with 1 dimensions, expected one of uint8"):
        kernels.hash_strings(np.zeros(2, np.int8), np.array([2]), 0, 5)


@pytest.mark.slow
@given(data=st.data(), dtype=st.sampled_from(["int8", "uint8", "int32", "uint64", "float32", "float64"]))
def test_a_bucket_is_how_many_boundaries_are_below(any_kernels, data, dtype):
    boundaries = np.sort(
        data.draw(
            hnp.arrays(dtype, st.integers(0, 300), elements={"allow_nan": False} if dtype[0] == "f" else None)
        )
    )
    values = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=70)))
    expected = [len(boundaries) if x != x else int(np.count_nonzero(boundaries < x)) for x in values.ravel()]
    assert_same(kernels.bucketize(values, boundaries), np.array(expected, np.int64).reshape(values.shape))


@given(IDS.map(np.ravel))
def test_ids_are_told_apart(any_kernels, ids):
    check_distinct(ids)


@pytest.mark.each_choice
@pytest.mark.parametrize("different", [1, 1000, 300_000])
@pytest.mark.parametrize("spread", [1, 2**40])
def test_many_ids_are_told_apart(any_kernels, different, spread):
    """Close together, few and far apart, many and far apart."""
    random = np.random.default_rng(different)
    check_distinct(random.integers(-different, different, 400_000) * spread)


def test_ids_that_meet_in_a_hash_table_are_told_apart(any_kernels):
    """The hash of all of them ends in the same bits, as it is undone here: the table gives up."""
    inverse, factor = pow(0xD6E8FEB86659FD93, -1, WORD), np.uint64
    z = np.arange(1, 3000, dtype=np.uint64) << factor(40)
    for _ in range(2):
        z = (z ^ (z >> factor(32))) * factor(inverse)
    check_distinct((z ^ (z >> factor(32))).view(np.int64))


def check_distinct(ids):
    first, codes, counts = kernels.distinct_ids(ids)
    values, first_of_all, inverse, how_often = np.unique(ids, True, True, True)
    assert_same(ids[first], values)
    assert_same(first, first_of_all)
    assert_same(codes, inverse)
    assert_same(counts, how_often)


def test_results_are_the_same_on_any_number_of_threads(native, two_threads):
    ids, values = np.arange(200_000) * 7919, np.random.default_rng(0).standard_normal(200_000)
    lengths, boundaries = np.full(20_000, 10), np.linspace(-3, 3, 100)
    text = (ids % 251).astype(np.uint8)
    calls = [
        lambda: kernels.hash_ids(ids, 5, 1000),
        lambda: kernels.hash_strings(text, lengths, 5, 1000),
        lambda: kernels.bucketize(values, boundaries),
        lambda: kernels.hash_grams(ids, lengths, 3, 5),
    ]
    several = [call() for call in calls]
    kernels.set_num_threads(1)
    for call, found in zip(calls, several, strict=True):
        assert_same(found, call())
