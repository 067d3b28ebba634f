"""Order inside segments."""

import numpy as np

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


def test_nan_is_last_in_ascending_and_first_in_descending_order(any_kernels):
    for data in (A([1, np.nan, np.inf, -np.nan], np.float32), A([1, np.nan, np.inf, np.nan])):
        np.testing.assert_array_equal(kernels.sort_within(data, A([4])), [1, np.inf, np.nan, np.nan])
        assert kernels.argsort_within(data, A([4])).tolist() == [0, 2, 1, 3]
        assert kernels.argsort_within(data, A([4]), descending=True).tolist() == [1, 3, 2, 0]


def test_times_are_sorted_with_nat_as_the_largest(any_kernels):
    data = A(["2020", "NaT", "1900"], "M8[Y]")
    assert kernels.sort_within(data, A([3])).astype(str).tolist() == ["1900", "2020", "NaT"]
    assert kernels.argsort_within(data, A([3]), descending=True).tolist() == [1, 0, 2]
