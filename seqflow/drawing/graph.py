"""Graphs of boxes, layer below layer, and the lines between them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

from seqflow.drawing.svg import Theme, arrow, box, curve, group, picture, text

_LINE, _GAP, _BETWEEN, _MARGIN, _CHAR, _PAD = 17, 18, 30, 10, 8, 8
_THROUGH = 6
"""Width of a line that passes through a layer."""
_SWEEPS, _STRAIGHT = 20, 4
_WIDEST = 720
"""Width of a layer above which nodes move to the next layer, if they can."""
_LONGEST = 48
"""Largest number of characters of a text; a longer text is cut."""


class GraphNode(NamedTuple):
    """A name in bold letters, and a detail below it; with `fill` None they are drawn on the line, without a box."""

    name: str
    detail: str
    fill: str | None
    tooltip: str = ""
    is_target: bool = False
    """Whether lines to it end in an arrow."""

    @property
    def lines(self) -> list[str]:
        return [_cut(line) for line in (self.name, self.detail) if line]

    @property
    def width(self) -> float:
        return max(map(_columns, self.lines), default=0) * _CHAR + 2 * _PAD

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + _PAD


class _Slot(NamedTuple):
    """Place of a node in its layer, or of a line in a layer that it passes through."""

    node: int
    layer: int


class _Edge(NamedTuple):
    """A line from a slot to one in the next layer."""

    above: _Slot
    below: _Slot


def graph(
    title: str, description: str, nodes: Sequence[GraphNode], edges: Sequence[tuple[int, int]], theme: Theme
) -> str:
    """Return a picture of nodes and the edges between them, each from a node to a later one."""
    layers_of = _narrowed(_layers_of(len(nodes), edges), nodes, edges)
    lines = _lines(layers_of, edges)
    layers = _ordered(_slots(layers_of, lines), lines)
    widths = {
        slot: nodes[slot.node].width if slot.layer == layers_of[slot.node] else _THROUGH
        for layer in layers
        for slot in layer
    }
    middles = _placed(layers, lines, widths)
    heights = [0.0] * len(layers)
    for node, layer in zip(nodes, layers_of, strict=True):
        heights[layer] = max(heights[layer], node.height)
    tops = [_MARGIN + sum(heights[:at]) + at * _BETWEEN for at in range(len(layers))]
    drawn = _Drawing(nodes, layers_of, layers, middles, widths, tops, heights, theme)
    right = max((middles[slot] + widths[slot] / 2 for slot in middles), default=0.0) + _MARGIN
    bottom = tops[-1] + heights[-1] + _MARGIN if layers else 2.0 * _MARGIN
    return picture(
        max(right, 2 * _MARGIN), bottom, title, description, [*drawn.lines(lines), *drawn.boxes()], shrinks=False
    )  # fmt: skip


def _layers_of(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each node: below all its predecessors. A node without predecessors is just above its
    successors, or last.
    """
    layers, below = [0] * count, [count] * count
    for above, under in sorted(edges, key=lambda edge: edge[1]):
        layers[under] = max(layers[under], layers[above] + 1)
    for above, under in edges:
        below[above] = min(below[above], layers[under] - 1)
    joined = {node for edge in edges for node in edge}
    firsts = joined - {under for _, under in edges}
    last = max(layers, default=0) + bool(joined)
    return [
        below[node] if node in firsts else layers[node] if node in joined else last for node in range(count)
    ]


def _narrowed(layers: list[int], nodes: Sequence[GraphNode], edges: Sequence[tuple[int, int]]) -> list[int]:
    """Narrow wide layers: nodes without successors move down, and nodes without predecessors move up."""
    followed, following = {above for above, _ in edges}, {below for _, below in edges}
    down = _spread(layers, set(range(len(nodes))) - followed, nodes)
    up = _spread([-layer for layer in down], followed - following, nodes)
    return [max(up) - layer for layer in up]


