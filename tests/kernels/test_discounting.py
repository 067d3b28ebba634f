"""Discounted sums: native kernels give what the reference gives, to the bit."""

import numpy as np
import numpy_kernels as reference
import pytest
from per_sequence import assert_same

from seqflow import kernels


@pytest.mark.parametrize("row", [(), (1,), (3,), (17,), (2, 2)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("dtype", "of_discount"), [("f4", "f4"), ("f4", "f8"), ("f8", "f4"), ("f8", "f8")])
def test_sums_are_those_of_the_reference(native, dtype, of_discount, reverse, row):
    random = np.random.default_rng(len(row))
    for lengths in ([5, 0, 1, 30, 2, 2, 0, 9, 40, 7], [3], [0, 0], [], [4, 1, 4], [1, 2, 3, 100]):
        sizes = np.array(lengths, int)
        data = random.standard_normal((sizes.sum(), *row)).astype(dtype)
        data[random.random(len(data)) < 0.02] = np.nan
        discount = random.random(len(data)).astype(of_discount)
        for last in (None, random.standard_normal((len(sizes), *row))):
            given = data, discount, sizes, last, reverse, 0.9
            assert_same(native.discounted_sums(*given), reference.discounted_sums(*given))


def test_results_are_the_same_on_any_number_of_threads(native, two_threads):
    data, lengths = np.random.default_rng(0).standard_normal(300_000), np.full(3000, 100)
    given = data, np.full(len(data), 0.5), lengths, None, True, 1.0
    several = native.discounted_sums(*given)
    kernels.set_num_threads(1)
    assert_same(several, native.discounted_sums(*given))
