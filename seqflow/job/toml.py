"""Line numbers of TOML settings, which `tomllib` does not report, and values of `--set`."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import Any

_COMMENT_OR_STRING = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<long>\"{3}(?:[^\\]|\\.)*?\"{3,5}|'{3}.*?'{3,5})
    |(?P<short>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')""",
    re.VERBOSE | re.DOTALL,
)
_KEY = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_HEADER = re.compile(rf"\s*\[(?P<repeated>\[)?\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")


def line_of(text: str, name: str) -> int | None:
    """Return the line, from 1, of the setting with this dotted name, or of its table; None if neither is in the text.

    >>> line_of('[batch]\\nkind = "rows"', "batch.kind")
    2
    """
    places = list(_places(text))
    while name:
        found = next((line for line, path in places if path == name or path.startswith(f"{name}.")), None)
        if found is not None:
            return found
        name = name.rpartition(".")[0]
    return None


def _places(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of each table header and each assignment; names of repeated tables
    have a number.
    """
    tables, repeated = [""], Counter[str]()
    for number, line in enumerate(_blanked(text).split("\n"), 1):
        if header := _HEADER.match(line):
            table = _dotted(header[2])
            tables = [table]
            if header["repeated"]:
                repeated[table] += 1
                tables.append(f"{table}.{repeated[table] - 1}")
            yield from ((number, name) for name in tables)
        elif assignment := _ASSIGNMENT.match(line):
            name = _dotted(assignment[1])
            yield from ((number, f"{table}.{name}" if table else name) for table in tables)


def _blanked(text: str) -> str:
    """Return the text with comments and long strings blanked, and lines in place."""
    return _COMMENT_OR_STRING.sub(
        lambda match: match[0] if match["short"] is not None else "\n" * match[0].count("\n"), text
    )


def _dotted(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def parse_value(text: str) -> Any:
    """Return the value that a text has in a TOML file; the text itself if it is not a value.

    >>> parse_value("4096"), parse_value("best_fit")
    (4096, 'best_fit')
    """
    try:
        tables = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return tables["value"] if len(tables) == 1 else text
