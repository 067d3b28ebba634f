"""Check values of a TOML file against the types of dataclass fields."""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Any, Literal

_PLURALS = {str: "text", int: "integers"}


def _members(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def fits(value: Any, hint: Any) -> bool:
    """Whether the value is of the annotated type."""
    return any(_fits_one(value, member) for member in _members(hint))


def _fits_one(value: Any, hint: Any) -> bool:
    kind, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind is Any:
        return True
    if kind is Literal:
        return value in arguments
    if kind is tuple:
        return isinstance(value, (list, tuple)) and all(fits(item, arguments[0]) for item in value)
    if kind is dict:
        return isinstance(value, dict) and all(fits(item, arguments[1]) for item in value.values())
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def described(hint: Any) -> str:
    """The annotated type in words for users of TOML files."""
    words = [_described_one(member) for member in _members(hint) if member not in (type(None), Path)]
    return " or ".join(words)


def _described_one(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    if typing.get_origin(hint) is tuple:
        return f"a list of {_PLURALS[typing.get_args(hint)[0]]}"
    if typing.get_origin(hint) is dict:
        return f"a table of {described(typing.get_args(hint)[1])}"
    words = {str: "text", int: "an integer", float: "a number", bool: "true or false"}
    return words[hint]


def choices(hint: Any) -> list[str]:
    """The literals the annotated type allows."""
    literals = [member for member in _members(hint) if typing.get_origin(member) is Literal]
    return [choice for member in literals for choice in typing.get_args(member)]
