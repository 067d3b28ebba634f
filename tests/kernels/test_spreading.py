"""Rows written more than once: native kernels give what the reference gives, and what plain loops give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import assert_same, cut, lengths_arrays, ragged, values

from seqflow import kernels
from seqflow.kernels import KernelError

DTYPES = ("int8", "float16", "float32", "float64", "complex128", "M8[s]", "S3", "U2", "bool")


@given(data=st.data())
def test_expand_writes_each_row_as_often_as_its_length_says(any_kernels, data):
    lengths = data.draw(lengths_arrays(longest=40, count=st.integers(0, 8)))
    shape = (len(lengths), *data.draw(st.lists(st.integers(0, 5), max_size=2)))
    rows = values(data.draw, data.draw(st.sampled_from(DTYPES)), shape)
    expected = np.repeat(rows, lengths.astype(np.int64), axis=0)
    assert_same(kernels.expand(rows, lengths), expected)
    room = np.zeros((len(expected) + 2, *shape[1:]), rows.dtype)
    out = room[1:-1]
    assert kernels.expand(rows, lengths, out=out) is out
    assert_same(out, expected)
    assert not room[[0, -1]].astype(bool).any(), "nothing is written around the output"


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("columns", [16, 32, 64, 25])
@pytest.mark.parametrize("shift", [0, 1])
def test_large_expanded_rows_are_the_same_whatever_their_address(any_kernels, columns, shift):
    rows = np.random.default_rng(0).random((3000, columns), dtype=np.float32)
    lengths = np.random.default_rng(1).integers(0, 120, 3000)
    lengths[:5] = 0
    expected = np.repeat(rows, lengths, axis=0)
    room = np.zeros(expected.size + 64, np.float32)
    start = -(room.ctypes.data // 4) % 16 + shift
    out = room[start : start + expected.size].reshape(expected.shape)
    np.testing.assert_array_equal(kernels.expand(rows, lengths, out=out), expected)
    assert not room[:start].any()
    assert not room[start + expected.size :].any()
    np.testing.assert_array_equal(kernels.expand(rows, lengths), expected)


def test_expand_may_write_to_its_own_input(any_kernels):
    rows = np.arange(4)
    kernels.expand(rows, np.array([0, 2, 2, 0]), out=rows)
    assert rows.tolist() == [1, 1, 2, 2]
    lengths = np.array([2, 0, 1])
    kernels.expand(np.array([7, 8, 9]), lengths, out=lengths)
    assert lengths.tolist() == [7, 7, 9]


@given(sequences=ragged(dtypes=DTYPES), before=st.integers(0, 7), after=st.integers(0, 7), fill=st.booleans())
def test_windows_hold_the_rows_around_each_row(any_kernels, sequences, before, after, fill):
    data, lengths = sequences
    value = np.full(1, fill, "int8").astype(data.dtype)[0] if fill or data.dtype.kind in "SU" else 0
    found = kernels.windows(data, lengths, before, after, value)
    expected = np.full((len(data), before + 1 + after, *data.shape[1:]), value, data.dtype)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths.astype(np.int64)
    for start, sequence in zip(starts, cut(data, lengths), strict=True):
        for i in range(len(sequence)):
            for j in range(len(sequence)):
                if -before <= j - i <= after:
                    expected[start + i, before + j - i] = sequence[j]
    assert_same(found, expected)


@pytest.mark.parametrize("dtype", ["bool", "f2", "i4", "f8"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,)])
def test_elements_are_put_at_their_positions(any_kernels, dtype, shape):
    rng, lengths = np.random.default_rng(0), np.array([3, 0, 1, 40])
    data = rng.integers(1, 9, (4, *shape)).astype(dtype)
    positions = rng.integers(-1, np.expand_dims(lengths, [*range(1, data.ndim)]), data.shape).astype(np.int32)
    expected = np.zeros((44, *shape), dtype)
    for at in np.ndindex(data.shape):
        if positions[at] >= 0:
            expected[(lengths[: at[0]].sum() + positions[at], *at[1:])] = data[at]
    assert_same(kernels.put_elements(data, positions, lengths), expected)


def test_a_position_outside_its_segment_is_named(any_kernels):
    data = np.ones((2, 2))
    for wrong in (2, -2):
        with pytest.raises(KernelError, match=rf"positions\[3\] = {wrong} is outside \[-1, 2\)"):
            kernels.put_elements(data, np.array([[0, 2], [-1, wrong]]), np.array([3, 2]))
    with pytest.raises(ValueError, match="data has 2, lengths has 1 entries, expected equally many"):
        kernels.put_elements(data, np.zeros((2, 2), int), np.array([3]))
    with pytest.raises(ValueError, match="data has 4, positions has 2 entries, expected equally many"):
        kernels.put_elements(data, np.zeros(2, int), np.array([3, 2]))


@pytest.mark.parametrize("width", [0, 1, 5])
def test_large_results_are_the_same_on_any_number_of_threads(native, two_threads, width):
    lengths = np.random.default_rng(1).integers(0, 60, 20_000)
    rows = np.arange(len(lengths) * max(width, 1), dtype=np.int32).reshape(
        len(lengths), *[width] * (width > 0)
    )
    expanded = kernels.expand(rows, lengths)
    assert_same(expanded, np.repeat(rows, lengths.astype(np.int64), axis=0))
    around = kernels.windows(expanded, lengths, 2, 1, 3)
    kernels.set_num_threads(1)
    assert_same(kernels.windows(expanded, lengths, 2, 1, 3), around)


def test_wrong_lengths_are_named(any_kernels):
    rows = np.arange(3)
    with pytest.raises(ValueError, match="data has 3, lengths has 2 entries, expected equally many"):
        kernels.expand(rows, np.array([1, 2]))
    with pytest.raises(KernelError, match=r"lengths\[1\] = -1 is negative"):
        kernels.expand(rows, np.array([1, -1, 3]))
    with pytest.raises(KernelError, match=r"sum\(lengths\) overflows int64 at lengths\[1\]"):
        kernels.expand(rows, np.array([2**62, 2**62, 0]))
    with pytest.raises(KernelError, match=r"sum\(lengths\) is 4 but data has 3 rows"):
        kernels.windows(rows, np.array([4]), 1, 1)
    with pytest.raises(ValueError, match="after is -1, expected 0 or more"):
        kernels.windows(rows, np.array([3]), 1, -1)
