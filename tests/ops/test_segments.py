"""Reducing the rows of each segment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import ops

LENGTHS = hnp.arrays("int64", st.integers(0, 5), elements=st.integers(0, 4))


@given(LENGTHS, st.sampled_from(["sum", "mean", "max", "min"]), st.integers(0, 2))
def test_each_reducer_is_numpys_on_each_segment(lengths, kind, extra):
    rng = np.random.default_rng(len(lengths))
    data = rng.normal(size=(lengths.sum(), *[3] * extra))
    found = getattr(ops, f"lengths_{kind}")(data, lengths)
    expected = [
        getattr(np, kind)(segment, axis=0) if len(segment) else np.zeros(data.shape[1:])
        for segment in np.split(data, np.cumsum(lengths)[:-1])
    ] if len(lengths) else []  # fmt: skip
    np.testing.assert_allclose(found, np.array(expected).reshape(found.shape), rtol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "summed", "averaged"),
    [
        ("float16", "float32", "float64"),
        ("float32", "float32", "float32"),
        ("float64", "float64", "float64"),
        ("int8", "int64", "float64"),
        ("bool", "int64", "float64"),
        ("uint32", "int64", "float64"),
        ("uint64", "uint64", "float64"),
    ],
)
def test_sums_and_means_have_the_accumulation_dtype(dtype, summed, averaged):
    data = np.ones(3, dtype)
    assert ops.lengths_sum(data, [2, 1]).dtype == summed
    assert ops.lengths_mean(data, [2, 1]).dtype == averaged
    assert ops.lengths_max(data, [2, 1]).dtype == dtype


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min"])
def test_an_empty_segment_gives_0_or_what_is_asked_for(kind):
    reduce = getattr(ops, f"lengths_{kind}")
    assert reduce(np.array([-1.0]), [0, 1]).tolist() == [0, -1]
    assert reduce(np.array([-1.0]), [0, 1], empty=-np.inf).tolist() == [-np.inf, -1]
    assert np.isnan(reduce(np.array([-1.0]), [0, 1], empty=float("nan"))[0])


def test_nan_and_infinity_keep_their_meaning():
    data = np.array([np.nan, 1, np.inf, -np.inf, np.inf, 2], np.float32)
    lengths = [2, 2, 2]
    np.testing.assert_array_equal(ops.lengths_sum(data, lengths), [np.nan, np.nan, np.inf])
    np.testing.assert_array_equal(ops.lengths_max(data, lengths), [np.nan, np.inf, np.inf])
    np.testing.assert_array_equal(ops.lengths_min(data, lengths), [np.nan, -np.inf, 2])


def test_times_have_a_largest_and_a_smallest():
    days = np.array(["2020-01-03", "2020-01-01", "NaT"], "datetime64[D]")
    assert ops.lengths_max(days, [2, 1])[0] == np.datetime64("2020-01-03")
    assert np.isnat(ops.lengths_min(days, [2, 1])[1])


def test_small_integers_do_not_overflow_in_sums():
    assert ops.lengths_sum(np.full(1000, 127, np.int8), [1000]).tolist() == [127_000]


def test_long_float32_segments_are_summed_accurately():
    data = np.random.default_rng(0).random(300_001).astype(np.float32)
    found = ops.lengths_sum(data, [300_001])[0]
    assert abs(found - data.sum(dtype=np.float64)) <= 1e-6 * data.sum(dtype=np.float64)


def test_zero_sequences_keep_the_trailing_shape():
    assert ops.lengths_sum(np.zeros((0, 3), np.float32), []).shape == (0, 3)
