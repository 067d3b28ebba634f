"""`seqflow check JOB`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqflow.cli.printing import say
from seqflow.cli.run import overrides_of


def check(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The job: a TOML file.")],
    input: Annotated[
        list[str] | None, typer.Option(help="Look at this file, folder or glob instead; may be repeated.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override: batch.capacity=4096")
    ] = None,
) -> None:
    """Check a job without reading data: the tensors of its source, nets and batches, from the schema alone."""
    from seqflow.job import Job
    from seqflow.job.checking import check as check_job

    say(str(check_job(Job.read(job, overrides_of(set_, input, None)))))
