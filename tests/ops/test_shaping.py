"""Other shapes, joining and cutting along an axis, reducing over axes: calls and inference agree."""

import numpy as np
import pytest
from drawing_shaping import SHAPING
from hypothesis import given
from hypothesis import strategies as st

from seqflow import Dimension, PartialShape, TensorSpec, ops, registry
from seqflow.errors import LodError, OpError, OpIndexError, OpTypeError, ShapeError
from seqflow.shape import Equalities
from seqflow.signature import Described

ROWS = Described("lengths")
OTHER = Described("others")
NAMES = [name for name in registry.names() if registry.get(name).draw in SHAPING and registry.get(name).shape]


def spec(shape, rows=None, dtype="float32"):
    return TensorSpec(dtype, shape, rows)


def infer(name, shapes, attributes=None, values=None):
    specs = shapes if isinstance(shapes, dict) else {"x": shapes}
    specs = {key: one if isinstance(one, (TensorSpec, list)) else spec(one) for key, one in specs.items()}
    if name == "reshape" and values is not None:
        specs["shape"], values = spec([len(values)], dtype="int64"), {"shape": np.array(values, np.int64)}
    elif name == "reshape":
        specs.setdefault("shape", spec("{?}", dtype="int64"))
    return registry.get(name).infer(specs, attributes or {}, values=values)


def shape(*args, **options):
    return str(infer(*args, **options).outputs[0].shape)


def rows(*args, **options):
    return infer(*args, **options).outputs[0].rows


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


@given(SHAPING["concat"]())
def test_concat_is_numpys(call):
    inputs, attributes = call
    np.testing.assert_array_equal(
        ops.concat(**inputs, **attributes), np.concatenate(*inputs.values(), **attributes)
    )


@given(SHAPING["split"]())
def test_concat_undoes_split(call):
    inputs, attributes = call
    pieces = ops.split(**inputs, **attributes)
    np.testing.assert_array_equal(ops.concat(pieces, axis=attributes["axis"]), inputs["x"])
    parts = attributes["parts"]
    sizes = [piece.shape[attributes["axis"]] for piece in pieces]
    assert sizes == list(parts) if isinstance(parts, tuple) else len(set(sizes)) == 1 and len(sizes) == parts


@given(SHAPING["tile"]())
def test_tile_is_numpys(call):
    inputs, attributes = call
    np.testing.assert_array_equal(
        ops.tile(**inputs, **attributes), np.tile(inputs["x"], attributes["repeats"])
    )


@given(SHAPING["slice_axes"]())
def test_slice_axes_is_numpys(call):
    inputs, attributes = call
    x, count = inputs["x"], len(attributes["starts"])
    index = [slice(None)] * x.ndim
    steps, axes = attributes.get("steps", [1] * count), attributes.get("axes", range(count))
    for axis, start, stop, step in zip(axes, attributes["starts"], attributes["stops"], steps, strict=True):
        index[axis] = slice(start, stop, step)
    np.testing.assert_array_equal(ops.slice_axes(x, **attributes), x[tuple(index)])


@given(SHAPING["gather_axis"]())
def test_gather_axis_is_numpys_take(call):
    inputs, attributes = call
    expected = np.take(inputs["data"], inputs["indices"], attributes["axis"])
    np.testing.assert_array_equal(ops.gather_axis(**inputs, **attributes), expected)


