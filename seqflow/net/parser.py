"""Parser of nets: from `ids, n = truncate(doc.values, doc.lengths, max_length=512)` to statements.

It reads like Python and is not Python: nothing is evaluated. Arithmetic is left to the parser of expressions,
whose errors are reported here. Every error is a NetError with line, column and a caret under the location.
"""

import ast
import re
from typing import Any, NoReturn

from seqflow.errors import ExpressionError, NetError
from seqflow.expression import Expression
from seqflow.expression.functions import by_name as functions
from seqflow.expression.lexer import Token
from seqflow.expression.parser import Operand as ExpressionOperand
from seqflow.expression.parser import parse_tokens
from seqflow.net.lexer import fail, locator, pairs, tokenize
from seqflow.net.syntax import Call, Constant, Formula, Listed, Operand, Program, Reference, Statement

_WORDS = {"True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan")}
_DECIMAL = re.compile(r"0|[1-9][0-9]*").fullmatch
"""The usual number, which needs no help of Python's parser."""
_DEEPEST = 64
"""How deep lists and calls of ops may be nested; arithmetic may be nested to any depth."""


def parse(text: str) -> Program:
    """Read a net; NetError where it is malformed."""
    if not isinstance(text, str):
        raise NetError(f"net: found {type(text).__name__}, expected text")
    return _Parser(text).program()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.location = locator(text)
        self.closing = pairs(self.tokens)
        self.next = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def fail(self, token: Token, message: str, advice: str = "") -> NoReturn:
        fail(self.text, self.location(token.start), message, advice)

    def expected(self, what: str) -> NoReturn:
        token = self.token
        found = {"newline": "the end of the line", "end": "the end of the net"}.get(
            token.kind, repr(token.text)
        )
        self.fail(token, f"found {found}, expected {what}")

    def at(self, text: str) -> bool:
        return self.token.text == text and self.token.kind in ("mark", "newline", "name")

    def accept(self, text: str) -> bool:
        token = self.tokens[self.next]
        if token.text != text or token.kind not in ("mark", "newline", "name"):
            return False
        self.next += 1
        return True

    def take(self, text: str, what: str) -> None:
        if not self.accept(text):
            self.expected(what)

    def name(self, what: str) -> Reference:
        token = self.token
        if token.kind != "name" or token.text in _WORDS or token.text == "return":
            self.expected(what)
        self.next += 1
        return Reference(token.text, self.location(token.start))

    # Statements

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
        first = self.next
        targets = self.names("a name or an op")
        if len(targets) == 1 and self.at("("):
            self.next = first
            targets = ()
        else:
            self.take("=", "'=' after the names of the results")
        value = self.operand("an op or an expression", "an operator or the end of the line")
        self.take("\n", "the end of the line")
        if isinstance(value, (Reference, Constant, Listed)) or (isinstance(value, Formula) and not targets):
            self.refuse(targets, value)
        return Statement(targets, value)

    def refuse(self, targets: tuple[Reference, ...], value: Operand) -> NoReturn:
        """NetError for a statement that computes nothing."""
        names = ", ".join(map(str, targets))
        match value:
            case Reference(name=name):
                advice = f"a tensor has one name: write {name} wherever you mean it"
            case Constant():
                advice = "write the literal where it is used, or bind a constant"
            case Listed():
                advice = "a list of tensors is written where an op takes one"
            case _:
                advice = "give the result a name"
        what = f"{names} = {value}" if names else str(value)
        fail(self.text, value.location, f"found {what}, expected an op or an expression", advice)

    # Operands

    def operand(self, what: str, ending: str) -> Operand:
        """One operand. Messages say that `what` was expected at its beginning, or `ending` after it."""
        start, token = self.next, self.token
        if token.text == "[" and token.kind == "mark":
            return self.listed()
        stop = self.stop()
        if stop == start:
            self.expected(what)
        if stop == start + 1 and token.kind in ("name", "number", "string"):
            self.next = stop
            if token.kind == "name" and token.text not in _WORDS:
                return Reference(token.text, self.location(token.start))
            return Constant(self.literal(token), self.location(token.start))
        if stop == start + 2 and token.text == "-" and self.tokens[start + 1].kind == "number":
            value = self.literal(self.tokens[start + 1])
            if abs(value) < 2**63:
                self.next = stop
                return Constant(-value, self.location(token.start))
        if self.is_call(start) and self.closing.get(start + 1, stop) >= stop - 1:
            return self.call()
        return self.formula(stop, ending)

    def stop(self) -> int:
        """The number of the token that ends the operand which begins here."""
        i = self.next
        while self.tokens[i].kind not in ("newline", "end"):
            token = self.tokens[i]
            if token.kind == "mark" and token.text in (",", ")", "]"):
                break
            i = self.closing.get(i, i) + 1
        return i

    def is_call(self, i: int) -> bool:
        """Whether a call of an op begins at this token; the functions of expressions are no such calls."""
        token = self.tokens[i]
        return token.kind == "name" and self.tokens[i + 1].text == "(" and token.text not in functions

    def deeper(self, token: Token) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(token, f"found lists or calls nested deeper than {_DEEPEST} levels")

    def listed(self) -> Constant | Listed:
        location = self.location(self.token.start)
        self.deeper(self.token)
        self.next += 1
        items: list[Operand] = []
        while not self.accept("]"):
            if items:
                self.take(",", "',' or ']'")
                if self.accept("]"):
                    break
            items.append(self.operand("a tensor, a literal or an expression", "an operator, ',' or ']'"))
        self.depth -= 1
        if all(isinstance(item, Constant) for item in items):
            return Constant([item.value for item in items if isinstance(item, Constant)], location)
        return Listed(tuple(items), location)

    def call(self) -> Call:
        op = self.name("an op")
        self.deeper(self.token)
        self.take("(", "'(' after an op's name")
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
                    fail(self.text, keyword.location, f"{keyword.name} is given twice")
                keywords[keyword.name] = self.argument()
            elif keywords:
                self.expected("a keyword: positional arguments come first")
            else:
                arguments.append(self.argument())
        self.depth -= 1
        return Call(op.name, tuple(arguments), tuple(keywords.items()), op.location)

    def argument(self) -> Operand:
        return self.operand("a tensor, a literal or an expression", "an operator, ',' or ')'")

    def literal(self, token: Token) -> Any:
        if token.text in _WORDS:
            return _WORDS[token.text]
        try:
            return int(token.text) if _DECIMAL(token.text) else ast.literal_eval(token.text)
        except (ValueError, SyntaxError):  # also for more digits than Python reads
            found = token.text if len(token.text) < 100 else f"{token.text[:20]}…{token.text[-20:]}"
            self.fail(token, f"found {found!r}, expected a number or text")

    # Arithmetic

    def formula(self, stop: int, ending: str) -> Operand:
        """The expression up to the token numbered `stop`."""
        tokens: list[Token] = []
        calls: dict[str, Call] = {}
        while self.next < stop:
            token = self.token
            if self.is_call(self.next):
                name = f"%{len(calls)}"
                calls[name] = self.call()
                end = self.tokens[self.next - 1].end
                tokens.append(Token("name", name, token.start, end))
            else:
                self.next += 1
                tokens.append(self.expression_token(token))
        last = self.tokens[stop].start
        tokens.append(Token("end", "", last, last))
        return self.compiled(tokens, calls, ending)

    def expression_token(self, token: Token) -> Token:
        if token.kind not in ("name", "number", "mark"):
            self.fail(token, f"found {token.text}, expected a number, a name or an operator")
        if token.text in ("[", "]", "="):
            otherwise = "an expression works element by element: it has no lists"
            advice = "operands of an expression are given by position; equality is =="
            message = f"found {token.text!r}, expected an operator"
            self.fail(token, message, advice if token.text == "=" else otherwise)
        if token.kind == "number":
            self.literal(token)
        return token._replace(text=token.text.replace("_", "")) if token.kind == "number" else token

    def compiled(self, tokens: list[Token], calls: dict[str, Call], ending: str) -> Operand:
        """The expression of these tokens, in which names stand for calls."""
        begin = self.location(tokens[0].start)
        try:
            parsed = parse_tokens(self.text, tokens, ending)
            expression = Expression.from_parsed(parsed)
            if not parsed.inputs:
                return Constant(expression().item(), begin)
        except ExpressionError as error:
            if error.fault is None:
                raise
            position, message, advice = error.fault
            fail(self.text, self.location(position), message, advice)
        starts = {token.text: token.start for token in reversed(tokens)}
        operands = tuple(
            calls.get(name) or Reference(name, self.location(starts[name])) for name in parsed.inputs
        )
        if isinstance(parsed.tree, ExpressionOperand):  # a name in brackets
            return operands[0]
        return Formula(expression, operands, begin)
