"""Errors in a text, shown with the line and a caret under the place."""

from typing import NoReturn

from seqflow.errors import SeqflowError

_WINDOW = 36
"""Most characters shown before and after the place; a line of more than two windows is cut."""


def fail(
    text: str,
    position: int,
    message: str,
    advice: str = "",
    *,
    what: str,
    kind: type[SeqflowError],
    in_lines: bool = False,
) -> NoReturn:
    """Raise the error at a position of `what`, with its line (a long one is cut) and a caret under the place.

    A text of one line is numbered only with `in_lines`.
    """
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line_end = len(text) if line_end < 0 else line_end
    start, end = line_start, line_end
    if line_end - line_start > 2 * _WINDOW:
        start, end = max(start, position - _WINDOW), min(end, position + _WINDOW)
    before = ("…" if start > line_start else "") + text[start:position]
    after = text[position:end] + ("…" if end < line_end else "")
    line = f"line {text.count(chr(10), 0, position) + 1}, " if in_lines or "\n" in text else ""
    # a tab stays a tab, so that the caret is under its place at any width of tabs
    blanks = "".join("\t" if character == "\t" else " " for character in before)
    error = kind(
        f"{what}, {line}column {position - line_start + 1}: {message}\n  {before}{after}\n  {blanks}^"
        + (f"\n  {advice}" if advice else "")
    )
    error.fault = position, message, advice  # a parser of a longer text raises it again, at the place there
    raise error
