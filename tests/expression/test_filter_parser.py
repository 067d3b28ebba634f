"""Filters as text: what they mean, and where malformed ones point to."""

import pytest

from seqflow.errors import ExpressionError, FilterError, ProviderOptionError
from seqflow.expression import Expression
from seqflow.expression.filter_parser import MAX_DEPTH, parse_filter
from seqflow.expression.filter_syntax import (
    Column,
    ComparisonTest,
    Connection,
    Constant,
    Filter,
    Membership,
    Negation,
    NullTest,
    Operation,
    columns_of,
)


def shown(tree: Filter) -> str:
    """The tree with brackets around everything."""
    match tree:
        case Column(name=name):
            return name
        case Constant(value=value):
            return repr(value)
        case Operation(name=name, arguments=arguments):
            return f"{name}({', '.join(map(shown, arguments))})"
        case ComparisonTest(token=token, left=left, right=right):
            return f"({shown(left)} {token.text} {shown(right)})"
        case Membership(value=value, members=members, negated=negated):
            return f"({shown(value)} {'not ' * negated}in [{', '.join(map(shown, members))}])"
        case NullTest(value=value, negated=negated):
            return f"({shown(value)} is {'not ' * negated}None)"
        case Negation(condition=condition):
            return f"not {shown(condition)}"
        case Connection(is_and=is_and, conditions=conditions):
            return f"({(' and ' if is_and else ' or ').join(map(shown, conditions))})"
    raise AssertionError(tree)


READ = {
    "a == 1": "(a == 1)",
    "a or b and not c or d": "(a or (b and not c) or d)",
    "not a == 1 and b": "(not (a == 1) and b)",
    "(a > 1) & (b < 2) | ~c": "(((a > 1) and (b < 2)) or not c)",
    "a & b & c & d": "(a and b and c and d)",
    "a + 2 * -b / 3 >= -1": "(+(a, /(*(2, -(b)), 3)) >= -1)",
    "'py' == lang": "('py' == lang)",
    "doc.lang in ['py', \"c\"]": "(doc.lang in ['py', 'c'])",
    "x not in (1, -2.5, inf,)": "(x not in [1, -2.5, inf])",
    "x in []": "(x in [])",
    "x == None or y != None": "((x is None) or (y is not None))",
    "x is None and y is not None": "((x is None) and (y is not None))",
    "lengths(a) > 3 and b.lengths < 4": "((lengths(a) > 3) and (b.lengths < 4))",
    "`user id` == 1": "(user id == 1)",
    "`a.b`.lengths < 4 or doc.`x.y` is None": "((a.b.lengths < 4) or (doc.x.y is None))",
    "ok and not (ok == True)": "(ok and not (ok == True))",
    r"""a == 'it\'s "\\" \u00e9\n'""": r"""(a == 'it\'s "\\" é\n')""",
    "a\n  == 1": "(a == 1)",
}


@pytest.mark.parametrize("text", READ)
def test_a_filter_is_read_with_the_precedence_of_python(text: str) -> None:
    assert shown(parse_filter(text)) == READ[text]


REFUSED = {
    "": (0, "found the end, expected a column, a number, a text or '('"),
    "a b": (2, "found 'b', expected 'and', 'or', an operator or the end"),
    "a < b < c": (6, "comparisons do not chain: write a < b and b < c"),
    "a == 1 & b == 2": (11, "comparisons do not chain"),
    "a == None == b": (10, "comparisons do not chain"),
    "a < None": (4, "None has no order, expected == None or != None"),
    "None == a": (0, "None is compared: x == None, x != None"),
    "a is 3": (5, "found '3', expected None"),
    "a not 3": (6, "found '3', expected 'in'"),
    "a in b": (5, "expected a list, such as ['py', 'c']"),
    "a in [b]": (6, "found 'b', expected a number or a text in the list"),
    "a in [None]": (6, "write x in […] or x == None"),
    "a in [1 2]": (8, "found '2', expected ',' or ']'"),
    "a in [1": (5, "this bracket is never closed, expected ']'"),
    "a == 'x": (5, "a text ends, on its line, with the quote that it begins with"),
    r"a == 'x\q'": (7, "found the escape '\\\\q', expected one of"),
    r"a == '\ud800'": (6, "found the escape"),
    "a == -'x'": (5, "found '-' before 'x'"),
    "(a": (0, "this bracket is never closed"),
    "a)": (1, "found ')', expected 'and', 'or', an operator or the end"),
    "f(a": (0, "this bracket is never closed"),
    "a = 1": (2, "equality is =="),
    "a[0] == 1": (1, "found '[', expected 'and', 'or', an operator or the end"),
    "a ** 2 > 1": (2, "found '**', expected 'and', 'or', an operator or the end"),
    "and a": (0, "found 'and', expected a column"),
    "a > 1e1234567": (4, "the exponent of a number has at most 6 digits"),
    "`a > 1": (0, "a column's name in backticks ends with a backtick"),
    "(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1): (MAX_DEPTH, "nested in more than 50 levels"),
    "not " * 60 + "a": (4 * MAX_DEPTH, "nested in more than 50 levels"),
    "a" + " + a" * 60 + " > 1": (4 * MAX_DEPTH + 2, "nested in more than 50 levels"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_malformed_filter_is_refused_at_its_place(text: str) -> None:
    position, message = REFUSED[text]
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"where, column {position + 1}: ")


def test_parts_in_backticks_have_any_characters() -> None:
    for text, path in {
        "`a.b`.lengths > 1": ("a.b", "lengths"),
        "doc.`x.y`.`z` > 1": ("doc", "x.y", "z"),
        "doc.x > 1": (),
    }.items():
        assert [one.path for one in columns_of(parse_filter(text))] == [path]


def test_numbers_are_kept_as_they_are_written() -> None:
    tree = parse_filter("a in [-12345678901234567.89, 1e400, +0.1, -inf]")
    assert isinstance(tree, Membership)
    assert [str(one.exact) for one in tree.members] == ["-12345678901234567.89", "1E+400", "0.1", "-Infinity"]


def test_the_error_is_one_of_options_and_of_expressions() -> None:
    assert issubclass(FilterError, ProviderOptionError)
    assert issubclass(FilterError, ExpressionError)


def test_long_chains_are_read() -> None:
    tree = parse_filter(" or ".join(f"a == {n}" for n in range(5000)))
    assert isinstance(tree, Connection)
    assert len(tree.conditions) == 5000
    assert [one.name for one in columns_of(parse_filter(" & ".join(["ok"] * 5000)))] == ["ok"] * 5000


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("lang == 'py'", "a text is compared in a filter (where=)"),
        ("lang in x", "lists are for filters (where=): write (x == 1) | (x == 2)"),
        ("`a b` + 1", "names in backticks are for filters (where=)"),
        ("a in b", "lists are for filters"),
    ],
)
def test_expressions_over_tensors_refuse_what_only_filters_have(text: str, advice: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression(text)
    assert advice in str(caught.value)
    assert not isinstance(caught.value, FilterError)
