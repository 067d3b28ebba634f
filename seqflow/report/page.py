"""One HTML page: headings, texts and tables, in the colour scheme of the reader, without scripts."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from seqflow.drawing.tables import breakable
from seqflow.printable import printable

_STYLE = "\n" + Path(__file__).with_name("page.css").read_text("utf-8")


class Bar(NamedTuple):
    """A share, from 0 to 1, its label, and its count as text."""

    name: str
    share: float
    number: str = ""


class Section(NamedTuple):
    """A heading and the content below it."""

    heading: str
    content: str


def page(title: str, sections: Iterable[Section]) -> str:
    """Return a whole page: the first section, a list of the others with links, and these."""
    listed = [*sections]
    links = "".join(
        f'<li><a href="#section-{number}">{_text(one.heading)}</a></li>\n'
        for number, one in enumerate(listed)
        if number
    )
    contents = f'<nav aria-label="Contents"><ul>\n{links}</ul></nav>'
    first, *rest = [
        f'<section id="section-{number}">\n<h2>{_text(one.heading)}</h2>\n{one.content}\n</section>'
        for number, one in enumerate(listed)
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{_text(title)}</h1>\n"
        f"{chr(10).join([first, contents, *rest])}\n</main>\n</body>\n</html>\n"
    )


def section(heading: str, *parts: str) -> Section:
    return Section(heading, "\n".join(parts))


def paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 row`, `1,000 rows`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, stacks: bool = False) -> str:
    """Return a table: numbers are aligned right, long names and shapes may break.

    A table with many or long columns `stacks` on a narrow page: each row becomes a block of names and values.
    """
    role = _ROLE["columnheader"] if stacks else ""
    head = "".join(f'<th scope="col"{_kind(name)}{role}>{_breakable(name)}</th>' for name in header)
    names = header if stacks else ()
    body = "\n".join(_row(row, names) for row in rows)
    kind, row_role = (f' class="stacked"{_ROLE["table"]}', _ROLE["row"]) if stacks else ("", "")
    return (
        f'<div class="wide" tabindex="0"><table{kind}><thead><tr{row_role}>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Return a table of names and values."""
    body = "\n".join(
        f'<tr><th scope="row">{_breakable(name)}</th>{_cell(value)}</tr>' for name, value in rows
    )
    return f'<div class="wide" tabindex="0"><table><tbody>{body}</tbody></table></div>'


def code(text: str) -> str:
    """Return text in its original layout."""
    return f'<pre tabindex="0">{escape(printable(text))}</pre>'


def chart(title: str, rows: Sequence[Bar]) -> str:
    """Return shares as bars, next to their counts."""
    body = "\n".join(
        f'<tr><th scope="row">{_breakable(row.name)}</th><td class="number">{row.number}</td>'
        f'<td class="number">{row.share:.2%}</td>'
        f'<td class="bar"><div style="width:{row.share:.2%}"></div></td></tr>'
        for row in rows
    )
    return f'<table class="bars"><caption>{_text(title)}</caption><tbody>{body}</tbody></table>'


_SHORT = 10
"""Texts of at most this many characters stay on one line."""
_ROLE = {name: f' role="{name}"' for name in ("table", "row", "columnheader", "cell")}
"""ARIA roles: a table laid out as blocks is still announced as a table by screen readers."""


def _row(row: Sequence[object], names: Sequence[str]) -> str:
    if not names:
        return f"<tr>{''.join(map(_cell, row))}</tr>"
    cells = "".join(
        _cell(value, f' data-name="{escape(printable(name))}"{_ROLE["cell"]}')
        for name, value in zip(names, row, strict=True)
    )
    return f"<tr{_ROLE['row']}>{cells}</tr>"


def _cell(value: object, more: str = "") -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number"{more}>{_number(value)}</td>'
    text = "" if value is None else str(value)
    return f"<td{_kind(text)}{more}>{_breakable(text)}</td>"


def _kind(text: str) -> str:
    return ' class="short"' if len(text) <= _SHORT else ""


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _text(text: str) -> str:
    return escape(printable(text))


def _breakable(text: str) -> str:
    return breakable(printable(text))