def _spread(layers: list[int], movable: set[int], nodes: Sequence[GraphNode]) -> list[int]:
    """Return the layers after each has moved the nodes that make it too wide to the next layer."""
    found = list(layers)
    at = min(found, default=0)
    while at <= max(found, default=-1):
        inside = [node for node, layer in enumerate(found) if layer == at]
        width = sum(nodes[node].width + _GAP for node in inside)
        for node in inside[1:]:
            if node in movable and width > _WIDEST:
                width -= nodes[node].width + _GAP
                found[node] += 1
        at += 1
    return found


def _lines(layers_of: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[_Edge]:
    """Return edges from layer to layer: the edges of a node share one line through the layers between."""
    found: dict[_Edge, None] = {}
    for above, under in edges:
        for layer in range(layers_of[above], layers_of[under] - 1):
            found[_Edge(_Slot(above, layer), _Slot(above, layer + 1))] = None
        found[_Edge(_Slot(above, layers_of[under] - 1), _Slot(under, layers_of[under]))] = None
    return list(found)


def _slots(layers_of: Sequence[int], lines: Sequence[_Edge]) -> list[list[_Slot]]:
    """Return the slots of each layer: passing lines are in the middle of its nodes."""
    layers: list[list[_Slot]] = [[] for _ in range(max(layers_of, default=-1) + 1)]
    for node, layer in enumerate(layers_of):
        layers[layer].append(_Slot(node, layer))
    passing = {end for line in lines for end in line if layers_of[end.node] != end.layer}
    for slot in sorted(passing):
        layers[slot.layer].insert(len(layers[slot.layer]) // 2, slot)
    return layers


def _ordered(layers: list[list[_Slot]], lines: Sequence[_Edge]) -> list[list[_Slot]]:
    """Order the slots of each layer with few crossings: each near the mean of its neighbours in other layers."""
    above, below = _neighbours(lines)
    best, fewest = layers, _crossings(layers, lines)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        layers = [layer[:] for layer in layers]
        for at in range(len(layers)) if downwards else reversed(range(len(layers))):
            next_to = at - 1 if downwards else at + 1
            if 0 <= next_to < len(layers):
                places = {slot: place for place, slot in enumerate(layers[next_to])}
                joined = above if downwards else below
                means = {
                    slot: sum(places[one] for one in joined[slot]) / len(joined[slot])
                    if joined[slot]
                    else place
                    for place, slot in enumerate(layers[at])
                }
                layers[at].sort(key=means.__getitem__)
        if (found := _crossings(layers, lines)) < fewest:
            best, fewest = layers, found
    return best


def _neighbours(lines: Sequence[_Edge]) -> tuple[dict[_Slot, list[_Slot]], dict[_Slot, list[_Slot]]]:
    above, below = defaultdict(list), defaultdict(list)
    for line in lines:
        above[line.below].append(line.above)
        below[line.above].append(line.below)
    return above, below


def _crossings(layers: Sequence[Sequence[_Slot]], lines: Sequence[_Edge]) -> int:
    places = {slot: place for layer in layers for place, slot in enumerate(layer)}
    of_layer = defaultdict(list)
    for line in lines:
        of_layer[line.above.layer].append((places[line.above], places[line.below]))
    return sum(
        (one[0] - other[0]) * (one[1] - other[1]) < 0
        for ends in of_layer.values()
        for at, one in enumerate(ends)
        for other in ends[:at]
    )


def _placed(
    layers: Sequence[Sequence[_Slot]], lines: Sequence[_Edge], widths: dict[_Slot, float]
) -> dict[_Slot, float]:
    """Return the middle of each slot: near the mean of its neighbours in other layers, and clear of its neighbours in
    the layer.
    """
    above, below = _neighbours(lines)
    middles: dict[_Slot, float] = {}
    for layer in layers:
        middles |= zip(layer, _apart([0.0] * len(layer), [widths[slot] for slot in layer]), strict=True)
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted, centre = [], sum(middles.values()) / len(middles)
            for slot in layer:
                joined = above[slot] + below[slot]
                same = [one for one in joined if one.node == slot.node]  # long lines should be straight
                joined += same * _STRAIGHT
                wanted.append(sum(middles[one] for one in joined) / len(joined) if joined else centre)
            middles |= zip(layer, _apart(wanted, [widths[slot] for slot in layer]), strict=True)
    left = min((middles[slot] - widths[slot] / 2 for slot in middles), default=0.0)
    return {slot: middle - left + _MARGIN for slot, middle in middles.items()}


def _apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Return the middles nearest to the desired ones by least squares, in their order, with a gap between all."""
    offsets = [0.0]
    for one, other in pairwise(widths):
        offsets.append(offsets[-1] + one / 2 + _GAP + other / 2)
    groups: list[tuple[float, int]] = []
    for middle, offset in zip(wanted, offsets, strict=False):
        mean, count = middle - offset, 1
        while groups and groups[-1][0] > mean:
            before, of = groups.pop()
            mean, count = (before * of + mean * count) / (of + count), of + count
        groups.append((mean, count))
    means = [mean for mean, count in groups for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def _columns(line: str) -> int:
    """Return the width of a line in letters of the font."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in line)


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


class _Drawing(NamedTuple):
    nodes: Sequence[GraphNode]
    layers_of: Sequence[int]
    layers: Sequence[Sequence[_Slot]]
    middles: dict[_Slot, float]
    widths: dict[_Slot, float]
    tops: Sequence[float]
    heights: Sequence[float]
    theme: Theme

    def boxes(self) -> Iterator[str]:
        for slot in (slot for layer in self.layers for slot in layer if self._is_node(slot)):
            node, middle, top = self.nodes[slot.node], self.middles[slot], self._top(slot)
            parts = [
                text(
                    middle,
                    top + _PAD / 2 + _LINE * at + 12.5,
                    line,
                    self.theme.ink,
                    bold=bool(node.name) and not at,
                )
                for at, line in enumerate(node.lines)
            ]
            if node.fill is not None:
                size = self.widths[slot], self._bottom(slot) - top
                parts.insert(0, box(middle - size[0] / 2, top, *size, node.fill, self.theme.line))
            yield group(parts, node.tooltip)

    def lines(self, lines: Sequence[_Edge]) -> Iterator[str]:
        """Draw the edges: those of one box leave it, and reach it, next to each other."""
        starts = self._ports(lines, leaving=True)
        ends = self._ports(lines, leaving=False)
        for line in lines:
            top, bottom = self._bottom(line.above), self._top(line.below)
            yield curve(starts[line], top, ends[line], bottom, self.theme.line)
            if self._is_node(line.below) and self.nodes[line.below.node].is_target:
                yield arrow(ends[line], bottom, self.theme.line)
        for slot in self.middles:
            if not self._is_node(slot):
                x = self.middles[slot]
                yield curve(x, self._top(slot), x, self._bottom(slot), self.theme.line)

    def _ports(self, lines: Sequence[_Edge], *, leaving: bool) -> dict[_Edge, float]:
        of_slot = defaultdict(list)
        for line in lines:
            of_slot[line.above if leaving else line.below].append(line)
        found = {}
        for slot, own in of_slot.items():
            own.sort(key=lambda line: self.middles[line.below if leaving else line.above])
            width = self.widths[slot] if (self._is_node(slot) and self.nodes[slot.node].is_target) else 0.0
            for at, line in enumerate(own):
                found[line] = self.middles[slot] + width * ((at + 1) / (len(own) + 1) - 0.5)
        return found

    def _is_node(self, slot: _Slot) -> bool:
        """Return whether the slot has something to show: a node without text is a part of its line."""
        return slot.layer == self.layers_of[slot.node] and bool(self.nodes[slot.node].lines)

    def _top(self, slot: _Slot) -> float:
        """Return the top of a box in the middle of its layer."""
        if not self._is_node(slot):
            return self.tops[slot.layer]
        return self.tops[slot.layer] + (self.heights[slot.layer] - self.nodes[slot.node].height) / 2

    def _bottom(self, slot: _Slot) -> float:
        return 2 * self.tops[slot.layer] + self.heights[slot.layer] - self._top(slot)
