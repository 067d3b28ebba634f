"""Discounted sums: answers of rlax, and laws."""

import numpy as np

from seqflow import ops

A = np.array


R = A([1.0, 0.0, -1.0, 0.0, 1.0, 0.5, 0.8, -0.7, 0.0, 2.1])
G = A([0.5, 0.9, 1.0, 0.5, 0.8, 0.9, 0.5, 0.3, 0.8, 0.7])


def test_returns_are_those_of_rlax():
    found = ops.discounted_sum_within(R, G, [5, 5], [3.0, 2.7])
    np.testing.assert_allclose(found, [1.315, 0.63, 0.7, 1.7, 3.4, 1.33592, 0.9288, 0.2576, 3.192, 3.99])


def test_generalised_advantages_end_where_the_discount_is_0():
    rewards, values = A([0.0, 0, 0, 0, 1]), A([-3.0, -2, -1, 0, 5, -1])
    discounts = A([0.9, 0.9, 0.9, 0.0, 0.9])
    steps = rewards + discounts * values[1:] - values[:-1]
    found = ops.discounted_sum_within(steps, discounts * 0.7, [5])
    np.testing.assert_allclose(found, [2.2899, 1.73, 1.0, 0.0, -4.9])


def test_a_million_steps_give_no_nan():
    count = 1_000_000
    found = ops.discounted_sum_within(np.ones(count), np.full(count, 0.5), [count])
    assert np.isfinite(found).all()
    assert found[0] == 2


def test_forward_and_gamma_are_weighted_means():
    x = A([1.0, 0.5 * 3, 0.5 * 2])
    found = ops.discounted_sum_within(x, np.ones(3), [3], gamma=0.5, reverse=False)
    assert found.tolist() == [1, 2, 2]


def test_an_empty_sequence_does_not_read_its_last():
    assert ops.discounted_sum_within(A([1.0]), A([1.0]), [0, 1], [np.nan, 2.0]).tolist() == [3]
