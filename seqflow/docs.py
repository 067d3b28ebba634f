"""What is known of an op, in words; and the page of all ops, `docs/ops.md`, written by `python -m seqflow.docs`."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path

from seqflow import registry
from seqflow.expression.functions import Function, table
from seqflow.registry import OpDef
from seqflow.signature import Argument
from seqflow.signature.arrays import expected_dtype
from seqflow.signature.language import AtLeast, Sum

PAGE = Path(registry.__file__).parents[1] / "docs" / "ops.md"


@dataclass(frozen=True)
class Description:
    """An op's documentation in parts."""

    prose: str
    """The docstring without its example."""
    example: str
    empty: str
    """The sentences about what is empty; "" where there are none."""
    errors: tuple[tuple[str, str], ...]
    """Kinds of errors that signature and attributes stand for, and when they come."""
    origin: str
    """The operator of Caffe2 it comes from, or ""."""


def describe(op: OpDef) -> Description:
    """An op's documentation in parts, from its docstring, its signature and its attributes."""
    prose, mark, example = op.doc.partition(">>>")
    return Description(
        prose.strip(), (mark + example).strip(), _about_empty(prose), tuple(_errors(op)), op.caffe2 or ""
    )


def _about_empty(prose: str) -> str:
    clauses = [
        " ".join(clause.split())
        for paragraph in prose.split("\n\n")
        for clause in re.split(r"(?<=[.;:])\s+(?=[A-Za-z`])", paragraph)
    ]
    found = [clause for clause in clauses if re.search(r"\b[Ee]mpty\b|ength of 0|No seq", clause)]
    return " ".join(clause[0].upper() + clause[1:].rstrip(";:.") + "." for clause in found)


def _errors(op: OpDef) -> Iterator[tuple[str, str]]:
    inputs = op.signature.input_arguments
    for argument in inputs:
        if argument.is_lengths:
            described = [
                a.name
                for a in inputs
                if any(isinstance(dim, Sum) and dim.of == argument.name for dim in a.dims)
            ]
            sums = f", or do not add up to the rows of {_and(described)}" if described else ""
            yield "LodError", f"{argument.name} that are negative{sums}"
    for dtype, group in groupby(sorted(inputs, key=_dtype), key=_dtype):
        names = [argument.name for argument in group]
        if dtype:
            yield "OpTypeError", f"{_and(names)} of another dtype than {dtype}"
    for argument in inputs:
        if argument.dtype.word == "index":
            yield "OpIndexError", f"{argument.name} outside [0, {argument.dtype.of[0]})"
        for dim in argument.dims:
            if isinstance(dim, AtLeast):
                yield "ShapeError", f"{argument.name} with {dim.name} less than {dim.bound}"
    if sum(len(argument.dims) for argument in inputs) > 1:
        yield "ShapeError", "ranks and sizes that do not fit the signature"
    checked = [attribute for attribute in op.attributes if attribute.kind != "object"]
    if checked:
        yield "OpError", "attributes that are not what is said above"


def _dtype(argument: Argument) -> str:
    if argument.is_lengths:
        return "integers"
    return "" if argument.dtype.word == "any" else expected_dtype(argument)


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def page() -> str:
    """The text of `docs/ops.md`."""
    ops = [registry.get(name) for name in registry.names()]
    shipped = [op for op in ops if op.function.__module__.startswith("seqflow.ops.") and not _row_of(op)]
    families = {name: list(members) for name, members in groupby(sorted(shipped, key=_family), key=_family)}
    links = ", ".join(f"[{name}](#{name})" for name in families)
    contents = f"Families: {links}, and [the functions of expressions](#the-functions-of-expressions).\n"
    return "\n".join([_HEAD, contents, *(_section(*family) for family in families.items()), _functions()])


_HEAD = """\
# The ops

<!-- Written by `python -m seqflow.docs`; do not edit. -->

Every op is a pure function of arrays: `import seqflow as sf`, then `sf.ops.NAME(…)`, or a line of a net. Its
signature says what goes in and what comes out: a name is a size, the same name the same size; `sum(lengths)` is what
the lengths add up to; `*d` is any number of dimensions; a word before a tensor is its dtype. Inputs are positional,
attributes are given by name. `seqflow ops NAME` shows one op with the errors it raises.

Wrong input is an `OpError`, `LodError` or `ShapeError` (all are `SeqflowError`s and `ValueError`s) that names the op,
the argument, what was found and what was expected.

```python
>>> import numpy as np
>>> from seqflow.ops import *

```
"""


def _family(op: OpDef) -> str:
    return op.function.__module__.rpartition(".")[2]


def _row_of(op: OpDef) -> Function | None:
    return next((row for row in table if row.name == op.name), None)


def _section(family: str, ops: list[OpDef]) -> str:
    about = (import_module(f"seqflow.ops.{family}").__doc__ or "").strip()
    return f"## {family}\n\n{about}\n\n" + "\n".join(_entry(op) for op in ops)


def _entry(op: OpDef) -> str:
    found = describe(op)
    parts = [f"### {op.name}", f"```\n{op.signature}\n```", found.prose]
    if op.attributes:
        rows = [
            (f"`{a.name}`", a.expected, "required" if a.required else f"`{a.default!r}`")
            for a in op.attributes
        ]
        parts.append(_table(("attribute", "takes", "default"), rows))
    parts.append(f"```python\n{found.example}\n\n```")
    if found.origin:
        parts.append(f"From Caffe2's {found.origin}.")
    return "\n\n".join(parts) + "\n"


def _functions() -> str:
    rows = []
    for row in table:
        op = registry.get(row.name)
        rule = re.search(r"its dtype is (.*?)\. Operands", " ".join(op.doc.split()))
        rows.append(
            (
                f"`{row}`",
                row.formula,
                rule[1] if rule else "",
                f"`{row.operator}`" if row.operator else "",
                ", ".join(f"`{alias}`" for alias in row.aliases),
                op.caffe2 or "",
            )
        )
    header = ("function", "result", "dtype", "operator", "also", "Caffe2")
    return (
        "## The functions of expressions\n\nEach is an op as well. Operands broadcast as in NumPy.\n\n"
        f"{_table(header, rows)}\n"
    )


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page())
