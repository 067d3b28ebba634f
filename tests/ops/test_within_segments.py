"""One row for each row, worked out from its whole segment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from segmented import FLOATS, NUMBERS, TIMES, joined, pieces, segmented

import seqflow as sf
from seqflow import kernels, ops
from seqflow.errors import OpError


def softmax(rows):
    with np.errstate(all="ignore"):
        exponentials = np.exp(rows - rows.max(axis=0, initial=-np.inf))
        return exponentials / exponentials.sum(axis=0)


@given(segmented(NUMBERS + FLOATS))
def test_a_softmax_is_that_of_each_segment(drawn):
    data, lengths = drawn
    found, logs = ops.softmax_within(data, lengths), ops.log_softmax_within(data, lengths)
    assert found.dtype == logs.dtype == kernels.mean_dtype(data.dtype)
    expected = joined([softmax(rows) for rows in pieces(data.astype(float), lengths)], found)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(logs, np.log(expected), rtol=1e-6, atol=1e-6)


@given(segmented(["float32", "float64"], special=False), st.floats(-1e4, 1e4))
def test_a_softmax_sums_to_1_wherever_data_are(drawn, shift):
    data, lengths = drawn
    for moved in (data + data.dtype.type(shift), data * 1000):
        sums = ops.lengths_sum(ops.softmax_within(moved, lengths), lengths, empty=1)
        np.testing.assert_allclose(sums, np.ones_like(sums), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_is_stable_far_from_0_and_nan_where_there_is_no_answer(dtype):
    inf = np.inf
    data = np.array([1000, 1000, -1000, -inf, -inf, -inf, inf, 0, np.nan, 0, 0, 0], dtype)
    found = ops.softmax_within(data, [2, 2, 2, 2, 4])
    np.testing.assert_allclose(found, [0.5, 0.5, 1, 0, *[np.nan] * 8])
    logs = ops.log_softmax_within(np.array([-1000, 0], dtype), [2])
    np.testing.assert_allclose(logs, [-1000, 0])


@given(segmented(NUMBERS + FLOATS, special=False), st.sampled_from(["l1", "l2"]))
def test_each_segment_is_divided_by_its_norm(drawn, norm):
    data, lengths = drawn
    found = ops.normalize_within(data, lengths, norm=norm)
    assert found.dtype == kernels.mean_dtype(data.dtype)
    expected = []
    for rows in pieces(data.astype(float), lengths):
        size = np.abs(rows).sum(axis=0) if norm == "l1" else np.sqrt((rows**2).sum(axis=0))
        expected.append(rows / np.where(size == 0, 1, size))
    np.testing.assert_allclose(found, joined(expected, found), rtol=1e-6)


def test_large_float32_have_a_norm():
    assert ops.normalize_within(np.array([3e30, 4e30], np.float32), [2]).tolist() == pytest.approx([0.6, 0.8])


@given(segmented(NUMBERS + FLOATS), st.booleans(), st.booleans())
def test_running_sums_are_those_of_each_segment(drawn, reverse, exclusive):
    data, lengths = drawn
    found = ops.cumsum_within(data, lengths, reverse=reverse, exclusive=exclusive)
    assert found.dtype == kernels.sum_dtype(data.dtype)
    expected = []
    for rows in pieces(data.astype(float) if data.dtype.kind == "f" else data.astype(found.dtype), lengths):
        rows = rows[::-1] if reverse else rows
        with np.errstate(invalid="ignore"):
            sums = np.array(
                [rows[: i if exclusive else i + 1].sum(axis=0) for i in range(len(rows))], rows.dtype
            ).reshape(rows.shape)
        expected.append(sums[::-1] if reverse else sums)
    np.testing.assert_allclose(found, joined(expected, found), rtol=1e-6)


def test_running_sums_of_integers_wrap_around():
    assert ops.cumsum_within(np.array([2**63 - 1, 1, 5]), [2, 1]).tolist() == [2**63 - 1, -(2**63), 5]


@given(segmented(NUMBERS + FLOATS + TIMES), st.sampled_from(["first", "min", "max", "dense"]), st.booleans())
def test_a_rank_counts_what_comes_before_in_the_segment(drawn, ties, descending):
    data, lengths = drawn
    found = ops.rank_within(data, lengths, ties=ties, descending=descending)
    expected = []
    for rows in pieces(data, lengths):
        columns = rows.reshape(len(rows), int(np.prod(data.shape[1:])))
        ranks = [ranked(columns[:, column], ties, descending) for column in range(columns.shape[1])]
        expected.append(np.array(ranks, np.int64).T.reshape(rows.shape))
    np.testing.assert_array_equal(found, joined(expected, found))


def ranked(column, ties, descending):
    """How many come before each element, counted one by one."""
    codes = np.unique(column, return_inverse=True)[1]  # NaN and NaT are the largest, and equal
    codes = -codes if descending else codes
    count = {
        "first": lambda i: sum(codes < codes[i]) + sum(codes[:i] == codes[i]),
        "min": lambda i: sum(codes < codes[i]),
        "max": lambda i: sum(codes <= codes[i]) - 1,
        "dense": lambda i: len(set(codes[codes < codes[i]])),
    }[ties]
    return [count(i) for i in range(len(column))]


def test_a_misspelt_norm_is_an_error():
    with pytest.raises(sf.OpError, match=r"^normalize_within: norm is 'l3', expected 'l1' or 'l2'"):
        ops.normalize_within(np.ones(1), [1], norm="l3")


def test_standardized_segments_have_the_mean_0_and_the_variance_1():
    data, lengths = np.random.default_rng(0).normal(5, 3, (9, 2)), np.array([5, 0, 1, 3])
    out = ops.standardize_within(data, lengths, epsilon=0.0)[[0, 1, 2, 3, 4, 6, 7, 8]]
    for part in (out[:5], out[5:]):
        np.testing.assert_allclose(part.mean(0), 0, atol=1e-12)
        np.testing.assert_allclose(part.var(0), 1)
    assert ops.standardize_within(np.array([7], np.int8), [1]).tolist() == [0.0]
    with pytest.raises(OpError, match="epsilon is -1"):
        ops.standardize_within(data, lengths, epsilon=-1.0)
