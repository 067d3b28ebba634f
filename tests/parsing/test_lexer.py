"""The tokens of a dialect; those of expressions stand for all."""

import pytest

from seqflow.errors import ExpressionError
from seqflow.expression.parser import MARKS, lexicon, refuse
from seqflow.printable import printable

EXPRESSIONS = lexicon(MARKS)


def tokenize(text):
    return EXPRESSIONS.tokens(text, lambda *fault: refuse(text, *fault))


def texts(text):
    return [token.text for token in tokenize(text)[:-1]]


def test_an_operand_ends_after_its_digits():
    assert [(t.text, t.start, t.end) for t in tokenize("add(@0,@12)")] == [
        ("add", 0, 3), ("(", 3, 4), ("@0", 4, 6), (",", 6, 7), ("@12", 7, 10), (")", 10, 11), ("", 11, 11)
    ]  # fmt: skip


def test_the_last_bracket_is_a_token():
    assert len(texts("add(@0,mul(@1,@2))")) == 11


def test_every_token_is_its_piece_of_the_text():
    text = " sqrt( (2*x + doc.values)/ 1e-3 )\n<= größe ** .5"
    assert all(text[token.start : token.end] == token.text for token in tokenize(text))


@pytest.mark.parametrize("number", ["0", "12", "1.", ".5", "1.5", "1e3", "1e-3", "1.5E+10", ".5e2"])
def test_numbers(number):
    assert [(t.kind, t.text) for t in tokenize(number)] == [("number", number), ("end", "")]


def test_the_longest_operator_wins():
    assert texts("a**b//c<<d>=e!=f*-g") == [
        "a",
        "**",
        "b",
        "//",
        "c",
        "<<",
        "d",
        ">=",
        "e",
        "!=",
        "f",
        "*",
        "-",
        "g",
    ]


def test_names_may_have_dots_and_any_letters():
    assert texts("doc.values größe 値 _x1") == ["doc.values", "größe", "値", "_x1"]


def test_blanks_are_no_tokens():
    assert texts(" \t\r\n ") == []


@pytest.mark.parametrize(
    ("text", "column"),
    [("@", 1), ("@ 1 2", 1), ("a @x", 3), ("a..b", 2), ("a; b", 2), ("a[0]", 2), ("a = 1", 3), ("2x", 2),
     ("0x10", 2), ("1..2", 3), ("1_000", 2), ("a ! b", 3), ("a ? b", 3), ("'a", 1), ("\x00", 1)],
)  # fmt: skip
def test_a_character_that_begins_no_token_is_pointed_at(text, column):
    with pytest.raises(ExpressionError) as error:
        tokenize(text)
    lines = str(error.value).split("\n")
    assert f"column {column}:" in lines[0]
    assert lines[1] == "  " + printable(text)
    assert lines[2] == " " * (column + 1) + "^"
