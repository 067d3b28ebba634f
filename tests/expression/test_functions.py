import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow.errors import ExpressionError
from seqflow.expression.functions import binary_operators, by_name, table, unary_operators
from seqflow.expression.parser import parse

PNNX_UNARY = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "expm1", "floor", "log", "log10", "log1p", "neg", "reciprocal", "round", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
PNNX_BINARY = [
    "add", "sub", "rsub", "mul", "div", "floor_divide", "fmod", "remainder", "pow", "atan2", "logaddexp", "max", "min", "maximum", "minimum", "and", "or", "xor", "lshift", "rshift",
]  # fmt: skip


def value(name, *operands):
    result = by_name[name](*operands)
    return result.item() if result.ndim == 0 else result.tolist()


@pytest.mark.parametrize("name", PNNX_UNARY)
def test_the_table_has_pnnx_unary_functions(name):
    assert by_name[name].arity == 1


@pytest.mark.parametrize("name", PNNX_BINARY)
def test_the_table_has_pnnx_binary_functions(name):
    assert by_name[name].arity == 2


def test_no_name_stands_for_two_rows():
    names = [name for row in table for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names)) == len(by_name)


def test_every_operator_belongs_to_one_row():
    operators = [row.operator for row in table if row.operator]
    assert len(operators) == len(unary_operators) + len(binary_operators)


@pytest.mark.parametrize("row", table, ids=lambda row: row.name)
def test_a_row_has_a_python_name_a_sentence_and_a_formula(row):
    assert row.name.isidentifier()
    assert row.doc.endswith(".")
    assert row.formula
    assert str(row).startswith(row.name + "(")


DTYPES = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", table, ids=lambda row: row.name)
def test_a_kernel_gives_the_dtype_of_its_rule(row, dtype):
    if np.dtype(dtype).kind not in row.kinds:
        with pytest.raises(ExpressionError, match=f"^{row.name}: x is float.*, expected integers or bools"):
            row(*[np.ones(3, dtype)] * row.arity)
        return
    operands = [np.ones((2, 3), dtype)] * row.arity
    result = row(*operands)
    assert result.dtype == row.result([operand.dtype for operand in operands])
    out = np.empty_like(result)
    assert row(*operands, out=out) is out
    np.testing.assert_array_equal(out, result)


NUMPY = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "div": np.divide, "pow": np.power, "atan2": np.arctan2, "neg": np.negative,
    "sub": np.subtract, "mul": np.multiply, "round": np.rint, "abs": np.abs, "where": np.where,
}  # fmt: skip
OURS = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsub": lambda x, y: y - x,
    "erf": np.vectorize(math.erf),
}


@pytest.mark.each_choice
@pytest.mark.parametrize(
    "row", [row for row in table if "f" in row.kinds and not row.strong], ids=lambda row: row.name
)
@settings(deadline=None)
@given(data=st.data())
def test_floats_give_what_numpy_gives(row, data):
    numbers = st.lists(
        st.floats(-1e6, 1e6) | st.sampled_from([math.inf, -math.inf, math.nan, -0.0]), min_size=1, max_size=9
    )
    x = np.array(data.draw(numbers))
    operands = [np.roll(x, i) for i in range(row.arity)]
    reference = OURS.get(row.name) or NUMPY.get(row.name) or getattr(np, row.name)
    with np.errstate(all="ignore"):
        expected = reference(*operands)
    np.testing.assert_allclose(row(*operands), expected, rtol=4e-15, atol=0)


@settings(deadline=None)
@given(st.floats(allow_nan=False))
def test_erf_is_accurate(x):
    assert value("erf", x) == pytest.approx(math.erf(x), rel=4e-15, abs=0)


def test_erf_keeps_the_sign_of_zero_and_has_its_limits():
    assert math.copysign(1, value("erf", -0.0)) == -1
    assert value("erf", np.array([math.inf, -math.inf, 6.5, -30.0])) == [1, -1, 1, -1]
    assert math.isnan(value("erf", math.nan))


def test_erf_of_float32_is_float32():
    assert by_name["erf"](np.float32([[0.5]])).dtype == np.float32


def test_division_is_true():
    assert value("div", 1, 2) == 0.5
    assert value("div", np.array([1, -7], np.int8), 2) == [0.5, -3.5]


