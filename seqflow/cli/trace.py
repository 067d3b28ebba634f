"""`seqflow trace JOB --batch N`."""

from __future__ import annotations

from typing import Annotated

import typer

from seqflow.cli.job_options import AsJson, JobInput, JobPath, JobSettings, overrides_of
from seqflow.cli.printing import print_json, say
from seqflow.cli.progress_line import progress_line

EXAMPLES = (
    ("seqflow trace job.toml --batch 0", "All places that the batch comes from."),
    ("seqflow trace job.toml --batch 0 --row 0 --element 3 --show", "Those of one element; and the batch."),
)


def trace(
    job: JobPath,
    batch: Annotated[int, typer.Option(min=0, help="The number of the batch in its epoch.")],
    row: Annotated[int | None, typer.Option(min=0, help="A row of the batch.")] = None,
    element: Annotated[int | None, typer.Option(min=0, help="An element of the row.")] = None,
    column: Annotated[str | None, typer.Option(help="Its list column; that of the plan by default.")] = None,
    epoch: Annotated[int, typer.Option(min=0, help="The epoch.")] = 0,
    show: Annotated[bool, typer.Option("--show", help="Print the batch, too.")] = False,
    json: AsJson = False,
    input: JobInput = None,
    set_: JobSettings = None,
) -> None:
    """Print where a batch, a row or an element comes from.

    It names file, block, row and element.
    """
    from dataclasses import asdict

    from seqflow.job import Job
    from seqflow.job.opening import open_batches

    loader = open_batches(Job.read(job, overrides_of(set_, input)))
    with progress_line(show=not json):
        traces = loader.trace(batch, row=row, element=element, column=column, epoch=epoch)
    if json:
        print_json({"batch": batch, "epoch": epoch, "sources": [asdict(one) for one in traces]})
        return
    for one in traces:
        say(str(one))
    if show:
        say(repr(loader.batch_at(batch, epoch)))
