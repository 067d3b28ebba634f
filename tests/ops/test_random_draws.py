"""Random integers and noise."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


def test_integers_follow_their_weights():
    weights = A([1.0, 0.0, 3.0])
    found = ops.random_integers(A([], int), [40_000], [0], weights, high=3, seed=1)
    shares = np.bincount(found, minlength=3) / len(found)
    np.testing.assert_allclose(shares, [0.25, 0, 0.75], atol=0.01)


def test_positives_of_the_row_are_left_out():
    lengths, positives = A([1000, 1000]), A([0, 1, 2, 7])
    found = ops.random_integers(positives, lengths, A([3, 1]), high=8, seed=1)
    first, second = found[:1000], found[1000:]
    assert set(first.tolist()) == {3, 4, 5, 6, 7}
    assert set(second.tolist()) == {0, 1, 2, 3, 4, 5, 6}


def test_the_one_integer_that_is_left_is_drawn():
    positives = np.delete(np.arange(5000), 123)
    assert set(ops.random_integers(positives, [5], [4999], high=5000, seed=1).tolist()) == {123}


def test_nothing_to_draw_is_an_error():
    with pytest.raises(OpError, match="the positives of sequence 0 leave no integer below 2"):
        ops.random_integers(A([0, 1]), [1], [2], high=2, seed=1)
    with pytest.raises(OpError, match=r"weights\[0\] is -1.0"):
        ops.random_integers(A([], int), [1], [0], A([-1.0]), high=1, seed=1)


def test_noise_has_its_scale():
    normal, uniform = (
        ops.noise(np.zeros((100, 500)), scale=2.0, kind=kind, seed=1) for kind in ("normal", "uniform")
    )
    assert normal.mean() == pytest.approx(0, abs=0.05)
    assert normal.std() == pytest.approx(2, abs=0.05)
    assert np.abs(uniform).max() <= 2
    assert uniform.std() == pytest.approx(2 / 3**0.5, abs=0.05)


@pytest.mark.parametrize(
    "weights", [[1e308, 1e308, 0, 0], [5e-324, 5e-324, 0, 0], [1, 1, 0, 0], [1.7e308, 1.7e308, 5e-324, 0]]
)
def test_a_weight_of_0_is_never_drawn_and_shares_are_those_of_the_weights(weights):
    values = ops.random_integers(
        np.zeros(0, np.int64), np.array([4000]), np.array([0]), np.array(weights, float), high=4, seed=5
    )
    counts = np.bincount(values, minlength=4)
    assert counts[2:].tolist() == [0, 0]
    assert 1800 < counts[0] < 2200