@pytest.mark.parametrize(
    ("x", "y"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (7.5, 2.0), (-7.5, 2.0), (7.5, -2.0)]
)
def test_floor_divide_and_remainder_are_floored_fmod_is_truncated(x, y):
    assert value("floor_divide", x, y) == x // y
    assert value("remainder", x, y) == x % y
    assert value("fmod", x, y) == math.fmod(x, y)


def test_halves_round_to_even():
    assert value("round", np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])) == [-2, -2, 0, 0, 2, 2]


def test_integers_are_whole_already():
    large = np.array([2**63 - 1, -(2**63)])
    for name in ("round", "floor", "ceil", "trunc"):
        assert value(name, large) == large.tolist()


def test_logaddexp_does_not_overflow():
    assert value("logaddexp", 1000.0, 1000.0) == pytest.approx(1000 + math.log(2))
    assert value("logaddexp", -1000.0, -1000.0) == pytest.approx(-1000 + math.log(2))


def test_sigmoid_does_not_overflow():
    assert value("sigmoid", np.array([-1000.0, 0.0, 1000.0])) == [0, 0.5, 1]


def test_the_extremes_of_nan_are_nan():
    assert math.isnan(value("maximum", 1.0, math.nan))
    assert math.isnan(value("minimum", math.nan, 1.0))


def test_fractional_functions_of_small_integers_are_float64():
    for dtype in ("bool", "int8", "uint8", "int16", "uint64"):
        assert by_name["sqrt"](np.ones(1, dtype)).dtype == np.float64
        assert by_name["reciprocal"](np.full(1, 1, dtype)).tolist() == [1.0]


def test_bools_count_in_arithmetic():
    x = np.array([True, True, False])
    assert value("add", x, x) == [2, 2, 0]
    assert value("neg", x) == [-1, -1, 0]
    assert value("sub", x, ~x) == [1, 1, -1]


def test_bools_stay_bools_where_nothing_is_counted():
    x = np.array([True, False])
    for name in ("maximum", "minimum", "bitwise_and", "bitwise_xor"):
        assert by_name[name](x, True).dtype == np.bool_
    assert value("bitwise_not", x) == [False, True]


def test_integers_wrap_around():
    assert value("add", np.array([127], np.int8), 1) == [-128]
    assert value("neg", np.array([1], np.uint8)) == [255]
    assert value("floor_divide", np.array([-128], np.int8), -1) == [-128]


def test_shifts_beyond_the_width_leave_nothing_but_the_sign():
    x = np.array([1, -1], np.int32)
    assert value("lshift", x, 40) == [0, 0]
    assert value("rshift", x, 40) == [0, -1]


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
@pytest.mark.parametrize("divisor", [0, np.int64(0), np.array([1, 0, 2]), np.zeros(20_000, np.int32)])
def test_an_integer_divided_by_zero_is_an_error(name, divisor):
    with pytest.raises(ExpressionError, match=f"^{name}: an integer is divided by zero; the divisor is y"):
        by_name[name](np.ones(1, np.int32), divisor)


@pytest.mark.parametrize("name", ["div", "floor_divide", "remainder", "fmod"])
def test_floats_divide_by_zero_in_silence(name):
    assert not np.isfinite(by_name[name](np.array([1.0, -1.0, 0.0]), 0.0)).any()


def test_an_integer_to_a_negative_power_is_an_error():
    with pytest.raises(ExpressionError, match="no negative power; the exponent is y"):
        by_name["pow"](np.array([2]), np.array([-1]))
    assert value("pow", 2.0, -1) == 0.5


def test_signed_and_unsigned_64_bits_have_no_common_integer():
    with pytest.raises(
        ExpressionError, match="bitwise_or: x has no common integer dtype with the other operand, cast one"
    ):
        by_name["bitwise_or"](np.ones(1, np.uint64), np.ones(1, np.int64))


def test_comparisons_of_mixed_signs_are_exact():
    assert value("less", np.array([-1]), np.array([2**64 - 1], np.uint64)) == [True]
    assert value("less", np.array([200], np.uint8), 300) == [True]


