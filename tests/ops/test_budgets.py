"""Several columns cut to one budget: answers of TF Text."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


def cut(columns, budget, **options):
    data = [np.arange(sum(n)) for n in columns]
    found = ops.truncate_together(data, [A(n) for n in columns], A(budget), columns=len(columns), **options)
    return [one.tolist() for one in found.lengths]


def test_the_longest_loses_rows_until_all_fit():
    assert cut([[3, 3, 4], [1, 3, 3]], [4, 4, 4]) == [[3, 2, 2], [1, 2, 2]]
    assert cut([[2], [2], [5], [5]], [10]) == [[2], [2], [3], [3]]


def test_a_waterfall_fills_the_first_column_first():
    assert cut([[3, 2, 1], [1, 1, 3]], [2, 1, 3], how="waterfall") == [[2, 1, 1], [0, 0, 2]]


def test_a_budget_below_0_empties_the_row():
    assert cut([[3], [1]], [-5]) == [[0], [0]]


def test_the_tail_stays_where_asked():
    found = ops.truncate_together([A([1, 2, 3])], [A([3])], A([2]), columns=1, keep="tail")
    assert found.values[0].tolist() == [2, 3]


def test_another_number_of_columns_is_an_error():
    with pytest.raises(OpError, match="truncate_together: columns is 2, expected 1"):
        ops.truncate_together([A([1])], [A([1])], A([1]), columns=2)
