"""`seqflow run JOB`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from seqflow.cli.job_options import (
    Address,
    AsJson,
    Engine,
    JobInput,
    JobPath,
    JobSettings,
    Workers,
    overrides_of,
)
from seqflow.cli.printing import print_json, print_table, say
from seqflow.cli.progress_line import progress_line
from seqflow.progress import Stage, stage

if TYPE_CHECKING:
    from seqflow.job import Job, Report
    from seqflow.loader import Stats

Progress = Callable[["Stats", "int | None"], None]


EXAMPLES = (
    ("seqflow run job.toml --dry-run", "Windows, batches, fill and memory; nothing is written."),
    ("seqflow run job.toml", "Write the output; a complete output stays."),
    ("seqflow run job.toml --resume", "Continue a killed run."),
    (
        'seqflow run job.toml --input "docs/a*.parquet" --output part/ --set batch.capacity=64',
        "Other files, another output, another setting.",
    ),
    ("seqflow run job.toml --overwrite --workers 2", "Make the output again, in two processes."),
)


def run(
    job: JobPath,
    input: JobInput = None,
    output: Annotated[str | None, typer.Option(help="Write to this folder or file instead.")] = None,
    set_: JobSettings = None,
    json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress bar and no final table.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a killed run.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start again, and replace an existing output.")
    ] = False,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes", help="With --resume: continue with changed nets, constants or modules."
        ),
    ] = False,
    engine: Engine = None,
    workers: Workers = None,
    address: Address = None,
    task_memory: Annotated[
        str | None, typer.Option(help='Memory that Ray reserves for each worker, such as "4 GiB".')
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print windows, rows, batches and memory, and write nothing.")
    ] = False,
) -> None:
    """Run a job: read, prepare, batch, write.

    Paths in the job file are relative to its folder, paths given here to the current one. --resume continues a killed
    run. A job whose output is complete runs again only with --overwrite. For a job that was edited since, --overwrite
    makes its output again, and --resume --accept-changes continues with the edited job.

    With --workers N, N processes make the parts of the output; with --engine ray, tasks of a Ray cluster do. The
    output is the same, byte for byte, and a run may be resumed with other workers.
    """
    from seqflow.job import Job
    from seqflow.job import run as run_job

    overrides = overrides_of(set_, input, output)
    given = {"kind": engine, "workers": workers, "address": address, "memory": task_memory}
    overrides |= {f"engine.{key}": value for key, value in given.items() if value is not None}
    description = Job.read(job, overrides)
    _return_freed_memory()
    if dry_run:
        with progress_line(show=not json):
            _print_plan(description, json=json)
        return
    with _watched_run(show=not quiet and not json) as progress:
        report = run_job(
            description, progress, resume=resume, overwrite=overwrite, accept_changes=accept_changes
        )
    _say_outcome(report, resume=resume)
    if json:
        files, damaged = ([str(file) for file in some] for some in (report.files, report.damaged))
        print_json({**asdict(report), "files": files, "damaged": damaged})
    elif not quiet:
        _print_report(report)


def _say_outcome(report: Report, *, resume: bool) -> None:
    """Print on stderr what the user may not expect: nothing was done, files were made again, changes were
    accepted.
    """
    if report.outcome == "complete":
        say("seqflow: the output is complete, nothing was done; --overwrite makes it again", err=True)
    elif report.damaged:
        names = ", ".join(file.name for file in report.damaged[:5])
        more = f" and {len(report.damaged) - 5} more" if len(report.damaged) > 5 else ""
        made = "they were" if report.outcome == "resumed" else "the whole output was"
        say(f"seqflow: {names}{more}: missing or changed; {made} made again", err=True)
    elif resume and report.outcome == "new":
        say("seqflow: there was no run to continue; this one started again", err=True)
    for change in report.changes:
        say(f"seqflow: the output continues with a change: {change}", err=True)


def _print_plan(job: Job, *, json: bool) -> None:
    from seqflow.job.planning import plan

    found = plan(job)
    if json:
        print_json(asdict(found))
    else:
        print_table(found.lines())


def _return_freed_memory() -> None:
    """Make glibc return arrays of 4 MiB and more to the system when they are freed.

    By default, glibc keeps larger and larger arrays in a heap for each thread, and the gaps between them add up over
    a long run.
    """
    import ctypes

    mmap_threshold = -3  # M_MMAP_THRESHOLD of malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(mmap_threshold, 4 << 20)


@contextmanager
def _watched_run(*, show: bool) -> Iterator[Progress | None]:
    """Show rows done of all rows, and tokens a second; the windows inside have their own stages."""
    with progress_line(show=show), stage(Stage("", name="opening the source")) as shown:
        started = perf_counter()

        def speed(tokens: int) -> str:
            return f"{tokens / (perf_counter() - started):,.0f} tokens/s" if tokens else ""

        def update(stats: Stats, total: int | None) -> None:
            if shown.note is None:
                shown.name, shown.unit, shown.before = "", "rows", stats.rows_done
                before = stats.tokens
                shown.note = lambda: speed(stats.tokens - before)
            shown.done, shown.total = stats.rows_done, total

        yield update if show else None


def _print_report(report: Report) -> None:
    from seqflow.byte_sizes import format_bytes

    speed = report.tokens / report.seconds if report.seconds else 0.0
    times = [
        ("seconds", f"{report.seconds:.2f}"),
        ("tokens/s", "-" if report.fill is None or report.outcome != "new" else f"{speed:,.0f}"),
        ("peak memory", format_bytes(report.peak_memory)),
    ]
    lines = [
        *((("rows read", f"{report.rows_read:,}"),) if report.rows_read != report.rows else ()),
        ("rows", f"{report.rows:,}"),
        ("tokens", "-" if report.fill is None else f"{report.tokens:,}"),
        ("fill", "-" if report.fill is None else f"{report.fill:.2%}"),
        ("batches", f"{report.batches:,}"),
        *(() if report.outcome == "complete" else times),
        *((("dropped", f"{report.dropped:,}"),) if report.dropped else ()),
        *((("filtered", f"{report.filtered:,}"),) if report.filtered else ()),
        *((("skipped", f"{skipped:,}"),) if (skipped := report.skipped - report.filtered) else ()),
        ("bad rows", f"{report.bad_rows:,}"),
    ]
    if report.files:
        first, last = report.files[0], report.files[-1]
        names = str(first) if first == last else f"{first} … {last.name}"
        lines.append(("output", f"{names} ({len(report.files)}, {format_bytes(report.output_bytes)})"))
    print_table(lines)
