"""Parser of all dialects: a cursor over tokens, and operator precedence with an explicit stack."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, NoReturn, TypeVar

from seqflow.errors import SeqflowError
from seqflow.parsing.errors import fail
from seqflow.parsing.lexer import Lexicon, Token

T = TypeVar("T")
Node = TypeVar("Node")

# levels of open brackets and of the whole value, below the levels of all operators
_BRACKET, _BASE = -10, -20
# kinds of tokens that are never marks or words: a string may have the text "and"
_OTHERS = ("string", "column", "end")


class Parser(Generic[Node]):
    """Reads a text of one dialect; the dialect defines the tokens and operators, and makes the nodes.

    The parser itself reads values of any depth; a dialect may set limits. A dialect defines

    * `what` the text is called in messages, the class of its `error`, and whether messages number the line of a text
      of one line, too (`in_lines`); names for the kinds of tokens that end every value (`end_names`), the `brackets`
      with their closing ones, and a name for the beginning of an operand (`begins`)
    * levels of operators (`prefix`, `infix`): a higher level binds more strongly; levels whose operators group
      `to_the_right`, do not chain (`alone`), or join all operands in one node (`joined`)
    * prefix operators that cannot be an operand of a stronger one (`loose`): `a < not b` is wrong, `2 ** -1` is not;
      operators below the level `least_in_calls` need brackets in arguments of a call
    * the most levels of brackets, prefix operators and operators that group to the right (`deepest`), and of
      operators between operands (`highest`); None if no code of the dialect recurses into the tree
    """

    lexicon: ClassVar[Lexicon]
    what: str
    error: ClassVar[type[SeqflowError]]
    in_lines: ClassVar[bool] = False
    end_names: ClassVar[Mapping[str, str]] = {"end": "the end"}
    brackets: ClassVar[Mapping[str, str]] = {"(": ")", "[": "]", "{": "}"}
    begins: ClassVar[str] = "a value"
    prefix: ClassVar[Mapping[str, int]] = {}
    infix: ClassVar[Mapping[str, int]] = {}
    to_the_right: ClassVar[frozenset[int]] = frozenset()
    alone: ClassVar[frozenset[int]] = frozenset()
    joined: ClassVar[frozenset[int]] = frozenset()
    loose: ClassVar[frozenset[str]] = frozenset()
    least_in_calls: ClassVar[float] = -math.inf
    deepest: ClassVar[int | None] = None
    highest: ClassVar[int | None] = None

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
        """The token after the next one; the last token if there is none."""
        return self.tokens[self.next + 1] if self.next + 1 < len(self.tokens) else self.tokens[-1]

    def at(self, text: str) -> bool:
        """Return whether the next token is this mark or word."""
        token = self.tokens[self.next]
        return token.text == text and token.kind not in _OTHERS

    def accept(self, *texts: str) -> Token | None:
        """Take the next token if it is one of these marks or words, and return it; else return None."""
        token = self.tokens[self.next]
        if token.text not in texts or token.kind in _OTHERS:
            return None
        self.next += 1
        return token

    def take(self, text: str, wanted: str = "") -> Token:
        """Take the next token, which must be this mark or word, and return it."""
        return self.accept(text) or self.expected(wanted or repr(text))

    def kind(self, kind: str, wanted: str) -> Token:
        """Take the next token, which must be of this kind, and return it."""
        token = self.tokens[self.next]
        if token.kind != kind:
            self.expected(wanted)
        self.next += 1
        return token

    def items(self, opening: Token, read: Callable[[], T], *, trailing: bool = False) -> list[T]:
        """Return a list of what `read` reads, separated by commas, up to the bracket that closes `opening`.

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
        """Enter a level of nesting; raise the error when there are more than `deepest`."""
        self.depth += 1
        self.check_levels(token, self.depth, self.deepest)

    def check_levels(self, token: Token, levels: int, most: int | None) -> None:
        if most is not None and levels > most:
            self.fail(token, f"nested in more than {most} levels")

    def fail_at(self, position: int, message: str, advice: str = "") -> NoReturn:
        fail(self.text, position, message, advice, what=self.what, kind=self.error, in_lines=self.in_lines)

    def fail(self, token: Token, message: str, advice: str = "") -> NoReturn:
        self.fail_at(token.start, message, advice)

    def expected(self, what: str, advice: str = "", token: Token | None = None) -> NoReturn:
        """Raise the error that `what` was expected at a token, by default the next one.

        If a bracket before it is never closed, that is the more likely mistake, and the error points at the bracket.
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
        """Return the number of the first bracket up to this token that is never closed; None if all are."""
        open_brackets: list[int] = []
        for i, one in enumerate(self.tokens):
            if one.kind == "mark" and one.text in self.brackets:
                open_brackets.append(i)
            elif one.kind == "mark" and open_brackets and one.text in self.brackets.values():
                open_brackets.pop()
        return next((i for i in open_brackets if self.tokens[i].start <= token.start), None)

    # The dialect

    def atom(self, token: Token) -> Node:
        """Read the operand that begins at `token`, the next token."""
        raise NotImplementedError

    def infixed(self, token: Token, operands: list[Node], start: Token) -> Node:
        """Return the node of an operator between operands; the first operand begins at `start`."""
        raise NotImplementedError

    def prefixed(self, token: Token, operand: Node) -> Node:
        """Return the node of an operator before its operand."""
        raise NotImplementedError

    def called(self, token: Token, arguments: list[Node]) -> Node:
        """Return the node of a call."""
        raise NotImplementedError

    def opens_call(self, token: Token) -> bool:
        """Return whether this name before a bracket begins a call with plain values as arguments."""
        return False

    def suffixed(self, token: Token, node: Node) -> Node | None:
        """Read a postfix operator after `node`, such as `in [1, 2]`; None if the token is not one."""
        return None

    def advice_for(self, token: Token) -> str:
        """Return advice on a token that a value cannot contain; "" if there is none."""
        return ""

    def chained(self, token: Token) -> NoReturn:
        """Raise the error at an operator that does not chain."""
        raise NotImplementedError

    # Values

    def value(self, least: float = -math.inf) -> Node:
        """Read a value, up to a token that cannot continue it, or an operator below the level `least`."""
        token = self.tokens[self.next]
        if token.kind in ("name", "number") and token.text not in self.prefix:
            after = self.tokens[self.next + 1].text
            if after != "(" and after not in self.infix:  # the usual case, an operand alone, needs no stacks
                return self.atom(token)
        reading = _Reading(self, least)
        while True:
            reading.operand()
            if reading.is_done():
                return reading.nodes[0]

    def whole(self, ending: str) -> Node:
        """Read the whole text as one value; errors say that `ending` was expected after it."""
        found = self.value()
        if self.token.kind != "end":
            self.expected(ending, self.advice_for(self.token))
        return found


@dataclass(slots=True)
class _Frame:
    """An operator or an open bracket whose operands are still being read.

    An operator with a higher `level` binds more strongly; `kind` is `infix`, `prefix`, `done` (a suffix operator,
    with all operands read), `group`, `call` or `base`. The operands begin at the node numbered `first`, in the text
    at `start`; those before the last one have up to `height` levels of operators. Operators below the level `least`
    must be in brackets.
    """

    token: Token
    level: int
    kind: str
    first: int
    least: float
    start: Token
    height: int = 0


class _Reading(Generic[Node]):
    """Stacks of one value. A value that a dialect reads inside an atom has stacks of its own.

    The last node begins at `start`, and has `height` levels of operators between operands.
    """

    __slots__ = ("frames", "height", "nodes", "parser", "start")

    def __init__(self, parser: Parser[Node], least: float) -> None:
        self.parser = parser
        self.start = parser.token
        self.height = 0
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
                    self._open(token, _BRACKET, "group", -math.inf)
                    continue
                if kind == "name" and parser.tokens[parser.next + 1].text == "(" and parser.opens_call(token):
                    parser.next += 2
                    if not parser.accept(")"):
                        self._open(token, _BRACKET, "call", parser.least_in_calls)
                        continue
                    node = parser.called(token, [])
                    break
            node = parser.atom(token)
            break
        self.nodes.append(node)
        self.start, self.height = token, 0

    def _may_be_loose(self, level: int) -> bool:
        return self.frames[-1].level <= level and level >= self.frames[-1].least

    def _open(self, token: Token, level: int, kind: str, least: float) -> None:
        self.parser.deeper(token)
        self.frames.append(_Frame(token, level, kind, len(self.nodes), least, token))

    def is_done(self) -> bool:
        """Read the tokens after an operand; return whether the value ends, or another operand must follow."""
        parser = self.parser
        while True:
            token = parser.tokens[parser.next]
            level = parser.infix.get(token.text) if token.kind == "mark" or token.kind == "name" else None
            top = self.frames[-1]
            if level is not None and level >= top.least and (top.kind != "done" or level <= top.level):
                if self._infix(token, level):
                    return False
                continue
            if top.level > _BRACKET:
                self._reduce(_BRACKET)
            bracket = self.frames[-1]
            if bracket.kind == "base":
                return True
            if self.height > bracket.height:
                bracket.height = self.height
            if bracket.kind == "call" and parser.accept(","):
                return False
            if not parser.accept(")"):
                wanted = "an operator, ',' or ')'" if bracket.kind == "call" else "an operator or ')'"
                parser.expected(wanted, parser.advice_for(token))
            self._close(bracket)

    def _infix(self, token: Token, level: int) -> bool:
        """Read an operator after an operand; return whether another operand must follow."""
        parser = self.parser
        is_joined, is_alone = level in parser.joined, level in parser.alone
        goes_right = level in parser.to_the_right
        # operators of the same level stay open if they group to the right, join, or must be refused as a chain
        if self.frames[-1].level >= level:
            self._reduce(level if is_joined or is_alone or goes_right else level - 1)
        before = self.frames[-1]
        if before.level == level and is_alone:
            parser.chained(token)
        node = parser.suffixed(token, self.nodes[-1])
        if node is not None:
            self.nodes[-1] = node
            # a frame although it is complete: a second comparison must see that it would chain
            self.frames.append(_Frame(token, level, "done", len(self.nodes) - 1, before.least, self.start))
            return False
        parser.next += 1
        if before.level == level and is_joined:
            before.token, before.height = token, max(before.height, self.height)
            return True
        if goes_right:
            parser.deeper(token)
        first = len(self.nodes) - 1
        self.frames.append(_Frame(token, level, "infix", first, before.least, self.start, self.height))
        return True

    def _reduce(self, level: int) -> None:
        """Make the nodes of open operators above a level."""
        parser = self.parser
        while self.frames[-1].level > level:
            frame = self.frames.pop()
            first = frame.first
            self.start = frame.start
            if frame.kind == "infix":
                parser.depth -= frame.level in parser.to_the_right
                self.height = max(self.height, frame.height) + 1
                parser.check_levels(frame.token, self.height, parser.highest)
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
