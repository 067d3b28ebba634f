"""Run a job: from its source through the loader to its output."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from seqflow.arguments import checked
from seqflow.errors import JobError, asked_by
from seqflow.job.appending import NewFiles, begun_append, check_appends, loader_of_files, new_files
from seqflow.job.checking import refuse
from seqflow.job.counts import counts_in, peak_memory
from seqflow.job.curating import keys_jobs
from seqflow.job.earlier_run import describe, earlier_run
from seqflow.job.job import Job
from seqflow.job.job_run import JobRun, Outcome, Progress
from seqflow.job.opening import files_of, loaders_of, open_batches, open_job_output, warn_of_empty
from seqflow.loader import Loader, Stats
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.run.ledger import BadRowHandler
from seqflow.output import OutputFile, OutputWriter
from seqflow.output.lock import require_locks
from seqflow.output.output_names import check_intact
from seqflow.output.target import Target
from seqflow.providers.bad_files import BadFileList


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
    """Elements of list columns in the batches."""
    fill: float | None
    """Share of elements of all batches that are tokens; None without a list column to count."""
    batches: int
    """Number of batches."""
    bad_rows: int
    """Number of rows that could not be used."""
    seconds: float
    """Wall time of the run."""
    peak_memory: int
    """Peak memory of the process in bytes; with an engine, the largest of its workers."""
    files: tuple[Path | str, ...]
    """Files of the output: paths, or URIs of a store."""
    output_bytes: int
    """Bytes of the files of the output."""

    saving: float | None = None
    """Tokens of rows for each token of the batches, above 1 if rows share prefixes; None without tokens."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Number of bad rows by column and reason."""
    filtered_by: Mapping[str, int] = field(default_factory=dict)
    """Number of filtered rows by the option, or the rule of curation, that omitted them."""
    filtered_by_condition: Mapping[str, int] = field(default_factory=dict)
    """Number of rows that `keep` omitted by the text of its condition, the first one that was false."""
    too_short: Mapping[str, int] = field(default_factory=dict)
    """Number of rows that have fewer words than one n-gram of a rule, which cannot compare them."""
    bad_files: BadFileList = field(default_factory=BadFileList)
    """Damaged files of the source, and damaged blocks of files, that were omitted."""

    outcome: Outcome = "new"
    """Whether the run began again, resumed an interrupted one, added to a complete output, or found it complete."""
    verdict: Mapping[str, Any] | None = None
    """Facts of `loader.verdict()`: the limit of the run, and times. None if other processes made the batches."""
    changes: tuple[str, ...] = ()
    """Accepted differences from the run that was resumed."""
    appended: tuple[str, ...] = ()
    """New files whose rows were added to a complete output, by their paths in the identity of the data."""


@asked_by("job")
@checked()
def run(
    job: Job,
    progress: Progress | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    accept_changes: bool = False,
    append: bool = False,
) -> Report:
    """Run a job. Its files get their final names at the end, all or none.

    About every `output.part_bytes` of the plan, at the end of a window, parts are finished under hidden
    names, and recorded in a progress file once a second at most. If a run was killed or has failed, `resume`
    goes on after the last of them, and the output is the same as that of an uninterrupted run. If the same
    job has written the output before, nothing is done; raise JobError when another job has, unless
    `overwrite` replaces its files.

    The identity of a job is everything that decides its output: settings, nets and the files and constants
    they read, imported modules, and the content of its input. With `accept_changes` a resumed run may have
    other nets, constants, tokenizers and modules: it uses them after the finished parts, and the manifest
    says from which part on.

    With `append` the output of the same job gets parts of the files that are new in the source, which are
    known by their content; batches of these parts have rows of new files alone. Earlier parts stay. Raise
    JobError when an older file is missing or has changed, or when the output of all files is not that of some
    files after others, as if sorted. Without an output, the run writes that of all files. With `resume` as
    well, an unfinished run is completed first.

    A job without rows writes an empty file with the columns that its batches would have. Raise the errors of
    the loader and the output, and remove files that were not committed.

    Args:
        job: Job, as `Job.read` returns it.
        progress: Called with the counts and the total number of rows at the beginning and after each batch;
            the total is None if the source does not know it.
        resume: Whether to go on after the finished parts of a run that was killed or has failed.
        overwrite: Whether to replace a complete output.
        accept_changes: Whether a resumed run may have other nets, constants, tokenizers and modules.
        append: Whether to add the rows of files that are new in the source to a complete output.
    """
    require_locks()
    if resume and overwrite:
        raise JobError("resume goes on with what is there, overwrite removes it: expected one of them")
    if append and (overwrite or accept_changes):
        raise JobError("append keeps what is there: expected it without overwrite and accept_changes")
    if accept_changes and not resume:
        raise JobError("accept_changes goes on with what is there, expected resume with it")
    started = perf_counter()
    options = {"resume": resume, "overwrite": overwrite, "accept_changes": accept_changes}
    loader = open_batches(job.without_rules())
    # before the output is begun: a job that is refused leaves no files
    opened = refuse(job, loader, append=append)[1] or open_job_output(job)
    for one in loaders_of(loader).values():
        warn_of_empty(one)
    if job.rules:
        if append:
            raise JobError(
                f"append: [{job.rules[0].name}] compares all rows, also of files that were written before\n"
                "  expected a run of all files: --overwrite"
            )
        loader = _curated(job, loader, opened.target, progress, **options)
    opened.takes_over = resume or overwrite
    with opened as output:
        if append:
            check_appends(job, loader, output)
        found = _write_output(job, loader, output, progress, append, **options)
    # an earlier run was completed first
    if found.new is not None and found.new.paths and found.outcome != "appended":
        return run(job, progress, append=True)
    return _report(found, loader, opened, perf_counter() - started)


