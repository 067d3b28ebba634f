"""Sequences in another order inside."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import assert_same, assert_sequences, cut, join, lengths_arrays, ragged, values

import seqflow as sf
from seqflow import ops
from seqflow.ops.shared.random_bits import output, random_bits, sequence_bits, uniform


@st.composite
def ordered(draw, max_rank=1):
    """Like `ragged`, with NaN and NaT."""
    data, lengths = draw(ragged(max_rank=max_rank))
    if data.dtype.kind in "fM":
        holes = values(draw, "int8", data.shape) > 6
        data = np.where(holes, np.array("nan" if data.dtype.kind == "f" else "NaT", data.dtype), data)
    return data, lengths


@given(ordered(max_rank=3))
def test_sort_sorts_each_column_of_each_sequence(sequences):
    data, lengths = sequences
    assert_same(ops.sort_within(data, lengths), join([np.sort(s, axis=0) for s in cut(data, lengths)], data))


@given(ordered(max_rank=3))
def test_descending_is_ascending_in_reverse(sequences):
    data, lengths = sequences
    ascending, descending = (ops.sort_within(data, lengths, descending=d) for d in (False, True))
    assert_same(descending, join([s[::-1] for s in cut(ascending, lengths)], data))


@given(ordered(max_rank=3))
def test_argsort_says_where_sorted_values_were_and_keeps_the_order_of_equal_ones(sequences):
    data, lengths = sequences
    found = ops.argsort_within(data, lengths)
    expected = [np.argsort(s, axis=0, kind="stable") for s in cut(data, lengths)]
    assert_same(found, join(expected, found))


@given(ordered())
def test_argsort_in_descending_order_keeps_the_order_of_equal_ones_too(sequences):
    data, lengths = sequences
    found = ops.argsort_within(data, lengths, descending=True)
    for positions, sequence in zip(cut(found, lengths), cut(data, lengths), strict=True):
        ranks = np.unique(sequence, return_inverse=True)[1]
        assert positions.tolist() == sorted(range(len(sequence)), key=lambda i: -ranks[i])


@given(ordered())
def test_unique_gives_the_distinct_values_of_each_sequence_and_their_counts(sequences):
    data, lengths = sequences
    result = ops.unique_within(data, lengths)
    expected = [np.unique(s, return_counts=True) for s in cut(data, lengths)]
    assert_sequences(result.values, result.lengths, [distinct for distinct, _ in expected], data)
    assert_same(result.counts, join([counts for _, counts in expected], result.counts))


@given(ragged(max_rank=1))
def test_unique_in_the_order_values_are_first_seen(sequences):
    data, lengths = sequences
    result = ops.unique_within(data, lengths, order="first")
    expected = [Counter(s.tolist()) for s in cut(data, lengths)]
    assert_sequences(result.values, result.lengths, [list(counter) for counter in expected], data)
    assert result.counts.tolist() == [count for counter in expected for count in counter.values()]


def test_what_missing_values_are_first_seen_counts_as_one():
    result = ops.unique_within([np.nan, 1.0, np.nan], [3], order="first")
    np.testing.assert_array_equal(result.values, [np.nan, 1.0])
    assert result.counts.tolist() == [2, 1]


@given(ragged(), st.integers(0, 2**64 - 1))
def test_a_shuffle_puts_the_rows_of_each_sequence_in_another_order(sequences, seed):
    data, lengths = sequences
    positions = np.arange(len(data))
    order = ops.shuffle_within(positions, lengths, seed=seed)
    for shuffled, plain in zip(cut(order, lengths), cut(positions, lengths), strict=True):
        assert sorted(shuffled.tolist()) == plain.tolist()
    assert_same(ops.shuffle_within(data, lengths, seed=seed), data[order])


def test_every_order_is_equally_likely():
    count = 60_000
    orders = ops.shuffle_within(np.tile([1, 2, 3], count), np.full(count, 3), seed=5).reshape(count, 3)
    _, frequencies = np.unique(orders, axis=0, return_counts=True)
    assert len(frequencies) == 6
    assert abs(frequencies / count * 6 - 1).max() < 0.03


def test_a_shuffle_is_the_same_everywhere():
    found = ops.shuffle_within(np.arange(10), [4, 0, 6], seed=2024)
    assert found.tolist() == [3, 2, 1, 0, 7, 8, 4, 5, 9, 6]


def test_random_bits_are_those_of_their_definition():
    def mix(z):
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    def number(state, k):
        return mix((state + (k + 1) * 0x9E3779B97F4A7C15) % 2**64)

    for seed in (0, 1, 2**64 - 1):
        streams = [number(number(seed, 0), sequence) for sequence in range(3)]
        assert sequence_bits(seed, 3).tolist() == streams
        expected = [number(streams[0], 0), number(streams[0], 1), number(streams[2], 0)]
        assert random_bits(seed, np.array([2, 0, 1])).tolist() == expected


def test_the_generator_is_splitmix64():
    """The first numbers of its author's own code, started at 1234567."""
    state, places = np.array([1234567], np.uint64), np.arange(3, dtype=np.uint64)
    assert output(state, places).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_uniform_numbers_are_below_1():
    assert uniform(np.array([0, 2**64 - 1], np.uint64)).tolist() == [0.0, 1 - 2.0**-53]


@given(lengths_arrays())
def test_numbers_do_not_depend_on_later_sequences(lengths):
    bits = random_bits(1, lengths)
    assert random_bits(1, lengths[:2]).tolist() == bits[: int(lengths[:2].sum())].tolist()


def test_text_has_no_order():
    with pytest.raises(sf.OpError, match=r"^sort_within: data is <U1, expected numbers or times"):
        ops.sort_within(np.array(["a"]), [1])
