"""What the subcommands print with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer


def print_json(content: Any) -> None:
    """One JSON object on stdout."""
    typer.echo(json.dumps(content, indent=2, default=str))


def print_table(rows: Iterable[Sequence[str]], header: Sequence[str] = (), right: Sequence[int] = ()) -> None:
    """Columns of text; those numbered in `right` are set flush right."""
    lines = [tuple(header), *rows] if header else list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        typer.echo("   ".join(cells).rstrip())
