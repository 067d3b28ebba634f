"""Binding arrays: what fits, and the error for each thing that does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow import kernels
from seqflow.errors import LodError, OpError, OpTypeError, SeqflowError, ShapeError
from seqflow.signature import bind, fast_condition, parse

REDUCE = parse("number data[sum(lengths), *d], lengths[B] -> out[B, *d]")
UNPAD = parse("padded[B, T>=max(lengths), *d], lengths[B] -> data[sum(lengths), *d]")
JOIN = parse("{data[sum(lengths), *d], lengths[B]}+ -> rows[sum(joined), *d], int64 joined[B]")
ALIKE = parse("float x[N], like(x) weight[N], like(x) bias[N]? -> y[N]")
JOIN_ALIKE = parse("{like(xs) xs[N]}+ -> y[N]")
LSTM = parse("float x[N, K], float w[4*H, K], float u[4*H, H]?, float bias[M]? -> h[N, H]")


def test_arrays_that_fit_come_back_as_they_are():
    data, lengths = np.arange(6.0).reshape(3, 2), np.array([2, 1])
    assert bind(REDUCE, [data, lengths], {})[0] is data


def test_lists_become_arrays_and_an_empty_list_of_lengths_is_integer():
    data, lengths = bind(REDUCE, [[], []], {})
    assert data.shape == (0,)
    assert lengths.dtype == np.int64


def test_other_byte_orders_become_native():
    data, _ = bind(REDUCE, [np.array([1, 2], ">i4"), [2]], {})
    assert data.dtype == np.dtype("=i4")
    assert data.tolist() == [1, 2]


def test_an_optional_input_may_be_left_out():
    _, w, u, bias = bind(LSTM, [np.ones((5, 3)), np.ones((8, 3)), None, None], {})
    assert u is None
    assert bias is None
    assert w.shape == (8, 3)


def test_one_unknown_name_in_a_product_is_solved_for():
    with pytest.raises(ShapeError, match=r"w.shape\[0\] is 7, expected 4\*H for some H"):
        bind(LSTM, [np.ones((5, 3)), np.ones((7, 3)), None, None], {})
    with pytest.raises(
        ShapeError, match=r"u.shape\[0\] is 12, expected 8 \(4\*H is 8, H is 2 as in u.shape\[1\]\)"
    ):
        bind(LSTM, [np.ones((5, 3)), np.ones((8, 3)), np.ones((12, 2)), None], {})


def test_inputs_that_are_alike_have_one_dtype():
    x, weight = np.ones(3, np.float32), np.ones(3)
    assert bind(ALIKE, [x, x, None], {})[2] is None
    with pytest.raises(OpTypeError) as error:
        bind(ALIKE, [x, weight, None], {})
    assert str(error.value) == (
        "weight is float64 but x is float32, expected one dtype for both\n"
        '  cast it first: cast(x, dtype="float64")'
    )
    with pytest.raises(OpTypeError, match="bias is float64 but x is float32"):
        bind(ALIKE, [x, x, weight], {})


@pytest.mark.parametrize(
    ("one", "other", "advice"),
    [
        ("int64", "int32", r'cast it first: cast\(weight, dtype="int64"\)$'),
        ("int32", "int64", r'cast it first: cast\(x, dtype="int64"\)$'),
        ("uint8", "int8", r'cast both first: cast\(weight, dtype="int16"\) and cast\(x, dtype="int16"\)$'),
        ("int32", "float32", r'cast\(weight, dtype="float64"\) and cast\(x, dtype="float64"\)$'),
        ("int64", "float64", "no dtype holds the values of both"),
        ("uint64", "int64", "no dtype holds the values of both"),
        ("bool", "int8", r'cast\(x, dtype="int8"\)$'),
    ],
)
def test_a_cast_that_is_advised_loses_nothing(one, other, advice):
    signature = parse("x[N], like(x) weight[N] -> y[N]")
    with pytest.raises(OpTypeError, match=advice):
        bind(signature, [np.ones(3, one), np.ones(3, other)], {})


def test_in_a_list_all_are_like_the_first():
    one, other = np.ones(3, np.float32), np.ones(3)
    assert len(bind(JOIN_ALIKE, [[[one, one]]], {})[0]) == 2
    with pytest.raises(OpTypeError, match=r"xs\[1\] is float64 but xs\[0\] is float32"):
        bind(JOIN_ALIKE, [[[one, other]]], {})


def test_the_quick_check_refuses_inputs_that_are_not_alike():
    condition = fast_condition(ALIKE, {})
    scope = {"ndarray": np.ndarray}
    x, weight = np.ones(3, np.float32), np.ones(3)
    assert eval(condition, scope, {"x": x, "weight": x, "bias": x})
    assert not eval(condition, scope, {"x": x, "weight": weight, "bias": None})
    assert not eval(condition, scope, {"x": x, "weight": x, "bias": weight})


def test_repetitions_have_lengths_of_their_own_and_share_dimensions():
    ((first, second),) = bind(JOIN, [[[[1, 2], [3]], [[2], [1]]]], {})
    assert first[1].tolist() == [2]
    assert second[0].tolist() == [3]
    with pytest.raises(LodError, match="sum\\(lengths\\) is 2 but data has 1 rows"):
        bind(JOIN, [[[[1, 2], [3]], [[2], [2]]]], {})
    with pytest.raises(ShapeError, match=r"lengths.shape\[0\] is 2, expected 1"):
        bind(JOIN, [[[[1, 2], [3]], [[2], [1, 0]]]], {})
    with pytest.raises(OpError, match="expected lists of one or more, all equally long"):
        bind(JOIN, [[[[1]], []]], {})


BAD = [
    (REDUCE, ([1.0, 2.0], [3]), LodError, "sum(lengths) is 3 but data has 2 rows"),
    (REDUCE, ([1.0, 2.0], [3, -1]), LodError, "lengths[1] = -1 is negative"),
    (REDUCE, ([1.0], [2**62, 2**62, 1]), LodError, "overflow"),
    (REDUCE, ([1.0], [1.0]), OpTypeError, "lengths is float64, expected integers"),
    (REDUCE, ([1.0], [True]), OpTypeError, "lengths is bool, expected integers"),
    (REDUCE, ([1.0], [[1]]), ShapeError, "lengths has 2 dimensions (1, 1), expected 1"),
    (REDUCE, (1.0, [1]), ShapeError, "data has 0 dimensions (), expected 1 or more"),
    (REDUCE, (["a"], [1]), OpTypeError, "data is <U1, expected numbers"),
    (REDUCE, ([None], [1]), OpTypeError, "data holds Python objects"),
    (REDUCE, ([[1], [2, 3]], [2]), OpTypeError, "data is not rectangular"),
    (REDUCE, (np.ma.masked_array([1.0], [True]), [1]), OpTypeError, "data is a masked array"),
    (UNPAD, ([[1, 2]], [3]), ShapeError, "padded.shape[1] is 2, expected 3 or more (max(lengths) is 3)"),
    (UNPAD, ([[1, 2]], [1, 1]), ShapeError, "lengths.shape[0] is 2, expected 1 as in padded.shape[0]"),
]


@pytest.mark.parametrize(("signature", "values", "kind", "message"), BAD)
def test_what_does_not_fit_is_an_error_that_says_what_was_found(signature, values, kind, message):
    with pytest.raises(kind) as error:
        bind(signature, values, {})
    assert message in str(error.value)


DTYPES = st.sampled_from(["int32", "int64", "float32", "bool", "uint8", ">i8"])


@given(
    st.lists(st.integers(-1, 3), max_size=4),
    st.integers(0, 8),
    st.integers(0, 2),
    DTYPES,
    DTYPES,
    st.booleans(),
)
def test_the_fast_condition_is_true_only_where_bind_changes_nothing(
    lengths, rows, extra, data_dtype, lengths_dtype, two_dimensional
):
    values = {
        "data": np.zeros((rows, *[2] * extra), data_dtype),
        "lengths": np.array(lengths, "int64")
        .astype(lengths_dtype)
        .reshape((-1, 1) if two_dimensional else -1),
    }
    condition = fast_condition(REDUCE, {})
    scope = {
        **values, "ndarray": np.ndarray, "check_lengths": kernels.quick_check_lengths, "max_length": kernels.max_length,
    }  # fmt: skip
    try:
        fast = bool(eval(condition, scope))
    except (kernels.KernelError, TypeError):
        fast = False
    try:
        bound = bind(REDUCE, list(values.values()), {})
        unchanged = all(new is old for new, old in zip(bound, values.values(), strict=True))
    except SeqflowError:
        unchanged = False
    assert not fast or unchanged
    if lengths_dtype in ("int32", "int64"):
        assert fast == unchanged


@given(st.data())
def test_the_fast_condition_knows_optional_arguments_and_sizes_computed_from_names(data):
    size = st.sampled_from([0, 1, 2, 4, 8])
    shapes = {
        "x": (data.draw(size), 2), "w": (data.draw(size), 2), "u": (data.draw(size), data.draw(size)),
        "bias": (data.draw(size),),
    }  # fmt: skip
    values = {
        name: np.zeros(shape, data.draw(st.sampled_from(["f4", ">f4", "i4"])))
        for name, shape in shapes.items()
    }
    if data.draw(st.booleans()):
        values["bias"] = None
    signature = parse("float x[N, K], float w[4*H, K], float u[4*H, H], float bias[4*H]? -> h[N, H]")
    fast = bool(eval(fast_condition(signature, {}), {**values, "ndarray": np.ndarray}))
    try:
        bound = bind(signature, list(values.values()), {})
        unchanged = all(new is old for new, old in zip(bound, values.values(), strict=True))
    except SeqflowError:
        unchanged = False
    assert fast == unchanged


def test_there_is_no_fast_condition_where_only_an_optional_argument_has_a_name():
    assert fast_condition(parse("x[N], y[M]?, z[M]? -> out[N]"), {}) is None


ATTEND = parse("float q[N, G*R, D], like(q) k[M, G, D], like(q) s[G*R]? -> out[N, G*R, D]")
QUOTIENT = parse("float q[N, H, D], like(q) k[M, H//R, D], like(q) v[M, H//R, D] -> out[N, H, D]")


def test_a_product_with_an_unknown_name_is_a_multiple():
    q, k = np.ones((2, 4, 3)), np.ones((5, 2, 3))
    assert bind(ATTEND, [q, k, np.ones(4)], {})[1] is k
    assert bind(ATTEND, [q[:, :0], k[:, :0], None], {})[2] is None
    with pytest.raises(
        ShapeError, match=r"q.shape\[1\] is 4, expected G\*R for some R, G is 3 as in k.shape\[1\]"
    ):
        bind(ATTEND, [q, np.ones((5, 3, 3)), None], {})
    with pytest.raises(
        ShapeError, match=r"q.shape\[1\] is 4, expected G\*R for some R, G is 0 as in k.shape\[1\]"
    ):
        bind(ATTEND, [q, k[:, :0], None], {})
    with pytest.raises(ShapeError, match=r"s.shape\[0\] is 6, expected 4"):
        bind(ATTEND, [q, k, np.ones(6)], {})


def test_a_size_that_cannot_be_solved_is_the_same_everywhere():
    q, k = np.ones((2, 4, 3)), np.ones((5, 2, 3))
    bind(QUOTIENT, [q, k, k], {})
    with pytest.raises(ShapeError, match=r"v.shape\[1\] is 1, expected 2 as in k.shape\[1\] \(H//R\)"):
        bind(QUOTIENT, [q, k, k[:, :1]], {})


@pytest.fixture
def paired():
    @sf.op(
        "float q[sum(n), D], lens n[B], like(q) k[sum(m), D], like(q) v[sum(m), D], lens m[B]?=n -> out[sum(n), D]"
    )
    def paired(q, n, k, v, m):
        """The mean of q and of k and v by sequences of two kinds; an empty sequence gives nothing."""
        return q * len(k) + m.sum()

    yield paired
    sf.registry.unregister("paired")


def test_another_input_stands_for_lengths_that_are_left_out(paired):
    q, k = np.ones((3, 1)), np.ones((4, 1))
    assert paired(q, [1, 2], q, q).tolist() == [[6], [6], [6]]
    assert paired(q, [1, 2], k, k, [2, 2]).tolist() == [[8], [8], [8]]
    with pytest.raises(LodError, match=r"sum\(m\) is 3 but k has 4 rows"):
        paired(q, [1, 2], k, k)
    with pytest.raises(LodError, match=r"sum\(m\) is 3 but v has 4 rows"):
        paired(q, [1, 2], q, k)


def test_inference_puts_it_in_its_place_too(paired):
    net = sf.Net("out = paired(q, n, k, v)\nreturn out")
    specs = {name: sf.TensorSpec("float32", "{?,2}") for name in "qkv"} | {"n": sf.TensorSpec("int64", "{?}")}
    inferred = net.infer(specs)
    assert str(inferred.specs["out"].shape) == "{sum(n),2}"
    with pytest.raises(ShapeError, match="3 and 4 are different sizes"):
        net.infer(specs | {"q": sf.TensorSpec("float32", "{3,2}"), "k": sf.TensorSpec("float32", "{4,2}")})
