"""The dialect of dimensions and shapes: `{1,?,2..5,7..}`, `B+1`, `sum(lengths)`.

Its nodes are dimensions, computed as they are read.
"""

import re
from collections.abc import Callable

from seqflow.errors import ShapeError
from seqflow.parsing.lexer import Lexicon, Token, marks
from seqflow.parsing.parser import Parser
from seqflow.shape.atoms import AXIS, NAME, unquoted
from seqflow.shape.bounds import LARGEST
from seqflow.shape.dimension import Dimension

_MOST_DIGITS = 30
"""Largest number of digits that are converted to an integer; longer numbers are too large in any case."""


class ShapeText(Parser[Dimension]):
    """Parser of shape texts, such as `{1,?,2..5}`.

    Each method reads the part of the text that it is named after, or raises ShapeError with a column.
    """

    what = "shape text"
    error = ShapeError
    lexicon = Lexicon("a dimension", number=r"\d+", name=NAME, mark=marks(".. // { } ( ) , : ? * / + -"))
    infix = dict.fromkeys(("+", "-"), 0) | dict.fromkeys(("*", "/", "//"), 1)
    deepest = 64

    def shape(self) -> list[Dimension] | None:
        """Dimensions in braces, or None for `?`, a shape of unknown rank."""
        return None if self.accept("?") else self.items(self.take("{"), self.dimension)

    def dimension(self) -> Dimension:
        """`?`, a range, or a form with or without a range after a colon."""
        if self.accept("?"):
            return Dimension.dynamic()
        if self.token.kind == "number" and self.after.text == "..":
            return self.range()
        formula = self.value().without_bounds()
        if formula.is_static or not self.accept(":"):
            return formula
        start = self.token
        between = self.range()
        if not formula.compatible(between):
            self.expected(f"a range that {formula} can lie in", token=start)
        return formula.merge(between)

    def end(self) -> None:
        """The end of the text."""
        self.kind("end", "the end")

    def range(self) -> Dimension:
        start = self.token
        low = self.number()
        self.take("..")
        high = self.number() if self.token.kind == "number" else None
        if high is not None and high < low:
            self.fail(start, f"found '{low}..{high}', expected the lower bound first")
        return Dimension(low, high)

    def atom(self, token: Token) -> Dimension:
        if token.kind == "number":
            return Dimension(self.number())
        name = self.name()
        opening = self.accept("(")
        if opening is None:
            return self.named(token)
        if name not in ("sum", "max", "len", "min"):
            self.expected("'sum' or 'max' or 'len' or 'min'", token=token)
        if name in ABOUT_LENGTHS and self.after.text == ")":
            about = ABOUT_LENGTHS[name](unquoted(self.name()))
            self.take(")")
            return about
        if name not in ("min", "max"):
            self.name()
            self.take(")")
        self.deeper(opening)
        left = self.value()
        self.take(",")
        right = self.value()
        self.depth -= 1
        self.take(")")
        return self.infixed(token, [left, right], token)

    def named(self, token: Token) -> Dimension:
        """The size that a name stands for."""
        axis = re.fullmatch(AXIS, token.text)
        if axis is None:
            return Dimension.symbol(token.text)
        if len(axis["axis"]) > _MOST_DIGITS:
            self.expected("the number of an axis", token=token)
        return Dimension.axis_of(unquoted(axis["tensor"]), int(axis["axis"]))

    def infixed(self, token: Token, operands: list[Dimension], start: Token) -> Dimension:
        try:
            return OPERATIONS[token.text](*operands)
        except ShapeError as error:
            self.expected(f"sizes this works on: {error}", token=token)

    def name(self) -> str:
        return self.kind("name", "a size, such as 3, ?, 2..5 or B").text

    def number(self) -> int:
        digits = self.kind("number", "a number")
        if len(digits.text) > _MOST_DIGITS or int(digits.text) > LARGEST:
            self.expected(f"at most {LARGEST}", token=digits)
        return int(digits.text)


ABOUT_LENGTHS = {"sum": Dimension.sum_of, "max": Dimension.max_of, "len": Dimension.len_of}
"""The functions of one lengths tensor."""

OPERATIONS: dict[str, Callable[[Dimension, Dimension], Dimension]] = {
    "+": Dimension.__add__,
    "-": Dimension.__sub__,
    "*": Dimension.__mul__,
    "/": Dimension.divide_exactly,
    "//": Dimension.__floordiv__,
    "min": Dimension.minimum,
    "max": Dimension.maximum,
}
"""The operations on two sizes."""
