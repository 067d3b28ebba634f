"""Order inside segments."""

import numpy as np
import pytest

from seqflow import kernels

A = np.array


def test_each_segment_and_column_is_sorted_by_itself(any_kernels):
    data = A([[3, 1], [1, 2], [2, 0], [9, 9], [8, 10]])
    lengths = A([3, 0, 2])
    assert kernels.sort_within(data, lengths).T.tolist() == [[1, 2, 3, 8, 9], [0, 1, 2, 9, 10]]
    assert kernels.argsort_within(data, lengths).T.tolist() == [[1, 2, 0, 1, 0], [2, 0, 1, 0, 1]]
    assert kernels.sort_within(data, lengths, descending=True)[:, 0].tolist() == [3, 2, 1, 9, 8]


def test_equal_elements_keep_their_order_both_ways(any_kernels):
    data = A([1.0, 0.0, -0.0, 1.0, 0.0])
    assert kernels.argsort_within(data, A([5])).tolist() == [1, 2, 4, 0, 3]
    assert kernels.argsort_within(data, A([5]), descending=True).tolist() == [0, 3, 1, 2, 4]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("descending", [False, True])
def test_zeros_and_nan_keep_their_bits_and_their_order(any_kernels, dtype, descending):
    rng = np.random.default_rng(0)
    values = np.array([0.0, -0.0, 1, -1, np.nan, -np.nan, np.inf, -np.inf], dtype)
    for chances in (np.full(8, 1 / 8), [0.2, 0.2, 0.3, 0.3, 0, 0, 0, 0], [0, 0.01, 0.5, 0.48, 0.01, 0, 0, 0]):
        lengths = A([0, 1, 2, 4, 7, 16, 17, 33, 64, 65, 200, 256, 257, 1000, 1025, 2049, 5000])
        data = rng.choice(values, int(lengths.sum()), p=chances)
        found = kernels.sort_within(data, lengths, descending)
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        expected = data[starts + kernels.argsort_within(data, lengths, descending)]
        assert found.tobytes() == expected.tobytes()
        columns = kernels.sort_within(np.stack([data, data], axis=1), lengths, descending)
        assert columns.tobytes() == np.stack([expected, expected], axis=1).tobytes()


def near_and_far(rng, size, dtype):
    """Numbers so far apart and so near that a key less its low bits does not tell them apart."""
    return np.where(rng.random(size) < 0.9, 1 + rng.integers(0, 50, size) / 2.0**20, -1e30).astype(dtype)


