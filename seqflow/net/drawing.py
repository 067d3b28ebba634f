"""Nets as pictures for notebooks: inline SVG without scripts, in the page's own text colour."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from seqflow.net.layout import Layout, Place, arrange
from seqflow.net.syntax import Call, Formula, references

if TYPE_CHECKING:
    from seqflow.net.graph import Net
    from seqflow.net.step import Step

_SIZE = 12.0
"""Pixels of the font; smaller print is 10/12 of it."""
_CELL = 0.61
"""The width of a character of a monospaced font, as a part of its size."""
_LINE = 17.0
_PAD = 10.0
_GAP = (26.0, 44.0)
_MARGIN = 12.0
_LONGEST = 44
"""Characters of a line that are shown; the whole text is in the tooltip."""
_BLUE, _GREEN, _AMBER = "#4c8bd0", "#3fa66a", "#c08a2e"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Chip:
    """A tensor, below the step that makes it."""

    name: str
    spec: str
    colour: str | None

    @property
    def label(self) -> str:
        """Its name; nothing for a part of an expression, which has none in the net's text."""
        return "" if self.name.startswith("%") else self.name

    @property
    def width(self) -> float:
        return max(_width(_short(self.label)), _width(_short(self.spec), 10 / 12)) + 2 * _PAD

    @property
    def height(self) -> float:
        return _LINE * (bool(self.label) + bool(self.spec)) + 6


@dataclass(frozen=True, slots=True)
class Box:
    """A step with its results below it; without a title, an input."""

    title: str
    lines: tuple[str, ...]
    chips: tuple[Chip, ...]
    takes: tuple[str, ...]
    whole: str
    """The tooltip."""

    @property
    def card_height(self) -> float:
        return _LINE * (1 + len(self.lines)) + 8 if self.title else 0.0

    @property
    def width(self) -> float:
        chips = sum(chip.width + 6 for chip in self.chips) - 6
        texts = [_width(_short(self.title)), *(_width(_short(line), 10 / 12) for line in self.lines)]
        return max(chips, max(texts) + 2 * _PAD if self.title else 0.0)

    @property
    def height(self) -> float:
        return self.card_height + max((chip.height for chip in self.chips), default=0.0)


def html(net: Net, specs: Mapping[str, str] | None = None, notes: Sequence[str] = ()) -> str:
    """A net as a picture: inputs on top, a box for each step, each tensor below the step that makes it.

    `specs` has a line of text for each tensor; `notes` are printed below the picture. Results are green,
    constants amber. The text takes the colour of the page, so that it can be read on light and dark ones.
    """
    boxes = _boxes(net, specs or {})
    makers = {chip.name: number for number, box in enumerate(boxes) for chip in box.chips}
    takers = [box.takes for box in boxes]
    layout = arrange([(box.width, box.height) for box in boxes], makers, takers, _GAP)
    notes_width = max((_width(note, 10 / 12) for note in notes), default=0.0)
    width = max(layout.width, notes_width) + 2 * _MARGIN
    height = layout.height + 2 * _MARGIN + _LINE * len(notes)
    parts = [
        f'<div style="overflow:auto;max-height:90vh"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" '
        f'font-size="{_SIZE:.0f}" fill="currentColor">',
        f"<title>a net of {len(net.steps)} step{'s' * (len(net.steps) != 1)}</title>",
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">',
        *_edges(boxes, makers, layout),
        *(part for number, box in enumerate(boxes) for part in _box(box, *_corner(layout, number))),
        *(
            _text(note, 0, layout.height + _LINE * (i + 1), small=True, middle=False)
            for i, note in enumerate(notes)
        ),
        "</g></svg></div>",
    ]
    return "\n".join(parts)


def _boxes(net: Net, specs: Mapping[str, str]) -> list[Box]:
    results = set(net.outputs())

    def chip(name: str) -> Chip:
        colour = _GREEN if name in results else _AMBER if name in net.constants else None
        return Chip(name, specs.get(name, ""), colour)

    inputs = [Box("", (), (chip(name),), (), name) for name in (*net.inputs, *net.constants)]
    steps = [
        Box(
            str(step.value) if isinstance(step.value, Formula) else step.op.name,
            () if isinstance(step.value, Formula) else tuple(_settings(step)),
            tuple(chip(name) for name in step.results if name != "_"),
            step.uses,
            f"line {step.line}: {step.statement}",
        )
        for step in net.steps
    ]
    return inputs + steps


