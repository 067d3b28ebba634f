import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow.errors import ExpressionError
from seqflow.expression import Expression
from seqflow.expression.functions import FAILURES, by_name
from seqflow.expression.parser import Call, Literal, parse, postorder
from seqflow.expression.program import BLOCK, SMALL, compile_tree


def steps(text):
    program = compile_tree(parse(text))
    return [step.function.name for step in program.steps]


def registers(text, *dtypes):
    program = compile_tree(parse(text))
    return len(program.plan(tuple(np.dtype(dtype) for dtype in dtypes)).registers)


def test_calls_of_literals_are_folded():
    assert steps("x + sqrt(4) * (1 + 2)") == ["add"]


def test_folded_numbers_stay_weak():
    assert Expression("x + 1/3").dtype(np.float32) == np.float32
    assert Expression("x + float64(1)/3").dtype(np.float32) == np.float64


def test_a_common_subexpression_is_computed_once():
    assert steps("(a - b)**2 + (a - b)*c") == ["sub", "square", "mul", "add"]


def test_literals_of_different_types_are_different():
    x = np.array([3])
    assert Expression("x*2 + x*2.0").dtype(np.int64) == np.float64
    assert steps("x*1 + x*1.0 + x*True") == ["mul", "mul", "add", "mul", "add"]
    assert Expression("where(x > 0, 0.0, 1) / -0.0")(x).tolist() != [0]


def test_the_power_2_is_a_square():
    assert steps("x**2 + square(x)") == ["square", "add"]
    assert steps("x**2.0") == ["pow"]
    assert Expression("x**2.0").dtype(np.int64) == np.float64


def test_a_register_is_free_after_its_last_reader():
    assert registers("sqrt((2*a + b)/12)", "f8", "f8") == 1
    assert registers("(a + b)*(a - b)", "f8", "f8") == 2
    assert registers("(a + b)*(a - b) + (a*b)*(a/b)", "f8", "f8") == 3
    assert registers("+".join(["sin(x)*cos(x)"] * 9), "f8") <= 3


SHAPES = [
    (),
    (1,),
    (0,),
    (5,),
    (SMALL,),
    (SMALL + 1,),
    (BLOCK,),
    (2 * BLOCK + 3,),
    (3, 4),
    (70_000, 3),
    (2, 0),
    (2, 3, 50_000),
]
FORMULA = "sqrt(abs((2*a + b)/12)) + where(a > b, a*c, rsub(c, b))*(2*a + b)"


def reference(a, b, c):
    return np.sqrt(np.abs((2 * a + b) / 12)) + np.where(a > b, a * c, b - c) * (2 * a + b)


def draw(seed, shape):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_shape_gives_what_numpy_gives(shape):
    operands = [draw(seed, shape) for seed in range(3)]
    np.testing.assert_array_equal(Expression(FORMULA)(*operands), reference(*operands))


@pytest.mark.parametrize(
    "shapes",
    [
        [(90_000, 3), (3,), (90_000, 1)],
        [(90_000, 3), (1, 3), ()],
        [(1,), (200_000,), ()],
        [(1, 5), (40_000, 1), (5,)],
        [(4, 1), (5,), (3, 1, 1)],
        [(1, 1), (1,), ()],
        [(0, 3), (3,), (1, 1)],
        [(), (), (150_000,)],
        [(2, 90_000), (90_000,), (2, 1)],
    ],
    ids=str,
)
def test_operands_broadcast(shapes):
    operands = [draw(seed, shape) for seed, shape in enumerate(shapes)]
    np.testing.assert_array_equal(Expression(FORMULA)(*operands), reference(*operands))


@pytest.mark.parametrize("rows", [7, 300_000])
def test_memory_may_lie_in_any_order(rows):
    a, b, c = draw(0, (2 * rows, 2))[::-2], np.asfortranarray(draw(1, (rows, 2))), draw(2, (2, rows)).T
    np.testing.assert_array_equal(Expression(FORMULA)(a, b, c), reference(a, b, c))


def test_operands_may_be_read_only_and_of_another_byte_order():
    x = np.arange(4, dtype=">f8")
    x.flags.writeable = False
    result = Expression("2*x + 1")(x)
    assert result.tolist() == [1, 3, 5, 7]
    assert result.dtype == np.float64
    assert result.dtype.isnative


@pytest.mark.parametrize("rows", [5, 300_000])
@pytest.mark.parametrize(
    "text",
    [
        "a + b*a",
        "b*(a + b)",
        "where(b > 0, a, b)*a",
        "where(a > b, b, a)",
        "rsub(a, b) + a",
        "a",
        "b",
        "clip(b, a, 1)",
    ],
)
def test_out_may_be_an_operand(text, rows):
    expression = Expression(text)
    for name in expression.inputs:
        named = {other: draw(i, rows) for i, other in enumerate(expression.inputs)}
        expected = expression(**named)
        result = expression(**named, out=named[name])
        assert result is named[name]
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("rows", [50, 300_000])
def test_out_may_overlap_an_operand(rows):
    memory = draw(0, rows + 1)
    expected = memory[:-1] * 2 + 1
    np.testing.assert_array_equal(Expression("x*2 + 1")(memory[:-1], out=memory[1:]), expected)
    square = draw(0, (400, 400))
    expected = square.T - square
    np.testing.assert_array_equal(Expression("x - y")(square.T.copy(), square, out=square.T), expected.T.T)


