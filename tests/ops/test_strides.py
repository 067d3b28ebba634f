"""Slices of each sequence are Python's."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


@pytest.mark.parametrize("step", [None, 1, 2, 3, -1, -2, -3, 2**62, -(2**62)])
def test_slices_are_those_of_python(step):
    random = np.random.default_rng(0)
    lengths = random.integers(0, 7, 200)
    data = np.arange(lengths.sum())
    start, stop = random.integers(-9, 9, (2, 200))
    steps = None if step is None else np.full(200, step)
    found = ops.stride_within(data, lengths, start, stop, steps)
    pieces = np.split(data, np.cumsum(lengths)[:-1])
    expected = [one[a:b:step] for one, a, b in zip(pieces, start.tolist(), stop.tolist(), strict=True)]
    assert found.lengths.tolist() == [len(one) for one in expected]
    assert found.values.tolist() == np.concatenate(expected).tolist()


def test_what_is_not_given_is_as_in_python():
    assert ops.stride_within(np.arange(5), [5], step=A([-2])).values.tolist() == [4, 2, 0]
    assert ops.stride_within(np.arange(5), [5], start=A([-2])).values.tolist() == [3, 4]


def test_a_step_of_0_is_an_error():
    with pytest.raises(OpError, match=r"stride_within: step\[0\] is 0"):
        ops.stride_within(A([1]), [1], step=A([0]))
