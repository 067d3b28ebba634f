"""The elements of an SVG picture as text, in the colours of a theme."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from seqflow.errors import OpError


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a picture."""

    ink: str
    """Colour of text."""
    line: str
    """Colour of borders."""
    fills: tuple[str, ...]
    """Colours of boxes; neighbours have different ones."""
    empty: str
    """Colour of empty areas, such as padding."""


LIGHT = Theme("#1f2328", "#57606a", ("#cfe3fb", "#cdeed6", "#f8e3b5", "#e8d8f8"), "#f6f8fa")
DARK = Theme("#e6edf3", "#9aa4af", ("#1d3a5f", "#1d4a2c", "#54400f", "#432a5e"), "#161b22")
INLINE = Theme(
    "currentColor",
    "rgba(128,128,128,.8)",
    ("rgba(76,139,208,.25)", "rgba(63,166,106,.28)", "rgba(192,138,46,.28)", "rgba(150,100,200,.25)"),
    "rgba(128,128,128,.08)",
)
"""For a page of any colour: text has the colour of the page."""
THEMES = {"light": LIGHT, "dark": DARK, "inline": INLINE}


def theme_of(name: str) -> Theme:
    """Return the theme of a name; raise OpError for an unknown name."""
    if not isinstance(name, str) or name not in THEMES:
        raise OpError(f"theme is {name!r}, expected {', '.join(map(repr, THEMES))}")
    return THEMES[name]


def picture(
    width: float, height: float, title: str, description: str, parts: Iterable[str], *, shrinks: bool = True
) -> str:
    """Return a whole picture, which shrinks with its page or scrolls; `title` and `description` describe it in
    words.
    """
    most = "100%" if shrinks else "none"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_number(width)} {_number(height)}" '
        f'width="{_number(width)}" style="max-width:{most};height:auto" '
        'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="13">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>\n{chr(10).join(parts)}\n</svg>\n"
    )


def box(
    x: float, y: float, width: float, height: float, fill: str, line: str, *, dashed: bool = False
) -> str:
    """Return a rectangle, with a dashed border for empty areas."""
    dashes = ' stroke-dasharray="3 2"' if dashed else ""
    return (
        f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}" rx="3" '
        f'fill="{fill}" stroke="{line}"{dashes}/>'
    )


def text(x: float, y: float, content: object, ink: str, anchor: str = "middle", *, bold: bool = False) -> str:
    """Return a line of text whose middle, `start` or `end` is at x."""
    where = f'x="{_number(x)}" y="{_number(y)}"' + (' font-weight="600"' if bold else "")
    return f'<text {where} fill="{ink}" text-anchor="{anchor}">{escape(str(content))}</text>'


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
