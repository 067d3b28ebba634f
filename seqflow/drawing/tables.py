"""Tables of a few facts: lines of text in columns, and HTML in the colours of the page."""

import re
from collections.abc import Sequence
from html import escape

from seqflow.printable import printable_line

Row = Sequence[object]
_CELL = "padding:1px 10px 1px 0;vertical-align:top;"
_TEXT, _NUMBER = f"{_CELL}text-align:left;", f"{_CELL}text-align:right;font-variant-numeric:tabular-nums;"
_BREAKS = re.compile(r"(?<=[\w)}\]][_./:=({\[,])(?=[^\W\d_])|(?<=\.\.)(?=\d)")
"""Places where a long name, path or shape may be broken: after a mark and before a word, and inside a range."""


def breakable(text: str) -> str:
    """Return the text as HTML in which long names, paths and shapes may be broken between their parts."""
    return "<wbr/>".join(escape(part) for part in _BREAKS.split(text))


def text_table(title: str, rows: Sequence[Row]) -> str:
    """Return a title, then a line for each row, in columns; integers are aligned right."""
    shown = [[_shown(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = [
        "  ".join(
            f"{text:>{width}}" if isinstance(cell, int) else f"{text:{width}}"
            for cell, text, width in zip(row, texts, widths, strict=True)
        )
        for row, texts in zip(rows, shown, strict=True)
    ]
    return "\n".join([printable_line(title), *(f"  {line}".rstrip() for line in lines)])


def html_table(title: str, header: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the table as HTML, without scripts; without a header, the first cell of a row is its heading."""
    head = "".join(f'<th scope="col" style="{_TEXT}">{escape(name)}</th>' for name in header)
    body = "".join(
        f"<tr>{''.join(_cell(row, at, not header) for at in range(len(row)))}</tr>" for row in rows
    )
    name = printable_line(title)
    return (
        f'<div style="overflow-x:auto"><div>{breakable(name)}</div>'
        f'<table aria-label="{escape(name)}" style="border-collapse:collapse">'
        f"{f'<tr>{head}</tr>' if header else ''}{body}</table></div>"
    )


def _cell(row: Row, at: int, has_heading: bool) -> str:
    text = breakable(_shown(row[at]))
    if has_heading and not at:
        return f'<th scope="row" style="{_TEXT}">{text}</th>'
    return f'<td style="{_NUMBER if isinstance(row[at], int) else _TEXT}">{text}</td>'


def _shown(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else printable_line(str(cell))