@given(SHAPING["reduce"]())
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
    ("tile", "{N,2}", {"attributes": {"repeats": (3,)}}, "{N,6}"),
    ("tile", "{N,2}", {"attributes": {"repeats": (1, 2)}}, "{N,4}"),
    ("slice_axes", "{N,5}", {"attributes": {"starts": (1,), "stops": (3,), "axes": (1,)}}, "{N,2}"),
    ("slice_axes", "{N,5}", {"attributes": {"starts": (0,), "stops": (2**63 - 1,)}}, "{N,5}"),
    ("slice_axes", "{4,5}", {"attributes": {"starts": (0,), "stops": (9,)}}, "{4,5}"),
    ("reduce_sum", "{N,2,3}", {"attributes": {"axes": (1,)}}, "{N,3}"),
    ("reduce_max", "{N,2,3}", {"attributes": {"axes": (-1, 1), "keepdims": True}}, "{N,1,1}"),
    ("split", "{N,6}", {"attributes": {"parts": 2, "axis": 1}}, "{N,3}"),
    ("cast", "{N,6}", {"attributes": {"dtype": "int8"}}, "{N,6}"),
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
    ("tile", "{N,2}", {"attributes": {"repeats": (2, 1)}}, "{2*N,2}"),
    ("tile", "{N,2}", {"attributes": {"repeats": (1, 1, 2)}}, "{1,N,4}"),
    ("slice_axes", "{5,2}", {"attributes": {"starts": (0,), "stops": (3,)}}, "{3,2}"),
    ("slice_axes", "{5,2}", {"attributes": {"starts": (-1,), "stops": (-9,), "steps": (-1,)}}, "{5,2}"),
    ("slice_axes", "?", {"attributes": {"starts": (0,), "stops": (3,)}}, "?"),
    ("reduce_sum", "{N,2,3}", {"attributes": {"axes": (0,), "keepdims": True}}, "{1,2,3}"),
    ("reduce_sum", "{N,2,3}", {}, "{}"),
    ("split", "{6,2}", {"attributes": {"parts": (4, 2)}}, "{4,2}"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "options", "expected"), KEPT)
def test_rows_that_stay_rows_are_said_to(name, x, options, expected):
    assert rows(name, spec(x, ROWS), **options) == ROWS
    assert shape(name, spec(x, ROWS), **options) == expected
    assert rows(name, spec(x), **options) is None


@pytest.mark.parametrize(("name", "x", "options", "expected"), LOST)
def test_rows_that_moved_are_not(name, x, options, expected):
    assert rows(name, spec(x, ROWS), **options) is None
    assert shape(name, spec(x, ROWS), **options) == expected


def test_concat_keeps_rows_beside_each_other_only():
    one, other, plain = spec("{N,2}", ROWS), spec("{N,3}", ROWS), spec("{N,1}")
    assert rows("concat", {"tensors": [one, other, plain]}, {"axis": 1}) == ROWS
    assert shape("concat", {"tensors": [one, other]}, {"axis": -1}) == "{N,5}"
    assert rows("concat", {"tensors": [one, one]}, {"axis": 0}) is None
    assert shape("concat", {"tensors": [one, one]}, {"axis": 0}) == "{2*N,2}"
    with pytest.raises(LodError, match="holds the rows of"):
        infer("concat", {"tensors": [one, spec("{N,3}", OTHER)]}, {"axis": 1})


def test_gathered_rows_are_those_of_data_or_of_the_indices():
    data, indices = spec("{N,5}", ROWS), spec("{M,2}", OTHER, "int64")
    inputs = {"data": data, "indices": indices}
    assert rows("gather_axis", inputs, {"axis": -1}) == ROWS
    assert shape("gather_axis", inputs, {"axis": 1}) == "{N,M,2}"
    assert rows("gather_axis", inputs, {"axis": 0}) == OTHER
    assert rows("gather_axis", {"data": data, "indices": spec("{}", None, "int64")}, {"axis": 0}) is None


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_rows_said_to_be_kept_move_with_the_input(name, data):
    op = registry.get(name)
    inputs, attributes = data.draw(SHAPING[op.draw]())
    moved = data.draw(st.sampled_from([key for key in inputs if key != "shape"]))
    specs = {key: specs_of(array, ROWS if key == moved else None) for key, array in inputs.items()}
    count = min((len(one) for one in as_list(inputs[moved]) if one.ndim), default=0)
    order = data.draw(st.permutations(range(count)))
    together = [key for key in inputs if key == moved or batches(inputs, name)]
    permuted = inputs | {key: permute(inputs[key], order) for key in together}
    found = as_list(op.call(**inputs, **attributes))
    again = as_list(op.call(**permuted, **attributes))
    inferred = op.infer(specs, attributes, values=inputs)
    for one, before, after in zip(inferred.outputs, found, again, strict=True):
        if one.rows == ROWS:
            np.testing.assert_allclose(after.astype(float), before[order].astype(float), rtol=1e-6)


def batches(inputs, name):
    """Whether axis 0 of both factors of a product is the same batch."""
    shapes = [array.shape for array in inputs.values()] if name == "matmul" else [()]
    return len(shapes[0]) > 2 and len(shapes[0]) == len(shapes[1]) and shapes[0][0] == shapes[1][0]


