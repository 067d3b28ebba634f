"""Dialect of filters: expressions with texts, lists, None, `and`, `or` and `not`.

Operators bind as in Python, from the weakest: `or`, `and`, `not`, comparisons, then the operators of expressions.
"""

import math
import re
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import NoReturn

from seqflow.errors import FilterError
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
)
from seqflow.expression.parser import AND, BINDING, COMPARISON, MARKS, NOT, OR, UNARY, lexicon
from seqflow.parsing.errors import fail
from seqflow.parsing.lexer import Token
from seqflow.parsing.parser import Parser

MAX_DEPTH = 50
"""Most levels of brackets, `not` and signs inside each other, and of operators between operands."""
_INFIX = {
    **{operator: level for operator, level in BINDING.items() if operator != "**"},
    **dict.fromkeys(("in", "is", "not"), COMPARISON),
    "and": AND,
    "or": OR,
}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_WORDS = ("and", "or", "not", "in", "is", "None", "True", "False", "inf", "nan")
_PART = re.compile(r"`[^`]+`|[^`.]+")
"""One part of a column's name."""
# values are compared exactly: a larger exponent would stand for an integer of millions of digits
_MOST_DIGITS = 6
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def parse_filter(text: str) -> Filter:
    """Read a filter; raise FilterError, with a caret at the place, when the text is malformed.

    >>> parse_filter("lang in ['py', 'c'] and id < 9").is_and
    True
    """
    return _Filter(text).whole("'and', 'or', an operator or the end")


refuse = partial(fail, what="where", kind=FilterError)
"""Raise FilterError at a position of the text of a filter."""


class _Filter(Parser[Filter]):
    what = "where"
    error = FilterError
    # after a comma only: elsewhere `seed = 3` is a comparison that lacks a sign
    lexicon = lexicon(MARKS + " [ ]", keyword=r"(?:(?<=,)|(?<=,\s))seed\s*=(?!=)")
    prefix = dict.fromkeys("-+~", UNARY) | {"not": NOT}
    infix = _INFIX
    alone = frozenset({COMPARISON})
    joined = frozenset({OR, AND, BINDING["|"], BINDING["&"]})
    loose = frozenset({"not"})
    least_in_calls = COMPARISON + 1
    begins = "a column, a number, a text or '('"
    deepest = highest = MAX_DEPTH

    def atom(self, token: Token) -> Filter:
        self.next += 1
        match token.kind, token.text:
            case "number", _:
                return self.number(token)
            case "keyword", _:
                return replace(self.number(self.kind("number", "an integer")), token=token)
            case "string", _:
                return Constant(token, self.unescaped(token))
            case "column", text:
                path = tuple(part.strip("`") for part in _PART.findall(text))
                return Column(token, ".".join(path), path)
            case "name", "True" | "False":
                return Constant(token, token.text == "True")
            case "name", "inf" | "nan":
                return Constant(token, float(token.text), Decimal(token.text))
            case "name", name if name not in _WORDS:
                return Column(token, name)
        advice = "None is compared: x == None, x != None" if token.text == "None" else ""
        return self.expected(self.begins, advice, token)

    def opens_call(self, token: Token) -> bool:
        return token.text not in _WORDS

    def called(self, token: Token, arguments: list[Filter]) -> Filter:
        return Operation(token, token.text, tuple(arguments))

    def infixed(self, token: Token, operands: list[Filter], start: Token) -> Filter:
        if token.text in ("and", "or"):
            return Connection(start, token.text == "and", tuple(operands))
        if token.text in ("&", "|"):
            left, *rest = operands
            is_longer = isinstance(left, Connection) and left.token.text == token.text
            before = left.conditions if is_longer else (left,)  # type: ignore[union-attr]
            return Connection(token, token.text == "&", (*before, *rest))
        if token.text in _COMPARISONS:
            return ComparisonTest(token, *operands)
        return Operation(token, token.text, tuple(operands))

    def prefixed(self, token: Token, operand: Filter) -> Filter:
        if token.text in ("not", "~"):
            return Negation(token, operand)
        if isinstance(operand, Constant):
            if isinstance(operand.value, bool | str):
                self.fail(token, f"found {token.text!r} before {operand.token.text}")
            if token.text == "+":
                return Constant(token, operand.value, operand.exact)
            # `-` would round a Decimal to the precision of the context
            return Constant(token, -operand.value, operand.exact.copy_negate())
        return operand if token.text == "+" else Operation(token, "-", (operand,))

    def suffixed(self, token: Token, node: Filter) -> Filter | None:
        """Read a comparison with None, or a test whether a value is in a list, or null."""
        if token.text in _COMPARISONS:
            none = self.after
            if none.text != "None":
                return None
            if token.text not in ("==", "!="):
                self.fail(none, "None has no order, expected == None or != None")
            self.next += 2
            return NullTest(token, node, token.text == "!=")
        if self.accept("is"):
            negated = self.accept("not") is not None
            if not self.accept("None"):
                self.expected("None", "values are compared by ==")
            return NullTest(token, node, negated)
        if token.text not in ("in", "not"):
            return None
        negated = self.accept("not") is not None
        self.take("in")
        opening = self.accept("[", "(") or self.expected("a list, such as ['py', 'c']")
        return Membership(token, node, tuple(self.items(opening, self.member, trailing=True)), negated)

    def member(self) -> Constant:
        token = self.token
        if self.at("None"):
            self.fail(token, "found None in a list", "write x in […] or x == None")
        found = self.value(math.inf)
        if not isinstance(found, Constant):
            self.fail(token, f"found {token.text!r}, expected a number or a text in the list")
        return found

    def chained(self, token: Token) -> NoReturn:
        self.expected("'and', 'or' or the end", "comparisons do not chain: write a < b and b < c")

    def advice_for(self, token: Token) -> str:
        return "a filter has + - * /, comparisons, and, or, not, in" if token.text == "**" else ""

    def number(self, token: Token) -> Constant:
        if len(token.text.lower().partition("e")[2].lstrip("+-")) > _MOST_DIGITS:
            self.fail(token, f"the exponent of a number has at most {_MOST_DIGITS} digits")
        is_whole = token.text.isdigit() and len(token.text) <= 300
        return Constant(token, int(token.text) if is_whole else float(token.text), Decimal(token.text))

    def unescaped(self, token: Token) -> str:
        """Return the text of a literal, with its escapes replaced."""

        def character(match: re.Match[str]) -> str:
            code = match.group(1)
            if len(code) > 1:
                number = int(code[1:], 16)
                if number < 0x110000 and not 0xD800 <= number < 0xE000:
                    return chr(number)
            elif code in _ESCAPES:
                return _ESCAPES[code]
            known = r"\\ \' \" \n \t \r \0 \x41 \u0041 \U00000041"
            return self.fail_at(
                token.start + 1 + match.start(),
                f"found the escape {match.group()!r}, expected one of {known}",
            )

        return _ESCAPE.sub(character, token.text[1:-1])
