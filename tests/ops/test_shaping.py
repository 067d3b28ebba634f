"""Other shapes for the same elements: calls and inference agree."""

import numpy as np
import pytest
from hypothesis import given
from inferring import X, check_kept, check_lost, check_refused, infer, shape, spec
from strategies.shaping import SHAPING

from seqflow import Dimension, ops, registry
from seqflow.errors import OpError, ShapeError
from seqflow.shape import Equalities

# Against NumPy


@given(SHAPING["reshape"]())
def test_reshape_is_numpys(call):
    (inputs, _) = call
    np.testing.assert_array_equal(ops.reshape(**inputs), np.reshape(inputs["x"], inputs["shape"].tolist()))


@given(SHAPING["transpose"]())
def test_transpose_is_numpys(call):
    inputs, attributes = call
    expected = np.transpose(inputs["x"], attributes.get("perm"))
    np.testing.assert_array_equal(ops.transpose(**inputs, **attributes), expected)


@given(SHAPING["expand_dims"]())
def test_expand_dims_and_squeeze_are_inverse(call):
    inputs, attributes = call
    expanded = ops.expand_dims(**inputs, **attributes)
    np.testing.assert_array_equal(expanded, np.expand_dims(inputs["x"], attributes["axis"]))
    np.testing.assert_array_equal(ops.squeeze(expanded, **attributes), inputs["x"])


@given(SHAPING["squeeze"]())
def test_squeeze_is_numpys(call):
    inputs, attributes = call
    np.testing.assert_array_equal(
        ops.squeeze(**inputs, **attributes), np.squeeze(inputs["x"], attributes.get("axis"))
    )


def test_scalars_have_a_shape_too():
    assert ops.reshape(np.array(3), [1, 1]).tolist() == [[3]]
    assert ops.reshape(np.array([[3]]), []).shape == ()
    assert ops.transpose(np.array(3)).shape == ops.squeeze(np.array(3)).shape == ()
    assert ops.expand_dims(np.array(3), axis=-1).tolist() == [3]
    assert ops.tile(np.array(3), repeats=2).tolist() == [3, 3]
    assert ops.reduce_sum(np.array(3)).tolist() == 3
    assert ops.gather_axis([1, 2], 1, axis=0).tolist() == 2


def test_attributes_may_be_ints_lists_or_arrays():
    x = np.ones((2, 3))
    assert ops.transpose(x, perm=np.array([1, 0])).shape == (3, 2)
    assert ops.reduce_sum(x, axes=range(2)).tolist() == 6
    assert [len(piece) for piece in ops.split(x, parts=np.int64(2))] == [1, 1]


# What is kept of the rows


KEPT = [
    ("reshape", "{N,8}", {"values": [-1, 2, 4]}, "{N,2,4}"),
    ("reshape", "{N,2,4}", {"values": [-1, 8]}, "{N,8}"),
    ("reshape", "{7,2,4}", {"values": [7, -1]}, "{7,8}"),
    ("reshape", "{N,4}", {"values": [3, 4]}, "{3,4}"),
    ("transpose", "{N,2,4}", {"attributes": {"perm": (0, 2, 1)}}, "{N,4,2}"),
    ("transpose", "{N}", {}, "{N}"),
    ("expand_dims", "{N,2}", {"attributes": {"axis": (1, -1)}}, "{N,1,2,1}"),
    ("squeeze", "{N,1,2}", {"attributes": {"axis": (1,)}}, "{N,2}"),
    ("squeeze", "{5,1,2}", {}, "{5,2}"),
]  # fmt: skip
LOST = [
    ("reshape", "{N,8}", {"values": [-1]}, "{8*N}"),
    ("reshape", "{N,8}", {"values": [-1, 4]}, "{2*N,4}"),
    ("reshape", "{N,8}", {}, "?"),
    ("transpose", "{N,2}", {}, "{2,N}"),
    ("transpose", "{4,4}", {"attributes": {"perm": (1, 0)}}, "{4,4}"),
    ("expand_dims", "{N,2}", {"attributes": {"axis": (0,)}}, "{1,N,2}"),
    ("squeeze", "{1,2}", {}, "{2}"),
    ("squeeze", "{N,1,2}", {}, "?"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "options", "expected"), KEPT)
def test_rows_that_stay_rows_are_said_to(name, x, options, expected):
    check_kept(name, x, options, expected)


