"""Identity of `prepare` and `net`: statements and constants of a net, code or version of a function."""

import os
from dataclasses import replace
from typing import Any

from seqflow import registry
from seqflow.identity.content import content_of, digest_of_file
from seqflow.identity.functions import function_content
from seqflow.net import Net
from seqflow.net.step import Step
from seqflow.net.syntax import Formula, Listed, LiteralOperand, NetCall, Operand, Reference, Statement

SHOWN = ("lines", "names")
"""Entries for messages, which are not compared: a file may have another name, and a statement another line."""


_DRAWS = "by row"
"""Way in which random ops draw. Records without it are of versions that drew by batch, which gives other numbers."""


def transform_identity(transform: Any, version: str | None) -> dict[str, Any] | None:
    """Return the identity of a net or function: everything that decides what it computes, as JSON; None without one.

    A function, or a user's own op, is identified by its `version` if it has one, otherwise by its code.
    """
    if transform is None:
        return None
    if isinstance(transform, Net):
        return _net_identity(transform, version)
    return {**_function_identity(transform, version), "names": {"function": name_of(transform)}}


def name_of(function: Any) -> str:
    """Return the name of a function, or of the class of a callable object."""
    function = getattr(function, "func", function)  # a partial has no name of its own
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _function_identity(function: Any, version: str | None) -> dict[str, Any]:
    if version is not None:
        return {"function": name_of(function), "version": version}
    return function_content(function)


def _net_identity(net: Net, version: str | None) -> dict[str, Any]:
    """Return statements in a canonical order, with the constants, files and user's own ops that they name."""
    statements = [step.statement for step in net.steps if not step.is_part]
    if net.returned is not None:  # without `return`, the outputs keep their order
        statements.sort(key=lambda statement: _text(statement, _Files(net)))
    files = _Files(net)
    texts = [_text(statement, files) for statement in statements]
    lines = [statement.location.line for statement in statements]
    if net.returned is not None:
        texts, lines = [*texts, f"return {', '.join(net.returned)}"], [*lines, _last_line(net.text)]
    own = {step.op.name: step.op for step in net.steps if _is_own(step)}
    is_random = any(step.op.random is not None for step in net.steps)
    return {
        **({"draws": _DRAWS} if is_random else {}),
        "net": texts,
        "constants": {name: content_of(value) for name, value in net.constants.items()},
        "files": list(files.numbers),
        "ops": {
            name: {"signature": str(op.signature), **_function_identity(op.function, version)}
            for name, op in sorted(own.items())
        },
        "lines": lines,
        "names": {
            "constants": {name: _file_name(value) for name, value in net.constants.items()},
            "files": files.names,
        },
    }


class _Files:
    """Files that a net names, numbered by their content."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self.numbers: dict[str, int] = {}
        self.names: list[str] = []

    def number(self, path: str) -> str:
        found = self._net.located(path)
        try:
            digest = digest_of_file(found)
        except OSError:
            digest = "not there"
        if digest not in self.numbers:
            self.numbers[digest] = len(self.numbers) + 1
            self.names.append(os.path.basename(path))
        return f"file {self.numbers[digest]}"


def _text(statement: Statement, files: _Files) -> str:
    """Return a statement as text, with paths of files replaced by their numbers."""
    value = _numbered(statement.value, files)
    assert isinstance(value, NetCall | Formula)
    return str(replace(statement, value=value))


def _numbered(operand: Operand, files: _Files) -> Operand:
    match operand:
        case Listed(items=items):
            return replace(operand, items=tuple(_numbered(item, files) for item in items))
        case Formula(operands=operands):
            named = (_numbered(one, files) for one in operands)
            return replace(
                operand, operands=tuple(one for one in named if isinstance(one, Reference | NetCall))
            )
        case NetCall():
            of_files = {one.name for one in registry.get(operand.op).attributes if one.names_file}
            keywords = tuple(
                (name, LiteralOperand(files.number(value.value), value.location))
                if name in of_files and isinstance(value, LiteralOperand) and isinstance(value.value, str)
                else (name, _numbered(value, files))
                for name, value in operand.keywords
            )
            arguments = tuple(_numbered(one, files) for one in operand.arguments)
            return replace(operand, arguments=arguments, keywords=keywords)
    return operand


def _file_name(value: Any) -> str | None:
    """Return the name of the file that an array is mapped from."""
    path = getattr(value, "filename", None)
    return None if path is None else os.path.basename(str(path))


def _last_line(text: str) -> int:
    lines = text.splitlines()
    return next((at for at in range(len(lines), 0, -1) if lines[at - 1].strip().startswith("return")), 1)


def _is_own(step: Step) -> bool:
    return step.op.family is None and not step.op.function.__module__.startswith("seqflow.")
