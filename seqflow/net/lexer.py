"""Splits the text of a net into tokens with their positions."""

import re
from typing import NamedTuple, NoReturn

from seqflow.errors import NetError
from seqflow.net.syntax import Location


class Token(NamedTuple):
    """A token, its line and column, and its span in the text: `text[start:end]`."""

    kind: str
    """`number`, `string`, `name`, `mark`, `newline` or `end`."""
    text: str
    line: int
    column: int
    start: int
    end: int

    @property
    def location(self) -> Location:
        """Where it begins."""
        return Location(self.line, self.column)


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
_ADVICE = {"@": "the operands of a net have names"}


def fail(text: str, location: Location, message: str, advice: str = "") -> NoReturn:
    """NetError at a location of the text, with a caret under it."""
    lines = text.split("\n")
    source = lines[location.line - 1] if location.line <= len(lines) else ""
    caret = " " * (location.column - 1) + "^"
    raise NetError(
        f"net, line {location.line}, column {location.column}: {message}\n  {source}\n  {caret}"
        + (f"\n  {advice}" if advice else "")
    )


def tokenize(text: str) -> list[Token]:
    """All tokens; a newline inside brackets does not end a statement and is left out."""
    found: list[Token] = []
    line, line_start, position, depth = 1, 0, 0, 0
    match_token = _TOKEN.match
    while position < len(text):
        match = match_token(text, position)
        if match is None:
            _refuse_character(text, Location(line, position - line_start + 1), text[position])
        kind, token = str(match.lastgroup), match.group()
        start, position = position, match.end()
        if kind == "mark" and token in "()[]":
            depth += 1 if token in "([" else -1
        if kind != "blank" and not (kind == "newline" and depth > 0):
            found.append(Token(kind, token, line, start - line_start + 1, start, position))
        if token[-1] == "\n":
            line, line_start = line + 1, position
    end = line, position - line_start + 1, position, position
    return [*found, Token("newline", "\n", *end), Token("end", "", *end)]


def _refuse_character(text: str, location: Location, character: str) -> NoReturn:
    wanted = "the end of the text" if character in "\"'" else "a name, a literal or punctuation"
    fail(text, location, f"found {character!r}, expected {wanted}", _ADVICE.get(character, ""))


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
