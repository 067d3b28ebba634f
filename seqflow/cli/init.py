"""`seqflow init PATHS`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqflow.cli.job_options import Kind, import_kind
from seqflow.cli.printing import say


def init(
    paths: Annotated[list[str], typer.Argument(metavar="PATHS", help="Files, folders or globs to read.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The job file to write.")] = Path("job.toml"),
    kind: Kind = None,
) -> None:
    """Write a job for these files, with comments: it packs their ids or texts as it stands, and waits for changes."""
    from seqflow.errors import JobError
    from seqflow.job.starting import starting_job

    import_kind(kind)
    text = starting_job(paths, output, kind)
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise JobError(f"init: {output} exists already; give another --output") from None
    say(f"{output}: now `seqflow check {output}`, then `seqflow run {output}`")
