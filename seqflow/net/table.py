"""Nets as HTML for notebooks: a row for each tensor in the order of the steps; no scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from seqflow.drawing.tables import breakable

if TYPE_CHECKING:
    from seqflow.net.net import Net

_LONGEST = 100
"""Most characters of a statement that are shown; the tooltip has the whole text."""
_FONT = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12px;color:inherit"
_CELL = "padding:2px 6px;text-align:left;vertical-align:top;white-space:pre-wrap"
_RESULT, _CONSTANT = "#3fa66a", "#c08a2e"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def html(net: Net, specs: Mapping[str, str] | None = None, notes: Sequence[str] = ()) -> str:
    """Return a net as a table of given tensors, then steps and results.

    `specs` has a line of text for each tensor; `notes` are printed below the table. Results have a green edge,
    constants an amber one. The text takes the colour of the page, so that it is readable on light and dark pages.
    """
    specs = specs or {}
    edges = dict.fromkeys(net.constants, _CONSTANT) | dict.fromkeys(net.outputs(), _RESULT)
    count = len(net.steps)
    parts = [
        f'<div style="overflow:auto;max-height:90vh;{_FONT}">',
        '<table style="border-collapse:collapse">',
        f'<caption style="text-align:left">a net of {count} step{"s" * (count != 1)}</caption>',
        *_given(net, specs, edges),
        *_steps(net, specs, edges),
        "</table>",
        *(f"<div>{_escaped(note)}</div>" for note in notes),
        "</div>",
    ]
    return "\n".join(parts)


def _given(net: Net, specs: Mapping[str, str], edges: Mapping[str, str]) -> Iterator[str]:
    for name in (*net.inputs, *net.constants):
        kind = "constant" if name in net.constants else "input"
        yield f"<tr>{_tensor(name, specs, edges)}<td style='{_CELL};opacity:.8'>{kind}</td></tr>"


def _steps(net: Net, specs: Mapping[str, str], edges: Mapping[str, str]) -> Iterator[str]:
    """Yield the rows of each step: one for each result, and next to them one cell with the call."""
    for step in net.steps:
        tensors = [_tensor(name, specs, edges) for name in step.results if name != "_"]
        first, *others = tensors or [f"<td style='{_CELL}' colspan='2'></td>"]
        value = str(step.value)
        shown = value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
        title = escape(_NOT_XML.sub("\ufffd", f"line {step.line}: {step.statement}"))
        span = f" rowspan='{len(tensors)}'" if others else ""
        yield f"<tr>{first}<td style='{_CELL}' title='{title}'{span}>{_escaped(shown)}</td></tr>"
        yield from (f"<tr>{other}</tr>" for other in others)


def _tensor(name: str, specs: Mapping[str, str], edges: Mapping[str, str]) -> str:
    """Return the cells of a tensor; a part of an expression has no name, so its label is empty."""
    label = "" if name.startswith("%") else name
    style = f"{_CELL};border-left:4px solid {edges.get(name, 'transparent')}"
    spec = _escaped(specs.get(name, ""))
    return f"<td style='{style}'>{_escaped(label)}</td><td style='{_CELL};opacity:.85'>{spec}</td>"


def _escaped(text: str) -> str:
    return breakable(_NOT_XML.sub("\ufffd", text))
