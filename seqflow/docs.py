"""Generates `docs/ops/`, the reference of all ops, and `docs/llms.txt`: `python -m seqflow.docs`."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path

from seqflow import llms, registry
from seqflow.expression.functions import table
from seqflow.ops.elementwise import result_dtype
from seqflow.registry import OpDef
from seqflow.registry.description import describe
from seqflow.registry.peers import PEERS
from seqflow.registry.search import names_elsewhere

FOLDER = Path(__file__).parents[1] / "docs" / "ops"
_FUNCTIONS = "functions"


def pages() -> dict[Path, str]:
    """The text of each page of `docs/ops/`: the finder, one a family, and the functions of expressions."""
    ops = [registry.get(name) for name in registry.names()]
    rows = {row.name for row in table}
    shipped = [op for op in ops if op.family is not None and op.name not in rows]
    families = {name: list(members) for name, members in groupby(sorted(shipped, key=_family), key=_family)}
    found = {FOLDER / f"{name}.md": _page(name, members) for name, members in families.items()}
    return {
        FOLDER / "README.md": _finder(families),
        FOLDER / f"{_FUNCTIONS}.md": _functions(),
        **found,
    }


_WRITTEN = "<!-- Written by `python -m seqflow.docs`; do not edit. -->"


def _finder(families: Mapping[str, Sequence[OpDef]]) -> str:
    rows = [
        (
            f"[`{op.name}`]({family}.md#{op.name})",
            op.doc.partition("\n")[0],
            _as_code(names_elsewhere(op)[:_SHOWN]),
        )
        for family, members in families.items()
        for op in members
    ]
    links = ", ".join(f"[{name}]({name}.md)" for name in families)
    contents = f"Families: {links}, and [the functions of expressions]({_FUNCTIONS}.md).\n"
    return "\n".join([_HEAD, contents, _table(("op", "what it does", "elsewhere"), rows) + "\n"])


_SHOWN = 3
"""Names that ops have elsewhere are shown up to so many."""


_HEAD = """\
# The ops

<!-- Written by `python -m seqflow.docs`; do not edit. -->

Every op is a pure function of arrays: `import seqflow as sf`, then `sf.ops.NAME(…)`, or a line of a net. Its
[signature](#signatures) says what goes in and what comes out. Inputs are positional, attributes are given by name.
`seqflow ops NAME` shows one op with the errors it raises; `seqflow ops --search "ragged softmax"` finds ops by what
they do, and by what other libraries call it.

Wrong input is an `OpError`, `LodError` or `ShapeError` (all are `SeqflowError`s and `ValueError`s) that names the op,
the argument, what was found and what was expected.


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


def _page(family: str, ops: Sequence[OpDef]) -> str:
    about = (import_module(f"seqflow.ops.{family}").__doc__ or "").strip()
    names = ", ".join(f"[`{op.name}`](#{op.name})" for op in ops)
    lead = f"{about}\n\n{names}. [All ops and how to read signatures](README.md).\n"
    return "\n".join([f"# {family}\n\n{_WRITTEN}\n", lead, _IMPORTS, *(_entry(op) for op in ops)])


_IMPORTS = """\
```python
>>> import numpy as np
>>> from seqflow.ops import *

```
"""


def _entry(op: OpDef) -> str:
    found = describe(op)
    parts = [f"## {op.name}", f"```\n{op.signature.in_lines()}\n```", found.prose]
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
    if op.name in PEERS:
        parts.append(f"Elsewhere: {_as_code(PEERS[op.name])}.")
    return "\n\n".join(parts) + "\n"


def _as_code(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


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
        f"# The functions of expressions\n\n{_WRITTEN}\n\nEach is an op as well. Operands broadcast as in NumPy.\n\n"
        f"{_table(header, rows)}\n"
    )


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    llms.INDEX.write_text(llms.index(), encoding="utf-8")
