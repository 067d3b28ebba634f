"""Splits a text into tokens with their positions."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn

Refuse = Callable[[int, str, str], NoReturn]
"""Raises the error at a position, with a message and advice, which may be empty."""


class Token(NamedTuple):
    """A token and its span in the text: `text[start:end]`."""

    kind: str
    """`name`, `number`, `mark` (an operator, bracket or comma), another kind of the dialect, or `end`."""
    text: str
    start: int
    end: int


class Lexicon:
    """Tokens of a dialect: a pattern for each kind, tried in the given order; blanks are dropped.

    If no token begins with a character, the message says that `wanted` was expected and adds the advice for the
    character. With `alone`, no letter, digit or point may follow a number.
    """

    def __init__(
        self,
        wanted: str,
        advice: Mapping[str, str] | None = None,
        *,
        alone: bool = False,
        blank: str = r"\s+",
        number: str = "(?!)",
        **kinds: str,
    ) -> None:
        self._wanted = wanted
        self._advice = advice or {}
        self._number = re.compile(number).match if alone else None
        # an atomic group: a number matches whole or not at all; shorter ones are not tried
        patterns = {"blank": blank, "number": rf"(?>{number})(?![\w.])" if alone else number, **kinds}
        whole = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in patterns.items())
        self._find = re.compile(rf"{whole}|(?P<other>.)", re.DOTALL).finditer

    def tokens(self, text: str, refuse: Refuse) -> list[Token]:
        """Return all tokens of the text and one of kind `end`; refuse a character that begins none."""
        found: list[Token] = []
        new = tuple.__new__  # calling Token(…) took a third of the time of a short text
        for match in self._find(text):
            kind: str = match.lastgroup  # type: ignore[assignment]
            if kind == "blank":
                continue
            if kind == "other":
                self._refuse(text, match.start(), refuse)
            found.append(new(Token, (kind, match[0], *match.span())))
        found.append(new(Token, ("end", "", len(text), len(text))))
        return found

    def _refuse(self, text: str, position: int, refuse: Refuse) -> NoReturn:
        number = self._number(text, position) if self._number is not None else None
        if number is not None:
            found = text[number.end()]
            refuse(number.end(), f"found {found!r} right after the number {number[0]}", "")
        found = text[position]
        refuse(position, f"found {found!r}, expected {self._wanted}", self._advice.get(found, ""))


def marks(text: str) -> str:
    """Return the pattern of marks that blanks separate; longer ones are tried first."""
    return "|".join(re.escape(one) for one in sorted(text.split(), key=len, reverse=True))
