"""Dialect of nets: from `ids, n = truncate(doc.values, doc.lengths, max_length=512)` to statements.

Nets look like Python, but nothing is evaluated. Arithmetic is read as in expressions. Every error is a NetError with
line, column and a caret under the location.
"""

import ast
import re
from bisect import bisect_right
from typing import Any, NoReturn

from seqflow.errors import ExpressionError, NetError
from seqflow.expression import Expression
from seqflow.expression.functions import by_name as functions
from seqflow.expression.parser import MARKS, STRING, FormulaParser, Node, Parsed
from seqflow.expression.parser import Operand as ExpressionOperand
from seqflow.net import syntax
from seqflow.parsing.lexer import Lexicon, Token, marks

_WORDS = {"True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan")}
_DECIMAL = re.compile(r"0|[1-9][0-9]*").fullmatch
"""The usual number, which is read without Python's parser."""
_DEEPEST = 64
"""Most levels of lists and calls of ops, which are read by recursion; arithmetic may be nested to any depth."""
_ENDS = (",", ")", "]")
_END_NAMES = {"newline": "the end of the line", "end": "the end of the net"}
_NO_PYTHON = (
    "a net has no loops, functions or slices: an op works on all rows at once, and lengths say where each begins "
    "(lengths_sum, truncate, slice_sequences); `seqflow ops` lists all"
)
_ADVICE = {
    "=": "operands of an expression are given by position; equality is ==",
    "[": "an expression works element by element: it has no lists",
    "for": _NO_PYTHON,
}
"""Advice on marks that arithmetic does not have."""
LEXICON = Lexicon(
    "a name, a literal or punctuation",
    {
        "@": "matmul(x, w) multiplies matrices; the operands of a net have names",
        ":": _NO_PYTHON,
        ".": "what a call gives is assigned to names: x, mask = pad(ids, n)",
        **dict.fromkeys("\"'", "a text ends, on its line, with the quote that it begins with"),
    },
    blank=r"[ \t\r]+|\#[^\n]*|\\\n",
    number=r"(?:\d[\d_]*)?\.?\d[\d_]*(?:[eE][+-]?\d+)?\.?",
    newline=r"\n",
    string=f"r?(?:{STRING})",
    name=r"[^\W\d]\w*(?:\.\w+)*",
    mark=marks(MARKS + " [ ] ="),
)


def parse(text: str) -> syntax.ParsedNet:
    """Read a net; raise NetError when it is malformed."""
    if not isinstance(text, str):
        raise NetError(f"net: found {type(text).__name__}, expected text")
    return NetParser(text).program()


