"""Errors in a text, shown at their place."""

from typing import NoReturn

from seqflow.errors import SeqflowError

_WINDOW = 36
"""Characters that are shown before and after the place, in a line that is too long to be shown whole."""


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
    """Raise the error at a position of `what`: its line, or what surrounds it, and a caret under the place.

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
    blanks = "".join("\t" if character == "\t" else " " for character in before)
    error = kind(
        f"{what}, {line}column {position - line_start + 1}: {message}\n  {before}{after}\n  {blanks}^"
        + (f"\n  {advice}" if advice else "")
    )
    error.fault = position, message, advice
    raise error
