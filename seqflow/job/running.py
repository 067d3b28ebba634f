"""Run a job: from its source through the loader to its output."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple

from seqflow.errors import JobError
from seqflow.job.checking import check_tables
from seqflow.job.earlier_run import COUNTED, describe, earlier_run
from seqflow.job.inference import infer
from seqflow.job.job import Job
from seqflow.job.opening import open_job_output, open_loader
from seqflow.job.repair import check_complete, is_repairable, repair_output
from seqflow.job.targets import check_targets
from seqflow.loader import Loader, Stats
from seqflow.loader.parts import make_parts
from seqflow.loader.run.bad_rows import BadRowHandler
from seqflow.loader.schedule.parts import Parts
from seqflow.output import Batches, OutputFile, OutputWriter
from seqflow.output.progress_file import Change

Outcome = Literal["new", "resumed", "complete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Counts, times and files of a run."""

    rows: int
    """Rows in the batches, as `prepare` made them; one that is cut into pieces counts once."""
    dropped: int
    """Rows of short batches that `drop_last` left out."""
    skipped: int
    """Rows that `where` left out, and those that the batch plan left out by their lengths."""
    filtered: int
    """Those of them that `where` left out."""
    rows_read: int
    """Rows of the source, without those that `where` left out, or that could not be read or prepared."""
    tokens: int
    fill: float | None
    """The part of the elements of all batches that are tokens; None without a list column to count."""
    batches: int
    bad_rows: int
    seconds: float
    peak_memory: int
    """The most bytes that the process had in memory."""
    files: tuple[Path, ...]
    output_bytes: int

    outcome: Outcome = "new"
    """Whether the run began anew, went on behind a killed one, or found that everything was done."""
    damaged: tuple[Path, ...] = ()
    """Files of an earlier run that were gone or changed, and are made again."""
    changes: tuple[str, ...] = ()
    """What was another one than that of the run that was resumed, and was accepted."""


Progress = Callable[[Stats, int | None], None]


def run(
    job: Job,
    progress: Progress | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    accept_changes: bool = False,
) -> Report:
    """Run a job. Its files get their final names at the end, all or none.

    About every `output.part_bytes` of the plan, at the end of a window, parts are finished under hidden names, and
    noted in a progress file once a second at most. Where a run was killed, or has failed, `resume` goes on behind the
    last of them, and the output becomes what it would have been. Where the same job has written the output before,
    nothing is done; JobError where another has, unless `overwrite` replaces what is there.

    A job is all that decides its output: settings, nets and the files and constants they read, imported modules, and
    the content of its input. With `accept_changes` a run that is resumed may have other nets, constants, tokenizers
    and modules: it goes on with them behind what is finished, and the manifest says from which part on.

    `progress(stats, total_rows)` is called after each batch; the total is None where the source does not know.
    A job without rows writes an empty file with the columns that its batches would have.
    Raises the errors of the loader and the output, and removes what was not committed.
    """
    if resume and overwrite:
        raise JobError("resume goes on with what is there, overwrite removes it: expected one of them")
    if accept_changes and not resume:
        raise JobError("accept_changes goes on with what is there, expected resume with it")
    started = perf_counter()
    loader = open_loader(job)
    check_targets(job, loader)
    check_tables(job, loader, infer(loader))
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


def _write_output(
    job: Job, loader: Loader, output: OutputWriter, progress: Progress | None, **options: bool
) -> _Result:
    """Run the job, resuming an earlier run; does nothing where its output is complete and intact."""
    described = describe(job, loader)
    target, record = output.target, None
    earlier = None if target is None else earlier_run(target, described, **options)
    if target is not None and earlier is not None:
        record = earlier.content
        if earlier.is_complete:
            damaged = check_complete(target, record, resume=options["resume"])
            if not damaged:
                BadRowHandler(job.bad_rows, loader.source.files).leave()  # removes what a killed run has left
                return _Result(
                    output.found(record),
                    counts_in(record),
                    "complete",
                    [],
                    (),
                )
            record = output.reopen(record)
    task = _Run(job, loader, output, described, record)
    files = task.run(progress)
    changes = earlier.changes if earlier is not None and task.outcome == "resumed" else ()
    return _Result(files, task.counts, task.outcome, task.damaged, changes)


def _report(found: _Result, seconds: float) -> Report:
    counted = ("rows", "dropped", "skipped", "filtered", "rows_read", "tokens", "batches", "bad_rows")
    return Report(
        **{name: found.counts[name] for name in counted},
        fill=Stats(**found.counts).fill,
        seconds=seconds,
        peak_memory=_peak_memory(),
        files=tuple(file.path for file in found.files),
        output_bytes=sum(file.nbytes for file in found.files),
        outcome=found.outcome,
        damaged=tuple(file.path for file in found.damaged),
        changes=found.changes,
    )


