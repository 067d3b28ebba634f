import copy
import doctest
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow.errors import ExpressionError, SeqflowError
from seqflow.expression import Expression, expression, functions, parser

INFIX, PREFIX = "sqrt((x*2 + y)/12)", "sqrt(div(add(mul(@0,2),@1,1),12))"


def test_infix_and_prefix_text_mean_the_same():
    x, y = np.array([4.0, 22.0]), np.array([4.0, 4.0])
    assert Expression(INFIX) == Expression(PREFIX)
    assert Expression(INFIX)(x, y).tolist() == Expression(PREFIX)(x, y).tolist() == [1, 2]


def test_the_reverse_polish_form_has_operands_before_their_function():
    product = Expression("add(mul(@0,@1),@2)")
    assert product.rpn == ["@0", "@1", "mul", "@2", "add"]
    assert product(2, 3, 4).item() == 10


def test_the_reverse_polish_form_numbers_names():
    assert Expression(INFIX).rpn == ["@0", "2", "mul", "@1", "add", "12", "div", "sqrt"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a - b", 5), ("sub(@0,@1)", 5), ("rsub(@0,@1)", -5), ("a / b", 3.5), ("a ** b", 49), ("pow(@1,@0)", 128),
     ("a // b", 3), ("a % b", 1), ("a << b", 28), ("a >> b", 1), ("a < b", False), ("a >= b", True), ("b - a", -5)],
)  # fmt: skip
def test_operands_keep_their_sides(text, expected):
    inputs = dict(zip(["a", "b", "@0", "@1"], [7, 2, 7, 2], strict=True))
    made = Expression(text)
    assert made(**{name: inputs[name] for name in made.inputs}).item() == expected


def test_tokens_know_their_places():
    assert [(t.text, t.start, t.end) for t in Expression("@0").tokens] == [("@0", 0, 2)]


def test_inputs_are_given_by_position_or_by_name():
    difference = Expression("doc.values - shift")
    values = np.array([5, 6])
    for result in (
        difference(values, 1),
        difference(values, shift=1),
        difference(shift=1, **{"doc.values": values}),
    ):
        assert result.tolist() == [4, 5]


def test_operand_numbers_may_leave_gaps():
    skipping = Expression("@2 - @0")
    assert skipping.inputs == ("@0", "@1", "@2")
    assert skipping(1, "not looked at", 5).item() == 4


@pytest.mark.parametrize(
    ("given_", "named", "message"),
    [
        ((), {}, "no value for x, y; its operands are 2 (x, y)"),
        ((1,), {}, "no value for y"),
        ((1, 2, 3), {}, "found 3 operands, expected 2 (x, y)"),
        ((1,), {"x": 2}, "x is given twice, by position and by name"),
        ((1, 2), {"scale": 2}, "no operand is named 'scale', expected 2 (x, y)"),
        ((1,), {"yy": 2}, "no operand is named 'yy' (did you mean 'y'?)"),
        ((np.ones(3), np.ones(2)), {}, "the shapes of its inputs do not broadcast: x (3,), y (2,)"),
        (("a", 1), {}, "x is <U1, expected numbers or bools"),
        (([[1], [1, 2]], 1), {}, "expression: x does not become an array"),
        ((1, 2), {"out": [0]}, "expression: out is list, expected an array"),
        ((1, 2**70), {}, "column 3: add: "),
    ],
)
def test_operands_that_do_not_fit(given_, named, message):
    with pytest.raises(ExpressionError) as error:
        Expression("x + y")(*given_, **named)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "operands"), [("9223372036854775808", ()), ("x", (2**70,)), ("x", (-(2**63) - 1,))]
)
def test_a_number_alone_must_fit_its_dtype(text, operands):
    with pytest.raises(ExpressionError, match=r"^expression: Python int"):
        Expression(text)(*operands)


def test_an_expression_without_operands_takes_none():
    with pytest.raises(ExpressionError, match="found 1 operands, expected none"):
        Expression("1 + 2")(3)


@pytest.mark.parametrize("rows", [3, 300_000])
@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("1 + x // y", 7, "floor_divide: an integer is divided by zero; the divisor is y"),
        ("x % (y*2)", 3, "remainder: an integer is divided by zero; the divisor is the result of mul"),
        ("x + x // 0", 7, "floor_divide: an integer is divided by zero; the divisor is 0"),
        ("fmod(x, y)", 1, "fmod: an integer is divided by zero; the divisor is y"),
        ("x ** (y - 1)", 3, "pow: an integer has no negative power; the exponent is the result of sub"),
        ("x & (y / 2)", 3, "bitwise_and: the result of div is float64, expected integers or bools"),
        ("~(x*1.5)", 1, "bitwise_not: the result of mul is float64, expected integers or bools"),
        ("int8(y) + 300", 9, "300"),
    ],
)
def test_what_goes_wrong_in_a_step_is_pointed_at(text, column, message, rows):
    made = Expression(text)
    with pytest.raises(ExpressionError) as error:
        made(**{name: np.full(rows, name == "x", int) for name in made.inputs})
    lines = str(error.value).split("\n")
    assert lines[0].startswith(f"expression, column {column}: ")
    assert message in lines[0]
    assert lines[1:] == ["  " + text, " " * (column + 1) + "^"]


