"""Generates `docs/ops.md`, the reference of all ops, from the registry: `python -m seqflow.docs`."""

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
[signature](#signatures) says what goes in and what comes out. Inputs are positional, attributes are given by name.
`seqflow ops NAME` shows one op with the errors it raises.

Wrong input is an `OpError`, `LodError` or `ShapeError` (all are `SeqflowError`s and `ValueError`s) that names the op,
the argument, what was found and what was expected.

```python
>>> import numpy as np
>>> from seqflow.ops import *

```

## Signatures

```
data[N, 3], offsets[B+1]      a tensor and its sizes; the same name is the same size
data[N, *d], data[N, _]       any number of further dimensions; one of any size
data[sum(lengths)]            what lengths add up to; max(lengths) is the longest
max_length|max(lengths)       an attribute where it is given, else the size
weights[T>=max(lengths)]      a size that is not below another
bias[M]?                      an optional input
{data[N]}+, {shard[_]}*parts  a list of inputs; a list of so many outputs
float x, like(x) y            the dtype of an input: a word for several, or that of another input
sum_of(data) sums             the dtype of an output; without a word it is that of the first input
index(R) i, position(n) p     integers that point at rows, or at places inside sequences; -1 is none
offset(R) starts              integers that point at rows or behind the last one
lens outer, lengths           tensors that are checked as lengths
sorted[P=N]                   as many rows as N, but not row for row the same
int64 lengths'[B]             an output that is called like an input; results drop the prime
lengths'[B] := lengths + 1    what an output is, as a net would compute it
counts[B] <= lengths          what the elements of an output are not above
-> unique[U], U <= N          what a size, or a sum, is not above
```

The name of axis 0 stands for rows: where an output has the name of an input, row i is still row i.
"""


def _family(op: OpDef) -> str:
    return str(op.family)


def _section(family: str, ops: list[OpDef]) -> str:
    about = (import_module(f"seqflow.ops.{family}").__doc__ or "").strip()
    return f"## {family}\n\n{about}\n\n" + "\n".join(_entry(op) for op in ops)


def _entry(op: OpDef) -> str:
    found = describe(op)
    parts = [f"### {op.name}", f"```\n{op.signature.in_lines()}\n```", found.prose]
    if op.attributes:
        rows = [
            (f"`{a.name}`", a.expected, "required" if a.required else f"`{a.default!r}`")
            for a in op.attributes
        ]
        parts.append(_table(("attribute", "takes", "default"), rows))
    if found.gradients:
        formulas = [(f"`{name}`", _formula(formula)) for name, formula in found.gradients]
        parts.append(_table(("gradient of", "is"), formulas))
    parts.append(f"```python\n{found.example}\n\n```")
    if found.origin:
        parts.append(f"From Caffe2's {found.origin}.")
    return "\n\n".join(parts) + "\n"


def _formula(text: str) -> str:
    """A formula as code; the reason why there is none in words."""
    return text if text.startswith(("none: ", "each row", "as the")) else f"`{text}`"


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
