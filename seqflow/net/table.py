"""Nets as HTML for notebooks: a row for each tensor in the order of the steps; no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from seqflow.drawing.tables import breakable, html_table
from seqflow.printable import printable_line

if TYPE_CHECKING:
    from seqflow.net.net import Net

_LONGEST = 100
"""Most characters of a call that are shown."""


def html(net: Net, specs: Mapping[str, str] | None = None, notes: Sequence[str] = ()) -> str:
    """Return a net as a table of given tensors, then steps and results, which its title names.

    `specs` has a line of text for each tensor; `notes` are printed below the table. A part of an expression has no
    name; a call stands next to the first of its results.
    """
    specs, count = specs or {}, len(net.steps)
    made_by = {
        name: "constant" if name in net.constants else "input" for name in (*net.inputs, *net.constants)
    }
    rows = [(name, specs.get(name, ""), kind) for name, kind in made_by.items()]
    for step in net.steps:
        names = [name for name in step.results if name != "_"] or [""]
        call = str(step.value)
        calls = [call if len(call) <= _LONGEST else f"{call[: _LONGEST - 1]}…", *[""] * (len(names) - 1)]
        rows += [
            ("" if name.startswith("%") else name, specs.get(name, ""), call)
            for name, call in zip(names, calls, strict=True)
        ]
    title = f"a net of {count} step{'s' * (count != 1)}: {', '.join(net.outputs())}"
    below = "".join(f"<div>{breakable(printable_line(note))}</div>" for note in notes)
    return f"<div>{html_table(title, ('tensor', 'dtype and shape', 'made by'), rows)}{below}</div>"
