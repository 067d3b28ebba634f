"""Parser of all dialects: a cursor over tokens, and operator precedence with an explicit stack."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, NoReturn, TypeVar

from seqflow.errors import SeqflowError
from seqflow.text.errors import fail
from seqflow.text.lexer import Lexicon, Token

T = TypeVar("T")
Node = TypeVar("Node")

BRACKET = -10
"""The level of an open bracket: each operator binds more strongly."""
_BASE = -20
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_NOT_MARKS = ("string", "column", "end")
"""Kinds of tokens that are no marks or words, whatever their text is."""


class Parser(Generic[Node]):
    """Reads a text of one dialect, which says what its tokens and operators are, and makes the nodes.

    A value may be nested to any depth: what limits it is what the dialect can take.
    """

    lexicon: ClassVar[Lexicon]
    what: str
    """The name of the text in messages."""
    error: ClassVar[type[SeqflowError]]
    in_lines: ClassVar[bool] = False
    """Whether messages number the lines of a text of one line, too."""
    end_names: ClassVar[Mapping[str, str]] = {"end": "the end"}
    """Kinds of tokens that end every value, in words."""

    brackets: ClassVar[Mapping[str, str]] = _BRACKETS
    """The bracket that closes each."""
    prefix: ClassVar[Mapping[str, int]] = {}
    infix: ClassVar[Mapping[str, int]] = {}
    """How strongly operators bind."""
    to_the_right: ClassVar[frozenset[int]] = frozenset()
    """Levels whose operators bind to the right."""
    alone: ClassVar[frozenset[int]] = frozenset()
    """Levels whose operators do not chain."""
    joined: ClassVar[frozenset[int]] = frozenset()
    """Levels of which all operands become one node."""
    loose: ClassVar[frozenset[str]] = frozenset()
    """Prefix operators that are not an operand of a stronger one: `a < not b` is wrong, `2 ** -1` is not."""
    least_in_calls: ClassVar[float] = -math.inf
    """Operators that bind less must be in brackets among the arguments of a call."""
    begins: ClassVar[str] = "a value"
    """What an operand begins with, in words."""
    deepest: ClassVar[int | None] = None
    """Levels of brackets and prefix operators inside each other."""
    highest: ClassVar[int | None] = None
    """Levels of operators between operands inside each other; None where what takes the tree does not recurse."""

    not_to_the_left: ClassVar[frozenset[int]]

    def __init_subclass__(cls) -> None:
        cls.not_to_the_left = cls.to_the_right | cls.alone | cls.joined

    def __init__(self, text: str) -> None:
        self.text = text
        self.next = self.depth = 0
        self.tokens = self.lexicon.tokens(text, self.fail_at)

    # The cursor

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.next]

    @property
    def after(self) -> Token:
        """The token after the next one; at the end the end."""
        return self.tokens[self.next + 1] if self.next + 1 < len(self.tokens) else self.tokens[-1]

    def at(self, text: str) -> bool:
        """Whether the next token is this mark or word."""
        token = self.tokens[self.next]
        return token.text == text and token.kind not in _NOT_MARKS

    def accept(self, *texts: str) -> Token | None:
        """The next token where it is one of these marks or words, and is passed; else None."""
        token = self.tokens[self.next]
        if token.text not in texts or token.kind in _NOT_MARKS:
            return None
        self.next += 1
        return token

    def take(self, text: str, wanted: str = "") -> Token:
        """The next token, which must be this one."""
        return self.accept(text) or self.expected(wanted or repr(text))

    def kind(self, kind: str, wanted: str) -> Token:
        """The next token, which must be of this kind."""
        token = self.tokens[self.next]
        if token.kind != kind:
            self.expected(wanted)
        self.next += 1
        return token

    def items(self, opening: Token, read: Callable[[], T], *, trailing: bool = False) -> list[T]:
        """What `read` reads, between commas, up to the bracket that closes an open one.

        With `trailing` a comma may stand before this bracket.
        """
        closing = self.brackets[opening.text]
        found: list[T] = []
        is_closed = self.at(closing)
        while not is_closed:
            found.append(read())
            is_closed = not self.accept(",") or (trailing and self.at(closing))
        self.take(closing, f"',' or {closing!r}" if found else "")
        return found

    def deeper(self, token: Token) -> None:
        """Enter a level: an error instead of endless recursion."""
        self.depth += 1
        if self.deepest is not None and self.depth > self.deepest:
            self.too_deep(token, self.deepest)

    def too_deep(self, token: Token, levels: int) -> NoReturn:
        self.fail(token, f"nested in more than {levels} levels")

    def fail_at(self, position: int, message: str, advice: str = "") -> NoReturn:
        fail(self.text, position, message, advice, what=self.what, kind=self.error, in_lines=self.in_lines)

    def fail(self, token: Token, message: str, advice: str = "") -> NoReturn:
        self.fail_at(token.start, message, advice)

    def expected(self, what: str, advice: str = "", token: Token | None = None) -> NoReturn:
        """Raise the error at a token, or the next one, in the place of what was expected.

        A bracket before it that is never closed is more likely to be the fault: it is pointed at.
        """
        token = token or self.token
        if (opening := self._never_closed(token)) is not None:
            bracket = self.tokens[opening]
            is_call = bracket.text == "(" and opening > 0 and self.tokens[opening - 1].kind == "name"
            closing = repr(self.brackets[bracket.text])
            message = f"this bracket is never closed, expected {closing} before the end"
            self.fail(self.tokens[opening - is_call], message)
        text = token.text if len(token.text) < 100 else f"{token.text[:20]}…{token.text[-20:]}"
        found = self.end_names.get(token.kind) or repr(text)
        self.fail(token, f"found {found}, expected {what}", advice)

    def _never_closed(self, token: Token) -> int | None:
        """The number of the first bracket up to this token that no other closes."""
        open_brackets: list[int] = []
        for i, one in enumerate(self.tokens):
            if one.kind == "mark" and one.text in self.brackets:
                open_brackets.append(i)
            elif one.kind == "mark" and open_brackets and one.text in self.brackets.values():
                open_brackets.pop()
        return next((i for i in open_brackets if self.tokens[i].start <= token.start), None)

    # The dialect

    def atom(self, token: Token) -> Node:
        """The operand that begins at the next token, which is this one."""
        raise NotImplementedError

    def infixed(self, token: Token, operands: list[Node], start: Token) -> Node:
        """The node of an operator between operands, of which the first begins at `start`."""
        raise NotImplementedError

    def prefixed(self, token: Token, operand: Node) -> Node:
        """The node of an operator before its operand."""
        raise NotImplementedError

    def called(self, token: Token, arguments: list[Node]) -> Node:
        """The node of a call."""
        raise NotImplementedError

    def opens_call(self, token: Token) -> bool:
        """Whether this name before a bracket is a call whose arguments are plain values."""
        return False

    def suffixed(self, token: Token, node: Node) -> Node | None:
        """The node of an operator without a value on its right, `in [1, 2]`, which is passed; None for others."""
        return None

    def advice_for(self, token: Token) -> str:
        """Advice on a token that a value cannot have."""
        return ""

    def chained(self, token: Token) -> NoReturn:
        """Raise the error at an operator that does not chain."""
        raise NotImplementedError

    # Values

    def value(self, ending: str = "an operator or the end", *, least: float = -math.inf) -> Node:
        """A value, up to the first token that cannot go on with it.

        Operators that bind less than `least` end it, too. Messages say that `ending` was expected after it.
        """
        token = self.tokens[self.next]
        if token.kind in ("name", "number") and token.text not in self.prefix:
            after = self.tokens[self.next + 1].text
            if after != "(" and after not in self.infix:  # an operand alone needs no stacks
                return self.atom(token)
        reading = _Reading(self, least)
        while True:
            reading.operand()
            if reading.is_done():
                return reading.nodes[0]

    def whole(self, ending: str) -> Node:
        """A value that is all of the text."""
        found = self.value(ending)
        if self.token.kind != "end":
            self.expected(ending, self.advice_for(self.token))
        return found


@dataclass(slots=True)
class _Frame:
    """An operator or an open bracket whose operands are still being read."""

    token: Token
    level: int
    """How strongly an operator binds; BRACKET for a bracket, _BASE for the beginning."""
    kind: str
    """`infix`, `prefix`, `done` (an operator whose operands are read already), `group`, `call` or `base`."""
    first: int
    """Where its operands begin among the nodes."""
    least: float
    """Operators that bind less must be in brackets."""
    start: Token
    """Where its first operand begins."""
    height: int = 0
    """Levels of operators inside the operands before the last one."""


class _Reading(Generic[Node]):
    """The stacks of one value. Values inside it that a dialect reads itself have stacks of their own."""

    __slots__ = ("frames", "height", "nodes", "parser", "start")

    def __init__(self, parser: Parser[Node], least: float) -> None:
        self.parser = parser
        self.start = parser.token
        """Where the last node begins."""
        self.height = 0
        """Levels of operators between operands inside the last node."""
        self.nodes: list[Node] = []
        self.frames = [_Frame(self.start, _BASE, "base", 0, least, self.start)]

    def operand(self) -> None:
        """Read one operand: prefix operators, open brackets, then an atom."""
        parser = self.parser
        while True:
            token = parser.tokens[parser.next]
            kind, text, _, _ = token
            if kind == "mark" or kind == "name":
                level = parser.prefix.get(text)
                if level is not None and (text not in parser.loose or self._may_be_loose(level)):
                    parser.next += 1
                    self._open(token, level, "prefix", self.frames[-1].least)
                    continue
                if text == "(":
                    parser.next += 1
                    self._open(token, BRACKET, "group", -math.inf)
                    continue
                if kind == "name" and parser.tokens[parser.next + 1].text == "(" and parser.opens_call(token):
                    parser.next += 2
                    if not parser.accept(")"):
                        self._open(token, BRACKET, "call", parser.least_in_calls)
                        continue
                    return self._push(parser.called(token, []), token)
            return self._push(parser.atom(token), token)

    def _may_be_loose(self, level: int) -> bool:
        return self.frames[-1].level <= level and level >= self.frames[-1].least

    def _open(self, token: Token, level: int, kind: str, least: float) -> None:
        self.parser.deeper(token)
        self.frames.append(_Frame(token, level, kind, len(self.nodes), least, token))

    def _push(self, node: Node, start: Token) -> None:
        self.nodes.append(node)
        self.start, self.height = start, 0

    def is_done(self) -> bool:
        """Read what follows an operand: whether the value ends here, or another operand must follow."""
        parser = self.parser
        while True:
            token = parser.tokens[parser.next]
            level = parser.infix.get(token.text) if token.kind == "mark" or token.kind == "name" else None
            top = self.frames[-1]
            if level is not None and level >= top.least and (top.kind != "done" or level <= top.level):
                if self._infix(token, level):
                    return False
                continue
            self._reduce(BRACKET)
            bracket = self.frames[-1]
            if bracket.kind == "base":
                return True
            bracket.height = max(bracket.height, self.height)
            if bracket.kind == "call" and parser.accept(","):
                return False
            if not parser.accept(")"):
                wanted = "an operator, ',' or ')'" if bracket.kind == "call" else "an operator or ')'"
                parser.expected(wanted, parser.advice_for(token))
            self._close(bracket)

    def _infix(self, token: Token, level: int) -> bool:
        """Read an operator after an operand: whether another operand must follow."""
        parser = self.parser
        self._reduce(level if level in parser.not_to_the_left else level - 1)
        before = self.frames[-1]
        if before.level == level and level in parser.alone:
            parser.chained(token)
        node = parser.suffixed(token, self.nodes[-1])
        if node is not None:
            self.nodes[-1] = node
            self.frames.append(_Frame(token, level, "done", len(self.nodes) - 1, before.least, self.start))
            return False
        parser.next += 1
        if before.level == level and level in parser.joined:
            before.token, before.height = token, max(before.height, self.height)
            return True
        if level in parser.to_the_right:
            parser.deeper(token)
        first = len(self.nodes) - 1
        self.frames.append(_Frame(token, level, "infix", first, before.least, self.start, self.height))
        return True

    def _reduce(self, level: int) -> None:
        """Finish the operators that bind more strongly than this."""
        parser = self.parser
        while self.frames[-1].level > level:
            frame = self.frames.pop()
            first = frame.first
            self.start = frame.start
            if frame.kind == "infix":
                parser.depth -= frame.level in parser.to_the_right
                self.height = max(self.height, frame.height) + 1
                if parser.highest is not None and self.height > parser.highest:
                    parser.too_deep(frame.token, parser.highest)
                self.nodes[first:] = [parser.infixed(frame.token, self.nodes[first:], frame.start)]
            elif frame.kind == "prefix":
                parser.depth -= 1
                self.nodes[first] = parser.prefixed(frame.token, self.nodes[first])

    def _close(self, bracket: _Frame) -> None:
        self.frames.pop()
        self.parser.depth -= 1
        if bracket.kind == "call":
            self.nodes[bracket.first :] = [self.parser.called(bracket.token, self.nodes[bracket.first :])]
        self.start, self.height = bracket.start, bracket.height
