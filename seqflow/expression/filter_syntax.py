"""Syntax tree of a filter, the condition for rows of a source to be kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from seqflow.parsing.lexer import Token

Scalar = bool | int | float | str
LENGTHS = "lengths"
"""Name of the function, and last part of a column's name, for the lengths of lists and texts."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of one (`doc.lang`).

    Parts in backticks may have any characters; only a name with such parts has a `path`.
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
    """Number exactly as written; `value` may be rounded."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Arithmetic, or a function of columns; `name` is the operator or the function."""

    token: Token
    name: str
    arguments: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class ComparisonTest:
    """A comparison of two values; the token is `==`, `!=`, `<`, `<=`, `>` or `>=`."""

    token: Token
    left: Filter
    right: Filter


@dataclass(frozen=True, slots=True)
class Membership:
    """A test whether a value is in a list, or, if negated, not in it."""

    token: Token
    value: Filter
    members: tuple[Constant, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class NullTest:
    """A test whether a value is null, or, if negated, not null."""

    token: Token
    value: Filter
    negated: bool


@dataclass(frozen=True, slots=True)
class Negation:
    """The negation of a condition."""

    token: Token
    condition: Filter


@dataclass(frozen=True, slots=True)
class Connection:
    """Several conditions, of which all must hold (`and`), or at least one (`or`)."""

    token: Token
    is_and: bool
    conditions: tuple[Filter, ...]


Filter = Column | Constant | Operation | ComparisonTest | Membership | NullTest | Negation | Connection


def columns_of(tree: Filter) -> Iterator[Column]:
    """Yield the columns that a filter names, in the order of the text."""
    match tree:
        case Column():
            yield tree
        case Operation(arguments=parts) | Connection(conditions=parts):
            for part in parts:
                yield from columns_of(part)
        case ComparisonTest(left=left, right=right):
            yield from columns_of(left)
            yield from columns_of(right)
        case Membership(value=part) | NullTest(value=part) | Negation(condition=part):
            yield from columns_of(part)
