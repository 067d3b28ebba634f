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


_is_json = _is_ended = False
"""Whether each line on stderr is a JSON object, and whether the last one is written."""


asked: Asker = "command"
"""Reader of advice in errors: the author of a job if the command is given one."""


def begin_json_log() -> None:
    """Give all text on stderr the form of a log: a JSON object in each line; `end_log` writes the last one."""
    global _is_json, _is_ended
    _is_json, _is_ended = True, False


def log_json(event: str, *, level: str = "info", **facts: Any) -> None:
    """Print an event as a JSON object in a line of stderr."""
    say(_as_line(event, level, **facts), err=True)


def end_log(outcome: str, exit_code: int, **facts: Any) -> None:
    """Print the last line of a log of JSON, once: how the command ended."""
    if line := end_line(outcome, exit_code, **facts):
        say(line, err=True)


def end_line(outcome: str, exit_code: int, **facts: Any) -> str:
    """Return the last line of a log of JSON; "" if there is no such log, or if it has ended."""
    global _is_ended
    if not _is_json or _is_ended:
        return ""
    _is_ended = True
    return _as_line("end", "error" if exit_code else "info", **facts, outcome=outcome, exit_code=exit_code)


def error_form(text: str, level: str) -> str:
    """Return text as it is written on stderr: as it is, or as a message of a log of JSON."""
    return text if not _is_json or text.startswith("{") else _as_line("message", level, text=text)


def _as_line(event: str, level: str, **facts: Any) -> str:
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    return json.dumps({"event": event, "level": level, "time": now, **facts}, default=str)


def say(text: str, *, err: bool = False, level: str = "warning") -> None:
    """Print text, on stderr if `err`; characters that cannot be printed or encoded are escaped."""
    stream, text = (sys.stderr, error_form(text, level)) if err else (sys.stdout, text)
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
