"""Recursive-descent parser of filters: expressions with texts, lists, None, `and`, `or` and `not`.

Operators bind as in Python: `or`, `and`, `not`, comparisons, then those of expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from seqflow.errors import ExpressionError, FilterError
from seqflow.expression.filter_syntax import (
    Column,
    Comparison,
    Connection,
    Constant,
    Filter,
    Membership,
    Negation,
    NullTest,
    Operation,
)
from seqflow.expression.lexer import Token, fail, tokenize
from seqflow.expression.parser import BINDING, COMPARISON, POWER

MAX_DEPTH = 50
"""Levels of brackets, `not`, signs and arithmetic inside each other."""
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_WORDS = ("and", "or", "not", "in", "is", "None", "True", "False", "inf", "nan")
_PART = re.compile(r"`[^`]+`|[^`.]+")
"""A part of the name of a column."""
_MOST_DIGITS = 6
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def parse_filter(text: str) -> Filter:
    """The syntax tree of a filter; FilterError, with a caret at the place, where the text is malformed.

    >>> parse_filter("lang in ['py', 'c'] and id < 9").is_and
    True
    """
    try:
        tokens = tokenize(text, lists=True)
    except ExpressionError as error:
        position, message, advice = error.fault or (0, str(error), "")
        refuse(text, position, message, advice)
    return _Parser(text, tokens).parse()


def refuse(text: str, position: int, message: str, advice: str = "") -> NoReturn:
    """FilterError at a position of the text of a filter."""
    fail(text, position, message, advice, what="where", kind=FilterError)


@dataclass(slots=True)
class _Parser:
    text: str
    tokens: list[Token]
    at: int = 0
    depth: int = 0

    def parse(self) -> Filter:
        tree = self.either()
        if self.token.kind != "end":
            self.expected("'and', 'or', an operator or the end")
        return tree

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def takes(self, *words: str) -> Token | None:
        """The next token where it is one of these marks or names, and is passed; else None."""
        token = self.token
        if token.kind not in ("name", "mark") or token.text not in words:
            return None
        self.at += 1
        return token

    def expected(self, what: str, advice: str = "") -> NoReturn:
        found = "the end" if self.token.kind == "end" else repr(self.token.text)
        refuse(self.text, self.token.start, f"found {found}, expected {what}", advice)

    def deeper(self, token: Token) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            refuse(self.text, token.start, f"the filter is nested in more than {MAX_DEPTH} levels")

    def either(self) -> Filter:
        """Conditions joined by `or`, each of them joined by `and`."""
        return self.joined("or", lambda: self.joined("and", self.negation))

    def joined(self, word: str, part: Callable[[], Filter]) -> Filter:
        first = self.token
        found = [part()]
        while self.takes(word):
            found.append(part())
        return found[0] if len(found) == 1 else Connection(first, word == "and", tuple(found))

    def negation(self) -> Filter:
        if (token := self.takes("not")) is None:
            return self.comparison()
        self.deeper(token)
        found = Negation(token, self.negation())
        self.depth -= 1
        return found

    def comparison(self) -> Filter:
        """A value, a comparison of two, or the question whether one is in a list, or null."""
        left = self.binary(COMPARISON + 1)
        found = self.compared(left)
        if found is not left and self.token.text in (*_COMPARISONS, "in", "is"):
            self.expected("'and', 'or' or the end", "comparisons do not chain: write a < b and b < c")
        return found

    def compared(self, left: Filter) -> Filter:
        token = self.token
        if self.takes(*_COMPARISONS):
            if (none := self.takes("None")) is not None:
                if token.text not in ("==", "!="):
                    refuse(self.text, none.start, "None has no order, expected == None or != None")
                return NullTest(token, left, token.text == "!=")
            return Comparison(token, left, self.binary(COMPARISON + 1))
        if self.takes("is"):
            negated = self.takes("not") is not None
            if not self.takes("None"):
                self.expected("None", "values are compared by ==")
            return NullTest(token, left, negated)
        negated = self.takes("not") is not None
        if self.takes("in"):
            return Membership(token, left, self.members(), negated)
        return self.expected("'in'") if negated else left

    def members(self) -> tuple[Constant, ...]:
        opening = self.takes("[", "(")
        if opening is None:
            self.expected("a list, such as ['py', 'c']")
        closing = "]" if opening.text == "[" else ")"
        found = []
        while not self.takes(closing):
            found.append(self.member())
            if not self.takes(",") and self.token.text != closing:
                self.expected(f"',' or {closing!r}")
        return tuple(found)

    def member(self) -> Constant:
        token = self.token
        if self.takes("None"):
            refuse(self.text, token.start, "found None in a list", "write x in […] or x == None")
        found = self.unary()
        if not isinstance(found, Constant):
            refuse(self.text, token.start, f"found {token.text!r}, expected a number or a text in the list")
        return found

    def binary(self, least: int) -> Filter:
        """Operands with the operators between them that bind at least so strongly."""
        left, depth = self.unary(), self.depth
        while self.token.kind == "mark" and least <= BINDING.get(self.token.text, -1) < POWER:
            token = self.token
            self.at += 1
            right = self.binary(BINDING[token.text] + 1)
            if token.text in "&|":
                is_longer = isinstance(left, Connection) and left.token.text == token.text
                before = left.conditions if is_longer else (left,)  # type: ignore[union-attr]
                left = Connection(token, token.text == "&", (*before, right))
            else:
                self.deeper(token)
                left = Operation(token, token.text, (left, right))
        self.depth = depth
        if self.token.text == "**":
            self.expected("another operator", "a filter has + - * /, comparisons, and, or, not, in")
        return left

    def unary(self) -> Filter:
        token = self.takes("-", "+", "~")
        if token is None:
            return self.atom()
        self.deeper(token)
        found = self.unary()
        self.depth -= 1
        if token.text == "~":
            return Negation(token, found)
        if isinstance(found, Constant):
            if isinstance(found.value, bool | str):
                refuse(self.text, token.start, f"found {token.text!r} before {found.token.text}")
            if token.text == "+":
                return Constant(token, found.value, found.exact)
            return Constant(token, -found.value, found.exact.copy_negate())  # `-` would round it
        return found if token.text == "+" else Operation(token, "-", (found,))

    def atom(self) -> Filter:
        token = self.token
        self.at += 1
        if token.kind == "number":
            return self.number(token)
        if token.kind == "string":
            return Constant(token, self.unescaped(token))
        if token.kind == "column":
            path = tuple(part.strip("`") for part in _PART.findall(token.text))
            return Column(token, ".".join(path), path)
        if token.kind == "name" and self.token.text == "(" and token.text not in _WORDS:
            return self.call(token)
        if token.text in ("True", "False"):
            return Constant(token, token.text == "True")
        if token.text in ("inf", "nan"):
            return Constant(token, float(token.text), Decimal(token.text))
        if token.kind == "name" and token.text not in _WORDS:
            return Column(token, token.text)
        if token.text == "(":
            self.deeper(token)
            found = self.either()
            self.depth -= 1
            self.close(token)
            return found
        self.at -= 1
        advice = "None is compared: x == None, x != None" if token.text == "None" else ""
        return self.expected("a column, a number, a text or '('", advice)

    def call(self, token: Token) -> Filter:
        opening = self.token
        self.at += 1
        self.deeper(token)
        arguments = [] if self.token.text == ")" else [self.binary(COMPARISON + 1)]
        while self.takes(","):
            arguments.append(self.binary(COMPARISON + 1))
        self.depth -= 1
        self.close(opening)
        return Operation(token, token.text, tuple(arguments))

    def close(self, opening: Token) -> None:
        if self.takes(")"):
            return
        if self.token.kind == "end":
            refuse(self.text, opening.start, "this bracket is never closed, expected ')' before the end")
        self.expected("'and', 'or', an operator or ')'")

    def number(self, token: Token) -> Constant:
        if len(token.text.lower().partition("e")[2].lstrip("+-")) > _MOST_DIGITS:
            refuse(self.text, token.start, f"the exponent of a number has at most {_MOST_DIGITS} digits")
        is_whole = token.text.isdigit() and len(token.text) <= 300
        return Constant(token, int(token.text) if is_whole else float(token.text), Decimal(token.text))

    def unescaped(self, token: Token) -> str:
        """The text that a literal stands for."""

        def character(match: re.Match[str]) -> str:
            code = match.group(1)
            if len(code) > 1:
                number = int(code[1:], 16)
                if number < 0x110000 and not 0xD800 <= number < 0xE000:
                    return chr(number)
            elif code in _ESCAPES:
                return _ESCAPES[code]
            known = r"\\ \' \" \n \t \r \0 \x41 \u0041 \U00000041"
            refuse(
                self.text,
                token.start + 1 + match.start(),
                f"found the escape {match.group()!r}, expected one of {known}",
            )

        return _ESCAPE.sub(character, token.text[1:-1])