@pytest.mark.parametrize(
    ("text", "column"), [("x + 1 // 0", 7), ("2 ** -1", 3), ("1.5 & 1", 5), ("~0.5", 1), ("int8(300)", 1)]
)
def test_literals_that_have_no_value_are_found_when_it_is_made(text, column):
    with pytest.raises(ExpressionError, match=f"column {column}: "):
        Expression(text)


def test_floats_never_warn():
    x = np.array([-1.0, 0.0, 1e308])
    assert str(Expression("sqrt(x) + log(x) + 1/x + x*x")(x).tolist()) == "[nan, nan, inf]"


def test_the_dtype_is_known_before_the_data():
    mean = Expression("(x + y)/2")
    assert mean.dtype(np.int32, "float32") == np.float64
    assert mean.dtype("float32", int) == np.float32
    assert mean.dtype(y=float, x=np.float16) == np.float16
    assert Expression("x < 2").dtype("int8") == np.bool_
    assert Expression("1").dtype() == np.int64
    assert Expression("x").dtype(float) == np.float64


def test_dtypes_that_do_not_fit():
    with pytest.raises(ExpressionError, match="column 3: bitwise_and: y is float32"):
        Expression("x & y").dtype("int8", "float32")
    with pytest.raises(ExpressionError, match="y is 'float7', expected a dtype"):
        Expression("x & y").dtype("int8", "float7")
    with pytest.raises(ExpressionError, match="y is None, expected a dtype"):
        Expression("x & y").dtype("int8", None)
    with pytest.raises(ExpressionError, match="no value for y"):
        Expression("x & y").dtype("int8")


def test_a_batch_is_operand_major():
    tensors = [np.array([k, i]) for k in (10, 20) for i in range(3)]
    results = Expression("@1 - @0").batch(tensors, 3)
    assert [result.tolist() for result in results] == [[10, 0]] * 3
    assert [r.item() for r in Expression("x - y").batch([1, 2, 3, 40, 50, 60], 3)] == [-39, -48, -57]


@pytest.mark.parametrize(
    ("tensors", "batch_size", "message"),
    [
        ([1, 2, 3], 2, "found 3 tensors, expected 4: batch_size=2 times 2 operands (x, y)"),
        ([], 1, "found 0 tensors, expected 2"),
        ([1, 2], 0, "batch_size is 0, expected an integer of 1 or more"),
        ([1, 2], 1.0, "batch_size is 1.0"),
        ([1, 2], True, "batch_size is True"),
        (None, 1, "tensors is NoneType, expected a list"),
    ],
)
def test_a_batch_of_the_wrong_size(tensors, batch_size, message):
    with pytest.raises(ExpressionError) as error:
        Expression("x + y").batch(tensors, batch_size)
    assert message in str(error.value)


def test_equal_expressions_are_one_key():
    assert (
        len({Expression("a + b"), Expression("x+y"), Expression("add(@0, @1, 1)"), Expression("x+z*0")}) == 2
    )
    assert Expression("a") != "a"
    assert Expression("x + 1") != Expression("x + 1.0")


def test_an_expression_prints_copies_and_pickles_as_its_text():
    made = Expression(INFIX)
    assert repr(made) == f"Expression({INFIX!r})"
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (other.text, other) == (INFIX, made)


words = st.sampled_from(
    [
        "x",
        "@0",
        "1",
        "0.5",
        "-",
        "~",
        "+",
        "**",
        "//",
        "<",
        "&",
        "(",
        ")",
        ",",
        "add(",
        "where(",
        " ",
        "int8(",
    ]
)


@settings(deadline=None)
@given(st.text(max_size=20) | st.lists(words, max_size=12).map("".join))
def test_any_text_is_an_expression_or_an_expression_error(text):
    try:
        made = Expression(text)
        made(*[np.array([1, 2], np.int8)] * len(made.inputs))
    except ExpressionError:
        return
    assert Expression(made.canonical) == made


def test_an_attribute_is_a_name_and_nothing_else():
    assert Expression("x.__class__ + 1").inputs == ("x.__class__",)


def test_errors_are_value_errors_of_seqflow():
    for kind in (ValueError, SeqflowError):
        with pytest.raises(kind):
            Expression("x +")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "-" * 5_000 + "x",
        "sqrt(" * 5_000 + "x" + ")" * 5_000,
        "x+" * 20_000 + "x",
        "(" * 5_000 + "x" + "*1)" * 5_000,
    ],
    ids=["signs", "calls", "sums", "brackets"],
)
def test_deep_expressions_evaluate_print_and_compare(text):
    made = Expression(text)
    assert made(x=np.array([1.0])).shape == (1,)
    assert hash(Expression(made.canonical)) == hash(made)
    assert made.rpn[0] == "@0"


def test_threads_share_an_expression():
    made = Expression("sqrt(abs(x*y - 2*x)) + y")
    inputs = [np.random.default_rng(i).standard_normal((2, 200_000)) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda xy: made(*xy), inputs))
    for (x, y), result in zip(inputs, results, strict=True):
        np.testing.assert_array_equal(result, np.sqrt(np.abs(x * y - 2 * x)) + y)


@pytest.mark.parametrize("module", [expression, functions, parser], ids=lambda module: module.__name__)
def test_the_examples_run(module):
    assert doctest.testmod(module, extraglobs={"np": np}).failed == 0