def _curated(
    job: Job,
    loader: EpochBatches,
    target: Target | None,
    progress: Progress | None,
    *,
    overwrite: bool,
    **options: bool,
) -> EpochBatches:
    """Write the keys of the rows, or what a killed run has left of them; return the loader of the rows that stay."""
    if target is not None:  # the job itself is told apart from others first
        earlier_run(target, describe(job, loader), overwrite=overwrite, **options)
    for of_keys in keys_jobs(job):
        run(of_keys, progress, resume=not overwrite, overwrite=overwrite)
    return open_batches(job)


class _Result(NamedTuple):
    """Files and counts of a run, including the earlier run that it resumed."""

    files: list[OutputFile]
    counts: dict[str, Any]
    outcome: Outcome
    changes: tuple[str, ...]
    worker_memory: int = 0
    verdict: Mapping[str, Any] | None = None
    new: NewFiles | None = None
    """Files that the earlier run did not have."""


def _write_output(
    job: Job,
    loader: EpochBatches,
    output: OutputWriter,
    progress: Progress | None,
    append: bool,
    **options: bool,
) -> _Result:
    """Run the job, resuming an earlier run; do nothing if its output is complete and intact."""
    facts: dict[str, Any] = {"job": describe(job, loader)}
    if isinstance(loader, Loader) and isinstance(loader.pipeline.identity.data.get("files"), int):
        facts["input"] = loader.pipeline.identity.files  # too many for the identity to list
    if isinstance(loader, Loader) and loader.source.dropped:
        facts |= {"curated": loader.source.dropped, "too_short": loader.source.too_short}
    target, new, record = output.target, None, None
    if append and target is not None and isinstance(loader, Loader):
        new = new_files(target, job, facts["job"], loader)
    known = facts if new is None else new.facts
    earlier = None if target is None else earlier_run(target, known["job"], **options)
    if target is not None and earlier is not None:
        record = earlier.content
        if earlier.is_complete:
            check_intact(target.shown, target.damaged_files(record))
        if earlier.is_complete and new is not None and new.paths:
            record, known = begun_append(record, new, loader), facts
        elif earlier.is_complete:
            # removes what a killed run has left
            BadRowHandler(job.bad_rows, files_of(loader)).file.leave()
            return _Result(output.found(record), counts_in(record), "complete", ())
    if new is not None and known is not facts:
        # first what the earlier run had to write, of the files that it had
        loader = loader_of_files(job, loader, new.paths, excluded=True)
    task = JobRun(job, loader, output, known, record)
    files = task.run(progress)
    changes = earlier.changes if earlier is not None and task.outcome == "resumed" else ()
    return _Result(files, task.counts, task.outcome, changes, task.peak_memory, task.verdict, new)


def _report(found: _Result, loader: EpochBatches, output: OutputWriter, seconds: float) -> Report:
    stats, curated = Stats(**found.counts), loader.source.dropped if isinstance(loader, Loader) else {}
    filtered_by = stats.filtered_by
    for rule, count in curated.items():  # rows that the source leaves out are counted as those of `where`
        filtered_by["where"] -= count
        filtered_by[rule] = count
    counted = ("rows", "dropped", "skipped", "filtered", "rows_read", "tokens", "batches", "bad_rows")
    return Report(
        **{name: found.counts[name] for name in counted},
        fill=stats.fill,
        saving=stats.saving,
        reasons=stats.reasons,
        filtered_by=dict(+filtered_by),
        filtered_by_condition=stats.filtered_by_condition,
        too_short=loader.source.too_short if isinstance(loader, Loader) else {},
        bad_files=stats.bad_files,
        seconds=seconds,
        peak_memory=max(peak_memory(), found.worker_memory),
        files=tuple(map(output.place, found.files)),
        output_bytes=sum(file.nbytes for file in found.files),
        outcome=found.outcome,
        verdict=found.verdict,
        changes=found.changes,
        appended=() if found.new is None else found.new.paths,
    )
