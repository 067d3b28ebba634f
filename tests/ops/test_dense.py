"""Dense arithmetic: products, softmax, normalising, dropout, casts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies.shaping import SHAPING

from seqflow import TensorSpec, ops, registry
from seqflow.errors import LodError, OpError, OpTypeError, ShapeError
from seqflow.signature import Described

ROWS = Described("lengths")
OTHER = Described("others")
X = hnp.arrays(
    st.sampled_from(["float16", "float32", "float64"]),
    hnp.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=4),
    elements=st.integers(-40, 40).map(lambda k: k / 8),
)


def matmul_spec(a, b, a_rows=None, b_rows=None):
    specs = {"a": TensorSpec("float32", a, a_rows), "b": TensorSpec("float32", b, b_rows)}
    return registry.get("matmul").infer(specs).outputs[0]


# Products


@given(SHAPING["matmul"]())
def test_matmul_is_numpys(call):
    a, b = call[0]["a"], call[0]["b"]
    expected = np.matmul(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(ops.matmul(a, b), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "expected", "rows"),
    [
        ("{N,3}", "{3,4}", "{N,4}", ROWS),
        ("{N,K}", "{K}", "{N}", ROWS),
        ("{N,2,3}", "{3,4}", "{N,2,4}", ROWS),
        ("{N,2,3}", "{1,3,4}", "{N,2,4}", ROWS),
        ("{N,3}", "{5,3,4}", "{5,N,4}", None),
        ("?", "{3,4}", "?", None),
    ],
)
def test_the_rows_of_a_matrix_stay_rows(a, b, expected, rows):
    found = matmul_spec(a, b, ROWS)
    assert (str(found.shape), found.rows) == (expected, rows)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("{N,2,3}", "{N,3,4}", "{N,2,4}"), ("{K}", "{K,M}", "{M}"), ("{K}", "{K}", "{}")],
)
def test_rows_are_multiplied_with_the_same_rows(a, b, expected):
    found = matmul_spec(a, b, ROWS, ROWS)
    assert str(found.shape) == expected
    with pytest.raises(LodError, match="b is a plain size"):
        matmul_spec(a, b, ROWS)


def test_rows_do_not_broadcast():
    with pytest.raises(LodError, match="b is a plain size 5"):
        matmul_spec("{N,2,3}", "{5,3,4}", ROWS)
    with pytest.raises(ShapeError, match="expected equal sizes"):
        matmul_spec("{1..2,2,3}", "{5,3,4}", ROWS, ROWS)
    with pytest.raises(LodError, match="holds the rows that"):
        matmul_spec("{N,2,3}", "{N,3,4}", ROWS, OTHER)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((2, 3), (4, 5), r"3.*4|4.*3"),
        ((2, 3), (4,), r"3.*4|4.*3"),
        ((), (4,), "dimensions|rank"),
        ((2, 2, 3), (5, 3, 4), "2.*5|5.*2"),
    ],
)
def test_what_does_not_multiply_is_refused(a, b, message):
    with pytest.raises(ShapeError, match=f"^matmul: .*({message})"):
        ops.matmul(np.ones(a), np.ones(b))
    with pytest.raises(ShapeError, match=f"^matmul: .*({message})"):
        matmul_spec(a, b)


def test_a_product_of_integers_is_refused():
    with pytest.raises(OpTypeError, match="a is int64, expected floats"):
        ops.matmul([[1]], [[1]])


@given(x=X, units=st.integers(0, 3), biased=st.booleans())
def test_fc_is_a_product_and_a_sum(x, units, biased):
    weight = np.arange(units * x.shape[-1], dtype=x.dtype).reshape(units, x.shape[-1]) / 8
    bias = np.arange(units, dtype=x.dtype) if biased else None
    expected = x.astype(float) @ weight.T.astype(float) + (0 if bias is None else bias)
    y = ops.fc(x, weight, bias)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    assert y.dtype == (np.float32 if x.dtype == np.float16 else x.dtype)


def test_fc_checks_the_sizes_of_its_weights():
    with pytest.raises(ShapeError, match=r"weight.shape\[1\] is 3, expected 2 as in x.shape\[1\]"):
        ops.fc(np.ones((4, 2)), np.ones((5, 3)))
    with pytest.raises(ShapeError, match=r"bias.shape\[0\] is 4"):
        ops.fc(np.ones((4, 2)), np.ones((5, 2)), np.ones(4))


# Within rows


@given(X)
def test_each_row_of_a_softmax_adds_up_to_1(x):
    y = ops.softmax(x)
    assert y.dtype == x.dtype
    if x.shape[-1]:
        wide = np.exp(x.astype(float))
        expected = wide / wide.sum(-1, keepdims=True)
        np.testing.assert_allclose(y, expected, rtol=2e-3 if x.dtype == np.float16 else 1e-5, atol=1e-6)


def test_softmax_does_not_overflow():
    assert ops.softmax(np.array([[1e30, -1e30], [-np.inf, 0]])).tolist() == [[1, 0], [0, 1]]
    assert np.isnan(ops.softmax(np.full((1, 2), -np.inf))).all()


@given(x=X, weighted=st.booleans())
def test_layer_norm_leaves_mean_0_and_variance_1(x, weighted):
    width = x.shape[-1]
    weight = np.arange(width, dtype=x.dtype) if weighted else None
    bias = np.ones(width, x.dtype) if weighted else None
    wide = x.astype(float)
    with np.errstate(all="ignore"):
        expected = wide - (wide.mean(-1, keepdims=True) if x.size else 0)
        expected /= np.sqrt(wide.var(-1, keepdims=True) + 1e-5) if x.size else 1
    expected = expected * weight + bias if weighted else expected
    y = ops.layer_norm(x, weight, bias)
    assert y.dtype == x.dtype
    np.testing.assert_allclose(y, expected, atol=2e-2 if x.dtype == np.float16 else 1e-3)


def test_a_negative_epsilon_is_refused():
    with pytest.raises(OpError, match=r"epsilon is -1.0, expected a number, 0 or more"):
        ops.layer_norm(np.ones((1, 2)), epsilon=-1)


def test_a_scale_of_0_leaves_the_row_and_a_negative_one_is_refused():
    divided = ops.square_root_divide(np.array([[2.0, 4.0], [3.0, 3.0]]), np.array([4, 0], np.uint8))
    assert divided.tolist() == [[1, 2], [3, 3]]
    with pytest.raises(OpError, match=r"scale\[1\] = -1 is negative"):
        ops.square_root_divide(np.ones(2), [1, -1])


# Dropout


def test_dropout_depends_on_the_seed_and_the_place_alone():
    x = np.ones((40_000, 2), np.float32)
    y, kept = ops.dropout(x, ratio=0.25, seed=7)
    assert abs(kept.mean() - 0.75) < 0.01
    np.testing.assert_array_equal(y, np.where(kept, np.float32(1 / 0.75), 0))
    np.testing.assert_array_equal(kept[:100], ops.dropout(x[:100], ratio=0.25, seed=7).kept)
    assert (kept != ops.dropout(x, ratio=0.25, seed=8).kept).any()


def test_dropout_follows_the_numbers_in_its_docs():
    def output(state, k):
        z = (state + (k + 1) * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    state = output(2**64 - 1, 0)
    expected = [(output(output(state, i), 0) >> 11) / 2**53 >= 0.3 for i in range(50)]
    assert ops.dropout(np.ones(50), ratio=0.3, seed=2**64 - 1).kept.tolist() == expected


def test_dropout_of_nothing_and_of_everything():
    x = np.array([1.0, np.inf])
    assert ops.dropout(x, ratio=0.0, seed=0).y.tolist() == [1, np.inf]
    assert ops.dropout(x, ratio=1.0, seed=0).y.tolist() == [0, 0]
    for wrong in ({"ratio": 1.5, "seed": 0}, {"ratio": np.nan, "seed": 0}, {"seed": -1}, {"seed": 2**64}):
        with pytest.raises(OpError, match=r"dropout: (ratio|seed) is"):
            ops.dropout(x, **wrong)


# Casts


@given(SHAPING["cast"]())
def test_cast_is_numpys(call):
    x, dtype = call[0]["x"], call[1]["dtype"]
    np.testing.assert_array_equal(ops.cast(x, dtype=dtype), x.astype(dtype))


def test_dtypes_go_by_name_or_type():
    for dtype in ("float32", np.float32, np.dtype(">f4")):
        assert ops.cast([1, 2], dtype=dtype).dtype == np.dtype("float32")


@pytest.mark.parametrize(
    ("x", "dtype", "message"),
    [
        ([1, 300], "uint8", r"x\[1\] = 300 is outside uint8, 0 to 255"),
        ([[0, -1]], "uint64", r"x\[0, 1\] = -1 is outside uint64"),
        ([2**63], "int64", r"x\[0\] = 9223372036854775808 is outside int64"),
        ([0.5, np.nan], "int64", r"x\[1\] = nan is outside int64"),
        ([np.inf], "int8", r"x\[0\] = inf is outside int8"),
        (np.float32([2.0**63]), "int64", r"x\[0\] = 9.22337\d*e\+18 is outside int64"),
        ([1j], "float64", "x is complex128, which does not cast to float64"),
        (np.zeros(1, "M8[s]"), "float32", r"x is datetime64\[s\], which does not cast to float32"),
        ([1], "object", "dtype is object, expected a dtype of numbers, bools or times"),
        ([1], "flaot32", "dtype is 'flaot32', expected a dtype .*did you mean 'float32'"),
        ([1], None, "dtype is None"),
        ([1], 3, "dtype is 3"),
    ],
)
def test_what_a_dtype_cannot_hold_is_refused(x, dtype, message):
    with pytest.raises(OpError, match=message):
        ops.cast(x, dtype=dtype)


def test_the_edges_of_a_dtype_fit():
    assert ops.cast([-128.9, 127.9], dtype="int8").tolist() == [-128, 127]
    assert ops.cast([-0.9], dtype="uint8").tolist() == [0]
    assert ops.cast(np.array([-(2.0**63)]), dtype="int64").tolist() == [-(2**63)]
    assert ops.cast(np.array(["12"]), dtype="int64").tolist() == [12]
    assert ops.cast(np.array([5]), dtype="M8[s]").tolist()[0].second == 5


def test_a_cast_keeps_rows_and_knows_its_dtype():
    found = (
        registry.get("cast").infer({"x": TensorSpec("float32", "{N,3}", ROWS)}, {"dtype": "int8"}).outputs[0]
    )
    assert (found.dtype, str(found.shape), found.rows) == (np.dtype("int8"), "{N,3}", ROWS)


@pytest.mark.parametrize(
    ("x", "dtype"),
    [(["3000-01-01", "NaT"], "M8[ns]"), (["0001-01-01"], "M8[ns]"), (["300000000-01-01"], "M8[us]")],
)
def test_a_time_that_a_unit_cannot_hold_is_an_error(x, dtype):
    with pytest.raises(OpError, match="cannot hold"):
        ops.cast(np.array(x, "M8[D]"), dtype=dtype)
    assert ops.cast(np.array(["2000-01-01", "NaT"], "M8[D]"), dtype=dtype).astype("M8[D]").astype(
        str
    ).tolist() == ["2000-01-01", "NaT"]