def blocks_of_the_largest_first(rng, size, dtype):
    """Medians of few samples are far from that of all."""
    return np.r_[np.arange(size, size // 2, -1), np.arange(size // 2)[::-1] % 7].astype(dtype)


FORMS = {
    "random": lambda rng, size, dtype: (rng.standard_normal(size) * 2**31).clip(0 if dtype[0] == "u" else None).astype(dtype),
    "few": lambda rng, size, dtype: rng.integers(0, 10, size).astype(dtype),
    "equal": lambda rng, size, dtype: np.full(size, 3, dtype),
    "rising": lambda rng, size, dtype: np.arange(size).astype(dtype),
    "falling": lambda rng, size, dtype: np.arange(size, 0, -1).astype(dtype),
    "almost rising": lambda rng, size, dtype: np.r_[np.arange(size - 1), 0].astype(dtype),
    "skewed": lambda rng, size, dtype: (rng.zipf(1.2, size) % 2**40).astype(dtype),
    "near and far": near_and_far,
    "blocks": blocks_of_the_largest_first,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int16", "int32", "uint32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_long_segments_of_any_form_are_in_stable_order(native, dtype, form):
    lengths = A([65, 0, 127, 128, 129, 300, 1023, 1024, 1500, 8191, 8192, 9000, 2])
    data = FORMS[form](np.random.default_rng(0), int(lengths.sum()), dtype)
    ends = np.cumsum(lengths)
    sorted_data = kernels.sort_within(data, lengths)
    order, back = (
        kernels.argsort_within(data, lengths),
        kernels.argsort_within(data, lengths, descending=True),
    )
    tops = {k: kernels.segment_topk(data, lengths, k) for k in (0, 1, 5, 70, 1100)}
    for segment, (start, end) in enumerate(zip(ends - lengths, ends, strict=True)):
        rows = data[start:end]
        np.testing.assert_array_equal(order[start:end], rows.argsort(kind="stable"))
        assert sorted_data[start:end].tobytes() == rows[order[start:end]].tobytes()
        falling = len(rows) - 1 - rows[::-1].argsort(kind="stable")[::-1]
        np.testing.assert_array_equal(back[start:end], falling)
        for k, (values, places) in tops.items():
            found = min(k, len(rows))
            np.testing.assert_array_equal(places[segment, :found], falling[:found])
            assert (places[segment, found:] == -1).all()
            np.testing.assert_array_equal(values[segment, :found], rows[falling[:found]])


def test_nan_is_last_in_ascending_and_first_in_descending_order(any_kernels):
    for data in (A([1, np.nan, np.inf, -np.nan], np.float32), A([1, np.nan, np.inf, np.nan])):
        np.testing.assert_array_equal(kernels.sort_within(data, A([4])), [1, np.inf, np.nan, np.nan])
        assert kernels.argsort_within(data, A([4])).tolist() == [0, 2, 1, 3]
        assert kernels.argsort_within(data, A([4]), descending=True).tolist() == [1, 3, 2, 0]


def test_times_are_sorted_with_nat_as_the_largest(any_kernels):
    data = A(["2020", "NaT", "1900"], "M8[Y]")
    assert kernels.sort_within(data, A([3])).astype(str).tolist() == ["1900", "2020", "NaT"]
    assert kernels.argsort_within(data, A([3]), descending=True).tolist() == [1, 0, 2]


LENGTHS = A(
    [
        1,
        5,
        0,
        8,
        9,
        16,
        17,
        32,
        33,
        63,
        64,
        65,
        100,
        255,
        256,
        257,
        512,
        513,
        1000,
        1024,
        1025,
        2048,
        2049,
        9000,
        1,
    ]
)


def numbers(dtype, spread=1000):
    """Of every length there is a way to sort for, with ties, and NaN where there are any."""
    data = np.random.default_rng(0).integers(-spread, spread, LENGTHS.sum()).astype(dtype)
    if data.dtype.kind == "f":
        data[::50] = np.nan
        data[1::99] = -np.inf
    return data


def segments(data):
    return np.split(data, np.cumsum(LENGTHS)[:-1])


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
def test_segments_of_every_length_are_sorted_as_numpy_does(any_kernels, dtype):
    data = numbers(dtype)
    ascending = kernels.sort_within(data, LENGTHS)
    np.testing.assert_array_equal(ascending, np.concatenate([np.sort(rows) for rows in segments(data)]))
    descending = kernels.sort_within(data, LENGTHS, descending=True)
    np.testing.assert_array_equal(descending, np.concatenate([rows[::-1] for rows in segments(ascending)]))
    positions = kernels.argsort_within(data, LENGTHS)
    expected = [np.argsort(rows, kind="stable") for rows in segments(data)]
    np.testing.assert_array_equal(positions, np.concatenate(expected))


@pytest.mark.parametrize("dtype", ["i1", "u4", "i8", "f4", "f8"])
@pytest.mark.parametrize("k", [1, 5, 300])
def test_the_largest_k_are_the_first_k_in_descending_order(any_kernels, dtype, k):
    data = numbers(dtype, spread=100)
    values, positions = kernels.segment_topk(data, LENGTHS, k)
    ordered = segments(kernels.sort_within(data, LENGTHS, descending=True))
    places = segments(kernels.argsort_within(data, LENGTHS, descending=True))
    for i, length in enumerate(np.minimum(LENGTHS, k).tolist()):
        np.testing.assert_array_equal(values[i, :length], ordered[i][:length])
        assert positions[i, :length].tolist() == places[i][:length].tolist()
        assert (values[i, length:] == 0).all()
        assert (positions[i, length:] == -1).all()


@pytest.mark.parametrize("dtype", ["i1", "u2", "u4", "i8", "u8", "f4", "f8"])
def test_positions_of_extremes_are_numpys_at_every_length(any_kernels, dtype):
    data = numbers(dtype)
    for kind, find in [("max", np.argmax), ("min", np.argmin)]:
        expected = [find(rows) if len(rows) else -1 for rows in segments(data)]
        assert kernels.segment_arg(kind, data, LENGTHS).tolist() == expected
        pairs = np.stack([data, data[::-1]], axis=1)
        assert kernels.segment_arg(kind, pairs, LENGTHS)[:, 0].tolist() == expected


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_first_of_several_nan_and_of_nothing_but_infinity_is_found(any_kernels, dtype):
    data = np.full(200, -np.inf, dtype)
    assert kernels.segment_arg("max", data, A([100, 7, 93])).tolist() == [0, 0, 0]
    data[[40, 60, 105, 106, 199]] = np.nan
    assert kernels.segment_arg("max", data, A([100, 7, 93])).tolist() == [40, 5, 92]
    assert kernels.segment_arg("min", data, A([100, 7, 93])).tolist() == [40, 5, 92]


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("columns", [1, 2, 7, 33, 70])
def test_an_extreme_and_its_position_have_the_bits_of_two_calls(any_kernels, dtype, columns):
    rng, lengths = np.random.default_rng(columns), A([3, 0, 90, 1, 400])
    data = rng.integers(-2, 3, (lengths.sum(), columns)).astype(dtype)
    if data.dtype.kind == "f":
        data[data == 0] *= rng.choice([-1, 1], (data == 0).sum()).astype(dtype)
    for _ in range(2):
        for kind in ("max", "min"):
            values, positions = kernels.segment_extreme(kind, data, lengths, 3)
            assert values.tobytes() == kernels.segment_reduce(kind, data, lengths, 3).tobytes()
            np.testing.assert_array_equal(positions, kernels.segment_arg(kind, data, lengths), strict=True)
        if data.dtype.kind == "f":
            data[[5, 9, 200], -1] = A([np.nan, -np.nan, np.nan], dtype)


def test_numpy_sorts_a_copy_that_no_other_thread_can_change(monkeypatch):
    data, sorted_arrays = np.array([3, 1, 2], np.int16), []
    lexsort = np.lexsort
    monkeypatch.setattr(
        np, "lexsort", lambda keys, axis: sorted_arrays.extend(keys) or lexsort(keys, axis=axis)
    )
    with kernels.use("reference"):
        assert kernels.sort_within(data, np.array([2, 1])).tolist() == [1, 3, 2]
        assert kernels.argsort_within(data, np.array([3]), descending=True).tolist() == [0, 2, 1]
    assert len(sorted_arrays) == 4
    assert not any(np.shares_memory(data, array) for array in sorted_arrays)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64"])
def test_neighbours_of_a_short_segment_are_not_its_largest(native, dtype):
    sizes = np.arange(1, 70)
    segments = [np.random.default_rng(size).integers(-99, 99, size).astype(dtype) for size in sizes]
    for one in segments[::5] if dtype.startswith("float") else ():
        one[-1] = np.nan
    data = np.concatenate(segments)
    for kind, find in [("max", np.argmax), ("min", np.argmin)]:
        expected = [find(one) for one in segments]
        assert native.segment_arg(kind, data, sizes).tolist() == expected
