"""Rows before and after an op: a moved value has the colour of its original sequence."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seqflow.drawing.nested import Extent, spans_of
from seqflow.drawing.svg import ADAPTIVE, arrow, box, curve, picture, style, text
from seqflow.kernels.arrays import Array

_CELL, _HEIGHT, _GAP, _MARGIN, _CHAR, _LINE = 30, 26, 6, 8, 8, 18
_NOTE = 56
"""Largest number of characters of a note; a longer note is cut."""


class Cell(NamedTuple):
    """A value, and the number of its original sequence: None for padding, or for a value that is left out."""

    value: str
    sequence: int | None


class LevelRow(NamedTuple):
    """Values of a tensor, one for each sequence of a level, or, with cells, for each row below the last level."""

    name: str
    level: int
    values: Sequence[str]
    cells: Sequence[Cell] = ()


class Divided(NamedTuple):
    """Tensors above one another: lengths of every level, outermost first, and tensors with a value for each of
    them.
    """

    levels: Sequence[Array]
    rows: Sequence[LevelRow]


class Grid(NamedTuple):
    """A tensor of two dimensions."""

    name: str
    rows: Sequence[Sequence[Cell]]


Block = Divided | Grid


def moved(
    title: str, description: str, before: Sequence[Block], notes: Sequence[str], after: Sequence[Block]
) -> str:
    """Return a picture of tensors before and after an op, with notes on its other arguments next to the arrow between
    them.

    It follows the reader's light or dark mode.
    """
    notes = [note if len(note) <= _NOTE else f"{note[: _NOTE - 1]}…" for note in notes]
    names = [name for block in (*before, *after) for name in _names(block)]
    left = float(max([3, *map(len, names)]) * _CHAR + 2 * _MARGIN)
    parts, right, top = [style()], left, float(_MARGIN)
    for block in before:
        part, width, top = _drawn(block, left, top)
        parts += part
        right = max(right, width)
    middle, bottom = left + _CELL / 2, top + max(len(notes), 1) * _LINE + _GAP
    parts += [
        curve(middle, top + 2, middle, bottom - 6, ADAPTIVE.line),
        arrow(middle, bottom, ADAPTIVE.line),
    ]
    for number, note in enumerate(notes):
        parts.append(text(left + _CELL + 4, top + number * _LINE + 17, note, ADAPTIVE.ink, "start"))
        right = max(right, left + _CELL + 4 + len(note) * _CHAR)
    top = bottom + _GAP
    for block in after:
        part, width, top = _drawn(block, left, top)
        parts += part
        right = max(right, width)
    return picture(right + _MARGIN, top + 2, title, description, parts)


def _names(block: Block) -> Iterator[str]:
    yield from (row.name for row in block.rows if isinstance(row, LevelRow))
    if isinstance(block, Grid):
        yield block.name


def _drawn(block: Block, left: float, top: float) -> tuple[list[str], float, float]:
    """Return the elements of a block, its right edge, and the top of the next one."""
    if isinstance(block, Grid):
        return _grid(block, left, top)
    return _divided(block, left, top)


def _grid(grid: Grid, left: float, top: float) -> tuple[list[str], float, float]:
    width = _width([cell.value for row in grid.rows for cell in row])
    parts = [text(left - _MARGIN, top + 17.5, grid.name, ADAPTIVE.ink, "end")]
    for down, row in enumerate(grid.rows):
        for across, cell in enumerate(row):
            parts += _box(
                Extent(left + across * width, left + (across + 1) * width), top + down * _HEIGHT, cell
            )
    columns = max(map(len, grid.rows), default=0)
    return parts, left + columns * width, top + max(len(grid.rows), 1) * _HEIGHT + _GAP


def _divided(block: Divided, left: float, top: float) -> tuple[list[str], float, float]:
    cell = _width([value for row in block.rows for value in (*row.values, *(one.value for one in row.cells))])
    spans = spans_of(block.levels, left, cell)
    parts = []
    for row in block.rows:
        parts.append(text(left - _MARGIN, top + 17.5, row.name, ADAPTIVE.ink, "end"))
        for span, one in zip(spans[row.level], row.cells, strict=False):
            parts += _box(span, top, one)
        for span, value in zip(spans[row.level], row.values, strict=False):
            parts += _box(span, top, value)
        top += _HEIGHT + (0 if row is block.rows[-1] else _GAP / 2)
    right = max([left, *(span.stop for level in spans for span in level)])
    return parts, right, top + _GAP


def _width(values: Sequence[str]) -> float:
    return max([_CELL, *(len(value) * _CHAR + 10 for value in values)])


def _box(span: Extent, top: float, content: Cell | str) -> Iterator[str]:
    """Draw a value in its box: in the colour of its sequence, grey for padding; without a box if it is not moved."""
    if isinstance(content, str):
        fill, dashed, value = "none", False, content
    elif content.sequence is None:
        fill, dashed, value = ADAPTIVE.empty, True, content.value
    else:
        fill, dashed, value = ADAPTIVE.fills[content.sequence % len(ADAPTIVE.fills)], False, content.value
    yield box(span.start, top, span.stop - span.start, _HEIGHT, fill, ADAPTIVE.line, dashed=dashed)
    yield text((span.start + span.stop) / 2, top + _HEIGHT / 2 + 4.5, value, ADAPTIVE.ink)
