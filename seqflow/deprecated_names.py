"""Renamed arguments: the old name is accepted with a DeprecationWarning, and equals the new one in old records.

`rename` declares the old names of a callable; calls, nets, jobs and comparisons of records look them up here.
"""

import ast
import dataclasses
import functools
import operator
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from seqflow.errors import OpTypeError, nearest

C = TypeVar("C", bound=type)


class OldNameWarning(DeprecationWarning):
    """An old name was written; the command shows it, since the author of a job is its user."""


_FOLDER = os.path.dirname(__file__) + os.sep
_RENAMED: dict[str, Mapping[str, str]] = {}
"""For each op or class by name: old names of its arguments, and their present names."""


def rename(function: str, names: Mapping[str, str]) -> None:
    """Declare that arguments of a callable were renamed; with no names, forget the declaration."""
    if names:
        _RENAMED[function] = dict(names)
    else:
        _RENAMED.pop(function, None)


def old_names(function: str) -> Mapping[str, str]:
    """Return the old names of a callable's arguments, with the new ones."""
    return _RENAMED.get(function, {})


def renamed_arguments(function: str, given: Mapping[str, Any], shown: str = "") -> dict[str, Any]:
    """Return keyword arguments by their new names; raise TypeError for one that is given by both.

    Messages begin with `shown`, or else with the name of the function.
    The DeprecationWarning for an old name points at the line outside of seqflow that gave it.
    """
    names = old_names(function)
    shown = shown or f"{function}:"
    found = {name: value for name, value in given.items() if name not in names}
    for old, new in names.items():
        if old not in given:
            continue
        if new in found:
            raise TypeError(f"{shown} {new} is given twice, also by its old name {old!r}")
        warn_of_old_name(f"{shown} {old!r} is called {new!r} now")
        found[new] = given[old]
    return found


def warn_of_old_name(message: str) -> None:
    """Give a DeprecationWarning at the line outside of seqflow that wrote an old name."""
    warnings.warn(message, OldNameWarning, stacklevel=_frames_inside())


def _frames_inside() -> int:
    """Return the stack level, from the caller of this function, of the first frame outside of seqflow."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_FOLDER, "<op ")):
        frame, level = frame.f_back, level + 1
    return level


def renamed_fields(**names: str) -> Callable[[C], C]:
    """Return a decorator for dataclasses: old names of fields are accepted as arguments and readable as attributes.

    An argument that is not a field raises an OpTypeError, which suggests one.
    """

    def decorate(cls: C) -> C:
        rename(cls.__name__, names)
        known = [field.name for field in dataclasses.fields(cls)]
        create = cls.__init__  # type: ignore[misc]

        @functools.wraps(create)
        def init(self: Any, *args: Any, **given: Any) -> None:
            for name in given:
                if name not in known and name not in names:
                    raise OpTypeError(
                        f"{cls.__name__} has no option {name!r}{nearest(name, known)}; it has {', '.join(known)}"
                    )
            create(self, *args, **renamed_arguments(cls.__name__, given))

        cls.__init__ = init  # type: ignore[misc]
        for old, new in names.items():
            setattr(cls, old, property(operator.attrgetter(new)))
        return cls

    return decorate


def with_new_names(text: str) -> str:
    """Return the repr of a plan, or a statement of a net, with the present names of its arguments; other texts
    unchanged.

    Records of earlier versions hold such texts, and are compared with texts in present names.
    """
    if not any(f"{old}=" in text for names in _RENAMED.values() for old in names):
        return text
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    lines = text.encode().splitlines(keepends=True)  # the parser counts positions in bytes
    found = [
        (keyword.lineno - 1, keyword.col_offset, keyword.arg, old_names(node.func.id)[keyword.arg])
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        for keyword in node.keywords
        if keyword.arg is not None and keyword.arg in old_names(node.func.id)
    ]
    for line, column, old, new in sorted(found, reverse=True):
        lines[line] = lines[line][:column] + new.encode() + lines[line][column + len(old.encode()) :]
    return b"".join(lines).decode()
