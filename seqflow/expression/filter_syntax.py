"""Syntax tree of a filter: which rows of a source are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from seqflow.text.lexer import Token

Scalar = bool | int | float | str
LENGTHS = "lengths"
"""The function, and the last part of a name, that stand for the lengths of lists and texts."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of one (`doc.lang`).

    Parts in backticks may have any characters; a name with such parts has the path that it is written with.
    """

    token: Token
    name: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a text, True or False."""

    token: Token
    value: Scalar
    exact: Decimal = Decimal(0)
    """A number as it is written, which its `value` may only be near to."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Arithmetic, or a function of columns; `name` is the operator or the function."""

    token: Token
    name: str
    arguments: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values, compared by `==`, `!=`, `<`, `<=`, `>` or `>=`, which is the token."""

    token: Token
    left: Filter
    right: Filter


@dataclass(frozen=True, slots=True)
class Membership:
    """Whether a value is in a list, or is not."""

    token: Token
    value: Filter
    members: tuple[Constant, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class NullTest:
    """Whether a value is null, or is not."""

    token: Token
    value: Filter
    negated: bool


@dataclass(frozen=True, slots=True)
class Negation:
    """Not this condition."""

    token: Token
    condition: Filter


@dataclass(frozen=True, slots=True)
class Connection:
    """All of some conditions (`and`), or at least one (`or`)."""

    token: Token
    is_and: bool
    conditions: tuple[Filter, ...]


Filter = Column | Constant | Operation | Comparison | Membership | NullTest | Negation | Connection


def columns_of(tree: Filter) -> Iterator[Column]:
    """Yield the columns that a filter names, in the order of the text."""
    match tree:
        case Column():
            yield tree
        case Operation(arguments=parts) | Connection(conditions=parts):
            for part in parts:
                yield from columns_of(part)
        case Comparison(left=left, right=right):
            yield from columns_of(left)
            yield from columns_of(right)
        case Membership(value=part) | NullTest(value=part) | Negation(condition=part):
            yield from columns_of(part)
