"""The text of a net: `ids, n = truncate(doc.values, doc.lengths, max_length=512)`, read into statements.

It reads like Python and is not Python: nothing is evaluated. Every error is a NetError with line, column and a
caret under the place.
"""

import ast
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from seqflow.errors import NetError


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a net's text; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A tensor's name where it is used."""

    name: str
    place: Place

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: number, text, True, False, None, or a list of literals."""

    value: Any
    place: Place

    def __str__(self) -> str:
        return repr(self.value)


Operand = Reference | Constant


@dataclass(frozen=True, slots=True)
class Statement:
    """`targets = op(arguments, keyword=operand)`."""

    targets: tuple[Reference, ...]
    op: str
    arguments: tuple[Operand, ...]
    keywords: tuple[tuple[str, Operand], ...]
    place: Place
    """Where the op's name stands."""

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (*self.arguments, *(operand for _, operand in self.keywords))

    def __str__(self) -> str:
        inside = ", ".join([*map(str, self.arguments), *(f"{name}={value}" for name, value in self.keywords)])
        targets = ", ".join(map(str, self.targets))
        return f"{targets} = {self.op}({inside})" if targets else f"{self.op}({inside})"


@dataclass(frozen=True, slots=True)
class Program:
    """A parsed net: its statements as written and what it returns, None without a `return`."""

    text: str
    statements: tuple[Statement, ...]
    returned: tuple[Reference, ...] | None


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: Place


_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\#[^\n]*|\\\n)
    |(?P<newline>\n)
    |(?P<number>(?:\d[\d_]*)?\.?\d[\d_]*(?:[eE][+-]?\d+)?\.?)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[^\W\d]\w*(?:\.\w+)*)
    |(?P<mark>[()\[\],=-])
    """,
    re.VERBOSE,
)
_WORDS = {"True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan")}

_DEEPEST_LITERAL = 32


def fail(text: str, place: Place, message: str, advice: str = "") -> NoReturn:
    """NetError at a place of the text, with a caret under it."""
    lines = text.split("\n")
    source = lines[place.line - 1] if place.line <= len(lines) else ""
    caret = " " * (place.column - 1) + "^"
    raise NetError(
        f"net, line {place.line}, column {place.column}: {message}\n  {source}\n  {caret}"
        + (f"\n  {advice}" if advice else "")
    )


def parse(text: str) -> Program:
    """Read a net; NetError where it is malformed."""
    return _Parser(text).program()


def _tokens(text: str) -> list[_Token]:
    """All tokens; a newline inside brackets does not end a statement and is left out."""
    found: list[_Token] = []
    line, line_start, position, depth = 1, 0, 0, 0
    while position < len(text):
        place = Place(line, position - line_start + 1)
        match = _TOKEN.match(text, position)
        if match is None:
            wanted = "the end of the text" if text[position] in "\"'" else "a name, a literal or punctuation"
            fail(text, place, f"found {text[position]!r}, expected {wanted}")
        kind, token = str(match.lastgroup), match.group()
        position = match.end()
        if token.endswith("\n"):
            line, line_start = line + 1, position
        depth += (token in ("(", "[")) - (token in (")", "]")) if kind == "mark" else 0
        if kind != "blank" and not (kind == "newline" and depth > 0):
            found.append(_Token(kind, token, place))
    end = Place(line, position - line_start + 1)
    return [*found, _Token("newline", "\n", end), _Token("end", "", end)]


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.next = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.next]

    def expected(self, what: str) -> NoReturn:
        token = self.token
        found = {"newline": "the end of the line", "end": "the end of the net"}.get(
            token.kind, repr(token.text)
        )
        fail(self.text, token.place, f"found {found}, expected {what}")

    def accept(self, text: str) -> bool:
        if self.token.text == text and self.token.kind in ("mark", "newline", "name"):
            self.next += 1
            return True
        return False

    def take(self, text: str, what: str) -> None:
        if not self.accept(text):
            self.expected(what)

    def name(self, what: str) -> Reference:
        token = self.token
        if token.kind != "name" or token.text in _WORDS or token.text == "return":
            self.expected(what)
        self.next += 1
        return Reference(token.text, token.place)

    def program(self) -> Program:
        statements: list[Statement] = []
        while self.token.kind != "end":
            if self.accept("\n"):
                continue
            if self.accept("return"):
                returned = self.names("the name of a tensor")
                self.take("\n", "the end of the line")
                while self.accept("\n"):
                    pass
                if self.token.kind != "end":
                    self.expected("nothing after return")
                return Program(self.text, tuple(statements), returned)
            statements.append(self.statement())
        return Program(self.text, tuple(statements), None)

    def names(self, what: str) -> tuple[Reference, ...]:
        found = [self.name(what)]
        while self.accept(","):
            found.append(self.name(what))
        return tuple(found)

    def statement(self) -> Statement:
        names = self.names("a name or an op")
        targets: tuple[Reference, ...] = ()
        op = names[0]
        if len(names) > 1 or self.token.text == "=":
            self.take("=", "'=' after the names of the results")
            targets, op = names, self.name("an op")
        self.take("(", "'(' after an op's name")
        arguments, keywords = self.operands()
        self.take("\n", "the end of the line")
        return Statement(targets, op.name, arguments, keywords, op.place)

    def operands(self) -> tuple[tuple[Operand, ...], tuple[tuple[str, Operand], ...]]:
        arguments: list[Operand] = []
        keywords: dict[str, Operand] = {}
        while not self.accept(")"):
            if (arguments or keywords) and not self.accept(","):
                self.expected("',' or ')'")
            if self.accept(")"):
                break
            if self.token.kind == "name" and self.tokens[self.next + 1].text == "=":
                keyword = self.name("a keyword")
                self.take("=", "'='")
                if keyword.name in keywords:
                    fail(self.text, keyword.place, f"{keyword.name} is given twice")
                keywords[keyword.name] = self.operand()
            elif keywords:
                self.expected("a keyword: positional arguments come first")
            else:
                arguments.append(self.operand())
        return tuple(arguments), tuple(keywords.items())

    def operand(self) -> Operand:
        token = self.token
        if token.kind == "name" and token.text not in _WORDS:
            return self.name("a tensor or a literal")
        return Constant(self.literal(), token.place)

    def literal(self, depth: int = 0) -> Any:
        token = self.token
        if depth > _DEEPEST_LITERAL:
            fail(self.text, token.place, f"found a literal nested deeper than {_DEEPEST_LITERAL} levels")
        if self.accept("["):
            items: list[Any] = []
            while not self.accept("]"):
                if items:
                    self.take(",", "',' or ']'")
                items.append(self.literal(depth + 1))
            return items
        if self.accept("-"):
            value = self.literal(depth + 1)
            if type(value) not in (int, float):
                fail(self.text, token.place, f"found '-' before {value!r}, expected a number after it")
            return -value
        if token.kind == "name" and token.text in _WORDS:
            self.next += 1
            return _WORDS[token.text]
        if token.kind not in ("number", "string"):
            self.expected("a tensor or a literal")
        self.next += 1
        try:
            return ast.literal_eval(token.text)
        except (ValueError, SyntaxError):
            fail(self.text, token.place, f"found {token.text!r}, expected a number or text")
