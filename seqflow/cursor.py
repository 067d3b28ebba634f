"""A cursor over the tokens of a short text, with errors that show their place in it."""

import re
from typing import NamedTuple, NoReturn

from seqflow.errors import SeqflowError

_DEEPEST = 64


class Token(NamedTuple):
    """A piece of the text, and its position."""

    text: str
    position: int


class Cursor:
    """Reads a text token by token.

    `tokens` has one group for a token, and one for a character that cannot begin a token; `what` (the kind of text)
    and `error` are for messages.
    """

    def __init__(
        self, text: str, tokens: re.Pattern[str], *, wanted: str, what: str, error: type[SeqflowError]
    ) -> None:
        self.text = text
        self.what = what
        self.error = error
        self.tokens: list[Token] = []
        self.next = 0
        self.depth = 0
        for match in tokens.finditer(text.rstrip()):  # trailing blanks would be matched again and again
            if match[2]:
                self.fail(wanted, Token(match[2], match.start(2)))
            self.tokens.append(Token(match[1], match.start(1)))

    def token(self, at: int) -> Token:
        """Return the token of this number; after the last one, the end."""
        return self.tokens[at] if at < len(self.tokens) else Token("", len(self.text))

    def peek(self, ahead: int = 0) -> str:
        """Return the text of the next token, or of one further ahead; "" at the end."""
        at = self.next + ahead
        return self.tokens[at].text if at < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        """Return the next token, which must be one of these, or any."""
        token = self.peek()
        if not token or (expected and token not in expected):
            self.fail(" or ".join(map(repr, expected)) or "more text")
        self.next += 1
        return token

    def accept(self, text: str) -> bool:
        """Return whether this is the next token, and read it if so."""
        found = self.peek() == text
        self.next += found
        return found

    def deeper(self) -> None:
        """Count an opening bracket: deep nesting must raise an error before recursion becomes too deep."""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"brackets nested in at most {_DEEPEST} levels")

    def fail(self, expected: str, token: Token | None = None, because: str = "") -> NoReturn:
        """Raise the error for a token, or the next one, found in place of `expected`."""
        found, position = self.token(self.next) if token is None else token
        raise self.error(
            f"{self.what}: found {repr(found) if found else 'the end'} at column {position + 1}, "
            f"expected {expected}{because}\n  {self.text}\n  {' ' * position}^"
        )
