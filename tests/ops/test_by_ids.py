"""Rows by ids in any order: as a plain loop over the ids gives."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


IDS, X = A([1, 0, 1, 3, 0]), A([3.0, 1, 2, 5, 4])


def test_reducers_by_id_are_reducers_of_the_order():
    order, lengths, _ = ops.group_order(IDS, num_segments=4)
    assert ops.lengths_prod(X[order], lengths, empty=1).tolist() == [4, 6, 1, 5]
    assert ops.lengths_std(X[order], lengths).tolist() == [1.5, 0.5, 0, 0]


def test_functions_that_keep_the_rows_come_back():
    order, lengths, back = ops.group_order(IDS)
    assert ops.cumsum_within(X[order], lengths)[back].tolist() == [3, 1, 5, 5, 5]


def test_an_id_outside_is_an_error_or_dropped():
    with pytest.raises(OpError, match=r"group_order: ids\[1\] is -1, expected 0 or more"):
        ops.group_order(A([1, -1]))
    with pytest.raises(OpError, match=r"ids\[0\] = 5 is outside \[0, 3\)"):
        ops.group_order(A([5]), num_segments=3)
    dropped = ops.group_order(A([5, 0, -1]), num_segments=3, outside="drop")
    assert [one.tolist() for one in dropped] == [[1], [1, 0, 0], [-1, 0, -1]]


def test_positions_count_earlier_rows_of_the_id():
    assert ops.positions_by_id(A([1, 0, 1, 1, 0])).tolist() == [0, 0, 1, 2, 1]
