"""Rows in several arrays: slices of them, one after another and padded."""

import pickle

import numpy as np
import pytest

from seqflow.kernels import ChunkedRows, KernelError, gather_slices, pad_batches

CHUNKS = ChunkedRows([np.array([10, 11, 12], np.int32), np.array([], np.int32), np.array([13, 14], np.int32)])


def pad_slices(chunks, starts, sizes, width, value=0, *, dtype=None, mask=None, **how):
    """Return the padded rows of one batch."""
    padded = np.empty((len(sizes), width, *chunks.row_shape), dtype or chunks.dtype)
    pad_batches(chunks, [(starts, sizes, padded, mask)], value, dtype=dtype, **how)
    return padded


def test_rows_are_numbered_from_one_array_to_the_next(any_kernels):
    assert gather_slices(CHUNKS, [3, 0, 5, 1], [2, 1, 0, 2]).tolist() == [13, 14, 10, 11, 12]
    assert len(CHUNKS) == 5


def test_slices_are_padded_and_converted(any_kernels):
    mask = np.empty((3, 3), bool)
    padded = pad_slices(CHUNKS, [3, 5, 0], [2, 0, 3], 3, -1, dtype=np.dtype(np.int64), mask=mask)
    assert padded.dtype == np.int64
    assert padded.tolist() == [[13, 14, -1], [-1, -1, -1], [10, 11, 12]]
    assert mask.tolist() == [[True, True, False], [False, False, False], [True, True, True]]


def test_batches_are_padded_in_one_call_as_each_alone(any_kernels):
    wide, narrow = np.empty((2, 3), np.int64), np.empty((1, 1), np.int64)
    mask = np.empty((2, 3), bool)
    pad_batches(
        CHUNKS, [([0, 3], [3, 2], wide, mask), ([4], [1], narrow, None)], -1, dtype=np.dtype(np.int64)
    )
    assert wide.tolist() == [[10, 11, 12], [13, 14, -1]]
    assert mask.tolist() == [[True] * 3, [True, True, False]]
    assert narrow.tolist() == [[14]]
    with pytest.raises(KernelError, match=r"sizes\[0\] = 2 is longer than 1"):
        pad_batches(
            CHUNKS, [([0, 3], [3, 2], wide, mask), ([0], [2], narrow, None)], dtype=np.dtype(np.int64)
        )


def test_the_side_of_the_padding_is_the_side_that_is_cut(any_kernels):
    assert pad_slices(CHUNKS, [0, 4], [3, 1], 2, truncate=True).tolist() == [[10, 11], [14, 0]]
    assert pad_slices(CHUNKS, [0, 4], [3, 1], 2, side="left", truncate=True).tolist() == [[11, 12], [0, 14]]


@pytest.mark.parametrize(
    ("starts", "sizes", "message"),
    [
        ([0, 2], [1, 2], r"starts\[1\] = 2 starts a slice of 2 rows that leaves its array, \[0, 3\)"),
        ([4], [2], r"starts\[0\] = 4 starts a slice of 2 rows outside \[0, 5\)"),
        ([-1], [0], r"starts\[0\] = -1 starts a slice of 0 rows outside \[0, 5\)"),
        ([0], [-1], r"sizes\[0\] = -1 is negative"),
        ([2**62], [2**62], r"starts\[0\] = \d+ starts a slice of \d+ rows outside \[0, 5\)"),
    ],
)
def test_a_slice_must_be_inside_one_array(any_kernels, starts, sizes, message):
    with pytest.raises(KernelError, match=message):
        gather_slices(CHUNKS, starts, sizes)
    with pytest.raises(KernelError, match=message):
        pad_slices(CHUNKS, starts, sizes, 9)


def test_a_slice_longer_than_the_row_is_an_error(any_kernels):
    with pytest.raises(KernelError, match=r"sizes\[1\] = 3 is longer than 2"):
        pad_slices(CHUNKS, [3, 0], [2, 3], 2)


def test_an_integer_that_does_not_fit_is_an_error(any_kernels):
    large = ChunkedRows([np.array([1, 2**31 - 1, 2**31, -(2**31)])])
    with pytest.raises(KernelError, match=r"chunks\[2\] = 2147483648 does not fit int32"):
        pad_slices(large, [0], [4], 4, dtype=np.dtype(np.int32))
    assert pad_slices(large, [0, 3], [2, 1], 2, dtype=np.dtype(np.int32))[1, 0] == -(2**31)


def test_floats_do_not_become_integers(any_kernels):
    with pytest.raises(TypeError, match="float64 is not converted to int64"):
        pad_slices(ChunkedRows([np.zeros(3)]), [0], [3], 3, dtype=np.dtype(np.int64))


def test_arrays_of_several_kinds_are_no_rows():
    with pytest.raises(ValueError, match=r"one array is int64\[_\] and another float64\[_, 2\]"):
        ChunkedRows([np.zeros(3, np.int64), np.zeros((1, 2))])
    with pytest.raises(ValueError, match="there are no arrays"):
        ChunkedRows([])


def test_a_result_is_never_written_over_what_it_is_made_from(any_kernels):
    array = np.arange(6)
    chunks = ChunkedRows([array])
    assert gather_slices(chunks, [3, 0], [3, 3], out=array).tolist() == [3, 4, 5, 0, 1, 2]


def test_chunked_rows_are_pickled_by_their_arrays():
    assert gather_slices(pickle.loads(pickle.dumps(CHUNKS)), [3], [2]).tolist() == [13, 14]


def test_large_slices_are_shared_by_threads(any_kernels, two_threads):
    arrays = [np.arange(200_000) + 10**6 * at for at in range(4)]
    chunks, starts = ChunkedRows(arrays), np.arange(0, 800_000, 1000)[::-1]
    sizes = np.full(len(starts), 1000)
    expected = np.concatenate(arrays).reshape(-1, 1000)[::-1]
    np.testing.assert_array_equal(gather_slices(chunks, starts, sizes).reshape(-1, 1000), expected)
    np.testing.assert_array_equal(pad_slices(chunks, starts, sizes, 1001)[:, :1000], expected)
