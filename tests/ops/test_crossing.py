"""Crosses of features: each combination has one id, the same on every machine."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import cut

import seqflow as sf
from seqflow import ops
from seqflow.errors import OpMemoryError

MASK = 2**64 - 1


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def output(state, k):
    return mix(state + (k + 1) * 0x9E3779B97F4A7C15 & MASK)


def bucket(ids, num_buckets, seed):
    state = output(seed, 0)
    for one in ids:
        state = output(state, one & MASK)
    return state % num_buckets


@given(data=st.data(), count=st.integers(0, 3), seed=st.integers(0, 2**64 - 1))
def test_every_combination_is_hashed_as_the_docs_say(data, count, seed):
    lists = st.lists(st.sampled_from([0, -1, 7, 2**62, -(2**63)]), max_size=3)
    features = [[data.draw(lists) for _ in range(count)] for _ in range(data.draw(st.integers(1, 3)))]
    flat = [np.array([one for row in feature for one in row], np.int64) for feature in features]
    lengths = [np.array([len(row) for row in feature], int) for feature in features]
    found = ops.cross_features(flat, lengths, num_buckets=1000, seed=seed)
    expected = [[bucket(ids, 1000, seed) for ids in product(*rows)] for rows in zip(*features, strict=True)]
    assert [one.tolist() for one in cut(found.values, found.lengths)] == expected


def test_too_many_combinations_are_refused_before_they_are_made():
    ids, lengths = np.zeros(1 << 16, np.int32), np.array([1 << 16])
    with pytest.raises(OpMemoryError, match="cross_features: the result needs"):
        ops.cross_features([ids] * 4, [lengths] * 4, num_buckets=10)


def test_buckets_are_counted_by_int64():
    with pytest.raises(sf.OpError, match="num_buckets is 9223372036854775808, expected less than"):
        ops.cross_features([[1]], [[1]], num_buckets=2**63)
