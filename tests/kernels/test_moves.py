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
