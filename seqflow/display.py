"""Shows Sequences as text, or as HTML in notebooks: the counts of each level and the first rows."""

from html import escape
from typing import Any, Protocol

import numpy as np

from seqflow.drawing.nested import nested
from seqflow.drawing.svg import theme_of
from seqflow.kernels.arrays import Array
from seqflow.lod import LoD
from seqflow.lod_propagation.tensors import is_tensor
from seqflow.printable import printable_line

_SHOWN = (6, 5, 4)
"""Number of elements shown of the outermost level, of the next, and of those inside."""
_ROWS = 8
_DRAWN = 24
"""Number of rows of values in a picture."""


class SequenceLike(Protocol):
    """Protocol: the part of a Sequence that display uses; an element is a Sequence, or an array of rows."""

    @property
    def values(self) -> Array: ...
    @property
    def lod(self) -> LoD: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


def as_text(sequence: SequenceLike) -> str:
    """Return a title line, then a line for each of the first outermost elements."""
    shown = min(len(sequence), _SHOWN[0])
    lines = [f"  {_text(sequence[i], 1)}" for i in range(shown)]
    if shown < len(sequence):
        lines.append(f"  … {len(sequence) - shown} more")
    return "\n".join([_title(sequence), *lines])


def as_svg(sequence: SequenceLike, theme: str) -> str:
    """Return a picture of the values below the lengths of every level; long data are cut."""
    values = [_row(row) for row in sequence.values[:_DRAWN]]
    return nested(sequence.lod.levels, values, theme_of(theme))


def _title(sequence: SequenceLike) -> str:
    """Return the counts of each level: `Sequence of 2 > 5 sequences, 7 rows, float32[4]`."""
    counts = " > ".join(str(len(level)) for level in sequence.lod)
    rows = sequence.lod.num_rows
    shape = list(sequence.values.shape[1:])
    alone = sequence.lod.num_levels == 1 and len(sequence) == 1
    return (
        f"Sequence of {counts} sequence{'' if alone else 's'}, {rows} row{'s' * (rows != 1)}, "
        f"{sequence.values.dtype}{shape if shape else ''}"
    )


def _text(element: Any, depth: int) -> str:
    if is_tensor(element):
        element = element.detach().cpu().numpy()
    if isinstance(element, np.ndarray):
        rows = [_row(row) for row in element[:_ROWS]]
        limit = _ROWS
    else:
        limit = _SHOWN[min(depth, len(_SHOWN) - 1)]
        rows = [_text(element[i], depth + 1) for i in range(min(len(element), limit))]
    return f"[{', '.join(rows + ['…'] * (len(element) > limit))}]"


def _row(row: Any) -> str:
    """Return a row as short text."""
    if np.ndim(row):
        flat = np.ravel(row)
        inside = ", ".join(map(_row, flat[:3]))
        return f"[{inside}{', …' if flat.size > 3 else ''}]"
    text = f"{row:.4g}" if isinstance(row, (float, np.floating)) else printable_line(str(row))
    return text if len(text) <= 24 else f"{text[:23]}…"


def as_html(sequence: SequenceLike) -> str:
    """Return the title and the picture, in the page's text colour."""
    return f'<div style="overflow-x:auto"><div>{escape(_title(sequence))}</div>{as_svg(sequence, "inline")}</div>'
