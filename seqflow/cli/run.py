"""`seqflow run JOB`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from seqflow.cli import job_options
from seqflow.cli.printing import begin_json_log, end_log, log_json, print_json, print_table, say
from seqflow.cli.progress_line import is_terminal, log_lines, progress_line
from seqflow.progress import Stage, stage

if TYPE_CHECKING:
    from seqflow.job import Job, Report
    from seqflow.loader import Stats

Progress = Callable[["Stats", "int | None"], None]


def run(
    job: job_options.JobPath,
    input: job_options.JobInput = None,
    output: Annotated[str | None, typer.Option(help="Write to this folder or file instead.")] = None,
    set_: job_options.JobSettings = None,
    json: job_options.AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress bar and no final table.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a killed run.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start again, and replace an existing output.")
    ] = False,
    append: Annotated[
        bool, typer.Option("--append", help="Add the rows of new files to a complete output.")
    ] = False,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes",
            help="With --resume: continue with changed nets, modules, or weights of a mix.",
        ),
    ] = False,
    engine: job_options.Engine = None,
    workers: job_options.Workers = None,
    address: job_options.Address = None,
    task_memory: Annotated[
        str | None, typer.Option(help='Memory that Ray reserves for each worker, such as "4 GiB".')
    ] = None,
    log: Annotated[
        Literal["json"] | None,
        typer.Option(help="Print JSON lines on stderr: at the start, each 30 s, at the end."),
    ] = None,
    verdict: Annotated[
        bool,
        typer.Option("--verdict", help="Print what the steps waited for; `seqflow report` shows it, too."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print windows, rows, batches and memory, and write nothing.")
    ] = False,
) -> None:
    """Run a job: read, prepare, batch, write.

    Paths in the job file are relative to its folder, paths given here to the current one. --resume continues a killed
    run. A job whose output is complete runs again only with --overwrite. For a job that was edited since, --overwrite
    makes its output again, and --resume --accept-changes continues with the edited job. --append keeps the parts of
    a complete output and adds those of files that are new; with --resume it first completes a killed run.

    With --workers N, N processes make the parts of the output; with --engine ray, tasks of a Ray cluster do. The
    output is the same, byte for byte, and a run may be resumed with other workers.
    """
    from seqflow.job import run as run_job

    overrides = job_options.overrides_of(set_, input, output)
    given = {"kind": engine, "workers": workers, "address": address, "memory": task_memory}
    overrides |= {f"engine.{key}": value for key, value in given.items() if value is not None}
    has_log = log is not None
    if has_log:
        begin_json_log()
    description = job_options.read_job(job, overrides)
    _return_freed_memory()
    if dry_run:
        with progress_line(show=not json):
            _print_plan(description, json=json)
        return
    flags: dict[str, Any] = {
        "resume": resume,
        "overwrite": overwrite,
        "accept_changes": accept_changes,
        "append": append,
    }
    if has_log:
        log_json("start", job=str(job), **flags)
    with _watched_run(show=has_log or not (quiet or json), log=log) as progress:
        report = run_job(description, progress, **flags)
    _say_outcome(report, resume=resume, append=append)
    if has_log:
        end_log(report.outcome, 0, **_counts(report), seconds=round(report.seconds, 1))
    if json:
        files = [str(file) for file in report.files]
        print_json({**asdict(report), "files": files, "bad_files": report.bad_files.facts()})
    elif not quiet:
        _print_report(report)
    if verdict:
        _save_verdict(description, report)
        if not json:
            _print_verdict(report)


def _save_verdict(job: Job, report: Report) -> None:
    from seqflow.job.last_verdict import save_verdict

    if report.verdict is not None and report.verdict["limit"] is not None:
        save_verdict(job, report.verdict)


def _print_verdict(report: Report) -> None:
    from seqflow.loader import Verdict

    if report.verdict is None:
        say("seqflow: no verdict: this process has made no batches", err=True)
    else:
        say(repr(Verdict(report.verdict)))


def _say_outcome(report: Report, *, resume: bool, append: bool) -> None:
    """Print on stderr what the user may not expect: nothing was done, or changes were accepted."""
    if report.outcome == "complete" and append:
        say("seqflow: no file of the source is new, nothing was done", err=True)
    elif report.outcome == "complete":
        say("seqflow: the output is complete, nothing was done; --overwrite makes it again", err=True)
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
def _watched_run(*, show: bool, log: Literal["json"] | None) -> Iterator[Progress | None]:
    """Show rows done of all rows, and tokens a second; the windows inside have their own stages.

    In a terminal that is a line that is replaced; otherwise lines of a log, with `log` as JSON.
    """
    from seqflow.loader.metrics import metrics_of

    seen: list[Stats] = []

    def write(line: str, seconds: float) -> None:
        if log is None:
            say(f"seqflow: {line}", err=True)
        for stats in seen if log is not None else ():
            facts: dict[str, Any] = {
                "total_rows": shown.total,
                "seconds": round(seconds, 1),
                "metrics": metrics_of(stats, 0),
            }
            log_json("progress", **_counts(stats), **facts)

    as_lines = show and (log is not None or not is_terminal())
    lines = log_lines(write) if as_lines else progress_line(show=show)
    with lines, stage(Stage("", name="opening the source")) as shown:
        started = perf_counter()

        def speed(tokens: int) -> str:
            return f"{tokens / (perf_counter() - started):,.0f} tokens/s" if tokens else ""

        def update(stats: Stats, total: int | None) -> None:
            if shown.note is None:
                shown.name, shown.unit, shown.before = "", "rows", stats.rows_done
                before = stats.tokens
                shown.note = lambda: speed(stats.tokens - before)
            shown.done, shown.total, seen[:] = stats.rows_done, total, [stats]

        yield update if show else None


def _counts(counted: Stats | Report) -> dict[str, Any]:
    """Log the bad rows so far by reason, if there are any, and the damaged files; return all counts."""
    if counted.bad_rows:
        log_json("bad_rows", level="warning", bad_rows=counted.bad_rows, reasons=counted.reasons)
    if counted.bad_files:
        log_json("bad_files", level="warning", bad_files=counted.bad_files.facts())
    return {name: getattr(counted, name) for name in ("rows", "rows_read", "tokens", "batches", "bad_rows")}


def _filtered_by(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the filtered rows by option, those of `keep` by condition, and the rows too short for a rule."""
    for option, count in report.filtered_by.items():
        yield f"  {option}", f"{count:,}"
        if option == "keep":
            by_condition = Counter(report.filtered_by_condition).most_common()
            yield from ((f"    {text}", f"{part:,}") for text, part in by_condition)
    yield from ((f"too short for {rule}", f"{count:,}") for rule, count in report.too_short.items() if count)


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
        *((("saving", f"{report.saving:.2f} times"),) if report.saving and report.saving > 1 else ()),
        ("batches", f"{report.batches:,}"),
        *(() if report.outcome == "complete" else times),
        *((("dropped", f"{report.dropped:,}"),) if report.dropped else ()),
        *((("filtered", f"{report.filtered:,}"),) if report.filtered else ()),
        *_filtered_by(report),
        *((("skipped", f"{skipped:,}"),) if (skipped := report.skipped - report.filtered) else ()),
        ("bad rows", f"{report.bad_rows:,}"),
        *((f"  {reason}", f"{count:,}") for reason, count in Counter(report.reasons).most_common()),
        *((("damaged files", f"{report.bad_files.num_files:,}"),) if report.bad_files else ()),
        *(("", str(one)) for one in report.bad_files[:5]),
        *((("new files", f"{len(report.appended):,}"),) if report.appended else ()),
    ]
    if report.files:
        first, last = report.files[0], report.files[-1]
        names = str(first) if first == last else f"{first} … {os.path.basename(last)}"
        lines.append(("output", f"{names} ({len(report.files)}, {format_bytes(report.output_bytes)})"))
    print_table(lines)
