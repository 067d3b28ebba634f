"""Sequences of a group reduced position by position: answers of TF."""

import numpy as np
import pytest

from seqflow import ops

A = np.array


X, N, G = A([1, 2, 3, 4, 5, 6, 7, 8, 9]), A([2, 0, 3, 2, 0, 1, 1]), A([3, 3, 0, 1])


@pytest.mark.parametrize(
    ("how", "values"),
    [
        ("sum", [4, 6, 5, 14, 7, 9]),
        ("mean", [2, 3, 5, 7, 7, 9]),
        ("max", [3, 4, 5, 8, 7, 9]),
        ("min", [1, 2, 5, 6, 7, 9]),
    ],
)
def test_a_position_counts_the_sequences_that_reach_it(how, values):
    found = ops.lengths_reduce_positions(X, N, G, how=how)
    assert found.values.tolist() == values
    assert found.lengths.tolist() == [3, 2, 0, 1]


@pytest.mark.parametrize(
    ("how", "by"), [("prod", np.prod), ("var", np.var), ("sqrt_n", lambda x: np.sum(x) / len(x) ** 0.5)]
)
def test_other_kinds_are_those_of_the_rows_that_reach_a_position(how, by):
    rows, groups = [[1.0, 2.0], [3.0, 4.0, 5.0], [6.0]], [[0, 1], [], [2]]
    found = ops.lengths_reduce_positions(np.concatenate(rows), [2, 3, 1], [2, 0, 1], how=how)
    expected = [
        by([rows[i][at] for i in group if at < len(rows[i])])
        for group in groups
        for at in range(max((len(rows[i]) for i in group), default=0))
    ]
    np.testing.assert_allclose(found.values, expected)
    assert found.lengths.tolist() == [3, 0, 1]
