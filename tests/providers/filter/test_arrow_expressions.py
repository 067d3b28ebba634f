"""The structure of Arrow's expressions, and their text."""

from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from seqflow.providers.filter.arrow_expressions import (
    ArrowCall,
    ArrowLiteral,
    Field,
    canonical,
    fields_of,
    structure,
)

F = pc.field
TEXTS: dict[str, Any] = {
    "(lang == 'py')": F("lang") == "py",
    "((id > 5) and (not (x is None)))": (F("id") > 5) & ~F("x").is_null(),
    "((doc.a in [1, 2]) or (y is not None))": F("doc", "a").isin([1, 2]) | F("y").is_valid(),
    "(list_value_length(tokens) <= 30)": pc.list_value_length(F("tokens")) <= 30,
    """(`'it\\'s "it"'`.b != "it's")""": F('it\'s "it"', "b") != "it's",
    "(`'a\\nend'` == 1)": F("a\nend") == 1,
    "is_null(x, nan_is_null=True)": F("x").is_null(nan_is_null=True),
    "(x in [None])": F("x").isin(pa.array([None], pa.int64())),
    "(at < datetime.datetime(2024, 1, 1, 0, 0) as timestamp[us])": F("at") < datetime(2024, 1, 1),
    "(x < 0.5 as float)": F("x") < pa.scalar(0.5, pa.float32()),
    "flag": F("flag"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_has_a_text(text: str) -> None:
    tree = structure(TEXTS[text])
    assert tree is not None
    assert canonical(tree) == text


def test_different_expressions_have_different_texts() -> None:
    expressions = [
        *TEXTS.values(),
        F("lang") == "pY",
        F("'py'") == F("lang"),
        F("lang") == F("py"),
        F("x").isin(["1"]),
        F("x").isin([1]),
        F("x").isin(pa.array([], pa.int64())),
        F("x").cast("int8") > 1,
        F("x").cast("int16") > 1,
        F("a.b") == 1,
        F("a", "b") == 1,
        pc.round(F("x"), ndigits=1) > 1,
        pc.round(F("x"), ndigits=2) > 1,
    ]
    texts = [canonical(tree) for one in expressions if (tree := structure(one)) is not None]
    assert len(set(texts)) == len(expressions)


def test_the_structure_is_that_of_the_expression() -> None:
    tree = structure((F("a", "b") > 1) & F("c"))
    assert isinstance(tree, ArrowCall)
    compared, column = tree.arguments
    assert isinstance(compared, ArrowCall)
    assert compared.arguments == (Field(("a", "b")), ArrowLiteral(pa.scalar(1)))
    assert column == Field(("c",))
    assert list(fields_of(tree)) == [("a", "b"), ("c",)]


def test_what_is_no_expression_of_names_has_no_structure() -> None:
    assert structure(F(0) > 1) is None
    assert structure("x") is None
    assert structure(F("x").isin([1, 2])) is not None


def test_long_chains_are_read_without_recursion() -> None:
    expression = F("x") == 0
    for number in range(1, 300):
        expression = expression | (F("x") == number)
    tree = structure(expression)
    assert tree is not None
    assert canonical(tree).count("==") == 300
