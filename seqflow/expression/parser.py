"""Dialect of expressions, and their syntax trees.

Operators bind as in Python. All other functions are calls: `where(x > 0, x, 0)`, `add(@0,@1)`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from seqflow.errors import ExpressionError, nearest
from seqflow.expression.functions import Function, binary_operators, by_name, unary_operators
from seqflow.parsing.errors import fail
from seqflow.parsing.lexer import Lexicon, Token, marks
from seqflow.parsing.parser import Parser


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """A node of the syntax tree; `str(node)` is its canonical text."""

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


@dataclass(slots=True, eq=False)
class Parsed:
    """A parsed expression: text, tokens, syntax tree and the names of its inputs (`@0`, `@1`, … for numbers)."""

    text: str
    tokens: tuple[Token, ...]
    tree: Node
    inputs: tuple[str, ...]


# an expression has one input for each number up to the largest: without a bound @999999999 would take all memory
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
"""Levels of operators between two operands; a higher level binds more strongly."""
OR, AND, NOT = COMPARISON - 3, COMPARISON - 2, COMPARISON - 1
_LOGICAL = {"and": "logical_and", "or": "logical_or", "not": "logical_not"}
"""Words between and before conditions, and their functions, which take any numbers: what is not 0 is true."""
_PYTHON = {
    **dict.fromkeys(("and", "or"), "it stands between conditions: x > 1 and y < 2"),
    "not": "it stands before a condition: not x > 1",
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
"""Advice on kinds of tokens that only filters have."""
NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
STRING = r'"(?:[^"\\\n]|\\[^\n])*"|\'(?:[^\'\\\n]|\\[^\n])*\''
MARKS = "** // << >> <= >= == != - + * / % & | ^ ~ < > ( ) ,"
ADVICE = {
    "@": "an operand is written @0, @1, …, the number right after the @",
    "=": "an expression assigns nothing; equality is ==",
    "!": "not is ~x in an expression and `not x` in a filter; not equal is !=",
    ":": "an expression is not Python: it has operators and functions, nothing else",
    ";": "an expression is a single one, without statements",
    "[": "an expression works element by element; there are no lists and no indexing",
    "]": "an expression works element by element; there are no lists and no indexing",
    ".": "a dotted name is written doc.values",
    '"': "a text ends, on its line, with the quote that it begins with",
    "'": "a text ends, on its line, with the quote that it begins with",
    "`": "a column's name in backticks ends with a backtick",
}


def lexicon(marked: str, keyword: str = "(?!)") -> Lexicon:
    """Return the lexicon of expressions, or of filters, which have more marks, and keywords of calls."""
    return Lexicon(
        "a number, a name or an operator",
        ADVICE,
        alone=True,
        number=r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
        mark=marks(marked),  # first: with numbers they are most tokens
        operand=r"@[0-9]+",
        keyword=keyword,
        column=r"(?:[^\W\d]\w*\.)*`[^`\n]+`(?:\.(?:[^\W\d]\w*|`[^`\n]+`))*",
        name=NAME,
        string=STRING,
    )


refuse = partial(fail, what="expression", kind=ExpressionError)
"""Raise ExpressionError at a position of the text of an expression."""


def parse(text: str) -> Parsed:
    """Read an expression; raise ExpressionError, with a caret at the place, when it is malformed.

    >>> parse("sqrt((2*x + y)/12)").tree
    <call sqrt(div(add(mul(2,@0),@1),12))>
    """
    if not isinstance(text, str):
        raise ExpressionError(f"expression: found {type(text).__name__}, expected text")
    parser = _Expression(text)
    tree = parser.whole("an operator or the end")
    return Parsed(text, tuple(parser.tokens[:-1]), tree, parser.inputs())


def with_inputs(parsed: Parsed, names: Sequence[str]) -> Parsed:
    """Return the expression with its inputs renamed; equal names become one input."""
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
    """Yield all nodes, arguments before their calls; on a stack, since trees may be of any depth."""
    stack = [(tree, False)]
    while stack:
        node, seen = stack.pop()
        if isinstance(node, Call) and not seen:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
        else:
            yield node


def word(node: Node) -> str:
    """Return the text of a node without its operands: `@0`, `2` or `sqrt`."""
    match node:
        case Operand(index=index):
            return f"@{index}"
        case Literal(value=value):
            return repr(value)
        case Call(function=function):
            return function.name
    raise AssertionError(node)  # the three kinds above are all there are


def canonical(tree: Node) -> str:
    """Return the tree as prefix text with operand numbers, without blanks."""
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


class FormulaParser(Parser[Node]):
    """Dialect of formulas, alone or in nets."""

    prefix = dict.fromkeys("-+~", UNARY) | {"not": NOT}
    infix = BINDING | {"and": AND, "or": OR}
    loose = frozenset({"not"})
    to_the_right = frozenset({POWER})
    alone = frozenset({COMPARISON})
    begins = "a number, a name, a function or '('"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.names: dict[str, int] = {}
        self.numbered: Token | None = None
        """First operand that is given by number."""
        self.count = 0

    def inputs(self) -> tuple[str, ...]:
        return tuple(self.names) if self.numbered is None else tuple(f"@{k}" for k in range(self.count))

    def atom(self, token: Token) -> Node:
        self.next += 1
        match token.kind:
            case "name":
                return self.named(token)
            case "number":
                return Literal(token, self.number(token))
            case "operand":
                return Operand(token, self.by_number(token))
        return self.expected(self.begins, self.advice_for(token), token)

    def infixed(self, token: Token, operands: list[Node], start: Token) -> Node:
        function = by_name[_LOGICAL[token.text]] if token.text in _LOGICAL else binary_operators[token.text]
        return Call(token, function, tuple(operands))

    def prefixed(self, token: Token, operand: Node) -> Node:
        if token.text == "+":
            return operand
        if token.text == "-" and isinstance(operand, Literal) and type(operand.value) is not bool:
            return Literal(token, -operand.value)
        function = by_name["logical_not"] if token.text == "not" else unary_operators[token.text]
        return Call(token, function, (operand,))

    def opens_call(self, token: Token) -> bool:
        if token.text not in by_name:
            known = nearest(token.text, by_name)
            self.fail(token, f"no function is named {token.text!r}{known}", self.advice_for(token))
        return True

    def called(self, token: Token, arguments: list[Node]) -> Node:
        function = by_name[token.text]
        if function.alpha is not None and len(arguments) == function.arity + 1:
            self.scale(token, function, function.alpha, arguments)
        if len(arguments) != function.arity:
            plural = "s" if function.arity > 1 else ""
            self.fail(token, f"{function} takes {function.arity} argument{plural}, found {len(arguments)}")
        return Call(token, function, tuple(arguments))

    def scale(self, token: Token, function: Function, alpha: int, arguments: list[Node]) -> None:
        """Multiply an argument by the last one, alpha, a literal number."""
        factor = arguments.pop()
        if not isinstance(factor, Literal) or type(factor.value) is bool:
            self.fail(factor.token, f"{function}: alpha is {factor.token.text!r}, expected a literal number")
        if not (type(factor.value) is int and factor.value == 1):
            arguments[alpha] = Call(token, by_name["mul"], (arguments[alpha], factor))

    def chained(self, token: Token) -> NoReturn:
        self.fail(
            token,
            f"found {token.text!r} after another comparison, expected an operator that is none",
            "comparisons do not chain: write a < b and b < c",
        )

    def advice_for(self, token: Token) -> str:
        return _ONLY_IN_FILTERS.get(token.kind) or _PYTHON.get(token.text, "")

    def number(self, token: Token) -> int | float:
        digits = token.text.lstrip("0") or "0"
        if digits.isdigit():
            # counted first: `int` refuses texts of more than 4,300 digits with an error of its own
            if len(digits) > 20 or (whole := int(digits)) > _LARGEST_INTEGER:
                self.fail(token, "the integer is larger than 2**64 - 1", "write it as a float: 1e30")
            return whole
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


class _Expression(FormulaParser):
    what = "expression"
    error = ExpressionError
    lexicon = lexicon(MARKS)
