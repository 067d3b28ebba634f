"""One run of a job: this process or the workers of an engine make its parts, which are committed in order."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal

from seqflow.job.appending import appended_in, loader_of
from seqflow.job.counts import add_counts, counts_in, counts_of, set_counts
from seqflow.job.job import Job
from seqflow.job.mixed import PartSize, mixed_batches
from seqflow.job.opening import files_of, owner_of_bad_rows
from seqflow.job.part_tasks import Folders, MadePart, PartTask, setup_of, tasks_of
from seqflow.job.row_traces import made_by_of
from seqflow.job.step_totals import empty_batch, with_totals
from seqflow.loader import BadRows, Loader, Stats
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.order.windows import Parts
from seqflow.loader.parts import PlannedPart, make_parts
from seqflow.loader.run.ledger import BadRowHandler
from seqflow.output import Batches, OutputFile, OutputWriter
from seqflow.output.attempt_folders import new_name
from seqflow.output.progress_file import Change
from seqflow.output.stores.store_attempts import StoreAttempts
from seqflow.workers import in_order, open_engine

Outcome = Literal["new", "resumed", "appended", "complete"]
Progress = Callable[[Stats, int | None], None]


class JobRun:
    """One run of a job, from its beginning or resumed from a progress file, in which it saves its position."""

    def __init__(
        self, job: Job, loader: EpochBatches, output: OutputWriter, facts: Mapping[str, Any], record: Any
    ) -> None:
        """`facts` are the entries of the record about the job and its data, `loader` has all files of these."""
        self._job, self._loader, self._output, self._facts = job, loader, output, facts
        self._appended: list[dict[str, Any]]
        """Appends to the output, of which this run may be the last."""
        self._before: Stats
        """Counts of the output before this append."""
        self.outcome: Outcome = "new"
        self._changes: list[dict[str, Any]] = []
        """Accepted changes, each with the place from which on it holds."""
        self._part = 0
        """Number of the first part that is not committed."""
        self._noted_counts: dict[str, Any] = {}
        """Counts of the parts before it; at the end, `counts` has those of the last part, too."""
        self.peak_memory = 0
        """Peak memory of the workers, in bytes."""
        self.verdict: Mapping[str, Any] | None = None
        """Facts of the verdict of the batches that this process has made, without those of single steps."""
        self._num_pieces = self._num_noted_pieces = 0
        """Pieces of the quarantine file that belong to earlier parts, and pieces that are recorded."""
        if record is None:
            self._begin()
        else:
            self._resume(record)

    def _begin(self) -> None:
        """Discard what an earlier run has committed."""
        self.counts, self._is_sealed, self._keeps_bad_rows = counts_of(Stats()), False, True
        self._appended, self._before = [], Stats()
        self._handler = BadRowHandler(
            self._job.bad_rows, files_of(self._loader), owner=owner_of_bad_rows(self._job)
        )
        self._bad_rows = self._handler.file
        self._state = self._loader.state_dict()
        self._output.begin()

    def _resume(self, record: Mapping[str, Any]) -> None:
        """Resume from a progress file; raise JobError when what it lists is damaged."""
        self.counts, self._is_sealed = counts_in(record), record["sealed"]
        pieces = record["bad_rows"]
        self._keeps_bad_rows = pieces is not None  # else their file is complete
        policy = self._job.bad_rows if self._keeps_bad_rows else BadRows("skip")
        self._appended = appended_in(record)
        self._before = Stats(**counts_in(self._appended[-1])) if self._appended else Stats()
        self._output.resume(record)
        files = files_of(self._loader)
        self._handler = BadRowHandler(
            policy, files, pieces=pieces or (), before=self._before, owner=owner_of_bad_rows(self._job)
        )
        self._bad_rows = self._handler.file
        self._bad_rows.check(record.get("bad_rows_file"))
        self.outcome, self._changes = "resumed", record.get("changes", [])
        if not self._is_sealed:
            self._part = record["part"]
            self._loader = loader_of(self._job, self._loader, record, len(self._appended))
            if record["loader"] is None:  # an append begins
                self.outcome = "appended"
                self._bad_rows.keep_former()
            else:
                changes = "accept" if self._changes else "refuse"
                self._loader.load_state_dict(record["loader"], changes=changes)
        self._state = self._loader.state_dict()
        self._num_pieces = self._bad_rows.num_pieces

    def run(self, progress: Progress | None) -> list[OutputFile]:
        """Write the output and return its files; committed parts survive any error."""
        try:
            if not self._is_sealed:
                batches = self._write(progress)
                # bad rows first: a sealed output counts as made, and none of its parts is made again
                self._bad_rows.commit(batches)
                self._output.seal(self._sealed(), batches, self._job.output.min_rows)
            self._bad_rows.install(lambda file: self._output.note("bad_rows_file", file))
            return self._output.install()
        except BaseException as error:
            # progress is saved once a second at most: save the last place, too
            self._output.note_now()
            if self._output.has_progress:
                error.add_note("what is finished is kept: --resume goes on after it")
            raise
        finally:
            self._bad_rows.leave()

    def _write(self, progress: Progress | None) -> Batches:
        """Write all parts and commit those that are full; return the range of batches not committed yet."""
        loader, stats = self._loader, Stats(**self.counts)
        self._handler.check_bounds(stats)
        if progress is not None:
            progress(stats, self._total_rows())
        if not isinstance(loader, Loader):
            start = self._make_mixed(loader, stats, progress)
        elif self._job.engine.has_workers:
            start = self._make_elsewhere(loader, stats, progress)
        else:
            start = self._make_here(loader, stats, progress)
        if not stats.batches and (empty := empty_batch(loader)) is not None:
            self._output.write(empty)
        self._handler.check_bounds(stats)
        self._handler.check(stats)
        self.counts = counts_of(stats)
        if not self._job.engine.has_workers:
            facts = loader.verdict().to_json()
            self.verdict = {name: value for name, value in facts.items() if name != "last_steps"}
        return Batches(start, None)

    def _total_rows(self) -> int | None:
        """Return the rows that are done at the end; None if they are not known before reading."""
        rows = self._loader.num_rows if isinstance(self._loader, Loader) else None
        return rows if rows is None else rows + self._before.rows_read

    def _make_mixed(self, mix: EpochBatches, stats: Stats, progress: Progress | None) -> dict[str, Any]:
        """Make all parts of a mix, or of batches of servers; return the place where the last one begins."""
        output, before, mixed = self._output, self.counts, Stats(timings=stats.timings)
        size = PartSize(output.layout.sizes, output.layout.threads)
        start = self._place()
        with mixed_batches(mix, self._handler, mixed) as batches:
            for batch in with_totals(batches):
                size.add(batch)
                output.write(batch)
                del batch  # its memory is the output's now
                set_counts(stats, before, mix.stats())
                if progress is not None:
                    progress(stats, None)
                if size.is_full():
                    state = mix.state_dict()
                    self._commit(Batches(start, state["batch"]))
                    self._advance(self._part + 1, stats, state)
                    start = self._place()
        set_counts(stats, before, mixed)
        return start

    def _commit(self, batches: Batches) -> None:
        self._bad_rows.commit(batches)
        self._output.commit(batches)

    def _make_here(self, loader: Loader, stats: Stats, progress: Progress | None) -> dict[str, Any]:
        """Make all parts in this process; return the place where the last one that is not full begins."""
        output, total = self._output, self._total_rows()
        start = self._place()
        with closing(make_parts(loader, self._plan(), self._part, self._handler, stats)) as parts:
            for part in parts:
                for batch in with_totals(part):
                    output.write(batch)
                    del batch  # its memory is the output's now
                    if progress is not None:
                        progress(stats, total)
                if part.is_full:
                    state = loader.state_dict()
                    self._commit(Batches(start, state["batch"]))
                    self._advance(part.number + 1, stats, state)
                    start = self._place()
        return start

    def _make_elsewhere(self, loader: Loader, stats: Stats, progress: Progress | None) -> dict[str, Any]:
        """Make all parts with the workers of an engine, and take their files in order."""
        output, total = self._output, self._total_rows()
        start, measured = self._place(), loader.pipeline.unmeasured()
        with self._folders() as (name, folders):
            setup = setup_of(self._job, loader, name, folders, measures=measured is not None)
            with open_engine(self._job.engine, setup) as engine:
                tasks = map(self._numbered, tasks_of(loader, self._plan(), self._part))
                # in order, although workers finish in any: places and counts are those of consecutive parts
                for task, made in in_order(engine, tasks, lambda task: task.name):
                    add_counts(stats, made.counts)
                    self._handler.first = self._handler.first or made.first_bad
                    state = self._state_behind(task.part, made)
                    batches = Batches(start, state["batch"] if task.part.is_full else None)
                    if (bad_rows := made.bad_rows) is not None:
                        if isinstance(folders.parts, StoreAttempts) and folders.bad_rows is not None:
                            bad_rows = folders.parts.fetch(bad_rows, folders.bad_rows)
                        self._bad_rows.adopt(bad_rows, batches)
                    output.adopt(made.files, made.schema, batches)
                    if measured is not None:
                        measured.add_measured(made.lengths)
                    if task.part.is_full:
                        self._advance(task.part.number + 1, stats, state)
                        start = self._place()
                    self.peak_memory = max(self.peak_memory, made.peak_memory)
                    if progress is not None:
                        progress(stats, total)
        loader.pipeline.end_epoch()
        return start

    def _numbered(self, task: PartTask) -> PartTask:
        """Return the task with the probable number of its first file."""
        parts_before = task.part.number - self._part
        return replace(task, first_file=self._output.num_files + parts_before * self._output.layout.threads)

    @contextmanager
    def _folders(self) -> Iterator[tuple[str, Folders]]:
        """Provide a name of this run for its workers, and the folders in which they write; remove them at the end."""
        name, target = new_name(), self._output.target
        parts = None if target is None else target.attempts_folder(name)
        bad_rows = self._bad_rows.attempts_folder(name)
        try:
            yield name, Folders(parts, bad_rows)
        finally:
            for folder in (parts, bad_rows):
                if isinstance(folder, Path):
                    rmtree(folder, ignore_errors=True)

    def _state_behind(self, part: PlannedPart, made: MadePart) -> dict[str, Any]:
        """Return the state of a loader that has handed out the batches of a part."""
        windows, batch = {}, self._state["batch"] + made.num_batches
        if not part.counts_batches:
            first = batch - made.last_batches
            windows["0"] = {"window": part.stop - 1, "first_batch": first, "batches": made.last_batches}
        return {**self._state, "batch": batch, "windows": windows}

    def _advance(self, part: int, stats: Stats, state: dict[str, Any]) -> None:
        """Record that all parts before this one are committed."""
        self._part, self.counts, self._state = part, counts_of(stats), state
        self._noted_counts = self.counts
        self._num_pieces = self._bad_rows.num_pieces
        self._output.note_soon(self)
        self._handler.check_bounds(stats)

    def _place(self) -> dict[str, Any]:
        """Return the position of the loader in the sequence of batches, at the beginning of the next part."""
        state = self._state
        if "members" in state:  # a mix, whose parts are cut by batches
            return {key: state[key] for key in ("epoch", "batch", "ended", "members")}
        append = {"append": len(self._appended)} if self._appended else {}
        return {**{key: state[key] for key in ("epoch", "batch", "windows")}, "part": self._part, **append}

    def _plan(self) -> Parts:
        """Return the plan of where the parts of the output end."""
        sizes, layout = self._output.layout.sizes, self._output.layout
        rows = (
            None
            if layout.arrangement or sizes.rows_per_file is None
            else sizes.rows_per_file * layout.threads
        )
        return Parts(sizes.part_bytes * layout.threads, rows)

    def whole(self) -> dict[str, Any]:
        """Return the whole record of the run."""
        self._num_noted_pieces = self._num_pieces
        noted = {"counts": self._noted_counts, "part": self._part, "loader": self._state}
        return {**self._sealed(self._num_pieces), **noted}

    def change(self) -> Change:
        """Return the changes since the record was last saved."""
        pieces = self._bad_rows.pieces(self._num_noted_pieces, self._num_pieces)
        self._num_noted_pieces = self._num_pieces
        extend = {"bad_rows": pieces} if pieces else {}
        place = self._place()
        return Change({"counts": self._noted_counts, "part": self._part}, {"loader": place}, extend)

    def _sealed(self, num_pieces: int | None = None) -> dict[str, Any]:
        """Return the record of a run whose files only need their final names."""
        pieces = self._bad_rows.pieces(0, num_pieces) if self._keeps_bad_rows else None
        record = {**self._facts, "changes": self._changes, "counts": self.counts, "bad_rows": pieces}
        if self._appended:
            record["appended"] = self._appended
        made_by = None if self._output.target is None else made_by_of(self._job, self._output.target)
        return record if made_by is None else {**record, "made_by": made_by}
