"""Splits the text of a net into tokens with their positions."""

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import NoReturn

from seqflow.errors import NetError
from seqflow.expression.lexer import Token
from seqflow.net.syntax import Location

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\#[^\n]*|\\\n)
    |(?P<newline>\n)
    |(?P<number>(?:\d[\d_]*)?\.?\d[\d_]*(?:[eE][+-]?\d+)?\.?)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[^\W\d]\w*(?:\.\w+)*)
    |(?P<mark>\*\*|//|<<|>>|[<>=!]=|[-+*/%&|^~<>()\[\],=])
    """,
    re.VERBOSE,
)
_ADVICE = {
    "@": "the operands of a net have names",
    ".": "what a call gives is assigned to names: x, mask = pad(ids, n)",
}


def fail(text: str, location: Location, message: str, advice: str = "") -> NoReturn:
    """NetError at a location of the text, with a caret under it."""
    lines = text.split("\n")
    source = lines[location.line - 1] if location.line <= len(lines) else ""
    caret = " " * (location.column - 1) + "^"
    raise NetError(
        f"net, line {location.line}, column {location.column}: {message}\n  {source}\n  {caret}"
        + (f"\n  {advice}" if advice else "")
    )


def locator(text: str) -> Callable[[int], Location]:
    """A function from positions in a text to lines and columns."""
    starts = [0, *(newline.end() for newline in re.finditer("\n", text))]

    def location(position: int) -> Location:
        line = bisect_right(starts, position)
        return Location(line, position - starts[line - 1] + 1)

    return location


def tokenize(text: str) -> list[Token]:
    """All tokens, of the kinds of expressions, `string`, `newline` and `end`; no newlines from inside brackets."""
    found: list[Token] = []
    position = depth = 0
    match_token = _TOKEN.match
    while position < len(text):
        match = match_token(text, position)
        if match is None:
            _refuse_character(text, position)
        kind, token = str(match.lastgroup), match.group()
        start, position = position, match.end()
        if kind == "mark" and token in "()[]":
            depth += 1 if token in "([" else -1
        if kind != "blank" and not (kind == "newline" and depth > 0):
            found.append(Token(kind, token, start, position))
    return [*found, Token("newline", "\n", position, position), Token("end", "", position, position)]


def _refuse_character(text: str, position: int) -> NoReturn:
    character = text[position]
    wanted = "the end of the text" if character in "\"'" else "a name, a literal or punctuation"
    message = f"found {character!r}, expected {wanted}"
    fail(text, locator(text)(position), message, _ADVICE.get(character, ""))


def pairs(tokens: list[Token]) -> dict[int, int]:
    """For each open bracket's number, that of the bracket that closes it."""
    found: dict[int, int] = {}
    open_brackets: list[int] = []
    for i, token in enumerate(tokens):
        if token.kind == "mark" and token.text in "([":
            open_brackets.append(i)
        elif token.kind == "mark" and token.text in ")]" and open_brackets:
            found[open_brackets.pop()] = i
    return found
