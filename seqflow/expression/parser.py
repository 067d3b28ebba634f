"""Operator-precedence parser of expressions; it uses explicit stacks, so nesting may be of any depth.

Operators bind as in Python. Anything else is a call: `where(x > 0, x, 0)`, `add(@0,@1)`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from seqflow.errors import ExpressionError, nearest
from seqflow.expression.functions import Function, binary_operators, by_name, unary_operators
from seqflow.expression.lexer import Token, fail, tokenize


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """A node of the syntax tree; `str()` of it is its canonical text."""

    token: Token

    def __str__(self) -> str:
        return canonical(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self}>"


@dataclass(slots=True, eq=False, repr=False)
class Operand(Node):
    """A reference to an input, by its index."""

    index: int


@dataclass(slots=True, eq=False, repr=False)
class Literal(Node):
    """A number, True or False."""

    value: bool | int | float


@dataclass(slots=True, eq=False, repr=False)
class Call(Node):
    """A function of other nodes; operators are calls too."""

    function: Function
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A parsed expression: text, tokens, syntax tree and the names of its inputs (`@0`, `@1`, … for numbers)."""

    text: str
    tokens: tuple[Token, ...]
    tree: Node
    inputs: tuple[str, ...]


LARGEST_OPERAND = 65_535
_LARGEST_INTEGER = 2**64 - 1
_WORDS: dict[str, bool | float] = {"True": True, "False": False, "inf": math.inf, "nan": math.nan}
_LEVELS = (
    ("==", "!=", "<", "<=", ">", ">="),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "//", "%"),
)
COMPARISON, UNARY, POWER, ATOM = 0, len(_LEVELS), len(_LEVELS) + 1, len(_LEVELS) + 2
BINDING = {symbol: level for level, symbols in enumerate(_LEVELS) for symbol in symbols} | {"**": POWER}
"""How strongly each operator between two operands binds."""
_PYTHON = {
    "and": "combine bools with & and brackets, or with logical_and(x, y)",
    "or": "combine bools with | and brackets, or with logical_or(x, y)",
    "not": "negate a bool with ~, or with logical_not(x)",
    "if": "choose with where(condition, x, y)",
    "else": "choose with where(condition, x, y)",
    "None": "there is no None; a missing number is nan",
    "in": "lists are for filters (where=): write (x == 1) | (x == 2)",
    **dict.fromkeys(("lambda", "is", "for", "import", "await", "yield"), "an expression is not Python"),
}
_ONLY_IN_FILTERS = {
    "string": "tensors hold numbers: a text is compared in a filter (where=), or made an id by a vocabulary before",
    "column": "names in backticks are for filters (where=)",
}
"""What to do about kinds of tokens that expressions over tensors don't have."""


def parse(text: str) -> Parsed:
    """Read an expression; ExpressionError, with a caret at the place, where it is malformed.

    >>> parse("sqrt((2*x + y)/12)").tree
    <call sqrt(div(add(mul(2,@0),@1),12))>
    """
    if not isinstance(text, str):
        raise ExpressionError(f"expression: found {type(text).__name__}, expected text")
    return parse_tokens(text, tokenize(text))


def parse_tokens(text: str, tokens: list[Token], ending: str = "an operator or the end") -> Parsed:
    """Read an expression from tokens that stand in a longer text; the last one is of kind `end`.

    `ending` says what may follow a complete expression.
    """
    return _Parser(text, tokens, ending).parse()


def with_inputs(parsed: Parsed, names: Sequence[str]) -> Parsed:
    """The same expression with its inputs renamed; equal names become one input."""
    if len(names) != len(parsed.inputs):
        raise ExpressionError(f"with_inputs: names is {names!r}, expected {len(parsed.inputs)} names")
    inputs = tuple(dict.fromkeys(names))
    if inputs == parsed.inputs:
        return parsed
    built: list[Node] = []
    for node in postorder(parsed.tree):
        match node:
            case Operand(token=token, index=index):
                built.append(Operand(token, inputs.index(names[index])))
            case Call(token=token, function=function):
                arguments = tuple(built[-function.arity :])
                built[-function.arity :] = [Call(token, function, arguments)]
            case _:
                built.append(node)
    return Parsed(parsed.text, parsed.tokens, built.pop(), inputs)