def test_operands_are_left_alone():
    a, b = draw(0, 300_000), draw(1, 300_000)
    before = a.copy(), b.copy()
    Expression("sqrt(abs(a + b))*a")(a, b)
    np.testing.assert_array_equal((a, b), before)


def test_a_result_is_never_an_operand():
    x = np.ones(3)
    assert not np.shares_memory(Expression("x")(x), x)
    assert not np.shares_memory(Expression("+x")(x), x)


@pytest.mark.parametrize("row", [row for row in map(by_name.get, sorted(by_name)) if row.arity <= 2], ids=str)
@pytest.mark.parametrize("rows", [10, SMALL + 10])
def test_every_function_reads_its_operands_before_it_writes(row, rows):
    x = np.random.default_rng(0).integers(1, 9, rows)
    x = x if "f" not in row.kinds else x / 8
    y, z = (x + x, x * x) if row.arity == 2 else (x + x, None)
    operands = "(x + x)" if z is None else "(x + x), (x*x)"
    expected = row(y) if z is None else row(y, z)
    np.testing.assert_array_equal(Expression(f"{row.name}({operands})")(x), expected)


def test_steps_that_do_not_depend_on_the_rows_keep_their_own_memory():
    x, w = draw(0, (100_000, 3)), draw(1, 3)
    np.testing.assert_array_equal(Expression("x*exp(w) + w")(x, w), x * np.exp(w) + w)


def test_numbers_and_arrays_mix():
    x = np.float32([1, 2])
    result = Expression("(k*2 + 1)*x + float32(k)")(k=3, x=x)
    assert (result.dtype, result.tolist()) == (np.float32, [10, 17])


def test_numbers_alone_give_a_0_d_array():
    result = Expression("k*2 + 1")(3)
    assert (result.shape, result.dtype, result.item()) == ((), np.int64, 7)
    assert Expression("int8(k)*2")(3).dtype == np.int8
    assert Expression("1/0")().item() == np.inf


leaves = st.sampled_from(["a", "b", "2", "0.5", "-1", "True", "inf"])
formulas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "//", "<", "==", "**"]), inner).map(
            "({0[0]} {0[1]} {0[2]})".format
        ),
        st.tuples(st.sampled_from(["abs", "float32", "isnan", "tanh", "bool"]), inner).map(
            "{0[0]}({0[1]})".format
        ),
        st.tuples(inner, inner, inner).map("where({0[0]}, {0[1]}, {0[2]})".format),
    ),
    max_leaves=12,
)


def one_by_one(text, operands):
    """The formula's reverse Polish form, walked over whole arrays."""
    parsed = parse(text)
    stack = []
    for node in postorder(parsed.tree):
        if isinstance(node, Call):
            arguments = [stack.pop() for _ in range(node.function.arity)][::-1]
            stack.append(node.function.value(arguments))
        else:
            stack.append(node.value if isinstance(node, Literal) else operands[parsed.inputs[node.index]])
    return np.asarray(stack.pop())


@settings(deadline=None)
@given(formulas, st.sampled_from([9, SMALL + 5]))
def test_a_program_does_what_its_functions_do_one_by_one(text, rows):
    operands = {"a": draw(0, rows), "b": draw(1, rows)}
    try:
        expected = one_by_one(text, operands)
    except FAILURES:
        with pytest.raises(ExpressionError):
            Expression(text)(**{name: operands[name] for name in parse(text).inputs})
        return
    result = Expression(text)(**{name: operands[name] for name in parse(text).inputs})
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("function", ["+", "-", "*", "**", "//", "<<"])
@pytest.mark.parametrize("x", [0, 1, -1, 2, -3, 2**31, 2**62, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("y", [1, 2, 3, 40, 62, 63, 64, 2**31, 2**62, 2**63 - 1, -1, -(2**63)])
def test_literals_fold_to_pythons_integer_or_are_an_error(function, x, y):
    is_power = function in ("**", "<<")
    if is_power and (y < 0 or (y > 64 and abs(x) > 1)):
        exact = None
    elif is_power and y > 64:
        exact = eval(f"({x}) {function} (64 + {y} % 2)") if function == "**" else x << 70
    else:
        exact = eval(f"({x}) {function} ({y})")
    fits = exact is not None and -(2**63) <= exact < 2**63
    try:
        found = int(Expression(f"(({x}) {function} ({y})) + x * 0")(np.zeros(1, np.int64))[0])
    except ExpressionError:
        assert not fits
    else:
        assert found == exact or (function == "<<" and y < 0 and found == 0)


@pytest.mark.parametrize(
    "text",
    [
        "-(-9223372036854775808)",
        "abs(-9223372036854775808)",
        "square(4294967296)",
        "rsub(-2, 9223372036854775807)",
        "sub(1, 9223372036854775807, 2)",
    ],
)
def test_calls_of_literals_that_int64_cannot_hold_are_errors(text):
    with pytest.raises(ExpressionError):
        Expression(f"{text} + x")(np.zeros(1, np.int64))
