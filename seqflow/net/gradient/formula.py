"""Formulas of derivatives: rewrites their text with the names of a net instead of the op's own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from seqflow.errors import GradientError, NetError
from seqflow.net.parser import NetParser
from seqflow.parsing.lexer import Token

Names = Mapping[str, str | Sequence[str] | None]
"""Tensors of inputs, `out.y` and `d.y` in the net: one, or several for a list; None for an omitted input."""

RESULT = "grad"
"""Name that the last statement of a formula assigns, unless it is only an operand."""


class Line(NamedTuple):
    """A statement of a gradient."""

    targets: tuple[str, ...]
    """Names that it assigns."""
    value: str
    uses: frozenset[str]
    """Tensors in its value."""

    def __str__(self) -> str:
        return f"{', '.join(self.targets)} = {self.value}" if self.targets else self.value


class Written(NamedTuple):
    """A formula as statements of a net."""

    lines: list[Line]
    """All statements except the last."""
    targets: list[str] | None
    """Names that the last statement assigns, RESULT among them; None if it is only an operand."""
    value: str
    """The operand, or the value of the last statement."""
    uses: frozenset[str]
    """Tensors in `value`."""


def write(text: str, names: Names, attributes: Mapping[str, Any], local: Callable[[str], str]) -> Written:
    """Return the statements of a formula; `local` renames the tensors that it assigns itself.

    Raises GradientError for an unknown name, and for text that is not valid in a net.
    """
    try:
        tokens = NetParser(text).tokens
    except NetError as error:
        raise GradientError(f"the formula cannot be read: {error}") from None
    # tokens are replaced without parsing them: brackets that do not match would end up in the net
    lines = _lines(tokens)
    depth = sum((token.text in "([") - (token.text in ")]") for token in tokens if token.kind == "mark")
    if depth:
        raise GradientError(f"the formula cannot be read: {text!r} has brackets that do not match")
    if not lines:
        raise GradientError("the formula is empty")
    assigned = {target.text for line in lines for target in _targets(line) or ()}
    writer = _Writer(text, names, attributes, assigned, local)
    *before, last = lines
    written = []
    for line in before:
        targets = _targets(line)
        if targets is None:
            raise GradientError(
                f"{writer.source(line)!r} has no effect, only the last line may be an operand"
            )
        left = tuple(writer.target(token.text) for token in targets)
        written.append(Line(left, *writer.written(line[2 * len(targets) :])))
    targets = _targets(last)
    if targets is None:
        return Written(written, None, *writer.written(last))
    if RESULT not in [token.text for token in targets]:
        raise GradientError(f"{writer.source(last)!r} is the last line, expected an operand, or {RESULT} = …")
    return Written(
        written,
        [token.text if token.text in (RESULT, "_") else writer.target(token.text) for token in targets],
        *writer.written(last[2 * len(targets) :]),
    )


def literal(value: Any) -> str:
    """Return the text of an attribute's value in a net."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, np.dtype):
        return repr(value.name)
    return repr(value.item() if isinstance(value, np.generic) else value)


def _lines(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each line that is not empty."""
    lines: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind in ("newline", "end"):
            lines.append([])
        else:
            lines[-1].append(token)
    return [line for line in lines if line]


def _targets(line: Sequence[Token]) -> list[Token] | None:
    """Return the names that a line assigns; None if it is not an assignment."""
    for i, token in enumerate(line):
        if (token.kind == "name") != (i % 2 == 0):
            return None
        if i % 2 and token.text != ",":
            return list(line[:i:2]) if token.text == "=" else None
    return None


@dataclass
class _Writer:
    """Writes parts of a formula with the names of a net."""

    text: str
    names: Names
    attributes: Mapping[str, Any]
    assigned: set[str]
    local: Callable[[str], str]
    uses: set[str] = field(default_factory=set)
    """Tensors in the current part."""

    def source(self, line: Sequence[Token]) -> str:
        return self.text[line[0].start : line[-1].end]

    def target(self, name: str) -> str:
        return name if name == "_" else self.local(name)

    def written(self, line: Sequence[Token]) -> tuple[str, frozenset[str]]:
        """Return the text of a part of a line, with names replaced and without omitted inputs, and its tensors."""
        self.uses = set()
        pieces: list[str] = []
        i = 0
        while i < len(line):
            token = line[i]
            if token.kind == "mark" and token.text == "," and self._is_left_out(line, i + 1):
                i += 4  # the comma, the keyword, = and the input
                continue
            if line[i].text == "len" and len(line) > i + 3 and line[i + 1].text == "(":
                pieces.append(str(len(self._listed(line[i + 2].text))))
                i += 4  # len, the bracket, the name and the closing bracket
                continue
            space = i > 0 and token.start > line[i - 1].end
            pieces.append(
                " " * space + self._name(line, i) if token.kind == "name" else " " * space + token.text
            )
            i += 1
        return "".join(pieces), frozenset(self.uses)

    def _is_left_out(self, line: Sequence[Token], i: int) -> bool:
        """Return whether `name=input` begins at i, for an input that is not given."""
        return (
            len(line) > i + 2
            and line[i + 1].text == "="
            and line[i + 2].text in self.names
            and self.names[line[i + 2].text] is None
        )

    def _listed(self, name: str) -> Sequence[str]:
        found = self.names.get(name)
        if found is None or isinstance(found, str):
            raise GradientError(f"{self.text!r} counts {name}, which is not a list")
        return found

    def _name(self, line: Sequence[Token], i: int) -> str:
        """Return the text for a name: of a function or keyword unchanged, of a tensor or an attribute replaced."""
        name = line[i].text
        after = line[i + 1].text if i + 1 < len(line) else ""
        if after in ("(", "=") or name in ("True", "False", "None", "inf", "nan"):
            return name
        if name in self.names:
            found = self.names[name]
            if found is None:
                raise GradientError(
                    f"{self.text!r} speaks of {name}, which may be left out: give it by keyword"
                )
            self.uses.update([found] if isinstance(found, str) else found)
            return found if isinstance(found, str) else f"[{', '.join(found)}]"
        root, dot, rest = name.partition(".")
        if root in self.assigned:
            self.uses.add(self.local(root) + dot + rest)
            return self.local(root) + dot + rest
        if name not in self.attributes:
            known = ", ".join([*self.names, *self.attributes])
            raise GradientError(f"{self.text!r} speaks of {name!r}, expected one of {known}")
        value = literal(self.attributes[name])
        return f"({value})" if value.startswith("-") else value
