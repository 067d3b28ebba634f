"""Packed rows: the documents of each row in their order, the padding, and masks."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from seqflow.drawing.svg import Theme, box, picture, text
from seqflow.kernels.arrays import Array

_WIDTH, _HEIGHT, _GAP, _MARGIN, _LINE, _CHAR = 352, 22, 6, 4, 18, 8
_STRIP, _SIDE = 6, 160
_ROWS = 12


def packed_rows(segment_ids: Array, theme: Theme, masks: Mapping[str, Array] | None = None) -> str:
    """Return a picture of packed rows by their segment ids [R, capacity]: 0 is padding; only the first of many rows.

    `masks`, bool[R, capacity] by name, are strips below each row, filled where they are true.
    """
    masks = masks or {}
    shown = np.asarray(segment_ids)[:_ROWS]
    step = _HEIGHT + len(masks) * _STRIP + _GAP
    parts: list[str] = []
    words: list[str] = []
    for number, row in enumerate(shown):
        top = _MARGIN + number * step
        words.append(" + ".join(str(stop - start) for start, stop in _runs(row) if row[start]))
        parts += _documents(row, top, theme)
        for at, mask in enumerate(masks.values()):
            parts += _strip(mask[number], top + _HEIGHT + at * _STRIP, theme)
    left = len(segment_ids) - len(shown)
    notes = [f"… {left} more"] if left else []
    notes += [f"{_NTH[at] if len(masks) > 1 else 'strip'}: {name}" for at, name in enumerate(masks)]
    bottom = _MARGIN + len(shown) * step
    for at, note in enumerate(notes):
        parts.append(text(_MARGIN, bottom + at * _LINE + 12, note, theme.ink, "start"))
    words += [f"{name} {float(np.mean(mask[: len(shown)])):.2%}" for name, mask in masks.items() if mask.size]
    width = max([_WIDTH, *(len(note) * _CHAR for note in notes)]) + 2 * _MARGIN
    height = bottom + len(notes) * _LINE + 2
    return picture(width, height, "Documents in packed rows", "; ".join(words), parts)


_NTH = ("first strip", "second strip", "third strip")
MOST_MASKS = len(_NTH)


def attention_blocks(row: Array, theme: Theme) -> str:
    """Return a picture of the attention mask of one packed row by its segment ids: places of a document see each
    other.
    """
    scale = _SIDE / max(1, len(row))
    top = _MARGIN + _LINE
    runs = [(start, stop) for start, stop in _runs(row) if row[start]]
    parts = [text(_MARGIN, _MARGIN + 12, "attention inside documents", theme.ink, "start")]
    parts.append(box(_MARGIN, top, _SIDE, _SIDE, theme.empty, theme.line, dashed=True))
    for start, stop in runs:
        size, fill = (stop - start) * scale, theme.fills[(int(row[start]) - 1) % len(theme.fills)]
        parts.append(box(_MARGIN + start * scale, top + start * scale, size, size, fill, theme.line))
    places = ", ".join(f"{start} to {stop - 1}" for start, stop in runs) or "none"
    words = f"places that see each other: {places}"
    return picture(
        26 * _CHAR + 2 * _MARGIN, top + _SIDE + _MARGIN, "Attention mask of the first row", words, parts
    )


def _documents(row: Array, top: float, theme: Theme) -> Iterator[str]:
    for start, stop in _runs(row):
        of, x, width = int(row[start]), *_across(start, stop, len(row))
        fill = theme.fills[(of - 1) % len(theme.fills)] if of else theme.empty
        yield box(x, top, width, _HEIGHT, fill, theme.line, dashed=not of)
        if len(str(stop - start)) * _CHAR + 4 < width:
            yield text(x + width / 2, top + _HEIGHT / 2 + 4.5, stop - start, theme.ink)


def _strip(mask: Array, top: float, theme: Theme) -> Iterator[str]:
    for start, stop in _runs(np.asarray(mask, bool)):
        if mask[start]:
            x, width = _across(start, stop, len(mask))
            yield box(x, top + 1, width, _STRIP - 2, theme.line, theme.line)


def _across(start: int, stop: int, capacity: int) -> tuple[float, float]:
    """Return the left edge and the width of some places of a row."""
    return _MARGIN + start / capacity * _WIDTH, (stop - start) / capacity * _WIDTH


def _runs(row: Array) -> list[tuple[int, int]]:
    """Return start and end, exclusive, of each run of equal values."""
    ends = np.flatnonzero(row[1:] != row[:-1]) + 1
    return [pair for pair in pairwise([0, *ends.tolist(), len(row)]) if pair[0] < pair[1]]
