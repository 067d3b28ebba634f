"""The text of a net, and what is said about text that is not one."""

import math

import pytest

from seqflow.errors import NetError
from seqflow.net.parser import Constant, Reference, parse


def test_a_statement_has_targets_an_op_and_operands():
    program = parse("ids, n = truncate(doc.values, doc.lengths, max_length=512)\nreturn ids")
    (statement,) = program.statements
    assert [target.name for target in statement.targets] == ["ids", "n"]
    assert statement.op == "truncate"
    assert [operand.name for operand in statement.arguments] == ["doc.values", "doc.lengths"]
    assert statement.keywords[0][0] == "max_length"
    assert statement.keywords[0][1].value == 512
    assert [reference.name for reference in program.returned] == ["ids"]


def test_an_op_without_results_is_a_bare_call():
    (statement,) = parse("same_lengths(a, b)").statements
    assert statement.targets == ()


def test_lines_may_be_broken_inside_brackets_and_comments_are_skipped():
    program = parse("# first\nx = f(a,  # a\n      [1,\n 2],)\n\n\ny = g(x)  # last")
    assert [statement.op for statement in program.statements] == ["f", "g"]
    assert program.statements[1].place.line == 7
    assert program.returned is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-1", -1), ("16_384", 16384), ("1.5", 1.5), (".5", 0.5), ("2.", 2.0), ("1e-3", 1e-3),
        ("-inf", -math.inf), ("True", True), ("None", None), ("'a\\'b'", "a'b"), ('"é"', "é"), ("[1, -2, [3]]", [1, -2, [3]]),
        ("[]", []),
    ],
)  # fmt: skip
def test_literals(text, value):
    operand = parse(f"y = f({text})").statements[0].arguments[0]
    assert isinstance(operand, Constant)
    assert operand.value == value


def test_names_may_have_letters_of_any_language():
    operand = parse("größe = f(длина.values)").statements[0].arguments[0]
    assert isinstance(operand, Reference)
    assert operand.name == "длина.values"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "line 1, column 5: found the end of the line, expected an op\n  x = \n      ^"),
        ("x, = f(a)", "found '=', expected a name or an op"),
        ("x, y", "found the end of the line, expected '=' after the names of the results"),
        ("x = f(a", "found the end of the line, expected ',' or ')'"),
        ("x = f(a b)", "line 1, column 9: found 'b', expected ',' or ')'"),
        ("x = f(,)", "found ',', expected a tensor or a literal"),
        ("x = f(k=1, a)", "found 'a', expected a keyword: positional arguments come first"),
        ("x = f(k=1, k=2)", "k is given twice"),
        ("x = f(a) y", "found 'y', expected the end of the line"),
        ("x = f(a)\n  y = @", "line 2, column 7: found '@', expected a name, a literal or punctuation"),
        ("x = f('a)", 'found "\'", expected the end of the text'),
        ("x = f(-'a')", "found '-' before 'a', expected a number after it"),
        ("x = f([1 2])", "found '2', expected ',' or ']'"),
        ("return x\ny = f(x)", "found 'y', expected nothing after return"),
        ("return", "found the end of the line, expected the name of a tensor"),
        ("return 1", "found '1', expected the name of a tensor"),
        ("True = f(x)", "found 'True', expected a name or an op"),
        ("3 = f(x)", "found '3', expected a name or an op"),
        ("x = f(0123)", "found '0123', expected a number or text"),
        ("x = f(1__0)", "found '1__0', expected a number or text"),
        ("x = f(a))", "found ')', expected the end of the line"),
    ],
)  # fmt: skip
def test_a_malformed_net_says_where_and_what_was_expected(text, message):
    with pytest.raises(NetError) as error:
        parse(text)
    assert message in str(error.value)


def test_nesting_of_any_depth_is_an_error_and_not_a_crash():
    with pytest.raises(NetError, match="nested"):
        parse("x = f(" + "[" * 100_000)
    with pytest.raises(NetError, match="nested"):
        parse("x = f(" + "-" * 100_000 + "1)")


def test_a_million_characters_are_read():
    assert parse("x = f(" + ", ".join(["a"] * 300_000) + ")").statements[0].op == "f"
