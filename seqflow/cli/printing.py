"""Print JSON and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer


def print_json(content: Any) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(content, indent=2, default=str))


def print_table(rows: Iterable[Sequence[str]], header: Sequence[str] = (), right: Sequence[int] = ()) -> None:
    """Print aligned columns of text; the columns numbered in `right` are aligned right."""
    lines = [tuple(header), *rows] if header else list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        typer.echo("   ".join(cells).rstrip())
