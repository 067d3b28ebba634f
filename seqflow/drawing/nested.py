"""Values and the lengths of every level, one above the other: each length spans the entries that it counts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from seqflow.drawing.svg import INLINE, Theme, box, picture, text
from seqflow.kernels.arrays import Array

_CELL, _HEIGHT, _GAP, _MARGIN, _CHAR = 34, 26, 6, 8, 8
_MOST = 24
"""Largest number of values, or empty sequences, that are drawn."""


class Extent(NamedTuple):
    """Start and end of a box."""

    start: float
    stop: float


def nested(
    levels: Sequence[Array], values: Sequence[str] | None, theme: Theme, names: Sequence[str] | None = None
) -> str:
    """Return a picture of the lengths of every level, outermost first, above the values; long data are cut.

    `values` are texts for the first rows; None draws the numbers of the rows. `names` are the labels of the lengths
    and the values.
    """
    shown = _beginning(levels)
    rows = int(shown[-1].sum())
    texts = [str(row) for row in range(rows)] if values is None else [*values[:rows]]
    called = [*(names or [f"lengths[{k}]" for k in range(len(levels))])]
    if len(called) == len(levels):
        called.append("rows" if values is None else "values")
    cell = max([_CELL, *(len(one) * _CHAR + 10 for one in texts)])
    left = max(map(len, called)) * _CHAR + 2 * _MARGIN
    spans = spans_of(shown, left, cell)
    is_cut = len(shown[0]) < len(levels[0])
    right = max([left, *(span.stop for of in spans for span in of)]) + (3 * _MARGIN if is_cut else _MARGIN)
    bottom = (len(levels) + 1) * (_HEIGHT + _GAP) + _MARGIN
    parts = [*_drawn(shown, texts, spans, called, left, theme)]
    if is_cut:
        parts.append(text(right - _MARGIN, bottom - _GAP - _MARGIN - 3, "…", theme.ink))
    words = "; ".join(f"{name} {level.tolist()}" for name, level in zip(called, shown, strict=False))
    more = f", of {len(levels[0])} sequences the first {len(shown[0])}" if is_cut else ""
    description = f"{words}; {called[-1]} {', '.join(texts)}{more}"
    # a wide picture scrolls in its page: shrunk, it would be too small to read
    return picture(right, bottom, "Values and lengths", description, parts, shrinks=theme is not INLINE)


def _beginning(levels: Sequence[Array]) -> list[Array]:
    """Return the levels of the first outermost sequences that fit; a single sequence that is too long is cut."""
    for count in range(min(len(levels[0]), _MOST), 1, -1):
        found = _first(levels, count)
        if found[-1].sum() + sum(int((level == 0).sum()) for level in found) <= _MOST:
            return found
    return [level[:_MOST] for level in _shortened(_first(levels, 1))]


def _first(levels: Sequence[Array], count: int) -> list[Array]:
    found = []
    for level in levels:
        found.append(np.asarray(level[:count], np.int64))
        count = int(found[-1].sum())
    return found


def _shortened(levels: list[Array]) -> list[Array]:
    """Return the levels, cut to fit: the beginning of one long sequence."""
    left = _MOST
    for number in range(len(levels) - 1, -1, -1):
        ends = np.minimum(np.cumsum(levels[number]), left)
        levels[number] = np.diff(ends, prepend=0)
        if number:
            kept = min(len(levels[number]), _MOST)
            levels[number], left = levels[number][:kept], kept
    return levels


def spans_of(levels: Sequence[Array], left: float, cell: float) -> list[list[Extent]]:
    """Return, for each level and then the values, start and end of each box; empty sequences have a place of their
    own.
    """
    found: list[list[Extent]] = [[] for _ in range(len(levels) + 1)]
    taken = [0] * len(levels)
    edge = left

    def place(depth: int) -> None:
        nonlocal edge
        start = edge
        if depth == len(levels):
            edge += cell
        else:
            length = int(levels[depth][taken[depth]])
            taken[depth] += 1
            for _ in range(length):
                place(depth + 1)
            edge += 0 if length else cell
            edge += _GAP if depth == len(levels) - 1 or not length else 0
        found[depth].append(Extent(start, edge - (_GAP if depth < len(levels) else 0)))

    for _ in range(len(levels[0])):
        place(0)
    return found


def _drawn(
    levels: Sequence[Array],
    texts: Sequence[str],
    spans: Sequence[Sequence[Extent]],
    called: Sequence[str],
    left: float,
    theme: Theme,
) -> Iterator[str]:
    for depth, (name, of) in enumerate(zip(called, spans, strict=True)):
        top = _MARGIN + depth * (_HEIGHT + _GAP)
        middle = top + _HEIGHT / 2 + 4.5
        yield text(left - _MARGIN, middle, name, theme.ink, "end")
        contents = levels[depth].tolist() if depth < len(levels) else texts
        inner = _owner(levels[-1]) if depth == len(levels) else range(len(of))
        for number, (span, content) in enumerate(zip(of, contents, strict=True)):
            fill = theme.fills[int(inner[number]) % len(theme.fills)]
            empty = depth < len(levels) and content == 0
            yield box(
                span.start, top, span.stop - span.start, _HEIGHT, theme.empty if empty else fill, theme.line,
                dashed=empty,
            )  # fmt: skip
            yield text((span.start + span.stop) / 2, middle, content, theme.ink)


def _owner(lengths: Array) -> Array:
    return np.repeat(np.arange(len(lengths)), lengths)
