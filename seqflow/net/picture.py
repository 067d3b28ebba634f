"""Nets as pictures: ops as boxes, and on the lines between them the tensors with their specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from seqflow.drawing.graph import GraphNode, graph
from seqflow.drawing.svg import Theme, theme_of
from seqflow.net.syntax import NetCall
from seqflow.printable import printable_line

if TYPE_CHECKING:
    from seqflow.net.net import Net
    from seqflow.net.step import Step

MOST_STEPS = 30
"""Most steps that are drawn, and most given tensors; of longer nets only the beginning is drawn."""


def is_drawn_whole(net: Net) -> bool:
    """Return whether a picture shows all steps of a net and is small enough to be read."""
    return 0 < len(net.steps) <= MOST_STEPS and len(net.inputs) + len(net.constants) <= MOST_STEPS


def as_svg(net: Net, theme: str, specs: Mapping[str, str] | None = None) -> str:
    """Return a picture of a net from top to bottom; `specs` has a line of text for each tensor.

    Ops are blue, inputs grey, constants amber, results green; other tensors have no box.
    """
    colours, known = theme_of(theme), specs or {}
    shown = net.steps[:MOST_STEPS]
    nodes: list[GraphNode] = []
    numbers: dict[str, int] = {}
    edges: list[tuple[int, int]] = []

    def add(node: GraphNode) -> int:
        nodes.append(node)
        return len(nodes) - 1

    fills = dict.fromkeys(net.inputs, colours.empty) | dict.fromkeys(net.constants, colours.fills[2])
    fills |= dict.fromkeys(net.outputs(), colours.fills[1])
    used = {name for step in shown for name in step.uses} | set(net.returned or ())
    for name in (*net.inputs, *net.constants):
        if name in used:
            numbers[name] = add(_tensor(name, known, fills.get(name)))
    for step in shown:
        at = add(_op(step, colours))
        edges += [(numbers[name], at) for name in dict.fromkeys(step.uses)]
        for name in step.results:
            if name != "_":
                numbers[name] = add(_tensor(name, known, fills.get(name)))
                edges.append((at, numbers[name]))
    left = len(net.steps) - len(shown)
    if left:
        add(GraphNode("", f"… {left} more step{'s' * (left != 1)}", None))
    title = f"A net of {len(net.steps)} step{'s' * (len(net.steps) != 1)}"
    return graph(title, _words(net, shown, known), nodes, edges, colours)


def _op(step: Step, colours: Theme) -> GraphNode:
    label = step.op.name if isinstance(step.value, NetCall) else str(step.value)
    tooltip = printable_line(f"line {step.line}: {step.statement}")
    return GraphNode(printable_line(label), "", colours.fills[0], tooltip, is_target=True)


def _tensor(name: str, specs: Mapping[str, str], fill: str | None) -> GraphNode:
    """Return the node of a tensor; a part of an expression has no name, so its label is empty."""
    label, spec = "" if name.startswith("%") else printable_line(name), specs.get(name, "")
    return GraphNode(label, spec, fill, f"{label} {spec}".strip())


def _words(net: Net, steps: tuple[Step, ...], specs: Mapping[str, str]) -> str:
    statements = dict.fromkeys(str(step.statement) for step in steps)
    said = [f"{name} {spec}" for name, spec in specs.items() if not name.startswith("%")]
    return printable_line("; ".join([*statements, *said]) or f"it gives {', '.join(net.inputs) or 'nothing'}")
