"""Print text, JSON and tables: the command prints everything with `say`."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from seqflow.errors import Asker
from seqflow.printable import printable, printable_line

before_text: Callable[[], AbstractContextManager[None]] = nullcontext
"""Context in which text is printed: it removes the progress line from the terminal."""


error_form: Callable[[str], str] = str
"""Form of the lines on stderr: as they are, or, in a log of JSON, each an object."""


asked: Asker = "command"
"""Reader of advice in errors: the author of a job if the command is given one."""


def log_json(event: str, **facts: Any) -> None:
    """Print an event as a JSON object in a line of stderr; from now on, all text there has this form."""
    global error_form
    error_form = lambda text: text if text.startswith("{") else _as_line("message", text=text)  # noqa: E731
    say(_as_line(event, **facts), err=True)


def _as_line(event: str, **facts: Any) -> str:
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    return json.dumps({"event": event, "time": now, **facts}, default=str)


def say(text: str, *, err: bool = False) -> None:
    """Print text, on stderr if `err`; characters that cannot be printed or encoded are escaped."""
    stream, text = (sys.stderr, error_form(text)) if err else (sys.stdout, text)
    encoding = stream.encoding or "utf-8"
    shown = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    with before_text():
        print(shown, file=stream, flush=True)


def print_json(content: Any) -> None:
    """Print one JSON object."""
    # `dumps` escapes all other control characters
    say(json.dumps(content, indent=2, default=str).replace("\x7f", "\\u007f"))


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
