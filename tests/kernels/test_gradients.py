"""Kernels of gradients: native ones give what NumPy gives, and refuse what it refuses."""

import numpy as np
import numpy_kernels
import pytest

from seqflow import kernels
from seqflow.kernels import KernelError
from seqflow.kernels.dispatch import KERNELS


@pytest.fixture(params=["f4", "f8"])
def dtype(request):
    return request.param


SHAPES = [(), (1,), (3,), (64,), (70,), (2, 40)]


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_softmax_are_the_same(native, dtype, shape):
    generator = np.random.default_rng(0)
    lengths = np.array([3, 0, 75, 1])
    d, out = (generator.normal(size=(79, *shape)).astype(dtype) for _ in range(2))
    assert KERNELS["softmax_within_backward"].native(d, out, lengths) is not NotImplemented
    found = kernels.softmax_within_backward(d, out, lengths)
    expected = numpy_kernels.softmax_within_backward(d, out, lengths)
    assert found.dtype == expected.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [None, 2, -1])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("index", ["i4", "i8", "u1"])
def test_scattered_segments_are_the_same(native, dtype, shape, index, ignore_index, weighted):
    generator = np.random.default_rng(0)
    lengths = np.array([3, 0, 75, 1])
    indices = generator.integers(0, 5, 79).astype(index)
    rows = generator.normal(size=(4, *shape)).astype(dtype)
    weights = generator.normal(size=79).astype(dtype) if weighted else None
    found = kernels.scatter_segments(rows, indices, lengths, weights, 6, ignore_index)
    expected = numpy_kernels.scatter_segments(rows, indices, lengths, weights, 6, ignore_index)
    assert found.dtype == expected.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_threads_add_in_one_order(native):
    generator = np.random.default_rng(0)
    lengths = generator.integers(0, 40, 3000)
    indices = generator.integers(0, 500, int(lengths.sum()))
    rows = generator.normal(size=(3000, 32)).astype("f4")
    with kernels.single_thread():
        expected = kernels.scatter_segments(rows, indices, lengths, None, 500)
    np.testing.assert_array_equal(kernels.scatter_segments(rows, indices, lengths, None, 500), expected)


@pytest.mark.parametrize("implementation", [kernels, numpy_kernels])
@pytest.mark.parametrize(
    ("indices", "lengths", "message"),
    [
        ([0, 9, 1], [2, 1], r"indices\[1\] = 9 is outside \[0, 4\)"),
        ([0, -1, 1], [2, 1], r"indices\[1\] = -1 is outside \[0, 4\)"),
        ([0, 1, 1], [2, 2], r"sum\(lengths\) is 4"),
        ([0, 1, 1], [4, -1], r"lengths\[1\] = -1"),
    ],
)
def test_what_does_not_fit_is_refused(implementation, indices, lengths, message):
    with pytest.raises(KernelError, match=message):
        implementation.scatter_segments(np.ones((2, 3)), np.array(indices), np.array(lengths), None, 4)


def test_an_index_into_an_empty_table_is_refused():
    for implementation in (kernels, numpy_kernels):
        with pytest.raises(KernelError, match=r"indices\[0\] = 0 is outside \[0, 0\)"):
            implementation.scatter_segments(np.ones((1, 3)), np.array([0]), np.array([1]), None, 0)
        assert implementation.scatter_segments(
            np.ones((1, 3)), np.zeros(0, int), np.array([0]), None, 0
        ).shape == (0, 3)
