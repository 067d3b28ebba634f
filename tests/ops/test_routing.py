"""Tokens to experts and back: answers of megablocks."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


def test_tokens_beyond_the_capacity_are_left_out():
    found = ops.route_topk(A([[2], [0], [1], [2], [2], [0]]), num_experts=3, capacity=2)
    assert found.tokens.tolist() == [1, 5, 2, 0, 3]
    assert found.lengths.tolist() == [2, 1, 2]


def test_rows_of_an_expert_are_filled_up():
    found = ops.route_topk(A([[0, 2], [0, 2], [0, 2]]), num_experts=3, multiple_of=2)
    assert found.lengths.tolist() == [4, 0, 4]
    assert found.choices.tolist() == [0, 2, 4, -1, 1, 3, 5, -1]


def test_unroute_is_the_weighted_sum():
    found = ops.unroute(A([1.0, 2, 3, 4]), A([2, 0, 1, 3]), A([[0.5, 1], [2, 3]]))
    assert found.tolist() == [4, 14]


def test_a_token_that_was_left_out_gives_0():
    assert ops.unroute(A([5.0]), A([1]), A([[1.0], [2.0]])).tolist() == [0, 10]


def test_an_expert_outside_is_an_error():
    with pytest.raises(OpError, match="route_topk: "):
        ops.route_topk(A([[3]]), num_experts=3)