def as_list(value):
    return value if isinstance(value, list) else [value]


def permute(value, order):
    if isinstance(value, list):
        return [permute(one, order) for one in value]
    return value[order] if value.ndim and len(value) == len(order) else value


def specs_of(value, rows):
    if isinstance(value, list):
        return [specs_of(one, rows) for one in value]
    return TensorSpec.of(value, rows)


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


def test_a_shape_that_is_not_known_is_wanted():
    assert infer("reshape", {"x": "{4}", "shape": spec("{2}", dtype="int64")}).wanted == {"shape"}
    assert shape("reshape", {"x": "{4}", "shape": spec("{2}", dtype="int64")}) == "{?,?}"


def test_a_size_that_must_fit_is_learnt():
    known = Equalities()
    registry.get("reshape").infer(
        {"x": spec("{N,4}"), "shape": spec("{2}", dtype="int64")},
        values={"shape": np.array([3, 4])},
        equalities=known,
    )
    assert known.resolve(Dimension.symbol("N")) == 3


@pytest.mark.parametrize(
    ("start", "stop", "step", "expected"),
    [
        (0, 3, 1, "{min(3,N)}"),
        (-3, 2**63 - 1, 1, "{min(3,N)}"),
        (0, -2, 1, "{N-min(2,N)}"),
        (3, 1, 1, "{0}"),
        (-1, -(2**63), -1, "{N}"),
        (2, -2, 1, "{?}"),
    ],
)
def test_slices_of_a_named_size(start, stop, step, expected):
    assert shape("slice_axes", "{N}", {"starts": (start,), "stops": (stop,), "steps": (step,)}) == expected


@given(
    size=st.integers(0, 7),
    low=st.integers(0, 7),
    extra=st.integers(0, 7),
    start=st.integers(-8, 8),
    stop=st.one_of(st.integers(-8, 8), st.just(2**63 - 1), st.just(-(2**63))),
    step=st.sampled_from([-3, -2, -1, 1, 2, 3]),
)
def test_slices_of_a_size_between_bounds_hold_every_size(size, low, extra, start, stop, step):
    size = low + min(size, extra)
    attributes = {"starts": (start,), "stops": (stop,), "steps": (step,)}
    (found,) = (
        infer("slice_axes", spec([Dimension.symbol("N", low, low + extra)]), attributes).outputs[0].shape
    )
    real = len(range(*slice(start, stop, step).indices(size)))
    assert found.may_be(real)
    assert found.evaluate({"N": size}) in (None, real)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_a_shape_known_in_part_still_holds_the_real_one(name, data):
    op = registry.get(name)
    inputs, attributes = data.draw(SHAPING[op.draw]())
    named = {key: blurred(data, key, value) for key, value in inputs.items()}
    values = inputs if data.draw(st.booleans()) else {}
    inferred = op.infer(named, attributes, values=values)
    result = op.call(**inputs, **attributes)
    for found, real in zip(inferred.outputs, result if isinstance(result, list) else [result], strict=True):
        assert found.dtype == real.dtype
        assert found.shape.relaxes(PartialShape(real.shape))


def blurred(data, name, value):
    """The spec of an array with some of its sizes forgotten, or given a name."""
    if isinstance(value, list):
        return [blurred(data, f"{name}_{i}", one) for i, one in enumerate(value)]
    forms = st.sampled_from(["size", "name", "bounds", "unknown"])
    sizes = [
        {
            "size": size,
            "name": f"{name}.shape[{i}]",
            "bounds": Dimension(max(size - 1, 0), size + 1),
            "unknown": "?",
        }[data.draw(forms)]
        for i, size in enumerate(value.shape)
    ]
    return TensorSpec(value.dtype, "?" if data.draw(st.integers(0, 5)) == 0 else sizes)


# Refusals, the same in calls and in inference


