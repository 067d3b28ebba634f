"""Generates `docs/ops/`, the reference of all ops, and pictures: `python -m tools.docs`."""

import builtins
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path

from seqflow import registry
from seqflow.expression.functions import Function, table
from seqflow.ops.elementwise import result_dtype
from seqflow.registry import OpDef
from seqflow.registry.description import describe
from seqflow.registry.search import names_elsewhere
from tools import pictures
from tools.stubs import HEADS

FOLDER = Path(__file__).parents[1] / "docs" / "ops"
_BY_TASK = Path(__file__).with_name("ops_by_task.toml")
_FUNCTIONS, _NAMES = "functions", "names"


def pages() -> dict[Path, str]:
    """Return the text of each page of `docs/ops/`: finder, names, families and functions of expressions."""
    families = _families()
    found = {FOLDER / f"{name}.md": _page(name, members) for name, members in families.items()}
    return {
        FOLDER / "README.md": _finder(families),
        FOLDER / f"{_NAMES}.md": _names(families),
        FOLDER / f"{_FUNCTIONS}.md": _functions(),
        **found,
    }


def _families() -> dict[str, list[OpDef]]:
    """Return the ops of each family, without the functions of expressions."""
    ops = [registry.get(name) for name in registry.names()]
    rows = {row.name for row in table}
    shipped = [op for op in ops if op.family is not None and op.name not in rows]
    return {name: list(members) for name, members in groupby(sorted(shipped, key=_family), key=_family)}


_WRITTEN = "<!-- Written by `python -m tools.docs`; do not edit. -->"


def _finder(families: Mapping[str, Sequence[OpDef]]) -> str:
    family_of = {op.name: family for family, members in families.items() for op in members}
    tables = []
    for given, wanted in tomllib.loads(_BY_TASK.read_text("utf-8")).items():
        rows = [
            (want, ", ".join(f"[`{name}`]({family_of[name]}.md#{name})" for name in names.split()))
            for want, names in wanted.items()
        ]
        tables.append(f"### {given}\n\n{_table(('you want', 'op'), rows)}")
    contents = [f"- [{family}]({family}.md): {_about(family).partition(chr(10))[0]}" for family in families]
    contents.append(
        f"- [{_FUNCTIONS}]({_FUNCTIONS}.md): The functions of expressions: `exp`, `x + y`, `where`."
    )
    parts = [HEADS["page of ops"].strip(), "## By what you have", *tables, "## Families", "\n".join(contents)]
    return "\n\n".join(parts) + "\n"


def _names(families: Mapping[str, Sequence[OpDef]]) -> str:
    family_of = {op.name: family for family, members in families.items() for op in members}
    lines = ["# All ops by name", "", _WRITTEN, "", _ABOUT_NAMES, ""]
    for op in map(registry.get, registry.names()):
        if op.family is not None:
            page = f"{family_of[op.name]}.md#{op.name}" if op.name in family_of else f"{_FUNCTIONS}.md"
            elsewhere = _as_code(names_elsewhere(op))
            lines.append(f"- [`{op.name}`]({page})" + (f": {elsewhere}" if elsewhere else ""))
    return "\n".join(lines) + "\n"


_ABOUT_NAMES = "Every op, with its names in other libraries and in questions. [By what you have](README.md)."


def _family(op: OpDef) -> str:
    return str(op.family)


def _page(family: str, ops: Sequence[OpDef]) -> str:
    names = "\n".join(f"- [`{op.name}`](#{op.name}): {op.doc.partition(chr(10))[0]}" for op in ops)
    links = "[All ops](README.md), and [how to read signatures](../signatures.md)."
    lead = f"{_about(family)}\n\n{names}\n\n{links}\n"
    return "\n".join([f"# {family}\n\n{_WRITTEN}\n", lead, _imports(ops), *(_entry(op) for op in ops)])


def _about(family: str) -> str:
    return (import_module(f"seqflow.ops.{family}").__doc__ or "").strip()


def _imports(ops: Sequence[OpDef]) -> str:
    """Return the imports of the examples of a page: `*` has no op that is called as a function of Python is."""
    hidden = ", ".join(op.name for op in ops if hasattr(builtins, op.name))
    also = f"\n>>> from seqflow.ops import {hidden}" if hidden else ""
    return f"```python\n>>> import numpy as np\n>>> from seqflow.ops import *{also}\n\n```\n"


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
        parts.append("\n".join(f"- gradient of `{name}`: {_formula(text)}" for name, text in found.gradients))
    parts.append(f"```python\n{found.example}\n\n```")
    if elsewhere := names_elsewhere(op):
        parts.append(f"Elsewhere: {_as_code(elsewhere)}.")
    return "\n\n".join(parts) + "\n"


def _as_code(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _formula(text: str) -> str:
    """Return a formula as code, or the reason why there is none as text."""
    return text if text.startswith(("none: ", "each row", "as the")) else f"`{text}`"


def _functions() -> str:
    parts = [
        "# The functions of expressions",
        _WRITTEN,
        "Each is an op as well. Operands broadcast as in NumPy.",
    ]
    for dtype, rows in groupby(sorted(table, key=_dtype_of), key=_dtype_of):
        cells = [(f"`{row}`", row.formula, _as_code(_other_names(row))) for row in rows]
        parts += [f"## Dtype: {dtype}", _table(("function", "result", "also"), cells)]
    return "\n\n".join(parts) + "\n"


def _dtype_of(row: Function) -> str:
    dtype = result_dtype(row)
    return "the one of that name" if dtype == row.name else dtype


def _other_names(row: Function) -> list[str]:
    own = [row.operator] if row.operator else []
    return [*dict.fromkeys([*own, *row.aliases, *names_elsewhere(registry.get(row.name))])]


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    for path, text in (pages() | pictures.pictures()).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
