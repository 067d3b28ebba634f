"""`seqflow report JOB|PATH`."""

from pathlib import Path
from typing import Annotated

import typer

from seqflow.cli import job_options, printing
from seqflow.cli.exit_codes import BAD_DATA
from seqflow.cli.inspect import LEAVE_BOTH, print_faults
from seqflow.cli.printing import say
from seqflow.cli.progress_line import progress_line
from seqflow.errors import spelled


def report(
    path: Annotated[str, typer.Argument(metavar="JOB|PATH", help="A job (TOML), or a file, folder or glob.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    batch: Annotated[int, typer.Option(min=1, help="Rows of the batches whose padding is shown.")] = 256,
    capacity: Annotated[int, typer.Option(min=1, help="Of the packed rows whose padding is shown.")] = 2048,
    kind: job_options.Kind = None,
    where: job_options.Where = None,
    schema: job_options.Schema = None,
    bad_rows: job_options.BadRowsPolicy = None,
    bad_files: job_options.BadFilesPolicy = None,
    storage_option: job_options.StorageOption = None,
    input: job_options.JobInput = None,
    set_: job_options.JobSettings = None,
    overwrite: job_options.Overwrite = False,
) -> None:
    """Write one HTML page about a source or a job.

    The page has tensors, lengths, padding, shapes and a sample. All rows are read. The exit code is 1 if there are
    damaged files or rows that cannot be read, unless --bad-files or --bad-rows, or the job, leaves them out.
    """
    from seqflow.errors import JobError
    from seqflow.job import Job
    from seqflow.output.durable_files import writing
    from seqflow.output.overwriting import check_unused
    from seqflow.report.report import report_of_job, report_of_path

    if output.exists() and Path(path).exists() and output.samefile(path):
        raise JobError(f"--output is {output}, which is the input")
    check_unused(output, overwrite)
    of_files = {
        "where": where, "schema": schema, "bad_rows": bad_rows, "bad_files": bad_files,
        "storage_option": storage_option,
    }  # fmt: skip
    of_job = job_options.is_job([path], kind, input, set_, **of_files)
    with progress_line():
        if of_job:
            job = Job.read(Path(path), job_options.overrides_of(set_, input))
            made = report_of_job(job, path, batch, capacity)
        else:
            job_options.import_kind(kind)
            options = job_options.open_options(schema, storage=storage_option) | {
                "kind": kind,
                "where": where,
            }
            made = report_of_path(
                path, batch=batch, capacity=capacity, bad_rows=bad_rows, bad_files=bad_files, **options
            )
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(made.page, encoding="utf-8")
    say(f"{output}: {len(made.page):,} characters; open it in a browser")
    print_faults(made.found)
    if not made.is_accepted:
        say(spelled(LEAVE_BOTH, printing.asked))
        raise typer.Exit(BAD_DATA)
