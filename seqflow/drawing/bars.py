"""Shares of a whole as bars, one below the other."""

from collections.abc import Sequence
from typing import NamedTuple

from seqflow.drawing.svg import Theme, box, picture, text

_WIDTH, _HEIGHT, _GAP, _MARGIN, _CHAR = 360, 26, 8, 8, 8


class Bar(NamedTuple):
    """A share, from 0 to 1, its label, and its count as text."""

    name: str
    share: float
    number: str = ""


def bars(title: str, rows: Sequence[Bar], theme: Theme) -> str:
    """Return a picture of shares: the rest of each bar is empty."""
    left = max(len(row.name) for row in rows) * _CHAR + 2 * _MARGIN
    right = left + _WIDTH + 9 * _CHAR
    parts = [text(_MARGIN, _MARGIN + 14, title, theme.ink, "start")]
    for number, row in enumerate(rows):
        top = _MARGIN + (number + 1) * (_HEIGHT + _GAP)
        middle = top + _HEIGHT / 2 + 4.5
        parts += [
            text(left - _MARGIN, middle, row.name, theme.ink, "end"),
            box(left, top, _WIDTH, _HEIGHT, theme.empty, theme.line, dashed=True),
            box(left, top, _WIDTH * row.share, _HEIGHT, theme.fills[number % len(theme.fills)], theme.line),
            text(right - _MARGIN, middle, f"{row.share:.2%}", theme.ink, "end"),
        ]
    words = "; ".join(f"{row.name} {row.share:.2%}" for row in rows)
    width = max(right, len(title) * _CHAR + 2 * _MARGIN)
    return picture(width, (len(rows) + 1) * (_HEIGHT + _GAP) + 2 * _MARGIN, title, words, parts)
