"""Reducing over axes: calls and inference agree."""

import numpy as np
import pytest
from hypothesis import given
from inferring import check_kept, check_lost, check_refused
from strategies.shaping import SHAPING

from seqflow import ops
from seqflow.errors import OpError, ShapeError

# Against NumPy


@given(SHAPING["reduce_sum"]())
def test_reductions_are_numpys_but_for_nothing(call):
    inputs, attributes = call
    x, axes = inputs["x"], attributes.get("axes")
    options = {"axis": axes, "keepdims": attributes["keepdims"]}
    wide = np.float64 if x.dtype.kind == "f" else None
    np.testing.assert_allclose(ops.reduce_sum(x, **attributes), np.sum(x, dtype=wide, **options), rtol=1e-6)
    if x.size:
        np.testing.assert_array_equal(ops.reduce_max(x, **attributes), np.max(x, **options))
        mean = np.mean(x, dtype=np.float64, **options)
        np.testing.assert_allclose(ops.reduce_mean(x, **attributes), mean, rtol=1e-6)


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_mean", "reduce_max"])
def test_reducing_nothing_gives_what_was_asked_for(name):
    reduce = getattr(ops, name)
    assert reduce(np.zeros((0, 2))).tolist() == 0
    assert reduce(np.zeros((0, 2)), axes=0).tolist() == [0, 0]
    assert reduce(np.zeros((0, 2)), axes=1).tolist() == []
    assert reduce(np.zeros((2, 0)), axes=1, keepdims=True, empty=-1).tolist() == [[-1], [-1]]
    with pytest.raises(OpError, match="empty is 'x'"):
        reduce(np.ones(1), empty="x")


# What is kept of the rows


KEPT = [
    ("reduce_sum", "{N,2,3}", {"attributes": {"axes": (1,)}}, "{N,3}"),
    ("reduce_max", "{N,2,3}", {"attributes": {"axes": (-1, 1), "keepdims": True}}, "{N,1,1}"),
]  # fmt: skip
LOST = [
    ("reduce_sum", "{N,2,3}", {"attributes": {"axes": (0,), "keepdims": True}}, "{1,2,3}"),
    ("reduce_sum", "{N,2,3}", {}, "{}"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "options", "expected"), KEPT)
def test_rows_that_stay_rows_are_said_to(name, x, options, expected):
    check_kept(name, x, options, expected)


@pytest.mark.parametrize(("name", "x", "options", "expected"), LOST)
def test_rows_that_moved_are_not(name, x, options, expected):
    check_lost(name, x, options, expected)


# Refusals, the same in calls and in inference


REFUSED = [
    ("reduce_sum", None, {"axes": (0, 0)}, OpError, r"axes\[1\] is 0, the same axis as axes\[0\] = 0"),
    ("reduce_mean", None, {"axes": (1, -1)}, OpError, r"axes\[1\] is -1, the same axis as axes\[0\] = 1"),
    ("reduce_max", None, {"axes": (-3,)}, ShapeError, r"axes is -3, but x has 2 dimensions"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes", "attributes", "kind", "message"), REFUSED)
def test_a_call_and_inference_refuse_the_same(name, sizes, attributes, kind, message):
    check_refused(name, sizes, attributes, kind, message)
