"""The text of a net, and what is said about text that is not one."""

import math

import pytest
from marks import slow, thorough

from seqflow.errors import NetError
from seqflow.net import Net
from seqflow.net.parser import parse
from seqflow.net.syntax import Formula, Listed, LiteralOperand, Reference


def test_a_statement_has_targets_an_op_and_operands():
    program = parse("ids, n = truncate(doc.values, doc.lengths, max_length=512)\nreturn ids")
    (statement,) = program.statements
    assert [target.name for target in statement.targets] == ["ids", "n"]
    assert statement.value.op == "truncate"
    assert [operand.name for operand in statement.value.arguments] == ["doc.values", "doc.lengths"]
    assert statement.value.keywords[0][0] == "max_length"
    assert statement.value.keywords[0][1].value == 512
    assert [reference.name for reference in program.returned] == ["ids"]


def test_an_op_without_results_is_a_bare_call():
    (statement,) = parse("same_lengths(a, b)").statements
    assert statement.targets == ()


def test_lines_may_be_broken_inside_brackets_and_comments_are_skipped():
    program = parse("# first\nx = f(a,  # a\n      [1,\n 2],)\n\n\ny = g(x)  # last")
    assert [statement.value.op for statement in program.statements] == ["f", "g"]
    assert program.statements[1].location.line == 7
    assert program.returned is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-1", -1), ("16_384", 16384), ("1.5", 1.5), (".5", 0.5), ("2.", 2.0), ("1e-3", 1e-3),
        ("-inf", -math.inf), ("True", True), ("None", None), ("'a\\'b'", "a'b"), ('"é"', "é"), ("[1, -2, [3]]", [1, -2, [3]]),
        ("[]", []), (r"r'\b\1'", r"\b\1"), (r'r"\d+"', r"\d+"), (r"'\\b'", r"\b"),
    ],
)  # fmt: skip
def test_literals(text, value):
    operand = parse(f"y = f({text})").statements[0].value.arguments[0]
    assert isinstance(operand, LiteralOperand)
    assert operand.value == value


def test_names_may_have_letters_of_any_language():
    operand = parse("größe = f(длина.values)").statements[0].value.arguments[0]
    assert isinstance(operand, Reference)
    assert operand.name == "длина.values"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "line 1, column 5: found the end of the line, expected an op or an expression\n  x = \n      ^"),
        ("x, = f(a)", "found '=', expected a name or an op"),
        ("x, y", "found the end of the line, expected '=' after the names of the results"),
        ("x = f(a", "line 1, column 5: this bracket is never closed, expected ')'"),
        ("x = f(a b)", "line 1, column 9: found 'b', expected an operator, ',' or ')'"),
        ("x = f(,)", "found ',', expected a tensor, a literal or an expression"),
        ("x = f(k=1, a)", "found 'a', expected a keyword: positional arguments come first"),
        ("x = f(k=1, k=2)", "k is given twice"),
        ("x = f(a) y", "line 1, column 10: found 'y', expected an operator or the end of the line"),
        ("x = f(a)\n  y = @0", "line 2, column 7: found '@', expected a name, a literal or punctuation"),
        ("x = f(a).y", "a name, a literal or punctuation\n  x = f(a).y\n          ^\n  what a call gives is assigned to names"),
        ("x = f('a)", "a text ends, on its line, with the quote that it begins with"),
        ("x = f(-'a')", "line 1, column 8: found 'a', expected a number, a name or an operator"),
        ("x = f([1 2])", "found '2', expected an operator, ',' or ']'"),
        ("return x\ny = f(x)", "found 'y', expected nothing after return"),
        ("return", "found the end of the line, expected the name of a tensor"),
        ("return 1", "found '1', expected the name of a tensor"),
        ("True = f(x)", "found 'True', expected a name or an op"),
        ("3 = f(x)", "found '3', expected a name or an op"),
        ("x = f(0123)", "found '0123', expected a number or text"),
        ("x = f(1__0)", "found '1__0', expected a number or text"),
        ("x = f(a))", "found ')', expected the end of the line"),
        ("x = (a + b", "line 1, column 5: this bracket is never closed"),
        ("x = a +", "line 1, column 8: found the end of the line, expected a number, a name, a function or '('"),
        ("y = f(a)\nx = 1 + sqrt(a, b)", "line 2, column 9: sqrt(x) takes 1 argument, found 2"),
        ("x = a + [b]", "line 1, column 9: found '[', expected a number, a name, a function or '('"),
        ("x = clip(a, low=1)", "found '=', expected an operator, ',' or ')'\n  x = clip(a, low=1)\n                 ^\n  operands of an"),
        ("x = a < b < c", "comparisons do not chain"),
        ("x = a and", "expected a number, a name, a function or '('"),
        ("x = y", "line 1, column 5: found x = y, expected an op or an expression\n  x = y\n      ^\n  a tensor has one name"),
        ("hist.lengths = n", "write n wherever you mean it; for a list column: hist = sequence(hist.values, n)"),
        ("x = 2 * 3", "found x = 6, expected an op or an expression"),
        ("x = [a, b]", "found x = [a, b], expected an op or an expression"),
        ("sqrt(a)", "found sqrt(a), expected an op or an expression"),
        ("x = 36893488147419103232 * a", "the integer is larger"),
    ],
)  # fmt: skip
def test_a_malformed_net_says_where_and_what_was_expected(text, message):
    with pytest.raises(NetError) as error:
        parse(text)
    assert message in str(error.value)


