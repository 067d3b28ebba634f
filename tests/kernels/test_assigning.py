"""Laws of assigning, whichever kernel assigns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow import kernels

each_kernel = settings(max_examples=60, deadline=None)


@st.composite
def assignments(draw):
    """Costs, and the room of each column."""
    room = draw(st.lists(st.integers(0, 5), min_size=1, max_size=6))
    costs = draw(st.lists(st.integers(0, 100), min_size=sum(room), max_size=sum(room)))
    return np.array(costs, np.int64), np.array(room, np.int64)


@each_kernel
@given(assignments())
def test_each_item_is_assigned_once_and_the_dearest_of_a_column_come_first(any_kernels, assignment):
    costs, room = assignment
    items = kernels.assign(costs, room)
    assert sorted(items.tolist()) == list(range(len(costs)))
    for column in np.split(items, np.cumsum(room)[:-1]):
        assert (np.diff(costs[column]) <= 0).all()


@each_kernel
@given(assignments())
def test_each_item_went_to_the_column_that_had_the_least_of_those_with_room(any_kernels, assignment):
    costs, room = assignment
    columns = np.repeat(np.arange(len(room)), room)
    column_of = np.zeros(len(costs), np.int64)
    column_of[kernels.assign(costs, room)] = columns
    totals, left = np.zeros(len(room), np.int64), room.copy()
    for item in np.argsort(-costs, kind="stable"):
        column = column_of[item]
        assert (totals[column], column) == min((totals[at], at) for at in np.flatnonzero(left))
        totals[column] += costs[item]
        left[column] -= 1


def test_the_dearest_item_goes_to_the_column_with_the_least(any_kernels):
    items = kernels.assign(np.array([5, 1, 9, 4, 4, 1]), np.array([2, 2, 2]))
    assert items.tolist() == [2, 5, 0, 1, 3, 4]


@pytest.mark.parametrize(
    ("costs", "room", "message"),
    [
        ([1, 2, 3], [2], r"sum\(room\) is 2 but costs has 3 rows"),
        ([1, -2], [2], r"costs\[1\] = -2 is negative"),
        ([1, 2], [3, -1], r"room\[1\] = -1 is negative"),
        ([2**62, 2**62], [2], r"sum\(costs\) overflows int64"),
    ],
)
def test_bad_input_is_named(any_kernels, costs, room, message):
    with pytest.raises(kernels.KernelError, match=message):
        kernels.assign(np.array(costs), np.array(room))