class _Run:
    """One run of a job, from its beginning or resumed from a progress file, in which it notes where it is."""

    def __init__(
        self, job: Job, loader: Loader, output: OutputWriter, described: dict[str, Any], record: Any
    ) -> None:
        self._job, self._loader, self._output, self._described = job, loader, output, described
        self.outcome: Outcome = "new"
        self.damaged: list[OutputFile] = []
        """Committed files of the output that are gone or changed."""
        self._damaged_pieces: list[OutputFile] = []
        """Those of the quarantine file."""
        self._changes: list[dict[str, Any]] = []
        """Those that were accepted, each with the place from which on it holds."""
        self._part = 0
        """The first part that is not committed."""
        self._num_pieces = self._num_noted_pieces = 0
        """Pieces of the quarantine file that belong to the parts before, and those that are noted."""
        if record is None:
            self._begin()
        else:
            self._resume(record)

    def _begin(self) -> None:
        """Discard what an earlier run has committed."""
        self.counts, self._is_sealed, self._keeps_bad_rows = counts_of(Stats()), False, True
        self._bad_rows = BadRowHandler(self._job.bad_rows, self._loader.source.files)
        self._state = self._loader.state_dict()
        self._output.begin()

    def _resume(self, record: Mapping[str, Any]) -> None:
        """Resume from a progress file; begin anew if a damaged part cannot be made again by itself."""
        self.counts, self._is_sealed = counts_in(record), record["sealed"]
        pieces = record["bad_rows"]
        self._keeps_bad_rows = pieces is not None  # else their file is complete
        policy = self._job.bad_rows if self._keeps_bad_rows else self._job.bad_rows.uncounted()
        self._bad_rows = BadRowHandler(
            policy, self._loader.source.files, count=self.counts["bad_rows"], pieces=pieces or ()
        )
        self.damaged = self._output.resume(record)
        self._damaged_pieces = self._bad_rows.damaged(record.get("bad_rows_file"))
        if not is_repairable([*self.damaged, *self._damaged_pieces], record):
            self._bad_rows.leave()
            self._begin()
            return
        self.outcome, self._changes = "resumed", record.get("changes", [])
        if not self._is_sealed:
            self._part = record["part"]
            self._loader.load_state_dict(record["loader"], changes="accept" if self._changes else "refuse")
        self._state = self._loader.state_dict()
        self._num_pieces = self._bad_rows.num_pieces

    def run(self, progress: Progress | None) -> list[OutputFile]:
        """Write the output and return its files; committed parts survive any error."""
        try:
            is_sealed = self._is_sealed
            if self.outcome == "resumed" and (self.damaged or self._damaged_pieces):
                repair_output(
                    self._loader, self._output, self._bad_rows, self.damaged, self._damaged_pieces, self._plan
                )
                self._loader.load_state_dict(self._state)
                is_sealed = False
            batches = None if self._is_sealed else self._write(progress)
            if not is_sealed:
                self._bad_rows.commit(batches)
                self._output.seal(self._sealed(), batches)
            self._bad_rows.install(lambda file: self._output.note("bad_rows_file", file))
            return self._output.install()
        except BaseException as error:
            self._output.note_now()
            if self._output.has_progress:
                error.add_note("what is finished is kept: --resume goes on behind it")
            raise
        finally:
            self._bad_rows.leave()

    def _write(self, progress: Progress | None) -> Batches:
        """Write all parts, committing those that are full; returns the range of batches not committed yet."""
        loader, output, stats = self._loader, self._output, Stats(**self.counts)
        start = place_of(self._state, self._part)
        with closing(make_parts(loader, self._plan(), self._part, self._bad_rows, stats)) as parts:
            for part in parts:
                for batch in part:
                    output.write(batch)
                    del batch  # its memory is the output's now
                    if progress is not None:
                        progress(stats, loader.num_rows)
                if part.is_full:
                    state = loader.state_dict()
                    batches = Batches(start, state["batch"])
                    self._bad_rows.commit(batches)
                    output.commit(batches)
                    self._advance(part.number + 1, stats, state)
                    start = place_of(state, self._part)
        if not stats.batches and (empty := loader.empty_batch()) is not None:
            output.write(empty)
        self.counts = counts_of(stats)
        return Batches(start, None)

    def _advance(self, part: int, stats: Stats, state: dict[str, Any]) -> None:
        """Note that all parts before this one are committed."""
        self._part, self.counts, self._state = part, counts_of(stats), state
        self._num_pieces = self._bad_rows.num_pieces
        self._output.note_soon(self)

    def _plan(self) -> Parts:
        """Where the parts of the output end."""
        sizes, layout = self._output.layout.sizes, self._output.layout
        rows = (
            None
            if layout.arrangement or sizes.rows_per_file is None
            else sizes.rows_per_file * layout.threads
        )
        return Parts(sizes.part_bytes * layout.threads, rows)

    def whole(self) -> dict[str, Any]:
        """What is noted of the run, all of it."""
        self._num_noted_pieces = self._num_pieces
        return {**self._sealed(self._num_pieces), "part": self._part, "loader": self._state}

    def change(self) -> Change:
        """What has changed since it was last noted."""
        pieces = self._bad_rows.pieces(self._num_noted_pieces, self._num_pieces)
        self._num_noted_pieces = self._num_pieces
        extend = {"bad_rows": pieces} if pieces else {}
        place = place_of(self._state, self._part)
        return Change({"counts": self.counts, "part": self._part}, {"loader": place}, extend)

    def _sealed(self, num_pieces: int | None = None) -> dict[str, Any]:
        """What is noted where only names are left to give."""
        pieces = self._bad_rows.pieces(0, num_pieces) if self._keeps_bad_rows else None
        return {"job": self._described, "changes": self._changes, "counts": self.counts, "bad_rows": pieces}


def counts_in(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record["counts"].get(name, 0) for name in COUNTED}


def counts_of(stats: Stats) -> dict[str, Any]:
    return {name: getattr(stats, name) for name in COUNTED}


def place_of(state: Mapping[str, Any], part: int) -> dict[str, Any]:
    """The position of a loader's state in the sequence of batches, at the beginning of a part."""
    return {**{key: state[key] for key in ("epoch", "batch", "windows")}, "part": part}


def _peak_memory() -> int:
    """The most bytes that this process had in memory."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
