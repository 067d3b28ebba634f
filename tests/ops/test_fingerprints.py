"""Hashes of n-grams, signatures, and what repeats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import ops
from seqflow.errors import OpError

A = np.array


PRIME = 2**61 - 1


def test_signatures_estimate_the_jaccard_index():
    sets = np.concatenate([np.arange(300), np.arange(100, 400)]).astype(np.uint64)
    hashes = ops.hash_ngrams(sets.astype(np.int64), np.ones(600, int), n=1).values
    one, two = ops.minhash(hashes, [300, 300], num_perm=512)
    assert (one == two).mean() == pytest.approx(0.5, abs=0.1)


def test_an_empty_set_has_the_largest_number_everywhere():
    assert (ops.minhash(A([], np.uint64), [0], num_perm=4) == PRIME).all()


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
