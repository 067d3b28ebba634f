"""`seqflow report JOB|PATH`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqflow.cli.job_options import JobInput, JobSettings, Kind, Overwrite, Where, import_kind, overrides_of
from seqflow.cli.printing import say
from seqflow.cli.progress_line import progress_line

EXAMPLES = (
    ("seqflow report docs/ -o docs.html", "A page about files."),
    (
        "seqflow report job.toml -o job.html",
        "A page about a job: its files, shapes, sizes, and a sample of its batches.",
    ),
)


def report(
    path: Annotated[str, typer.Argument(metavar="JOB|PATH", help="A job (TOML), or a file, folder or glob.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    batch: Annotated[int, typer.Option(min=1, help="Rows of the batches whose padding is shown.")] = 256,
    capacity: Annotated[int, typer.Option(min=1, help="Of the packed rows whose padding is shown.")] = 2048,
    kind: Kind = None,
    where: Where = None,
    input: JobInput = None,
    set_: JobSettings = None,
    overwrite: Overwrite = False,
) -> None:
    """Write one HTML page about a source or a job.

    The page has tensors, lengths, padding, shapes and a sample. All rows are read.
    """
    from seqflow.errors import JobError
    from seqflow.job import Job
    from seqflow.output.durable_files import writing
    from seqflow.output.overwriting import check_unused
    from seqflow.report.report import report_of_job, report_of_path

    if output.exists() and Path(path).exists() and output.samefile(path):
        raise JobError(f"--output is {output}, which is the input")
    check_unused(output, overwrite)
    with progress_line():
        if path.endswith(".toml") and Path(path).is_file():
            text = report_of_job(Job.read(Path(path), overrides_of(set_, input)), path, batch, capacity)
        else:
            import_kind(kind)
            text = report_of_path(path, kind=kind, where=where, batch=batch, capacity=capacity)
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    say(f"{output}: {len(text):,} characters; open it in a browser")
