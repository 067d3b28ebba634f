"""Reducing the rows of each segment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from segmented import FLOATS, NUMBERS, TIMES, pieces, segmented, stacked

import seqflow as sf
from seqflow import kernels, ops
from seqflow.errors import OpTypeError

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


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6 if found.dtype == np.float32 else 1e-12, atol=1e-12)


@given(segmented(NUMBERS + FLOATS))
def test_a_product_is_numpys_on_each_segment(drawn):
    data, lengths = drawn
    found = ops.lengths_prod(data, lengths, empty=1)
    wide = data.astype(float) if data.dtype.kind == "f" else data.astype(found.dtype)
    with np.errstate(all="ignore"):
        close(found, stacked([np.prod(rows, axis=0) for rows in pieces(wide, lengths)], found))


@given(segmented(NUMBERS + FLOATS), st.integers(0, 3))
def test_variance_and_deviation_are_numpys_on_each_segment(drawn, ddof):
    data, lengths = drawn
    for op, reduce in [(ops.lengths_var, np.var), (ops.lengths_std, np.std)]:
        found = op(data, lengths, ddof=ddof, empty=7)
        assert found.dtype == kernels.mean_dtype(data.dtype)
        with np.errstate(all="ignore"):
            expected = [
                reduce(rows.astype(float), axis=0, ddof=ddof)
                if len(rows) > ddof
                else np.full(data.shape[1:], 7)
                for rows in pieces(data, lengths)
            ]
        np.testing.assert_allclose(found, stacked(expected, found), rtol=1e-5, atol=1e-9)


def test_the_variance_of_large_close_numbers_is_exact():
    data = np.array([1e8 + 1, 1e8 + 3])
    assert ops.lengths_var(data, [2]).tolist() == [1]
    assert ops.lengths_var(np.full(1000, 0.1, np.float32), [1000])[0] < 1e-15


@given(segmented(NUMBERS + FLOATS, special=False))
def test_the_log_of_summed_exponentials_is_that_of_each_segment(drawn):
    data, lengths = drawn
    found = ops.lengths_logsumexp(data, lengths, empty=-np.inf)
    with np.errstate(divide="ignore"):
        expected = [np.log(np.sum(np.exp(rows.astype(float)), axis=0)) for rows in pieces(data, lengths)]
    np.testing.assert_allclose(found, stacked(expected, found), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logsumexp_is_stable_far_from_0_and_where_nothing_is_finite(dtype):
    inf, nan = np.inf, np.nan
    data = np.array([1000, 1000, -1000, -1000, -inf, -inf, inf, 0, nan, 0, 1e30, -1e30], dtype)
    found = ops.lengths_logsumexp(data, [2] * 6)
    np.testing.assert_allclose(found, [1000 + np.log(2), -1000 + np.log(2), -inf, inf, nan, 1e30], rtol=1e-6)


@given(segmented(NUMBERS + FLOATS))
def test_any_and_all_are_numpys_on_each_segment(drawn):
    data, lengths = drawn
    for op, reduce, empty in [(ops.lengths_any, np.any, False), (ops.lengths_all, np.all, True)]:
        found = op(data, lengths, empty=empty)
        expected = stacked([reduce(rows, axis=0) for rows in pieces(data, lengths)], found)
        np.testing.assert_array_equal(found, expected)
    assert not ops.lengths_all(data, lengths)[lengths == 0].any()


@given(segmented([*NUMBERS, *FLOATS, *TIMES, "S3", "U2"], special=False))
def test_first_and_last_are_rows_of_each_segment(drawn):
    data, lengths = drawn
    nothing = np.zeros(data.shape[1:], data.dtype)
    for op, place in [(ops.lengths_first, 0), (ops.lengths_last, -1)]:
        found = op(data, lengths)
        expected = stacked([rows[place] if len(rows) else nothing for rows in pieces(data, lengths)], found)
        assert (found.dtype, found.tolist()) == (data.dtype, expected.tolist())


def test_first_of_nothing_is_what_is_asked_for():
    assert ops.lengths_first(np.array([5]), [0, 1], empty=-1).tolist() == [-1, 5]
    assert ops.lengths_last(np.array([], "datetime64[D]"), [0], empty=np.datetime64("NaT", "D")).astype(
        str
    ) == ["NaT"]


@given(segmented(NUMBERS + FLOATS, special=False))
def test_a_sum_over_the_root_of_the_length_is_that_of_each_segment(drawn):
    data, lengths = drawn
    found = ops.lengths_sqrt_sum(data, lengths, empty=3)
    expected = [
        rows.astype(float).sum(axis=0) / np.sqrt(len(rows)) if len(rows) else np.full(data.shape[1:], 3)
        for rows in pieces(data, lengths)
    ]
    np.testing.assert_allclose(found, stacked(expected, found), rtol=1e-6, atol=1e-6)


@given(segmented(NUMBERS + FLOATS, special=False), st.sampled_from(FLOATS))
def test_a_weighted_sum_is_that_of_each_segment(drawn, dtype):
    data, lengths = drawn
    weights = (np.arange(len(data)) / 4).astype(dtype)
    found = ops.lengths_weighted_sum(data, weights, lengths, empty=-1)
    assert found.dtype == np.result_type(kernels.sum_dtype(data.dtype), kernels.sum_dtype(weights.dtype))
    columns = weights.astype(float).reshape(-1, *[1] * (data.ndim - 1))
    expected = [
        rows.sum(axis=0) if length else np.full(data.shape[1:], -1)
        for rows, length in zip(pieces(data * columns, lengths), lengths, strict=True)
    ]
    np.testing.assert_allclose(found, stacked(expected, found), rtol=1e-6, atol=1e-6)


def test_weights_that_do_not_fit_are_an_error_that_names_them():
    with pytest.raises(
        sf.LodError, match=r"^lengths_weighted_sum: .*sum\(lengths\) is 3 but weights has 2 rows"
    ):
        ops.lengths_weighted_sum(np.ones(3), np.ones(2), [3])
    with pytest.raises(OpTypeError, match=r"^lengths_weighted_sum: weights is int64, expected floats"):
        ops.lengths_weighted_sum(np.ones(3), np.ones(3, int), [3])


@pytest.mark.parametrize("name", ["prod", "var", "std", "logsumexp", "sqrt_sum", "first", "last"])
def test_what_an_empty_segment_gives_must_fit_the_result(name):
    reduce = getattr(ops, f"lengths_{name}")
    assert reduce(np.ones(1, np.float32), [0, 1], empty=2.5)[0] == 2.5
    with pytest.raises(OpTypeError, match=f"^lengths_{name}: empty is 'x'"):
        reduce(np.ones(1), [0, 1], empty="x")


def test_roots_of_narrow_lengths_keep_all_digits():
    found = ops.lengths_sqrt_sum(np.array([0.0, 1.0]), np.array([2], np.uint16))
    assert found[0] == 0.5 * np.sqrt(2.0)
