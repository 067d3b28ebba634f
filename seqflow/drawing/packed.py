"""Packed rows: the documents of each, in their order, and what is padding."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from seqflow.drawing.svg import Theme, box, picture, text
from seqflow.kernels.arrays import Array

_WIDTH, _HEIGHT, _GAP, _MARGIN = 480, 22, 6, 8
_ROWS = 12


def packed_rows(segment_ids: Array, theme: Theme) -> str:
    """A picture of packed rows by their segment ids [R, capacity]: 0 is padding; of many rows the first."""
    shown = np.asarray(segment_ids)[:_ROWS]
    capacity = max(1, shown.shape[1])
    parts, words = [], []
    for number, row in enumerate(shown):
        top = _MARGIN + number * (_HEIGHT + _GAP)
        pieces = [(start, stop, int(row[start])) for start, stop in _runs(row)]
        words.append(" + ".join(str(stop - start) for start, stop, of in pieces if of))
        for start, stop, of in pieces:
            x, width = _MARGIN + start / capacity * _WIDTH, (stop - start) / capacity * _WIDTH
            fill = theme.fills[(of - 1) % len(theme.fills)] if of else theme.empty
            parts.append(box(x, top, width, _HEIGHT, fill, theme.line, dashed=not of))
            if len(str(stop - start)) * 8 + 4 < width:
                parts.append(text(x + width / 2, top + _HEIGHT / 2 + 4.5, stop - start, theme.ink))
    left = len(segment_ids) - len(shown)
    if left:
        parts.append(
            text(_MARGIN, _MARGIN + _ROWS * (_HEIGHT + _GAP) + 12, f"… {left} more", theme.ink, "start")
        )
    height = _MARGIN + len(shown) * (_HEIGHT + _GAP) + (20 if left else 0)
    return picture(_WIDTH + 2 * _MARGIN, height + 2, "Documents in packed rows", "; ".join(words), parts)


def _runs(row: Array) -> list[tuple[int, int]]:
    """The first place of each run of equal numbers, and the place behind its last."""
    ends = np.flatnonzero(np.diff(row)) + 1
    return [pair for pair in pairwise([0, *ends.tolist(), len(row)]) if pair[0] < pair[1]]
