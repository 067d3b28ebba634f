"""The page of all ops, `docs/ops.md`, written by `python -m seqflow.docs`."""

from collections.abc import Iterable
from importlib import import_module
from itertools import groupby
from pathlib import Path

from seqflow import registry
from seqflow.expression.functions import table
from seqflow.ops.elementwise import result_dtype
from seqflow.registry import OpDef
from seqflow.registry.description import describe

PAGE = Path(__file__).parents[1] / "docs" / "ops.md"


def page() -> str:
    """The text of `docs/ops.md`."""
    ops = [registry.get(name) for name in registry.names()]
    rows = {row.name for row in table}
    shipped = [op for op in ops if op.family is not None and op.name not in rows]
    families = {name: list(members) for name, members in groupby(sorted(shipped, key=_family), key=_family)}
    links = ", ".join(f"[{name}](#{name})" for name in families)
    contents = f"Families: {links}, and [the functions of expressions](#the-functions-of-expressions).\n"
    return "\n".join([_HEAD, contents, *(_section(*family) for family in families.items()), _functions()])


_HEAD = """\
# The ops

<!-- Written by `python -m seqflow.docs`; do not edit. -->

Every op is a pure function of arrays: `import seqflow as sf`, then `sf.ops.NAME(…)`, or a line of a net. Its
signature says what goes in and what comes out: a name is a size, the same name the same size; `sum(lengths)` is what
the lengths add up to; `*d` is any number of dimensions; a word before a tensor is its dtype. `:=` says what an output
is, `<=` what its elements, or a size, are not above. Inputs are positional, attributes are given by name.
`seqflow ops NAME` shows one op with the errors it raises.

Wrong input is an `OpError`, `LodError` or `ShapeError` (all are `SeqflowError`s and `ValueError`s) that names the op,
the argument, what was found and what was expected.

```python
>>> import numpy as np
>>> from seqflow.ops import *

```
"""


def _family(op: OpDef) -> str:
    return str(op.family)


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
        rows.append(
            (
                f"`{row}`",
                row.formula,
                result_dtype(row),
                f"`{row.operator}`" if row.operator else "",
                ", ".join(f"`{alias}`" for alias in row.aliases),
                registry.get(row.name).caffe2 or "",
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