def _settings(step: Step) -> Iterable[str]:
    """The literals among a step's inputs, and the attributes that the net's text sets."""
    for name, operand in step.inputs.items():
        if not references(operand):
            yield f"{name}={operand}"
    if isinstance(step.value, Call):
        yield from (f"{name}={operand}" for name, operand in step.value.keywords if name in step.attributes)


def _corner(layout: Layout, number: int) -> tuple[float, float]:
    """The upper left corner of a box."""
    place = layout.boxes[number]
    return place.x - place.width / 2, layout.tops[place.layer]


def _box(box: Box, x: float, y: float) -> Iterable[str]:
    yield f"<g><title>{_escaped(box.whole)}</title>"
    if box.title:
        yield _rectangle(x, y, box.width, box.card_height, _BLUE, 0.16)
        middle = x + box.width / 2
        yield _text(box.title, middle, y + _LINE, bold=True)
        for i, line in enumerate(box.lines):
            yield _text(line, middle, y + _LINE * (i + 2) - 1, small=True)
    for chip, left in _chip_places(box, x):
        yield from _chip(chip, left, y + box.card_height)
    yield "</g>"


def _chip(chip: Chip, x: float, y: float) -> Iterable[str]:
    yield _rectangle(x, y + 3, chip.width, chip.height - 3, chip.colour, 0.2 if chip.colour else 0.07)
    middle = x + chip.width / 2
    if chip.label:
        yield _text(chip.label, middle, y + _LINE)
    if chip.spec:
        yield _text(chip.spec, middle, y + chip.height - 8, small=True)


def _chip_places(box: Box, x: float) -> Iterable[tuple[Chip, float]]:
    """The chips of a box with their left edges: side by side below its middle."""
    left = x + (box.width - sum(chip.width + 6 for chip in box.chips) + 6) / 2
    for chip in box.chips:
        yield chip, left
        left += chip.width + 6


def _edges(boxes: Sequence[Box], makers: Mapping[str, int], layout: Layout) -> Iterable[str]:
    """A line from each tensor to each box that takes it, in the order in which they come in."""
    starts = {
        chip.name: left + chip.width / 2
        for number, box in enumerate(boxes)
        for chip, left in _chip_places(box, _corner(layout, number)[0])
    }
    drawn = []
    for number, box in enumerate(boxes):
        takes = list(dict.fromkeys(box.takes))
        ways = {name: layout.ways[name, number] for name in takes}
        takes.sort(key=lambda name: starts[name] if len(ways[name]) == 2 else ways[name][-2].x)
        left, _ = _corner(layout, number)
        for i, name in enumerate(takes):
            end = left + box.width * (i + 1) / (len(takes) + 1)
            drawn.append(_path(ways[name], starts[name], boxes[makers[name]].height, end, layout))
    if drawn:
        yield '<g fill="none" stroke="currentColor" stroke-width="1.3" opacity="0.5">'
        yield from dict.fromkeys(line for lines in drawn for line in lines)
        yield "</g>"


def _path(way: Sequence[Place], start: float, height: float, end: float, layout: Layout) -> list[str]:
    """The pieces of an edge: a curve between layers, a straight line through each layer it passes."""
    x, y = start, layout.tops[way[0].layer] + height
    pieces = []
    for place in way[1:]:
        target = end if place is way[-1] else place.x
        top = layout.tops[place.layer]
        turn = layout.tops[place.layer - 1] + layout.heights[place.layer - 1]
        bend = (turn + top) / 2
        curve = f"C{x:.1f} {bend:.1f} {target:.1f} {bend:.1f} {target:.1f} {top:.1f}"
        pieces.append(f'<path d="M{x:.1f} {y:.1f}V{turn:.1f}{curve}"/>')
        x, y = target, top
    pieces.append(f'<path d="M{x - 3.5:.1f} {y - 6:.1f}L{x:.1f} {y:.1f}L{x + 3.5:.1f} {y - 6:.1f}"/>')
    return pieces


def _rectangle(x: float, y: float, width: float, height: float, colour: str | None, opacity: float) -> str:
    paint = colour or "currentColor"
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5" '
        f'fill="{paint}" fill-opacity="{opacity}" stroke="{paint}" stroke-opacity="0.55"/>'
    )


def _text(
    text: str, x: float, y: float, *, small: bool = False, bold: bool = False, middle: bool = True
) -> str:
    style = ' font-size="10" fill-opacity="0.75"' if small else ' font-weight="bold"' if bold else ""
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{anchor}{style}>{_escaped(_short(text) if middle else text)}</text>'


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _escaped(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _width(text: str, scale: float = 1.0) -> float:
    cells = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return cells * _SIZE * _CELL * scale
