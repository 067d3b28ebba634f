"""Quantiles of each segment are those of NumPy."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("q", [0, 0.3, 0.5, [0.25, 1.0]])
def test_quantiles_are_those_of_numpy(interpolation, q):
    random = np.random.default_rng(0)
    lengths = random.integers(0, 9, 50)
    data = random.standard_normal(lengths.sum())
    found = ops.lengths_quantile(data, lengths, q=q, interpolation=interpolation, empty=-1)
    pieces = np.split(data, np.cumsum(lengths)[:-1])
    expected = [
        np.quantile(one, q, method=interpolation) if len(one) else np.full(np.shape(q), -1.0)
        for one in pieces
    ]
    np.testing.assert_allclose(found, expected)


def test_nan_gives_nan():
    assert np.isnan(ops.lengths_median(A([1.0, np.nan, 2.0]), [3])[0])


@pytest.mark.parametrize("q", [1.5, -0.1, float("nan"), [0.5, 2]])
def test_a_share_outside_0_to_1_is_an_error(q):
    with pytest.raises(OpError, match=r"lengths_quantile: q.* expected 0 to 1"):
        ops.lengths_quantile(A([1.0]), [1], q=q)