def postorder(tree: Node) -> Iterator[Node]:
    """All nodes, operands before the calls that use them."""
    stack = [(tree, False)]
    while stack:
        node, seen = stack.pop()
        if isinstance(node, Call) and not seen:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
        else:
            yield node


def word(node: Node) -> str:
    """A node without its operands: `@0`, `2` or `sqrt`."""
    match node:
        case Operand(index=index):
            return f"@{index}"
        case Literal(value=value):
            return repr(value)
        case Call(function=function):
            return function.name
    raise AssertionError(node)  # the three kinds above are all there are


def canonical(tree: Node) -> str:
    """The tree as prefix text with operand numbers and without blanks."""
    pieces: list[str] = []
    stack: list[Node | str] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        pieces.append(word(item))
        if isinstance(item, Call):
            stack.append(")")
            for argument in reversed(item.arguments):
                stack.extend((argument, ","))
            stack[-1] = "("
    return "".join(pieces)


@dataclass(slots=True)
class _Pending:
    """An operator or an open bracket whose operands are still being read."""

    token: Token
    binding: int = -1
    """How strongly an operator binds; -1 for a bracket."""
    function: Function | None = None
    first: int = 0
    """Where the arguments of a call begin in the stack of nodes."""


@dataclass(slots=True)
class _Parser:
    text: str
    tokens: list[Token]
    ending: str
    """What may follow a complete expression."""
    next: int = 0
    nodes: list[Node] = field(default_factory=list)
    pending: list[_Pending] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    numbered: Token | None = None
    """The first operand given by number."""
    count: int = 0

    def parse(self) -> Parsed:
        while True:
            self.operand()
            while not self.operator():
                if self.tokens[self.next].kind == "end":
                    return self.finish()

    def fail(self, token: Token, message: str, advice: str = "") -> NoReturn:
        fail(self.text, token.start, message, advice)

    def expected(self, token: Token, what: str) -> NoReturn:
        found = "the end" if token.kind == "end" else repr(token.text)
        advice = _ONLY_IN_FILTERS.get(token.kind) or _PYTHON.get(token.text, "")
        self.fail(token, f"found {found}, expected {what}", advice)

    def finish(self) -> Parsed:
        self.reduce(-1)
        if self.pending:
            self.fail(self.pending[-1].token, "this bracket is never closed, expected ')' before the end")
        inputs = tuple(self.names) if self.numbered is None else tuple(f"@{k}" for k in range(self.count))
        return Parsed(self.text, tuple(self.tokens[:-1]), self.nodes.pop(), inputs)

    def operand(self) -> None:
        """Read up to the end of one operand: prefix operators, open brackets, then a number or a name."""
        while True:
            token = self.tokens[self.next]
            self.next += 1
            if token.kind == "number":
                return self.nodes.append(Literal(token, self.number(token)))
            if token.kind == "operand":
                return self.nodes.append(Operand(token, self.by_number(token)))
            if token.kind == "name" and self.tokens[self.next].text == "(":
                self.open_call(token)
            elif token.kind == "name":
                return self.nodes.append(self.named(token))
            elif token.text == "(":
                self.pending.append(_Pending(token))
            elif token.text == "+" or token.text in unary_operators:
                self.pending.append(_Pending(token, UNARY, unary_operators.get(token.text)))
            else:
                self.expected(token, "a number, a name, a function or '('")

    def operator(self) -> bool:
        """Read the token after an operand; True where another operand must follow."""
        token = self.tokens[self.next]
        if token.kind == "end":
            return False
        self.next += 1
        if token.text == ")":
            self.close(token)
            return False
        if token.text == ",":
            self.reduce(-1)
            if not self.pending or self.pending[-1].function is None:
                self.fail(token, f"found ',' outside of a function's brackets, expected {self.ending}")
            return True
        if token.kind != "mark" or token.text not in binary_operators:
            bracket = next((item for item in reversed(self.pending) if item.binding < 0), None)
            inside = "an operator, ',' or ')'" if bracket and bracket.function else "an operator or ')'"
            self.expected(token, inside if bracket else self.ending)
        self.binary(token)
        return True

    def binary(self, token: Token) -> None:
        binding = BINDING[token.text]
        self.reduce(binding if binding in (COMPARISON, POWER) else binding - 1)
        if binding == COMPARISON and self.pending and self.pending[-1].binding == COMPARISON:
            self.fail(
                token,
                f"found {token.text!r} after another comparison, expected an operator that is none",
                "comparisons do not chain: write (a < b) & (b < c), brackets included",
            )
        self.pending.append(_Pending(token, binding, binary_operators[token.text]))

    def reduce(self, binding: int) -> None:
        """Finish the pending operators that bind more strongly than this."""
        while self.pending and self.pending[-1].binding > binding:
            operator = self.pending.pop()
            function = operator.function
            if function is None:  # the sign + changes nothing
                continue
            last = self.nodes[-1]
            if function.arity == 2:
                self.nodes[-2:] = [Call(operator.token, function, (self.nodes[-2], last))]
            elif function.operator == "-" and isinstance(last, Literal) and type(last.value) is not bool:
                self.nodes[-1] = Literal(operator.token, -last.value)
            else:
                self.nodes[-1] = Call(operator.token, function, (last,))

    def open_call(self, token: Token) -> None:
        function = by_name.get(token.text)
        if function is None:
            known = nearest(token.text, by_name)
            self.fail(token, f"no function is named {token.text!r}{known}", _PYTHON.get(token.text, ""))
        if self.tokens[self.next + 1].text == ")":
            self.wrong_arity(token, function, 0)
        self.next += 1
        self.pending.append(_Pending(token, -1, function, len(self.nodes)))

    def close(self, token: Token) -> None:
        """The bracket that ends a call or a group."""
        self.reduce(-1)
        if not self.pending:
            self.fail(token, f"found ')' without a '(' before it, expected {self.ending}")
        bracket = self.pending.pop()
        if bracket.function is not None:
            arguments = self.nodes[bracket.first :]
            del self.nodes[bracket.first :]
            self.nodes.append(self.call(bracket.token, bracket.function, arguments))

    def call(self, token: Token, function: Function, arguments: list[Node]) -> Call:
        if function.alpha is not None and len(arguments) == function.arity + 1:
            factor = arguments.pop()
            if not isinstance(factor, Literal) or type(factor.value) is bool:
                self.fail(
                    factor.token, f"{function}: alpha is {factor.token.text!r}, expected a literal number"
                )
            if not (type(factor.value) is int and factor.value == 1):
                scaled = arguments[function.alpha]
                arguments[function.alpha] = Call(token, by_name["mul"], (scaled, factor))
        if len(arguments) != function.arity:
            self.wrong_arity(token, function, len(arguments))
        return Call(token, function, tuple(arguments))

    def wrong_arity(self, token: Token, function: Function, found: int) -> NoReturn:
        plural = "s" if function.arity > 1 else ""
        self.fail(token, f"{function} takes {function.arity} argument{plural}, found {found}")

    def number(self, token: Token) -> int | float:
        digits = token.text.lstrip("0")
        if digits.isdigit() or not digits:
            if len(digits) > 20 or int(digits or "0") > _LARGEST_INTEGER:
                self.fail(token, "the integer is larger than 2**64 - 1", "write it as a float: 1e30")
            return int(digits or "0")
        value = float(token.text)
        if math.isinf(value):
            self.fail(token, "the number is larger than any float64", "infinity is written inf")
        return value

    def by_number(self, token: Token) -> int:
        digits = token.text[1:].lstrip("0") or "0"
        if len(digits) > 5 or int(digits) > LARGEST_OPERAND:
            self.fail(token, f"the operand's number is too large, expected @0 to @{LARGEST_OPERAND}")
        if self.names:
            self.mixed(token)
        self.numbered = self.numbered or token
        self.count = max(self.count, int(digits) + 1)
        return int(digits)

    def named(self, token: Token) -> Node:
        if token.text in _WORDS:
            return Literal(token, _WORDS[token.text])
        if token.text in _PYTHON:
            self.fail(token, f"found {token.text!r}, expected an operand", _PYTHON[token.text])
        if self.numbered is not None:
            self.mixed(token)
        return Operand(token, self.names.setdefault(token.text, len(self.names)))

    def mixed(self, token: Token) -> NoReturn:
        other = self.numbered.text if self.numbered else next(iter(self.names))
        self.fail(
            token, f"found {token.text!r} after {other!r}, expected operands by name or by number, not both"
        )