@pytest.mark.parametrize(("name", "x", "options", "expected"), LOST)
def test_rows_that_moved_are_not(name, x, options, expected):
    check_lost(name, x, options, expected)


# Static shapes of what is not known


@pytest.mark.parametrize(
    ("x", "size", "expected"),
    [
        ("{?,8}", [-1, 4], "{?,4}"),
        ("{2..3,8}", [-1, 4], "{4..6,4}"),
        ("{N,M}", [-1], "{M*N}"),
        ("?", [-1, 4], "{?,4}"),
        ("{N,4}", [0, 4], "{0,4}"),
    ],
)
def test_what_is_left_of_a_shape_is_exact(x, size, expected):
    assert shape("reshape", x, values=size) == expected


def test_a_shape_that_is_not_known_is_requested():
    assert infer("reshape", {"x": "{4}", "shape": spec("{2}", dtype="int64")}).requested == {"shape"}
    assert shape("reshape", {"x": "{4}", "shape": spec("{2}", dtype="int64")}) == "{?,?}"


def test_a_size_that_must_fit_is_learnt():
    known = Equalities()
    registry.get("reshape").infer(
        {"x": spec("{N,4}"), "shape": spec("{2}", dtype="int64")},
        values={"shape": np.array([3, 4])},
        equalities=known,
    )
    assert known.resolve(Dimension.symbol("N")) == 3


# Refusals, the same in calls and in inference


REFUSED = [
    ("reshape", [-1, -1], {}, ShapeError, r"shape\[0\] and shape\[1\] are both -1"),
    ("reshape", [2, -2], {}, ShapeError, r"shape\[1\] is -2, expected a size, or -1"),
    ("reshape", [4, -1], {}, ShapeError, r"has 6 elements, no multiple of the 4"),
    ("reshape", [2, 2], {}, ShapeError, r"has 6 elements, shape .* has 4"),
    ("reshape", [0, -1], {}, ShapeError, r"any size fits the -1"),
    ("transpose", None, {"perm": (0, 0)}, OpError, r"perm\[1\] is 0, the same axis as perm\[0\] = 0"),
    ("transpose", None, {"perm": (0, -2)}, OpError, r"perm\[1\] is -2, the same axis as perm\[0\] = 0"),
    ("transpose", None, {"perm": (0, 2)}, ShapeError, r"perm\[1\] is 2, but x has 2 dimensions"),
    ("transpose", None, {"perm": (0,)}, ShapeError, r"perm is \[0\], but x has 2 dimensions"),
    ("expand_dims", None, {"axis": (4,)}, ShapeError, r"axis is 4, but the result has 3 dimensions"),
    ("expand_dims", None, {"axis": (1, 1)}, OpError, r"axis\[1\] is 1, the same axis"),
    ("squeeze", None, {"axis": (0,)}, ShapeError, r"x.shape\[0\] is 2, expected 1"),
    ("squeeze", None, {"axis": (2,)}, ShapeError, r"axis is 2, but x has 2 dimensions"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes", "attributes", "kind", "message"), REFUSED)
def test_a_call_and_inference_refuse_the_same(name, sizes, attributes, kind, message):
    check_refused(name, sizes, attributes, kind, message)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.transpose(X, perm=(0, 0.5)), r"perm\[1\] is 0.5 \(float\), expected an integer"),
        (lambda: ops.transpose(X, perm="10"), r"perm is '10' \(str\), expected integers"),
        (lambda: ops.tile(X, repeats=(1, -1)), r"repeats\[1\] is -1, expected an integer, 0 or more"),
        (lambda: ops.tile(X, repeats=(True,)), r"repeats\[0\] is True \(bool\)"),
        (lambda: ops.split(X, parts=0), r"parts is 0, expected an integer, 1 or more, or a list of sizes"),
        (lambda: ops.split(X, parts=[]), r"parts is empty"),
        (lambda: ops.split(X, parts=[-1, 3]), r"parts\[0\] is -1"),
        (lambda: ops.reshape(X, [2.0, 3.0]), r"shape is float64, expected integers"),
    ],
)
def test_attributes_that_are_no_integers(call, message):
    with pytest.raises(OpError, match=message):
        call()


def test_views_share_memory():
    x = np.arange(6).reshape(2, 3)
    for view in (
        ops.reshape(x, [3, 2]),
        ops.transpose(x),
        ops.expand_dims(x, axis=0),
        ops.slice_axes(x, starts=0, stops=1),
        ops.split(x, parts=2)[0],
    ):
        assert np.shares_memory(view, x)
