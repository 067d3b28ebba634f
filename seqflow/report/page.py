"""One HTML page: headings, tables and pictures, in the colours that the reader prefers, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from seqflow.drawing.bars import Bar, bars
from seqflow.drawing.svg import INLINE
from seqflow.printable import printable

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 60rem;
  color: #1f2328; background: #ffffff; overflow-wrap: anywhere; }
h1 { font-size: clamp(1.2rem, 5vw, 1.6rem); } h2 { font-size: 1.2rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; overflow-wrap: normal; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8886; white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { font-size: .85rem; overflow-x: auto; overflow-wrap: normal; }
svg { display: block; margin: .5rem 0; max-width: none !important; }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117; } }
"""


def page(title: str, sections: Iterable[str]) -> str:
    """A whole page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{_text(title)}</h1>\n"
        f"{chr(10).join(sections)}\n</main>\n</body>\n</html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """A heading with what is below it."""
    return f"<section>\n<h2>{_text(heading)}</h2>\n{chr(10).join(parts)}\n</section>"


def paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table, which scrolls where it is wider than the page; numbers stand on the right."""
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in header)
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    inside = f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>"
    return f'<div class="wide" tabindex="0"><table>{inside}</table></div>'


def code(text: str) -> str:
    """Text as it stands."""
    return f'<pre tabindex="0">{escape(printable(text))}</pre>'


def chart(title: str, rows: Sequence[Bar]) -> str:
    """Shares as bars."""
    return drawing(bars(title, rows, INLINE))


def drawing(svg: str) -> str:
    """A picture in its own size, which scrolls where it is wider than the page."""
    return f'<div class="wide" tabindex="0">{svg}</div>'


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number">{_number(value)}</td>'
    return f"<td>{_text('' if value is None else str(value))}</td>"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _text(text: str) -> str:
    return escape(printable(text))
