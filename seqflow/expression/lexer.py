"""Splits the text of an expression into tokens with their positions."""

import re
from typing import NamedTuple, NoReturn

from seqflow.errors import ExpressionError


class Token(NamedTuple):
    """A token and its span in the text: `text[start:end]`."""

    kind: str
    """`number`, `operand` (`@0`), `name`, `mark` (an operator, bracket or comma), `string` or `end`.

    In filters also `column`, a name with parts in backticks.
    """
    text: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""(?P<blank>\s+)
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<operand>@[0-9]+)
    |(?P<column>(?:[^\W\d]\w*\.)*`[^`\n]+`(?:\.(?:[^\W\d]\w*|`[^`\n]+`))*)
    |(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<mark>\*\*|//|<<|>>|[<>=!]=|[-+*/%&|^~<>(),])
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ADVICE = {
    "@": "an operand is written @0, @1, …, the number right after the @",
    "=": "an expression assigns nothing; equality is ==",
    "!": "not is ~x or logical_not(x), not equal is !=",
    ":": "an expression is not Python: it has operators and functions, nothing else",
    ";": "an expression is a single one, without statements",
    "[": "an expression works element by element; there are no lists and no indexing",
    "]": "an expression works element by element; there are no lists and no indexing",
    ".": "a dotted name is written doc.values",
    '"': "a text ends, on its line, with the quote that it begins with",
    "'": "a text ends, on its line, with the quote that it begins with",
    "`": "a column's name in backticks ends with a backtick",
}
_WINDOW = 36


def tokenize(text: str, *, lists: bool = False) -> list[Token]:
    """All tokens of the text and one of kind `end`; ExpressionError at a character that begins none.

    With `lists` square brackets are marks.

    >>> [token.text for token in tokenize("sqrt(@0) + 1e-3")]
    ['sqrt', '(', '@0', ')', '+', '1e-3', '']
    """
    tokens = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "blank":
            continue
        start, end = match.span()
        if kind == "other" and lists and match.group() in "[]":
            kind = "mark"
        if kind == "other":
            found = match.group()
            fail(
                text,
                start,
                f"found {found!r}, expected a number, a name or an operator",
                _ADVICE.get(found, ""),
            )
        if kind == "number" and (text[end : end + 1].isalnum() or text[end : end + 1] in ("_", ".")):
            fail(text, end, f"found {text[end]!r} right after the number {match.group()}")
        tokens.append(Token(str(kind), match.group(), start, end))
    return [*tokens, Token("end", "", len(text), len(text))]


def fail(
    text: str,
    position: int,
    message: str,
    advice: str = "",
    *,
    what: str = "expression",
    kind: type[ExpressionError] = ExpressionError,
) -> NoReturn:
    """ExpressionError at a position of the text, with its line (or what surrounds it) and a caret under it."""
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line_end = len(text) if line_end < 0 else line_end
    start, end = max(line_start, position - _WINDOW), min(line_end, position + _WINDOW)
    before = ("…" if start > line_start else "") + text[start:position]
    after = text[position:end] + ("…" if end < line_end else "")
    line = f"line {text.count(chr(10), 0, position) + 1}, " if "\n" in text else ""
    blanks = "".join("\t" if character == "\t" else " " for character in before)
    error = kind(
        f"{what}, {line}column {position - line_start + 1}: {message}\n  {before}{after}\n  {blanks}^"
        + (f"\n  {advice}" if advice else "")
    )
    error.fault = position, message, advice
    raise error