def test_where_takes_the_common_dtype_of_its_branches():
    result = by_name["where"](np.array([0.5, 0.0]), np.float32([1, 2]), 7)
    assert (result.dtype, result.tolist()) == (np.float32, [1, 7])
    assert by_name["where"](np.array([True]), 1, 2.5).dtype == np.float64


@pytest.mark.parametrize("call", ["where", "maximum", "add", "clip", "minimum"])
@pytest.mark.parametrize(
    ("dtype", "number"), [("uint8", 300), ("uint8", -1), ("int8", 128), ("uint64", -1), ("int64", 2**63)]
)
def test_a_number_that_the_dtype_of_the_arrays_cannot_hold_is_an_error(call, dtype, number):
    x = np.array([1, 2], dtype)
    before = {"where": [np.array([False, True])], "clip": [x]}.get(call, [])
    for operands in ([*before, x, number], [*before, number, x]):
        with pytest.raises(ExpressionError, match=f"{call}: .*{number}|{call}: .*too large"):
            by_name[call](*operands)


def test_clip_keeps_x_between_its_bounds():
    assert value("clip", np.array([-1, 1, 5]), 0, 3) == [0, 1, 3]


def test_casts_truncate_and_wrap():
    assert value("int8", np.array([1.9, -1.9])) == [1, -1]
    assert value("uint8", np.array([300, -1])) == [44, 255]
    assert value("bool", np.array([0.0, 0.1, math.nan])) == [False, True, True]


def test_a_cast_of_a_number_has_the_dtype_it_says():
    assert by_name["float32"](1).dtype == np.float32


def test_a_number_that_no_dtype_holds_is_an_error():
    with pytest.raises(ExpressionError, match="300"):
        by_name["add"](np.array([1], np.uint8), 300)
    with pytest.raises(ExpressionError, match="300"):
        by_name["int8"](300)
    with pytest.raises(ExpressionError, match="add: "):
        by_name["add"](2**64 - 1, 1)


@pytest.mark.parametrize(
    ("operand", "message"),
    [
        (np.array(["a"]), "sqrt: x is <U1, expected numbers or bools"),
        (np.array([None]), "sqrt: x is object, expected numbers or bools"),
        (np.array([1j]), "sqrt: x is complex128, expected numbers or bools"),
        (np.array(["2020"], "M8[Y]"), "expected numbers or bools"),
        (np.zeros(1, {"names": ["a"], "formats": ["i4"], "offsets": [4]}), "expected numbers or bools"),
        ([[1], [1, 2]], "sqrt: x does not become an array"),
        (np.ma.array([1.0], mask=[True]), "x is a masked array"),
        (None, "sqrt: x is object"),
    ],
)
def test_what_is_no_number_is_an_error(operand, message):
    with pytest.raises(ExpressionError) as error:
        by_name["sqrt"](operand)
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["add", "pow", "where"])
def test_shapes_that_do_not_broadcast_are_named(name):
    operands = [np.ones(2), np.ones(3), np.ones(2)][: by_name[name].arity]
    with pytest.raises(ExpressionError, match=rf"^{name}: shapes \(2,\) and \(3,\) do not broadcast"):
        by_name[name](*operands)


def test_a_row_checks_how_many_operands_it_gets():
    with pytest.raises(ExpressionError, match="takes 2 operands, 1 were given"):
        by_name["mul"](1)


def test_out_may_be_an_operand_of_any_row():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([7.0, 8.0, 9.0])
    assert by_name["rsub"](x, y, out=y).tolist() == [6, 6, 6]
    assert by_name["where"](y > 5, 0, x, out=x).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty(3, np.float32), "out is float32 (3,), expected float64 (3,)"),
        (np.empty(2), "out is float64 (2,), expected float64 (3,)"),
        ([0, 0, 0], "out is list, expected an array"),
        (np.broadcast_to(0.0, 3), "out is read-only"),
    ],
)
def test_out_must_fit(out, message):
    with pytest.raises(ExpressionError) as error:
        by_name["sqrt"](np.ones(3), out=out)
    assert message in str(error.value)


@pytest.mark.parametrize("row", table, ids=lambda row: row.name)
def test_every_name_of_a_row_is_a_function_of_the_language(row):
    operands = ",".join(f"@{i}" for i in range(row.arity))
    for name in (row.name, *row.aliases):
        assert str(parse(f"{name}({operands})").tree) == f"{row.name}({operands})"