class NetParser(FormulaParser):
    """Reads statements; their operands are read as formulas, whose parser is the base class."""

    what = "net"
    error = NetError
    in_lines = True
    lexicon = LEXICON
    end_names = _END_NAMES

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.line_starts = [0, *(newline.end() for newline in re.finditer("\n", text))]
        # a newline at the end, so that the last statement ends like all others
        *tokens, end = self.tokens
        self.tokens = [
            *_without_newlines_in_brackets(tokens),
            Token("newline", "\n", end.start, end.end),
            end,
        ]
        self.calls: dict[str, syntax.NetCall] = {}
        """Calls that are operands of the current formula, by the names used in their place (`%0`)."""
        self.firsts: dict[str, int] = {}
        """Position where each name of the current formula is first used."""
        self.levels = 0

    def location(self, position: int) -> syntax.Location:
        line = bisect_right(self.line_starts, position)
        return syntax.Location(line, position - self.line_starts[line - 1] + 1)

    # Statements

    def program(self) -> syntax.ParsedNet:
        statements: list[syntax.Statement] = []
        returned: tuple[syntax.Reference, ...] | None = None
        while self.token.kind != "end":
            if self.accept("\n"):
                continue
            if returned is not None:
                self.expected("nothing after return")
            if self.accept("return"):
                returned = self.references("the name of a tensor")
                self.take("\n", "the end of the line")
            else:
                statements.append(self.statement())
        return syntax.ParsedNet(self.text, tuple(statements), returned)

    def reference(self, what: str) -> syntax.Reference:
        token = self.token
        if token.kind != "name" or token.text in _WORDS or token.text == "return":
            self.expected(what)
        self.next += 1
        return syntax.Reference(token.text, self.location(token.start))

    def references(self, what: str) -> tuple[syntax.Reference, ...]:
        found = [self.reference(what)]
        while self.accept(","):
            found.append(self.reference(what))
        return tuple(found)

    def statement(self) -> syntax.Statement:
        first = self.next
        targets = self.references("a name or an op")
        if len(targets) == 1 and self.at("("):
            self.next = first
            targets = ()
        else:
            self.take("=", "'=' after the names of the results")
        start = self.token
        value = self.operand("an op or an expression", "an operator or the end of the line")
        self.take("\n", "the end of the line")
        if isinstance(value, (syntax.Reference, syntax.LiteralOperand, syntax.Listed)) or (
            isinstance(value, syntax.Formula) and not targets
        ):
            self.refuse(start, targets, value)
        return syntax.Statement(targets, value)

    def refuse(self, start: Token, targets: tuple[syntax.Reference, ...], value: syntax.Operand) -> NoReturn:
        """Raise NetError for a statement that computes nothing."""
        names = ", ".join(map(str, targets))
        match value:
            case syntax.Reference(name=name):
                advice = f"a tensor has one name: write {name} wherever you mean it"
                if names.endswith(".lengths"):
                    group = names.removesuffix(".lengths")
                    advice += f"; for a list column: {group} = sequence({group}.values, {name})"
            case syntax.LiteralOperand():
                advice = "write the literal where it is used, or bind a constant"
            case syntax.Listed():
                advice = "a list of tensors is written where an op takes one"
            case _:
                advice = "give the result a name"
        what = f"{names} = {value}" if names else str(value)
        self.fail(start, f"found {what}, expected an op or an expression", advice)

    # Operands

    def operand(self, what: str, ending: str) -> syntax.Operand:
        """Read one operand; errors say that `what` was expected at its beginning, or `ending` after it."""
        token = self.token
        if self.at("["):
            return self.listed()
        if self.ends(0):
            self.expected(what)
        # the usual operands, a name or a literal alone, need no parser of expressions
        if self.ends(1) and token.kind in ("name", "number", "string"):
            self.next += 1
            if token.kind == "name" and token.text not in _WORDS:
                return syntax.Reference(token.text, self.location(token.start))
            return syntax.LiteralOperand(self.literal(token), self.location(token.start))
        if self.at("-") and self.after.kind == "number" and self.ends(2):
            value = self.literal(self.after)
            if abs(value) < 2**63:
                self.next += 2
                return syntax.LiteralOperand(-value, self.location(token.start))
        return self.formula(token, ending)

    def item(self, ending: str = "an operator, ',' or ']'") -> syntax.Operand:
        return self.operand("a tensor, a literal or an expression", ending)

    def ends(self, ahead: int) -> bool:
        """Return whether the token this many places ahead ends an operand."""
        token = self.tokens[self.next + ahead]
        return token.kind in self.end_names or (token.kind == "mark" and token.text in _ENDS)

    def enter(self, token: Token) -> None:
        self.levels += 1
        if self.levels > _DEEPEST:
            self.fail(token, f"found lists or calls nested deeper than {_DEEPEST} levels")

    def listed(self) -> syntax.LiteralOperand | syntax.Listed:
        opening = self.take("[")
        location = self.location(opening.start)
        self.enter(opening)
        items = self.items(opening, self.item, trailing=True)
        self.levels -= 1
        if all(isinstance(item, syntax.LiteralOperand) for item in items):
            return syntax.LiteralOperand(
                [item.value for item in items if isinstance(item, syntax.LiteralOperand)], location
            )
        return syntax.Listed(tuple(items), location)

    def call(self) -> syntax.NetCall:
        self.enter(self.token)
        op = self.reference("an op")
        arguments: list[syntax.Operand] = []
        keywords: dict[str, syntax.Operand] = {}

        ending = "an operator, ',' or ')'"

        def argument() -> None:
            token = self.token
            if token.kind == "name" and self.after.text == "=":
                keyword = self.reference("a keyword")
                self.take("=")
                if keyword.name in keywords:
                    self.fail(token, f"{keyword.name} is given twice")
                keywords[keyword.name] = self.item(ending)
            elif keywords:
                self.expected("a keyword: positional arguments come first")
            else:
                arguments.append(self.item(ending))

        self.items(self.take("("), argument, trailing=True)
        self.levels -= 1
        return syntax.NetCall(op.name, tuple(arguments), tuple(keywords.items()), op.location)

    def literal(self, token: Token) -> Any:
        if token.text in _WORDS:
            return _WORDS[token.text]
        try:
            return int(token.text) if _DECIMAL(token.text) else ast.literal_eval(token.text)
        except (ValueError, SyntaxError):  # Python reads at most 4,300 digits
            self.expected("a number or text", token=token)

    # Arithmetic

    def formula(self, start: Token, ending: str) -> syntax.Operand:
        """Read an expression; formulas inside it, in arguments of calls, count operands of their own."""
        # restored below: self.value reads arguments of calls, which may be formulas
        outer = self.names, self.calls, self.firsts
        self.names, self.calls, self.firsts = {}, {}, {}
        first = self.next
        tree = self.value()
        if not self.ends(0):
            self.expected(ending, self.advice_for(self.token))
        inputs = self.inputs()
        operands = tuple(
            self.calls.get(name) or syntax.Reference(name, self.location(self.firsts[name]))
            for name in inputs
        )
        self.names, self.calls, self.firsts = outer
        if isinstance(tree, ExpressionOperand):  # a call, or a name in brackets
            return operands[0]
        parsed = Parsed(self.text, tuple(self.tokens[first : self.next]), tree, inputs)
        try:
            expression = Expression.from_parsed(parsed)
            if not inputs:
                return syntax.LiteralOperand(expression().item(), self.location(start.start))
        except ExpressionError as error:
            if error.fault is None:
                raise
            self.fail_at(*error.fault)
        return syntax.Formula(expression, operands, self.location(start.start))

    def atom(self, token: Token) -> Node:
        if token.kind == "string":
            self.fail(token, f"found {token.text}, expected a number, a name or an operator")
        if token.kind != "name" or self.after.text != "(":
            return super().atom(token)
        call = self.call()
        if self.at("("):
            self.fail(token, f"found a call of what {call.op} gives, expected an operator after it")
        name = f"%{len(self.calls)}"
        self.calls[name] = call
        return ExpressionOperand(token._replace(text=name), self.names.setdefault(name, len(self.names)))

    def opens_call(self, token: Token) -> bool:
        return token.text in functions

    def number(self, token: Token) -> int | float:
        self.literal(token)
        plain = token._replace(text=token.text.replace("_", "")) if "_" in token.text else token
        return super().number(plain)

    def named(self, token: Token) -> Node:
        self.firsts.setdefault(token.text, token.start)
        return super().named(token)

    def advice_for(self, token: Token) -> str:
        return _ADVICE.get(token.text) or super().advice_for(token)


def _without_newlines_in_brackets(tokens: list[Token]) -> list[Token]:
    found = []
    depth = 0
    for token in tokens:
        if token.kind == "mark" and token.text in "()[]":
            depth += 1 if token.text in "([" else -1
        # a bracket that closes nothing makes the depth negative: lines still end
        if token.kind != "newline" or depth <= 0:
            found.append(token)
    return found
