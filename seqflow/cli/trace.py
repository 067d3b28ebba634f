"""`seqflow trace JOB --batch N`, `seqflow trace FILE --row N`."""

from pathlib import Path
from typing import Annotated

import typer

from seqflow.cli.job_options import (
    AsJson,
    JobInput,
    JobSettings,
    StorageOption,
    overrides_of,
    read_job,
    storage_options,
)
from seqflow.cli.printing import print_json, say
from seqflow.cli.progress_line import progress_line


def trace(
    path: Annotated[
        str,
        typer.Argument(metavar="JOB|FILE", help="A job (TOML), or a file of its output, also in a store."),
    ],
    batch: Annotated[
        int | None, typer.Option(min=0, help="For a job: the number of the batch in its epoch.")
    ] = None,
    row: Annotated[int | None, typer.Option(min=0, help="A row of the batch, or of the file.")] = None,
    element: Annotated[int | None, typer.Option(min=0, help="An element of the row.")] = None,
    column: Annotated[str | None, typer.Option(help="Its list column; by default that of the plan.")] = None,
    epoch: Annotated[int, typer.Option(min=0, help="The epoch.")] = 0,
    show: Annotated[bool, typer.Option("--show", help="Print the batch, too.")] = False,
    job: Annotated[
        Path | None, typer.Option(help="For a file: its job, if the manifest does not name it.")
    ] = None,
    storage_option: StorageOption = None,
    json: AsJson = False,
    input: JobInput = None,
    set_: JobSettings = None,
) -> None:
    """Print where a batch, a row or an element comes from.

    It prints file, block, row and element, for a batch of a job or for a row of a file that a job has written.
    """
    from dataclasses import asdict

    from seqflow.errors import JobError
    from seqflow.job.row_traces import open_traceable, trace_row

    if path.endswith(".toml"):
        if batch is None:
            raise JobError("trace: a job needs --batch, the number of the batch")
        loader = open_traceable(read_job(path, overrides_of(set_, input)).without_quarantine())
        with progress_line(show=not json):
            traces = loader.trace(batch, row=row, element=element, column=column, epoch=epoch)
        traced: dict[str, object] = {"batch": batch, "epoch": epoch}
    else:
        if row is None or batch is not None or element is not None or show or column is not None:
            raise JobError(
                "trace: a file of an output needs --row, and takes none of --batch, --element, --column, --show"
            )
        given = None if job is None else read_job(job, overrides_of(set_, input))
        with progress_line(show=not json):
            traces = trace_row(path, row, given, storage_options(storage_option))
        traced = {"file": path, "row": row}
    if json:
        print_json({**traced, "sources": [asdict(one) for one in traces]})
        return
    for one in traces:
        say(str(one))
    if show and batch is not None:
        say(repr(loader.batch_at(batch, epoch)))
