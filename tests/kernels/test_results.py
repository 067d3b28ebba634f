"""What kernels give, whichever compute it."""

import numpy as np
import numpy_kernels
import pytest

from seqflow import kernels

A = np.array


def test_an_empty_segment_gives_0_or_what_was_asked_for(any_kernels):
    data, lengths = A([-1.0, -2.0], np.float32), A([0, 2, 0])
    assert kernels.segment_reduce("max", data, lengths).tolist() == [0, -1, 0]
    assert kernels.segment_reduce("max", data, lengths, -np.inf).tolist() == [-np.inf, -1, -np.inf]
    assert kernels.gather_segment_reduce("mean", data, A([1, 1]), lengths, 7).tolist() == [7, -2, 7]


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("columns", [1, 3, 8, 100])
def test_nan_spreads_inside_its_segment_and_column_only(any_kernels, kind, columns):
    data = np.ones((90, columns), np.float32)
    data[45, columns // 2] = np.nan
    out = kernels.segment_reduce(kind, data, A([40, 10, 40]))
    expected = np.zeros((3, columns), bool)
    expected[1, columns // 2] = True
    np.testing.assert_array_equal(np.isnan(out), expected)


@pytest.mark.parametrize("columns", [1, 5, 64])
def test_a_long_sum_of_float32_is_as_good_as_one_of_float64(any_kernels, columns):
    data = np.full((100_000, columns), 0.1, np.float32)
    out = kernels.segment_reduce("sum", data, A([100_000]))
    np.testing.assert_allclose(out[0], data[0].astype(np.float64) * 100_000, rtol=1e-6)


def test_sums_of_integers_wrap_around(any_kernels):
    data = A([2**63 - 1, 1])
    assert kernels.segment_reduce("sum", data, A([2])).tolist() == [-(2**63)]


@pytest.mark.parametrize(
    ("dtype", "sums", "means"),
    [
        ("?", "i8", "f8"),
        ("u1", "i8", "f8"),
        ("u8", "u8", "f8"),
        ("f2", "f4", "f8"),
        ("f4", "f4", "f4"),
        ("f8", "f8", "f8"),
    ],
)
def test_dtypes_of_sums_and_means(any_kernels, dtype, sums, means):
    data = np.ones(3, dtype)
    assert kernels.segment_reduce("sum", data, A([3])).dtype == kernels.sum_dtype(data.dtype) == sums
    assert kernels.segment_reduce("mean", data, A([3])).dtype == kernels.mean_dtype(data.dtype) == means
    assert kernels.segment_reduce("max", data, A([3])).dtype == dtype


def test_nat_wins_in_max_and_min(any_kernels):
    data = A(["2020-01-01", "NaT", "2021-01-01"], "M8[D]")
    for kind in ("max", "min"):
        assert np.isnat(kernels.segment_reduce(kind, data, A([3]))).all()


def test_ignored_indices_count_for_nothing(any_kernels):
    table = A([1.0, 10.0, 100.0])
    out = kernels.gather_segment_reduce("mean", table, A([0, -1, 2, -1]), A([3, 1]), 5, -1)
    assert out.tolist() == [50.5, 5]


def test_an_ignored_index_gathers_a_row_of_zeros(any_kernels):
    assert kernels.gather(A([7, 8]), A([1, -1, 0]), ignore_index=-1).tolist() == [8, 0, 7]


def test_objects_are_gathered_and_padded_as_objects(any_kernels):
    data = A(["a", None, [1]], object)
    assert kernels.gather(data, A([2, 0])).tolist() == [[1], "a"]
    assert kernels.pad(data, A([2, 1]), 2, "-")[0].tolist() == [["a", None], [[1], "-"]]


def test_slices_inside_one_array_are_read_as_they_were(any_kernels):
    data = np.arange(6)
    kernels.move_slices(data, A([0]), A([4]), data, A([1]))
    assert data.tolist() == [0, 0, 1, 2, 3, 5]


def test_of_overlapping_target_slices_the_last_one_wins(any_kernels):
    target = np.zeros(3, int)
    kernels.move_slices(np.arange(9), A([0, 6]), A([3, 2]), target, A([0, 1]))
    assert target.tolist() == [0, 6, 7]


def test_out_may_be_the_data_themselves(any_kernels):
    data = np.arange(4)
    assert kernels.gather(data, A([3, 2, 1, 0]), out=data) is data
    assert data.tolist() == [3, 2, 1, 0]


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["u1", "i2", "i8", "f4", "c16", "S3", "i4,f8"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_large_padded_array_is_like_a_small_one(any_kernels, dtype, side):
    """From some size on native kernels write around the caches."""
    generator, dtype = np.random.default_rng(1), np.dtype(dtype)
    lengths = generator.integers(0, 101, 1 << 12)
    data = np.frombuffer(generator.bytes(lengths.sum() * 3 * dtype.itemsize), dtype).reshape(-1, 3)
    width = 100 * 16 // dtype.itemsize + 1
    padded, mask = kernels.pad(data, lengths, width, side=side)
    small, small_mask = numpy_kernels.pad(data, lengths, width, side=side)
    assert padded.nbytes > 1 << 24
    assert padded.tobytes() == small.tobytes()
    np.testing.assert_array_equal(mask, small_mask)
    assert kernels.unpad(padded, lengths, side).tobytes() == data.tobytes()
