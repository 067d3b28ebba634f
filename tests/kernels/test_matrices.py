"""Products with a matrix for each segment: those of NumPy, and independent of the rest of the batch."""

import numpy as np
import numpy_kernels as reference
import pytest

from seqflow import kernels
from seqflow.kernels import KernelError

LENGTHS = np.array([0, 1, 5, 6, 7, 12, 13, 96, 97, 0, 200])


def given_arrays(dtype, inner, outer, transpose, lengths=LENGTHS):
    random = np.random.default_rng(0)
    shape = (len(lengths), outer, inner) if transpose else (len(lengths), inner, outer)
    x = random.standard_normal((lengths.sum(), inner))
    return x.astype(dtype), random.standard_normal(shape).astype(dtype), lengths, transpose


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(
    ("inner", "outer"),
    [(1, 1), (3, 7), (64, 64), (65, 16), (300, 33), (257, 130), (256, 300), (0, 5), (5, 0), (0, 0)],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_those_of_numpy(native, dtype, inner, outer, transpose):
    given = given_arrays(dtype, inner, outer, transpose)
    found, expected = native.multiply_segments(*given), reference.multiply_segments(*given)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    close = {"float32": 1e-4, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(found, expected, rtol=close, atol=close)


def test_whole_numbers_are_exact(any_kernels):
    random = np.random.default_rng(0)
    x, weight = random.integers(-9, 9, (437, 70)) * 1.0, random.integers(-9, 9, (len(LENGTHS), 70, 41)) * 1.0
    found = kernels.multiply_segments(x, weight, LENGTHS, False)
    ends = np.cumsum(LENGTHS)
    expected = [x[end - n : end] @ one for n, end, one in zip(LENGTHS, ends, weight, strict=True)]
    assert (found == np.concatenate(expected)).all()
    turned = np.ascontiguousarray(weight.swapaxes(1, 2))
    assert (found == kernels.multiply_segments(x, turned, LENGTHS, True)).all()


@pytest.mark.parametrize("outer", [48, 50, 400])
def test_a_row_does_not_depend_on_how_many_others_there_are(native, outer):
    x, weight, _, _ = given_arrays("float32", 300, outer, False, np.array([200]))
    whole = native.multiply_segments(x, weight, np.array([200]), False)
    for count in (1, 7, 12, 13, 97):
        assert (native.multiply_segments(x[:count], weight, np.array([count]), False) == whole[:count]).all()


def test_nan_and_infinity_stay_in_their_rows(native):
    x, weight, lengths, _ = given_arrays("float64", 10, 9, False)
    before = native.multiply_segments(x, weight, lengths, False)
    x[3, 2], x[100, 5] = np.nan, np.inf
    after = native.multiply_segments(x, weight, lengths, False)
    changed = (before != after).any(axis=1)
    assert np.flatnonzero(changed).tolist() == [3, 100]
    assert np.isnan(after[3]).all()


def test_results_are_the_same_on_any_number_of_threads(native, two_threads):
    given = given_arrays("float32", 128, 100, False, np.full(64, 40))
    several = native.multiply_segments(*given)
    kernels.set_num_threads(1)
    assert (several == native.multiply_segments(*given)).all()


def test_lengths_must_fit(any_kernels):
    x, weight = np.ones((2, 3)), np.ones((1, 3, 4))
    with pytest.raises(KernelError, match=r"sum\(lengths\) is 3 but x has 2 rows"):
        kernels.multiply_segments(x, weight, np.array([3]), False)
    with pytest.raises(ValueError, match="weight"):
        kernels.multiply_segments(x, weight, np.array([1, 1]), False)
