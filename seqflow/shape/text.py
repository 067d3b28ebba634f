"""The text of dimensions and shapes: `{1,?,2..5,7..}`, `B+1`, `sum(lengths)`."""

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from seqflow.errors import ShapeError
from seqflow.shape.atoms import AXIS, NAME, unquoted
from seqflow.shape.bounds import LARGEST
from seqflow.shape.dimension import Dimension

_TOKEN = re.compile(rf"\s*(?:({NAME}|\d+|\.\.|//|[{{}}(),:?*/+-])|(\S))")


class _Token(NamedTuple):
    text: str
    position: int


class Reader:
    """A cursor over one text; each method reads the part it is named after, or raises ShapeError with a column."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        self.next = 0
        for match in _TOKEN.finditer(text):
            if match[2]:
                self._fail("a dimension", _Token(match[2], match.start(2)))
            self.tokens.append(_Token(match[1], match.start(1)))

    def shape(self) -> list[Dimension] | None:
        """Dimensions in braces, or None for `?`, a shape of unknown rank."""
        if self._accept("?"):
            return None
        self._take("{")
        dimensions: list[Dimension] = []
        while not self._accept("}"):
            if dimensions:
                self._take(",", "}")
            dimensions.append(self.dimension())
        return dimensions

    def dimension(self) -> Dimension:
        """`?`, a range, or a form with or without a range after a colon."""
        if self._accept("?"):
            return Dimension.dynamic()
        if self._peek().isdigit() and self._peek(1) == "..":
            return self._range()
        form = self._sum().without_bounds()
        if form.is_static or not self._accept(":"):
            return form
        start = self.next
        between = self._range()
        if not form.compatible(between):
            self._fail(f"a range that {form} can lie in", self._token(start))
        return form.merge(between)

    def end(self) -> None:
        """The end of the text."""
        if self.next < len(self.tokens):
            self._fail("the end")

    def _range(self) -> Dimension:
        start = self.next
        low = self._number()
        self._take("..")
        high = self._number() if self._peek().isdigit() else None
        if high is not None and high < low:
            self._fail("the lower bound first", _Token(f"{low}..{high}", self._token(start).position))
        return Dimension(low, high)

    def _sum(self) -> Dimension:
        left = self._term()
        while self._peek() in ("+", "-"):
            sign, operator = self.next, self._take()
            left = self._apply(operator, left, self._term(), sign)
        return left

    def _term(self) -> Dimension:
        left = self._factor()
        while self._peek() in ("*", "/", "//"):
            sign, operator = self.next, self._take()
            left = self._apply(operator, left, self._factor(), sign)
        return left

    def _factor(self) -> Dimension:
        if self._peek().isdigit():
            return Dimension(self._number())
        if self._accept("("):
            inside = self._sum()
            self._take(")")
            return inside
        name = self._name()
        if self._peek() != "(":
            axis = re.fullmatch(AXIS, name)
            if axis is None:
                return Dimension.symbol(name)
            return Dimension.axis_of(unquoted(axis["tensor"]), int(axis["axis"]))
        self.next -= 1
        function = self._take("sum", "max", "len", "min")
        start = self.next
        self._take("(")
        if function in ABOUT_LENGTHS and self._peek(1) == ")":
            about = ABOUT_LENGTHS[function](unquoted(self._name()))
            self._take(")")
            return about
        if function not in ("min", "max"):
            self._name()
            self._take(")")
        left = self._sum()
        self._take(",")
        right = self._sum()
        self._take(")")
        return self._apply(function, left, right, start)

    def _apply(self, operator: str, left: Dimension, right: Dimension, at: int) -> Dimension:
        try:
            return OPERATIONS[operator](left, right)
        except ShapeError as error:
            self._fail("sizes this works on", self._token(at), f": {error}")

    def _name(self) -> str:
        if not re.fullmatch(NAME, self._peek()):
            self._fail("a size, such as 3, ?, 2..5 or B")
        return self._take()

    def _number(self) -> int:
        if not self._peek().isdigit():
            self._fail("a number")
        if int(self._peek()) > LARGEST:
            self._fail(f"at most {LARGEST}")
        return int(self._take())

    def _token(self, at: int) -> _Token:
        return self.tokens[at] if at < len(self.tokens) else _Token("the end", len(self.text))

    def _peek(self, ahead: int = 0) -> str:
        at = self.next + ahead
        return self.tokens[at].text if at < len(self.tokens) else ""

    def _take(self, *expected: str) -> str:
        token = self._peek()
        if expected and token not in expected:
            self._fail(" or ".join(map(repr, expected)))
        self.next += 1
        return token

    def _accept(self, text: str) -> bool:
        found = self._peek() == text
        self.next += found
        return found

    def _fail(self, expected: str, token: _Token | None = None, because: str = "") -> NoReturn:
        token = token or self._token(self.next)
        found = token.text if token.text == "the end" else repr(token.text)
        raise ShapeError(
            f"shape text: found {found} at column {token.position + 1}, expected {expected}{because}\n"
            f"  {self.text}\n  {' ' * token.position}^"
        )


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
