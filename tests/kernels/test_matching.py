"""Sets compared by membership and by their least hashes: native kernels give what the reference gives."""

import numpy as np
import numpy_kernels as reference
import pytest
from per_sequence import assert_same

from seqflow import kernels

PRIME = 2**61 - 1
EDGES = [0, 1, 2**30, 2**31 - 1, 2**31, 2**60, PRIME - 1]


def numbers(random, size, kind):
    if kind == "few":  # each many times: several have the same least hash
        return random.integers(-5, 5, size)
    if kind == "edges":
        return random.choice([*EDGES, PRIME, -1, -(2**63), 2**63 - 1], size)
    return random.integers(-(2**63), 2**63 - 1, size)


@pytest.mark.parametrize("kind", ["any", "few", "edges"])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 33])
def test_the_least_hashes_are_those_of_the_reference(native, kind, count):
    random = np.random.default_rng(count)
    lengths = np.array([0, 1, 2, 600, 3, 0, 512, 513, 40])
    shingles = numbers(random, lengths.sum(), kind)
    factors, offsets = random.integers(0, PRIME, (2, count))
    factors[: count // 2], offsets[: count // 3] = (random.choice(EDGES, count // n) for n in (2, 3))
    found = native.minhash(shingles, lengths, factors, offsets)
    assert_same(found, reference.minhash(shingles, lengths, factors, offsets))


def test_hashes_next_to_0_and_to_the_prime_are_told_apart(native):
    # a = 1, b = 0: the hash is the number itself, and a double has 20 bits of its fraction
    close = np.array([PRIME - 1, PRIME - 2, 2**41, 2**41 + 1, 2**41 - 1, PRIME - 3])
    one, zero = np.array([1]), np.array([0])
    assert native.minhash(close, np.array([6]), one, zero).item() == 2**41 - 1
    assert native.minhash(close[:2], np.array([2]), one, zero).item() == PRIME - 2
    assert native.minhash(np.append(close, 0), np.array([7]), one, zero).item() == 0
    far = np.append(close[:2], [2**50 + 1, 2**50, 2**60])
    assert native.minhash(far, np.array([5]), one, zero).item() == 2**50


@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("kind", ["any", "few", "edges"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("count", [1, 2, 7, 63, 64, 65, 128, 4096])
def test_the_least_hashes_of_bins_are_those_of_the_reference(native, kind, dtype, count):
    random = np.random.default_rng(count)
    lengths = np.array([0, 1, 2, 600, 3, 0, 128, 129, 40, 9000])
    shingles = numbers(random, lengths.sum(), kind).astype(dtype)
    found = native.least_of_bins(shingles, lengths, -7, count)
    assert_same(found, reference.least_of_bins(shingles, lengths, -7, count))
    assert (found[lengths == 0] == 2**64 - 1).all()
    assert (found[1] == found[1, 0]).all()


@pytest.mark.parametrize("count", [0, -1, 4097])
def test_a_number_of_bins_that_is_not_taken(count):
    with pytest.raises(ValueError, match=f"count is {count}, expected 1 to 4096"):
        kernels.least_of_bins(np.array([5]), np.array([1]), 0, count)


@pytest.mark.parametrize("spread", [3, 40, 2000, 2**62])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_membership_is_that_of_the_reference(native, spread, dtype):
    random = np.random.default_rng(spread % 97)
    lengths, other_lengths = random.integers(0, 300, (2, 60))
    other_lengths[:5] = 0
    names = random.integers(-spread, spread, 500).astype(dtype)
    data, other = (names[random.integers(0, 500, n.sum())] for n in (lengths, other_lengths))
    given = data, lengths, other, other_lengths
    assert_same(native.isin_within(*given), reference.isin_within(*given))


def test_membership_at_the_ends_of_int64(native):
    ends = np.array([-(2**63), 2**63 - 1, 0])
    many = np.repeat(ends[:2], 50)
    assert native.isin_within(np.tile(ends, 40), np.array([120]), many, np.array([100])).sum() == 80
    close = np.repeat(ends[1] - np.arange(3), 40)
    assert native.isin_within(np.tile(ends, 40), np.array([120]), close, np.array([120])).sum() == 40


def test_values_that_meet_in_one_group_are_all_found(native):
    # multiples of 2**40 share the last bits of their hashes more often than others
    values = np.arange(1000) << 40
    found = native.isin_within(np.append(values, values + 1), np.array([2000]), values, np.array([1000]))
    assert found.tolist() == [True] * 1000 + [False] * 1000
