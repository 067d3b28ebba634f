"""Rows that are gathered, of every width that has a loop of its own."""

import numpy as np
import pytest

from seqflow import kernels
from seqflow.kernels.error import KernelError

WIDTHS = [
    15,
    16,
    17,
    31,
    32,
    33,
    48,
    63,
    64,
    65,
    96,
    100,
    127,
    128,
    129,
    192,
    200,
    255,
    256,
    257,
    320,
    448,
    512,
    513,
]


def table(num_rows, width):
    return np.random.default_rng(0).integers(0, 256, (num_rows, width), dtype=np.uint8)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_rows_of_every_width_are_copied_whole_and_nothing_else(native, width, dtype):
    rows = table(50, width)
    indices = np.random.default_rng(1).integers(-50, 50, 37).astype(dtype)
    room = np.full((39, width), 7, np.uint8)
    assert kernels.gather(rows, indices, wrap=True, out=room[1:-1]) is not None
    np.testing.assert_array_equal(room[1:-1], rows[indices])
    assert (room[[0, -1]] == 7).all()
    last = np.full(3, 49, dtype)
    np.testing.assert_array_equal(kernels.gather(rows, last), rows[last])


@pytest.mark.parametrize("width", [16, 64, 100, 128, 256, 512, 600])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shift", [0, 1])
def test_large_results_are_the_same_whatever_their_address_and_the_threads(native, width, threads, shift):
    rows = table(1000, width)
    count = (9 << 20) // width
    indices = np.random.default_rng(1).integers(0, 1000, count)
    memory = np.empty(count * width + 128, np.uint8)
    begin = -memory.ctypes.data % 64 + shift
    out = memory[begin : begin + count * width].reshape(count, width)
    before = kernels.num_threads()
    kernels.set_num_threads(threads)
    try:
        kernels.gather(rows, indices, out=out)
    finally:
        kernels.set_num_threads(before)
    np.testing.assert_array_equal(out, rows[indices])


@pytest.mark.parametrize("width", [64, 100, 512])
@pytest.mark.parametrize("place", [0, 16, 36, 80_000])
@pytest.mark.parametrize(
    ("wrong", "wrap"), [(10, False), (-1, False), (-11, True), (2**62, False), (-(2**63), True)]
)
def test_an_index_outside_is_found_wherever_it_is(native, width, place, wrong, wrap):
    rows = table(10, width)
    indices = np.zeros(place + 1 if place < 100 else 90_000, np.int64)
    indices[place] = wrong
    with pytest.raises(KernelError, match=rf"indices\[{place}\] = {wrong} "):
        kernels.gather(rows, indices, wrap=wrap)


CHOSEN = ["?", "i1", "u2", "f2", "i4", "f4", "i8", "f8", "M8[s]", "c16", "S3"]


@pytest.mark.parametrize("dtype", CHOSEN)
@pytest.mark.parametrize("shape", [(0,), (1,), (67,), (3, 5), ()])
def test_elements_are_chosen_by_a_condition_and_nothing_around_is_written(any_kernels, dtype, shape):
    rng = np.random.default_rng(0)
    condition = np.asarray(rng.random(shape) < 0.5)
    x, y = (rng.integers(0, 100, shape, dtype=np.int64).astype(dtype) for _ in range(2))
    for yes, no in ((x, y), (x, y[()].flat[0] if y.size else y), (x[()].flat[0] if x.size else x, y)):
        yes, no = np.asarray(yes), np.asarray(no)
        room = np.zeros((3, *shape), dtype)
        out = room[1]
        out = out if isinstance(out, np.ndarray) else room[1:2].reshape(())
        assert kernels.choose(condition, yes, no, out) is out
        np.testing.assert_array_equal(out, np.where(condition, yes, no))
        assert not room[[0, 2]].astype(bool).any()


def test_bits_of_chosen_elements_are_kept(any_kernels):
    x = np.array([0x7FF8000000000123, 1 << 63], np.uint64).view(float)
    out = np.empty(2)
    kernels.choose(np.array([True, True]), x, np.zeros(2), out)
    assert out.tobytes() == x.tobytes()


def test_elements_may_be_chosen_into_an_operand_or_a_part_of_it(any_kernels):
    x = np.arange(10.0)
    condition = np.arange(10) % 3 == 0
    expected = np.where(condition, x, -1.0)
    kernels.choose(condition, x, np.asarray(-1.0), x)
    assert x.tolist() == expected.tolist()
    x = np.arange(11.0)
    expected = np.where(condition, x[:-1], 7.0)
    kernels.choose(condition, x[:-1], np.asarray(7.0), x[1:])
    assert x[1:].tolist() == expected.tolist()
    flags = np.array([True, False, True])
    kernels.choose(flags, np.array([False, False, False]), np.array([True, True, True]), flags)
    assert flags.tolist() == [False, True, False]


def test_other_shapes_are_broadcast_and_dtypes_converted(any_kernels):
    out = np.empty((2, 3))
    kernels.choose(np.array([True, False, True]), np.ones((2, 1)), np.arange(3), out)
    assert out.tolist() == [[1, 1, 1]] * 2
    with pytest.raises(ValueError, match="broadcast"):
        kernels.choose(np.array([True, False]), np.ones(3), np.zeros(3), np.empty(3))
