"""Syntax tree of a net: statements and their operands."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from seqflow.errors import NetError
from seqflow.expression import Expression
from seqflow.expression.printer import infix
from seqflow.parsing import errors


class Location(NamedTuple):
    """Line and column in a net's text, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of a tensor's name."""

    name: str
    location: Location = field(compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class LiteralOperand:
    """A literal: number, text, True, False, None, or a list of literals."""

    value: Any
    location: Location

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Listed:
    """`[a, b]`: a list of tensors, for an op that takes one."""

    items: "tuple[Operand, ...]"
    location: Location

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression whose operands are tensors or calls: `2 * x + lengths_sum(y, n)`."""

    expression: Expression
    operands: "tuple[Reference | NetCall, ...]"
    """Inputs of the expression, in its order."""
    location: Location

    def on(self, operands: "tuple[Reference | NetCall, ...]") -> "Formula":
        """Return the same expression with other operands; equal names become one operand."""
        before = zip(operands, self.expression.inputs, strict=True)
        names = [one.name if isinstance(one, Reference) else name for one, name in before]
        distinct = dict(zip(names, operands, strict=True))
        return Formula(self.expression.with_inputs(names), tuple(distinct.values()), self.location)

    def __str__(self) -> str:
        return infix(self.expression.tree, [str(operand) for operand in self.operands])


@dataclass(frozen=True, slots=True)
class NetCall:
    """A call of an op: `op(arguments, keyword=operand)`."""

    op: str
    arguments: "tuple[Operand, ...]"
    keywords: "tuple[tuple[str, Operand], ...]"
    location: Location
    """Location of the op's name."""

    @property
    def operands(self) -> "tuple[Operand, ...]":
        return (*self.arguments, *(operand for _, operand in self.keywords))

    def __str__(self) -> str:
        inside = [*map(str, self.arguments), *(f"{name}={value}" for name, value in self.keywords)]
        return f"{self.op}({', '.join(inside)})"


Operand = Reference | LiteralOperand | Listed | Formula | NetCall


@dataclass(frozen=True, slots=True)
class Statement:
    """An assignment `targets = value`, or a call alone."""

    targets: tuple[Reference, ...]
    value: NetCall | Formula

    @property
    def location(self) -> Location:
        """Location of the beginning of its value."""
        return self.value.location

    def __str__(self) -> str:
        targets = ", ".join(map(str, self.targets))
        return f"{targets} = {self.value}" if targets else str(self.value)


@dataclass(frozen=True, slots=True)
class ParsedNet:
    """A parsed net: its statements as written and the names it returns, None without a `return`."""

    text: str
    statements: tuple[Statement, ...]
    returned: tuple[Reference, ...] | None


def references(operand: Operand) -> list[Reference]:
    """Return all names in an operand, including those in nested calls, in the order of the text."""
    match operand:
        case Reference():
            return [operand]
        case LiteralOperand():
            return []
        case Listed(items=parts) | Formula(operands=parts):
            return [name for part in parts for name in references(part)]
        case NetCall():
            return [name for part in operand.operands for name in references(part)]


def fail(text: str, location: Location, message: str, advice: str = "") -> NoReturn:
    """Raise NetError at a location of the text, with a caret under it."""
    before = text.split("\n")[: location.line - 1]
    position = sum(len(line) + 1 for line in before) + location.column - 1
    errors.fail(text, position, message, advice, what="net", kind=NetError, in_lines=True)