X = np.ones((2, 3), np.float32)
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
    ("split", None, {"parts": 4}, ShapeError, r"x.shape\[0\] is 2, which 4 equal parts do not divide"),
    ("split", None, {"parts": (1, 3), "axis": -1}, ShapeError, r"x.shape\[1\] is 3, but parts \[1, 3\] add up to 4"),
    ("split", None, {"parts": 1, "axis": 2}, ShapeError, r"axis is 2, but x has 2 dimensions"),
    ("slice_axes", None, {"starts": (0,), "stops": (1, 2)}, OpError, r"stops has 2 entries, expected 1 as starts"),
    ("slice_axes", None, {"starts": (0,), "stops": (1,), "steps": (0,)}, OpError, r"steps\[0\] is 0"),
    ("slice_axes", None, {"starts": (0, 0), "stops": (1, 1), "axes": (0, 0)}, OpError, r"axes\[1\] is 0, the same axis"),
    ("slice_axes", None, {"starts": (0,) * 3, "stops": (1,) * 3}, ShapeError, r"starts has 3 entries, but x has 2"),
    ("reduce_sum", None, {"axes": (0, 0)}, OpError, r"axes\[1\] is 0, the same axis as axes\[0\] = 0"),
    ("reduce_mean", None, {"axes": (1, -1)}, OpError, r"axes\[1\] is -1, the same axis as axes\[0\] = 1"),
    ("reduce_max", None, {"axes": (-3,)}, ShapeError, r"axes is -3, but x has 2 dimensions"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes", "attributes", "kind", "message"), REFUSED)
def test_a_call_and_inference_refuse_the_same(name, sizes, attributes, kind, message):
    given = {} if sizes is None else {"shape": sizes}
    with pytest.raises(kind, match=f"^{name}: .*{message}"):
        getattr(ops, name)(X, **given, **attributes)
    with pytest.raises(kind, match=f"^{name}: (?!{name}).*{message}"):
        infer(name, "{2,3}", attributes, values=sizes)


LISTS = [
    ([(2, 3), (2, 2)], 0, ShapeError, r"tensors\[1\].shape\[1\] is 2"),
    ([(2, 3), (2,)], 0, ShapeError, r"tensors\[1\] has 1 dimensions, expected 2 as tensors\[0\]"),
    ([()], 0, ShapeError, r"tensors\[0\] has no dimensions"),
    ([(2, 3)], 2, ShapeError, r"axis is 2, but each tensor has 2 dimensions"),
    ([], 0, OpError, r"expected lists of one or more"),
]


@pytest.mark.parametrize(("shapes", "axis", "kind", "message"), LISTS)
def test_what_does_not_join_is_refused(shapes, axis, kind, message):
    with pytest.raises(kind, match=message):
        ops.concat([np.zeros(shape) for shape in shapes], axis=axis)
    with pytest.raises(kind, match=message):
        infer("concat", {"tensors": [spec(shape) for shape in shapes]}, {"axis": axis})


def test_tensors_of_different_dtypes_do_not_join():
    with pytest.raises(
        OpTypeError, match=r"tensors\[1\] is int64, expected float64 as tensors\[0\]\n  cast one"
    ):
        ops.concat([np.ones(1), np.ones(1, np.int64)])
    with pytest.raises(OpTypeError, match=r"tensors\[1\] is int64, expected float32 as tensors\[0\]"):
        infer("concat", {"tensors": [spec("{1}"), spec("{1}", dtype="int64")]})


def test_an_index_outside_the_axis_is_named():
    data = np.ones((2, 3))
    with pytest.raises(OpIndexError, match=r"gather_axis: indices\[1, 0\] = 3 is outside \[0, 3\)"):
        ops.gather_axis(data, [[0], [3]], axis=1)
    with pytest.raises(OpIndexError, match=r"indices\[0\] = -1 is outside \[0, 3\)"):
        ops.gather_axis(data, [-1], axis=-1)
    with pytest.raises(OpIndexError, match=r"indices\[0\] = -4 is outside \[-3, 3\)"):
        ops.gather_axis(data, [-4], axis=-1, wrap=True)
    with pytest.raises(OpIndexError, match=r"indices\[0\] = 2 is outside \[0, 2\)"):
        ops.gather_axis(data, [2], axis=0)
    with pytest.raises(ShapeError, match="axis is 2, but data has 2 dimensions"):
        ops.gather_axis(data, [0], axis=2)
    with pytest.raises(ShapeError, match="axis is 0, but data has 0 dimensions"):
        infer("gather_axis", {"data": "{}", "indices": spec("{1}", dtype="int64")}, {"axis": 0})


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
