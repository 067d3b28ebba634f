"""Run a job: from its source through the loader to its output."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from seqflow.arguments import checked
from seqflow.errors import JobError
from seqflow.job.checking import check_tables, check_workers
from seqflow.job.counts import counts_in, peak_memory
from seqflow.job.earlier_run import describe, earlier_run
from seqflow.job.inference import infer
from seqflow.job.job import Job
from seqflow.job.job_run import JobRun, Outcome, Progress
from seqflow.job.opening import files_of, loaders_of, open_batches, open_job_output
from seqflow.job.repair import check_complete
from seqflow.job.targets import check_targets
from seqflow.loader import Loader, Mix, Stats
from seqflow.loader.run.ledger import BadRowHandler
from seqflow.output import OutputFile, OutputWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Counts, times and files of a run."""

    rows: int
    """Rows in the batches, as `prepare` made them; a row that is cut into pieces counts once."""
    dropped: int
    """Rows of short batches that `drop_last` omitted."""
    skipped: int
    """Rows that `where` omitted, or the batch plan because of their lengths."""
    filtered: int
    """Number of the skipped rows that `where` omitted."""
    rows_read: int
    """Rows of the source, except rows that `where` omitted or that could not be read or prepared."""
    tokens: int
    fill: float | None
    """Share of elements of all batches that are tokens; None without a list column to count."""
    batches: int
    bad_rows: int
    seconds: float
    peak_memory: int
    """Peak memory of the process in bytes; with an engine, the largest of its workers."""
    files: tuple[Path, ...]
    output_bytes: int

    outcome: Outcome = "new"
    """Whether the run began again, resumed an interrupted one, or found a complete output."""
    damaged: tuple[Path, ...] = ()
    """Files of an earlier run that were missing or changed, and are made again."""
    changes: tuple[str, ...] = ()
    """Accepted differences from the run that was resumed."""


@checked()
def run(
    job: Job,
    progress: Progress | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    accept_changes: bool = False,
) -> Report:
    """Run a job. Its files get their final names at the end, all or none.

    About every `output.part_bytes` of the plan, at the end of a window, parts are finished under hidden names,
    and recorded in a progress file once a second at most. If a run was killed or has failed, `resume` goes on
    after the last of them, and the output is the same as that of an uninterrupted run. If the same job has
    written the output before, nothing is done; raise JobError when another job has, unless `overwrite` replaces
    its files.

    The identity of a job is everything that decides its output: settings, nets and the files and constants they
    read, imported modules, and the content of its input. With `accept_changes` a resumed run may have other
    nets, constants, tokenizers and modules: it uses them after the finished parts, and the manifest says from
    which part on.

    `progress(stats, total_rows)` is called at the beginning and after each batch; the total is None if the
    source does not know it. A job without rows writes an empty file with the columns that its batches would
    have. Raise the errors of the loader and the output, and remove files that were not committed.
    """
    if resume and overwrite:
        raise JobError("resume goes on with what is there, overwrite removes it: expected one of them")
    if accept_changes and not resume:
        raise JobError("accept_changes goes on with what is there, expected resume with it")
    started = perf_counter()
    loader = open_batches(job)
    # before the output is opened: a job that is refused leaves no files
    for one in loaders_of(loader).values():
        check_targets(job, one)
        check_tables(job, one, infer(one))
        check_workers(job, one)
    with open_job_output(job) as output:
        found = _write_output(
            job, loader, output, progress, resume=resume, overwrite=overwrite, accept_changes=accept_changes
        )
    return _report(found, perf_counter() - started)


class _Result(NamedTuple):
    """Files and counts of a run, including the earlier run that it resumed."""

    files: list[OutputFile]
    counts: dict[str, Any]
    outcome: Outcome
    damaged: list[OutputFile]
    changes: tuple[str, ...]
    worker_memory: int = 0


def _write_output(
    job: Job, loader: Loader | Mix, output: OutputWriter, progress: Progress | None, **options: bool
) -> _Result:
    """Run the job, resuming an earlier run; do nothing if its output is complete and intact."""
    described = describe(job, loader)
    target, record = output.target, None
    earlier = None if target is None else earlier_run(target, described, **options)
    if target is not None and earlier is not None:
        record = earlier.content
        if earlier.is_complete:
            damaged = check_complete(target, record, resume=options["resume"])
            if not damaged:
                # removes what a killed run has left
                BadRowHandler(job.bad_rows, files_of(loader)).file.leave()
                return _Result(
                    output.found(record),
                    counts_in(record),
                    "complete",
                    [],
                    (),
                )
            record = output.reopen(record)
    task = JobRun(job, loader, output, described, record)
    files = task.run(progress)
    changes = earlier.changes if earlier is not None and task.outcome == "resumed" else ()
    return _Result(files, task.counts, task.outcome, task.damaged, changes, task.peak_memory)


def _report(found: _Result, seconds: float) -> Report:
    counted = ("rows", "dropped", "skipped", "filtered", "rows_read", "tokens", "batches", "bad_rows")
    return Report(
        **{name: found.counts[name] for name in counted},
        fill=Stats(**found.counts).fill,
        seconds=seconds,
        peak_memory=max(peak_memory(), found.worker_memory),
        files=tuple(file.path for file in found.files),
        output_bytes=sum(file.nbytes for file in found.files),
        outcome=found.outcome,
        damaged=tuple(file.path for file in found.damaged),
        changes=found.changes,
    )
