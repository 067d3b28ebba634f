"""Print text, JSON and tables: everything that the command prints goes through `say`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from seqflow.printable import printable, printable_line

before_text: Callable[[], AbstractContextManager[None]] = nullcontext
"""A context in which text may be printed: no line of progress is on the terminal."""


def say(text: str, *, err: bool = False) -> None:
    """Print text, on stderr if `err`: what is not printable, or not in the stream's encoding, is escaped."""
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    shown = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    with before_text():
        print(shown, file=stream, flush=True)


def print_json(content: Any) -> None:
    """Print one JSON object."""
    say(json.dumps(content, indent=2, default=str).replace("\x7f", "\\u007f"))  # dumps escapes all others


def print_table(rows: Iterable[Sequence[str]], header: Sequence[str] = (), right: Sequence[int] = ()) -> None:
    """Print aligned columns of text; the columns numbered in `right` are aligned right."""
    lines = [tuple(map(printable_line, line)) for line in ([header, *rows] if header else rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        say("   ".join(cells).rstrip())