def test_lists_and_calls_nested_too_deep_are_an_error_and_not_a_crash():
    for text in ("x = f(" + "[" * 100_000, "x = " + "f(" * 100_000):
        with pytest.raises(NetError, match="nested deeper than 64 levels"):
            parse(text)


@pytest.mark.slow
def test_arithmetic_may_be_nested_to_any_depth():
    (statement,) = parse("x = " + "sqrt(" * 5_000 + "a" + ")" * 5_000).statements
    assert statement.value.expression.inputs == ("a",)
    assert parse("x = f(" + "-" * 100_000 + "1)").statements[0].value.arguments[0].value == 1


def test_a_formula_knows_its_operands_and_calls_inside_it():
    (statement,) = parse("y = sqrt( (2*x + f(a, k=1)) / x )  # root").statements
    formula = statement.value
    assert isinstance(formula, Formula)
    assert str(statement) == "y = sqrt((2 * x + f(a, k=1)) / x)"
    assert [str(operand) for operand in formula.operands] == ["x", "f(a, k=1)"]
    assert formula.expression.canonical == "sqrt(div(add(mul(2,@0),@1),@0))"


def test_the_prefix_form_with_names_is_the_same_formula():
    infix, prefix = parse("y = sqrt((2*x + z)/12)\nw = sqrt(div(add(mul(2,x),z),12))").statements
    assert infix.value.expression == prefix.value.expression


def test_lists_hold_tensors_and_expressions():
    (operand,) = parse("y = f([a, b * 2, 3])").statements[0].value.arguments
    assert isinstance(operand, Listed)
    assert str(operand) == "[a, b * 2, 3]"


def test_expressions_of_literals_are_literals():
    (statement,) = parse("y = f(a, k=2*(3+4))").statements
    assert statement.value.keywords[0][1].value == 14


@pytest.mark.parametrize("count", [30_000, *thorough(300_000)])
def test_a_million_characters_are_read(count):
    assert parse("x = f(" + ", ".join(["a"] * count) + ")").statements[0].value.op == "f"


@pytest.mark.parametrize("count", [20_000, *slow(100_000)])
def test_a_hundred_thousand_names_are_returned_without_comparing_each_with_each(count):
    names = tuple(f"x{i}" for i in range(count))
    assert Net(f"return {', '.join(names)}").inputs == names


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("y = x @ w", "matmul(x, w)"),
        ("for a in x:\n  y = a", "a net has no loops"),
        ("y = [a + 1 for a in x]", "lengths_sum"),
        ("y = x[1:3]", "slice_sequences"),
        (
            "y = x.values.sum()",
            "a tensor has no methods, a net no modules; ops of seqflow.ops: add, lengths_sum",
        ),
        ("y = np.sum(x)", "reduce_sum"),
    ],
)
def test_words_of_python_are_refused_with_the_op_to_use(text, advice):
    with pytest.raises(NetError) as error:
        Net(text)
    assert advice in str(error.value)


def test_parts_of_a_message_where_a_text_is_expected():
    parts = "said.content.values"
    given = ["said.content.lengths", f"{parts}.text.lengths", f"{parts}.text.values"]
    net = Net(f"n = lengths_sum({parts}, said.content.lengths)")
    with pytest.raises(
        NetError, match=r"n = lengths_sum\(said\.content\.values\.text\.lengths, said\.content\.lengths"
    ):
        net.require(given)
