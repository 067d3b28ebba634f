"""Expressions as text: what is printed reads back as the same tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import Expression
from seqflow.expression.functions import table
from seqflow.expression.parser import parse
from seqflow.expression.printer import infix


def printed(text):
    parsed = parse(text)
    return infix(parsed.tree, parsed.inputs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a+b*c", "a + b * c"),
        ("(a+b)*c", "(a + b) * c"),
        ("a-(b-c)", "a - (b - c)"),
        ("((a-b)-c)", "a - b - c"),
        ("a**b**c", "a ** b ** c"),
        ("(a**b)**c", "(a ** b) ** c"),
        ("(-a)**2", "(-a) ** 2"),
        ("-a**2", "-a ** 2"),
        ("a ** -b", "a ** -b"),
        ("(-3)**a", "(-3) ** a"),
        ("neg(3)*a", "neg(3) * a"),
        ("neg(-3)*a", "neg(-3) * a"),
        ("(a<b)&(b<c)", "(a < b) & (b < c)"),
        ("(a<b)==(b<c)", "(a < b) == (b < c)"),
        ("+a", "a"),
        ("~-a", "~-a"),
        ("add(a,b,2)", "a + b * 2"),
        ("where(a>0,a,-inf)", "where(a > 0, a, -inf)"),
        ("add(mul(@0,2),@1)", "@0 * 2 + @1"),
        ("1e30*a-1e-05", "1e+30 * a - 1e-05"),
    ],
)
def test_an_expression_prints_with_the_brackets_it_needs(text, expected):
    assert printed(text) == expected


OPERATORS = [row for row in table if row.operator]
LEAVES = st.sampled_from(
    ["x", "y", "doc.values", "2", "0", "-3", "1.5", "-0.0", "1e-30", "inf", "-inf", "nan", "True"]
)


def nodes(inner):
    def written(row, operands):
        if row.operator and row.arity == 2:
            return f"({operands[0]}) {row.operator} ({operands[1]})"
        return f"{row.operator}({operands[0]})" if row.operator else f"{row.name}({', '.join(operands)})"

    return st.sampled_from([*table, *OPERATORS * 3]).flatmap(
        lambda row: st.lists(inner, min_size=row.arity, max_size=row.arity).map(
            lambda parts: written(row, parts)
        )
    )


@given(st.recursive(LEAVES, nodes, max_leaves=12))
def test_what_is_printed_reads_back_as_the_same_tree(text):
    parsed, again = parse(text), parse(printed(text))
    assert str(again.tree) == str(parsed.tree)
    assert again.inputs == parsed.inputs
    assert infix(again.tree, again.inputs) == printed(text)


def test_nesting_of_any_depth_prints():
    deep = "-" * 5_000 + "x" + " + (y" * 5_000 + ")" * 5_000
    assert printed(printed(deep)) == printed(deep)


def test_an_expression_of_other_inputs():
    swapped = Expression("x - y * x").with_inputs(["b", "a"])
    assert (swapped.text, swapped.inputs) == ("b - a * b", ("b", "a"))
    merged = Expression("x - y * x").with_inputs(["a", "a"])
    assert (merged.text, merged.inputs) == ("a - a * a", ("a",))
    np.testing.assert_array_equal(merged(np.array([2.0, 3.0])), [-2, -6])
