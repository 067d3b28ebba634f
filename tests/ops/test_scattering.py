"""Rows that are scaled, weighed or put back: factors beyond the range of the rows' dtype."""

import warnings

import numpy as np
import pytest

from seqflow import ops

HUGE = np.array([1e300])
ROWS = np.ones((1, 2), np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.scale_rows(np.ones((1, 2), np.float16), np.array([65535], np.uint16)),
        lambda: ops.scale_rows(ROWS, HUGE),
        lambda: ops.slice_backward(HUGE, np.zeros(1, np.float32), starts=[0], stops=[1]),
        lambda: ops.scatter_rows(HUGE, np.array([0]), np.zeros(1, np.float32)),
        lambda: ops.layer_norm(np.array([[1, 3]], np.float32), None, np.array([1e300, 1e300])),
        lambda: ops.scatter_pooled_weighted(
            ROWS, HUGE, np.zeros((1, 2), np.float32), np.array([0]), np.array([1])
        ),
    ],
)
def test_what_the_dtype_of_the_rows_cannot_hold_is_infinite_without_a_warning(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = call()
    assert np.isinf(result).all()
