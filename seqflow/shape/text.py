"""The text of dimensions and shapes: `{1,?,2..5,7..}`, `B+1`, `sum(lengths)`."""

import re
from collections.abc import Callable

from seqflow.cursor import Cursor, Token
from seqflow.errors import ShapeError
from seqflow.shape.atoms import AXIS, NAME, unquoted
from seqflow.shape.bounds import LARGEST
from seqflow.shape.dimension import Dimension

_TOKEN = re.compile(rf"\s*(?:({NAME}|\d+|\.\.|//|[{{}}(),:?*/+-])|(\S))")

_MOST_DIGITS = 30
"""Largest number of digits that are converted to an integer; longer numbers are too large in any case."""


class Reader(Cursor):
    """A cursor over one text; each method reads the part it is named after, or raises ShapeError with a column."""

    def __init__(self, text: str) -> None:
        super().__init__(text, _TOKEN, wanted="a dimension", what="shape text", error=ShapeError)

    def shape(self) -> list[Dimension] | None:
        """Dimensions in braces, or None for `?`, a shape of unknown rank."""
        if self.accept("?"):
            return None
        self.take("{")
        dimensions: list[Dimension] = []
        while not self.accept("}"):
            if dimensions:
                self.take(",", "}")
            dimensions.append(self.dimension())
        return dimensions

    def dimension(self) -> Dimension:
        """`?`, a range, or a form with or without a range after a colon."""
        if self.accept("?"):
            return Dimension.dynamic()
        if self.peek().isdecimal() and self.peek(1) == "..":
            return self._range()
        form = self._sum().without_bounds()
        if form.is_static or not self.accept(":"):
            return form
        start = self.next
        between = self._range()
        if not form.compatible(between):
            self.fail(f"a range that {form} can lie in", self.token(start))
        return form.merge(between)

    def end(self) -> None:
        """The end of the text."""
        if self.next < len(self.tokens):
            self.fail("the end")

    def _range(self) -> Dimension:
        start = self.next
        low = self._number()
        self.take("..")
        high = self._number() if self.peek().isdecimal() else None
        if high is not None and high < low:
            self.fail("the lower bound first", Token(f"{low}..{high}", self.token(start).position))
        return Dimension(low, high)

    def _sum(self) -> Dimension:
        left = self._term()
        while self.peek() in ("+", "-"):
            sign, operator = self.next, self.take()
            left = self._apply(operator, left, self._term(), sign)
        return left

    def _term(self) -> Dimension:
        left = self._factor()
        while self.peek() in ("*", "/", "//"):
            sign, operator = self.next, self.take()
            left = self._apply(operator, left, self._factor(), sign)
        return left

    def _factor(self) -> Dimension:
        if self.peek().isdecimal():
            return Dimension(self._number())
        if self.accept("("):
            inside = self._nested()
            self.take(")")
            return inside
        name = self._name()
        if self.peek() != "(":
            axis = re.fullmatch(AXIS, name)
            if axis is None:
                return Dimension.symbol(name)
            if len(axis["axis"]) > _MOST_DIGITS:
                self.fail("the number of an axis", self.token(self.next - 1))
            return Dimension.axis_of(unquoted(axis["tensor"]), int(axis["axis"]))
        # the name before `(` is read again, as a function
        self.next -= 1
        function = self.take("sum", "max", "len", "min")
        start = self.next
        self.take("(")
        if function in ABOUT_LENGTHS and self.peek(1) == ")":
            about = ABOUT_LENGTHS[function](unquoted(self._name()))
            self.take(")")
            return about
        if function not in ("min", "max"):
            self._name()
            self.take(")")
        left = self._nested()
        self.take(",")
        right = self._nested()
        self.take(")")
        return self._apply(function, left, right, start)

    def _nested(self) -> Dimension:
        """A sum in brackets."""
        self.deeper()
        inside = self._sum()
        self.depth -= 1
        return inside

    def _apply(self, operator: str, left: Dimension, right: Dimension, at: int) -> Dimension:
        try:
            return OPERATIONS[operator](left, right)
        except ShapeError as error:
            self.fail("sizes this works on", self.token(at), f": {error}")

    def _name(self) -> str:
        if not re.fullmatch(NAME, self.peek()):
            self.fail("a size, such as 3, ?, 2..5 or B")
        return self.take()

    def _number(self) -> int:
        if not self.peek().isdecimal():
            self.fail("a number")
        if len(self.peek()) > _MOST_DIGITS or int(self.peek()) > LARGEST:
            self.fail(f"at most {LARGEST}")
        return int(self.take())


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
