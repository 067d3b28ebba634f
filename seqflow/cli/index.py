"""`seqflow index SOURCE…`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqflow.cli import job_options
from seqflow.cli.printing import print_json, print_table
from seqflow.cli.progress_line import progress_line

if TYPE_CHECKING:
    from seqflow.loader import Loader

_ANY_PLAN = 1 << 62
"""Tokens of a batch that holds everything: lengths do not depend on the plan, only on its column."""


def index(
    source: Annotated[list[str], typer.Argument(help="Files, folders or globs; or one job: a TOML file.")],
    output: Annotated[
        Path | None,
        typer.Option(help="The index; by default a hidden file next to the data, or the job's order.index."),
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(help="The list column that batches are planned on; by default the only one of numbers."),
    ] = None,
    kind: job_options.Kind = None,
    where: job_options.Where = None,
    schema: job_options.Schema = None,
    bad_rows: job_options.BadRowsPolicy = None,
    bad_files: job_options.BadFilesPolicy = None,
    storage_option: job_options.StorageOption = None,
    threads: Annotated[int | None, typer.Option(min=0, help="Threads that read.")] = None,
    input: job_options.JobInput = None,
    set_: job_options.JobSettings = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Read all files again, also those that have not changed.")
    ] = False,
    json: job_options.AsJson = False,
) -> None:
    """Write a lengths index: batches are counted before reading.

    If there is an index with the same settings, only new and changed files are read.
    """
    from seqflow.loader import Loader, TokenBudget

    of_files = {
        "where": where, "schema": schema, "bad_rows": bad_rows, "bad_files": bad_files,
        "storage_option": storage_option,
    }  # fmt: skip
    if job_options.is_job(source, kind, input, set_, **of_files):
        loader = _of_job(source[0], output, lengths, job_options.overrides_of(set_, input))
    else:
        job_options.import_kind(kind)
        loader = Loader(
            source[0] if len(source) == 1 else source, kind=kind, where=where,
            **job_options.open_options(schema, bad_files, storage_option), bad_rows=bad_rows or "raise",
            batch=TokenBudget(_ANY_PLAN, lengths=lengths), index=output or True, threads=threads,
            rank=0, world_size=1,
        )  # fmt: skip
    with progress_line(show=not json):
        found = loader.pipeline.lengths_index(anew=anew, update=not anew)
    report = {
        "blocks": len({block for block, _ in found.lengths}),
        "blocks_read": loader.pipeline.num_indexed_blocks,
        "rows": sum(len(one) for one in found.lengths.values()),
        "tokens": found.tokens,
        "file": str(loader.index),
    }
    if json:
        print_json(report)
    else:
        print_table(
            (name, value if isinstance(value, str) else f"{value:,}") for name, value in report.items()
        )


def _of_job(path: str, output: Path | None, lengths: str | None, overrides: dict[str, Any]) -> Loader:
    from seqflow.errors import JobError
    from seqflow.job import Job
    from seqflow.job.opening import open_loader

    if output is not None:
        overrides["order.index"] = str(output.absolute())
    if lengths is not None:
        raise JobError("--lengths: the job has this setting; write --set batch.lengths=…")
    job = Job.read(path, overrides)
    loader = open_loader(job)
    if loader.index is None:
        raise JobError("order.index: the job has no index, expected a file\n  set it, or give --output")
    return loader
