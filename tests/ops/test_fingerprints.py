"""Hashes of n-grams, signatures, and what repeats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import ops
from seqflow.errors import OpError
from seqflow.ops.shared.random_bits import output

A = np.array


PRIME = 2**61 - 1


def test_signatures_estimate_the_jaccard_index():
    sets = np.concatenate([np.arange(300), np.arange(100, 400)]).astype(np.uint64)
    hashes = ops.hash_ngrams(sets.astype(np.int64), np.ones(600, int), n=1).values
    one, two = ops.minhash(hashes, [300, 300], num_perm=512)
    assert (one == two).mean() == pytest.approx(0.5, abs=0.1)


def test_an_empty_set_has_the_largest_number_everywhere():
    assert (ops.minhash(A([], np.uint64), [0], num_perm=4) == PRIME).all()


def by_one_permutation(shingles, lengths, num_perm, seed):
    """The definition, number by number, in Python's integers."""

    def hashed(state, k):
        return int(output(np.array([state], np.uint64), np.array([k], np.uint64))[0])

    state, found, start = hashed(seed, 0), [], 0
    for size in lengths:
        bins: dict[int, int] = {}
        for x in shingles[start : start + size]:
            z = hashed(state, int(x))
            bins[z * num_perm >> 64] = min(z, bins.get(z * num_perm >> 64, 2**64))
        row = [bins.get(j, 2**64 - 1) for j in range(num_perm)]
        for j in range(num_perm) if bins else ():
            k, stream = 0, hashed(state, j)
            while row[j] == 2**64 - 1:
                row[j], k = bins.get(hashed(stream, k) * num_perm >> 64, 2**64 - 1), k + 1
        found.append(row)
        start += size
    return np.array(found, np.uint64)


@pytest.mark.parametrize(("num_perm", "seed"), [(1, 0), (16, 1), (50, 2**64 - 1)])
def test_one_permutation_is_as_defined(num_perm, seed):
    lengths = [3, 0, 1, 40, 2]
    shingles = np.random.default_rng(0).integers(0, 2**64 - 1, sum(lengths), np.uint64, endpoint=True)
    found = ops.one_permutation_minhash(shingles, lengths, num_perm=num_perm, seed=seed)
    np.testing.assert_array_equal(found, by_one_permutation(shingles, lengths, num_perm, seed))
    apart = ops.one_permutation_minhash(np.repeat(shingles, 2)[::2], lengths, num_perm=num_perm, seed=seed)
    np.testing.assert_array_equal(found, apart)


@pytest.mark.parametrize(("size", "spread"), [(20, 0.09), (300, 0.05), (3000, 0.05)])
def test_one_permutation_estimates_the_jaccard_index(size, spread):
    # sets of many seeds: half of the union of both is common, for sets with fewer shingles than bins, too
    sets = np.concatenate([np.arange(3 * size), np.arange(size, 4 * size)]).astype(np.uint64)
    found = [
        np.mean(np.equal(*ops.one_permutation_minhash(sets, [3 * size] * 2, num_perm=128, seed=seed)))
        for seed in range(200)
    ]
    assert np.mean(found) == pytest.approx(0.5, abs=0.02)
    assert np.std(found) < spread  # of 128 independent samples: 0.044


def test_one_permutation_refuses_what_takes_too_long():
    with pytest.raises(OpError, match="num_perm is 4097, expected at most 4096"):
        ops.one_permutation_minhash(A([1], np.uint64), [1], num_perm=4097)
    with pytest.raises(OpError, match=r"seed is 18446744073709551616, expected less than 2\*\*64"):
        ops.one_permutation_minhash(A([1], np.uint64), [1], seed=2**64)
    empty = ops.one_permutation_minhash(A([], np.uint64), [0, 0], num_perm=3)
    assert (empty == 2**64 - 1).all()
    assert empty.shape == (2, 3)


def test_components_have_their_least_row():
    assert ops.connected_components(A([[0, 1], [1, 2], [4, 5]]), num_rows=6).tolist() == [0, 0, 0, 3, 4, 4]
    chain = np.stack([np.arange(1, 5000), np.arange(4999)], axis=1)
    assert not ops.connected_components(chain[::-1], num_rows=5000).any()
    with pytest.raises(OpError, match=r"pairs\[0, 1\] is 6, expected a row from 0 to below num_rows = 6"):
        ops.connected_components(A([[0, 6]]), num_rows=6)


def test_the_first_of_equal_rows():
    assert ops.first_of_equal([A([7, 7, 5, 7, 9])]).tolist() == [0, 0, 2, 0, 4]
    assert ops.first_of_equal([A([1, 1, 1]), A([1.0, np.nan, np.nan])]).tolist() == [0, 1, 1]


def test_hashes_of_grams_are_those_of_their_tokens():
    x, n = np.random.default_rng(0).integers(0, 50, 30), A([10, 2, 18])
    values, lengths = ops.hash_ngrams(x, n, n=3)
    assert lengths.tolist() == [8, 0, 16]
    assert values[3] == ops.hash_ngrams(x[3:6], [3], n=3).values[0]


def test_overlap_is_the_share_of_known_grams():
    known = ops.hash_ngrams(A([2, 3, 4]), [3], n=3).values
    found = ops.ngram_overlap(A([1, 2, 3, 4, 5, 3, 2, 1, 9, 2]), known, [4, 4, 2], n=3)
    assert found.tolist() == [0.5, 0, 0]


def test_shares_of_repeated_pieces():
    found = ops.repetition_shares(A([1, 1, 2, 7], np.uint64), A([2, 2, 31, 5]), [3, 0, 1])
    np.testing.assert_allclose(found, [[1 / 3, 2 / 35], [0, 0], [0, 0]])
    top = ops.repetition_shares(A([1, 2, 2, -7]), A([2, 3, 3, 2]), [4], top=True)
    np.testing.assert_allclose(top, [[0.5, 0.6]])


def test_shares_of_repeated_runs_count_each_piece_once():
    found = ops.repetition_shares(
        A([1, 2, 1, 2, 3, 7, 7, 7, 5], np.uint64), A([1, 1, 1, 1, 1, 2, 2, 2, 9]), [5, 3, 1], n=2
    )
    np.testing.assert_allclose(found, [[1 / 4, 2 / 5], [1 / 2, 2 / 3], [0, 0]])
    top = ops.repetition_shares(A([1, 2, 9, 1, 2], np.uint64), A([1, 1, 1, 1, 1]), [5], n=2, top=True)
    np.testing.assert_allclose(top, [[2 / 4, 4 / 5]])


@given(st.lists(st.lists(st.integers(0, 2), max_size=9), max_size=4), st.integers(1, 4))
def test_repeated_runs_are_those_of_a_loop(rows, n):
    expected = []
    for row in rows:
        grams = [tuple(row[i : i + n]) for i in range(len(row) - n + 1)]
        again = [gram in grams[:i] for i, gram in enumerate(grams)]
        covered = [any(again[max(i - n + 1, 0) : i + 1]) for i in range(len(row))]
        expected.append([np.mean(one) if one else 0 for one in (again, covered)])
    pieces, counts = (
        A([piece for row in rows for piece in row], np.uint64),
        A([len(row) for row in rows], np.int64),
    )
    found = ops.repetition_shares(pieces, np.ones(len(pieces), int), counts, n=n)
    np.testing.assert_allclose(found, A(expected, float).reshape(-1, 2))
