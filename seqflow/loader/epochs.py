"""Batches epoch after epoch: the part that a Loader and a Mix share, around the pipeline that makes the batches."""

import json
import os
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from time import time
from typing import Any, NoReturn

from seqflow.arguments import FilePath, at_least_one, checked
from seqflow.errors import OpError, OpIndexError
from seqflow.loader.epoch.assign_ranks import Assignment, Skips
from seqflow.loader.epoch.ranks import Ranks
from seqflow.loader.epoch.state import Place, Progress
from seqflow.loader.metrics import metrics_of, open_metrics
from seqflow.loader.order.identity import FORMAT
from seqflow.loader.order.windows import Parts
from seqflow.loader.replay import Replay
from seqflow.loader.run.iterator import Iteration, Run, RunOptions, task_by_number
from seqflow.loader.run.ledger import BadRowHandler, Stats
from seqflow.loader.run.making import Trace, trace_task, with_files
from seqflow.loader.run.mixing import MixPipeline
from seqflow.loader.run.pipeline import Pipeline
from seqflow.loader.run.workers import Workers
from seqflow.loader.seen import Found, SeenLedger, batches_of_rows, file_of, ledger_of
from seqflow.loader.verdicts import Settings, Verdict, verdict_of
from seqflow.names_elsewhere import explains_missing, instead
from seqflow.net import Net
from seqflow.output.quarantine import NoQuarantine, Quarantine
from seqflow.record import Record
from seqflow.record.one_schema import reader_of
from seqflow.thread_guards import one_at_a_time
from seqflow.torch.tensors import to_tensors


@explains_missing(
    "Loader",
    hidden=(
        "assignment batches can_fork is_elsewhere is_resuming iteration loaders moves note_move passes pipeline "
        "place recipe"
    ),
)
@checked()
class EpochBatches:
    """The batches of a pipeline for one rank, epoch after epoch; it knows its position, and can go on there."""

    def __init__(self, pipeline: Any) -> None:
        self.pipeline: Pipeline | MixPipeline = pipeline
        self.epoch = 0
        """Epoch of the next iteration; an iteration that is exhausted advances it."""
        self._stats = Stats()
        self._replayed: float | None = None
        """Seconds of a step of the last replay."""
        self._metrics: tuple[str, float] | None = None
        """File that gets a line of metrics every so many seconds."""
        self._run: Run | None = None
        """Run of the current iteration."""
        self._start: Place | None = None
        """Place where the next iteration begins; None is the first batch of `epoch`."""
        self._progress: Progress | None = None
        """Progress of the last iteration, unless it was exhausted."""
        self.passes: Any = None
        """Count of the passes of worker processes of a DataLoader, whose places this process does not know."""
        self._passes_before = 0
        """Passes that had begun when this process last set the place."""
        self.moves = 0
        """Number of times that the main process set an epoch or a state."""

    def __getstate__(self) -> dict[str, Any]:
        """Return its settings and its position, without what it has read."""
        left = ("_stats", "_run", "passes", "_passes_before")
        return {name: value for name, value in vars(self).items() if name not in left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _stats=Stats(), _run=None, passes=None, _passes_before=0)

    @property
    def assignment(self) -> Assignment:
        """Batches that this process and its workers get."""
        return self.pipeline.assignment

    @assignment.setter
    def assignment(self, assignment: Assignment) -> None:
        self.pipeline.assignment = assignment

    @property
    def can_fork(self) -> bool:
        """Whether a forked process can go on with it: connections to stores and servers do not work there."""
        return False

    @property
    def rank(self) -> int:
        return self.assignment.rank

    @property
    def world_size(self) -> int:
        return self.assignment.world_size

    @property
    def is_resuming(self) -> bool:
        """Whether the next iteration goes on from a state that was loaded."""
        return self._start is not None

    @property
    def is_elsewhere(self) -> bool:
        """Whether workers of a DataLoader have handed out batches since this process last set the place."""
        return self.passes is not None and int(self.passes) > self._passes_before and not self.passes.is_here

    def _set_here(self) -> None:
        """Note that the place of the next batch is the one that this process knows."""
        self._passes_before = int(self.passes or 0)

    def note_move(self) -> None:
        """Note that the place of the next batch was set; in a worker it is for the worker alone."""
        self._set_here()
        if self.passes is None:
            self.moves += 1
        elif not self.passes.is_here:
            self.moves = self.passes.moves = self.moves + 1

    @property
    def at_window_end(self) -> bool:
        """Whether the last batch handed out was the last of its window."""
        return self._progress is not None and self._progress.at_window_end

    @property
    def place(self) -> Place:
        """Place after the last batch handed out; before the first batch, where the next iteration begins."""
        if self._progress is not None:
            return self._progress.position
        return self._start or self.pipeline.beginning(self.epoch)

    def set_epoch(self, epoch: int) -> None:
        """Begin the next iteration with the first batch of an epoch."""
        _check_counts("set_epoch", epoch=epoch)
        self.epoch, self._start, self._progress = epoch, None, None
        self.note_move()

    def __bool__(self) -> bool:
        return True  # also where the number of batches is not known, and where it is 0

    def __len__(self) -> int:
        """Return the number of batches of this rank in an epoch; raise TypeError when it is not known before
        reading.
        """
        total = self.pipeline.num_batches(self.epoch)
        if total is None:
            raise TypeError(
                "the number of batches is not known before reading: windows are planned on what they hold\n"
                '  give index="lengths.arrow", steps_per_epoch, or Rows(n) of data whose rows are known and kept'
            )
        return self.assignment.ranks.rounds(total)

    def __getitem__(self, number: Any) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is iterated, not indexed\n  {instead('Loader', '[]')}")

    @one_at_a_time
    def __iter__(self) -> Generator[Record, None, None]:
        """Yield the batches of the coming epoch; bad rows are in their file when windows end, even if the loop
        stops early.
        """
        handlers, stats = self.pipeline.handlers(), Stats()
        is_whole = self._progress is None and not self.is_resuming and self.assignment.world_size == 1
        bound, finished = next((one for one in handlers if one.policy.policy != "raise"), handlers[0]), False
        try:
            with closing(self._iterate(handlers, stats)) as batches:
                for batch in batches:
                    for file in _files_of(handlers):
                        file.publish()
                    if bound.policy.max is not None:
                        bound.check_bounds(self.stats(), at_end=False)
                    yield batch
                    del batch  # the consumer may drop it before the next one is made
            finished = True
            bound.check_bounds(stats)
            for handler in handlers if is_whole else ():
                handler.check(stats)
        finally:
            for file in _files_of(handlers):
                file.close(finished=finished)

    def _iterate(self, handlers: list[BadRowHandler], stats: Stats) -> Generator[Record, None, None]:
        with self.iteration(handlers, stats) as iteration:
            yield from iteration

    @contextmanager
    def iteration(
        self,
        handlers: list[BadRowHandler],
        stats: Stats,
        *,
        counts_on: bool = False,
        parts: Parts | None = None,
    ) -> Iterator[Iteration]:
        """Provide an iteration of the pipeline; when it is left without an error, its epoch has ended.

        With `counts_on`, windows before its place were counted by the run before.
        """
        start = self.place if self._progress is None else self.pipeline.beginning(self.epoch)
        self._start, self._stats = None, stats
        workers, iteration = Workers(self.pipeline.threads), None
        if self._metrics is not None:
            stats.timings.each, stats.timings.report = self._metrics[1], partial(self._write_metrics, stats)
        stats.timings.begin(workers.times)
        try:
            skips = Skips(self.pipeline.skip, start.epoch)
            run_options = RunOptions(
                workers,
                handlers,
                stats,
                counts_on=counts_on,
                assignment=self.assignment,
                skips=skips,
                parts=parts,
            )
            run: Run = self.pipeline.run(start, run_options)  # type: ignore[arg-type]
            iteration = Iteration(run, start, run_options)
            self._progress, self._run = iteration.progress, iteration.run
            self._set_here()
            yield iteration
            iteration.check_start()
            if self._progress is iteration.progress:  # no other place was set meanwhile
                self.epoch, self._progress = start.epoch + 1, None
                self.pipeline.end_epoch()
        finally:
            workers.close()
            if iteration is not None:  # not left to the garbage collector: a cursor may be open
                iteration.run.sum_counts()
                iteration.run.close()
                if stats.timings.report is not None:
                    stats.timings.report()
                if self._run is iteration.run:
                    self._run = None

    def batch_at(self, number: int, epoch: int = 0) -> Record:
        """Return batch `number` of an epoch, counted over all ranks as `batch.number` is, even if it is skipped.

        Only the window of the batch is read if the batches of all windows are known: by an index, or for `Rows`
        of data whose rows are known and kept. Otherwise all windows up to it are read. The position of the
        loader does not change. Raise OpError when the epoch has no such batch.
        """
        _check_counts("batch_at", number=number, epoch=epoch)
        with self._one("batch_at", number, epoch) as (run, task):
            (made,) = run.make([task])
            if made.error is not None:
                raise made.error
            return run.finished(made)

    def trace(
        self,
        number: int,
        *,
        row: int | None = None,
        element: int | None = None,
        column: str | None = None,
        epoch: int = 0,
    ) -> list[Trace]:
        """Return the origin of a batch: file, block and row of each of its rows, as `net` gets them.

        For a packed batch there is a trace of each piece, with its elements. With `row`, trace only that row of
        the batch, or its pieces; with `row` and `element`, a single element of the list column that batches are
        planned on, or of `column`. Rows that a net `prepare` keeps, selects, or makes of the lists of a row are
        known; in the last case `part` is their number among the rows made. For other rows only the block is
        known, and `hidden_by` names the function or net that made them. In a Mix, `source` is the name of the
        source. The windows that are read are those of `batch_at`. Raise OpError when the epoch has no such
        batch, and OpIndexError when the batch has no such row or element.
        """
        _check_counts("trace", number=number, epoch=epoch)
        traces: list[Trace] = []
        before = 0
        with self._one("trace", number, epoch, traced=True) as (_, task):
            for name, of, part in self.pipeline.parts_of(task, epoch):
                rows = part.batches.size(part.number).rows
                if row is None or before <= row < before + rows:
                    own = None if row is None else row - before
                    found = trace_task(part, of.prepare_name, own, element, column)
                    traces += with_files([replace(one, source=name) for one in found], part, of.recipe.source)
                before += rows
        if row is not None and not 0 <= row < before:
            raise OpIndexError(f"trace: row is {row}, expected 0 to {before - 1}, the rows of batch {number}")
        return traces

    def batches_at(
        self, start: int, stop: int | None = None, *, step: int = 1, epoch: int = 0
    ) -> Generator[Record, None, None]:
        """Yield every `step`-th of the batches `start` to `stop` - 1 of an epoch, as `batch_at` returns them.

        Windows are read and batches made ahead, up to `stop`; None is the end of the epoch. The windows that are
        read are those of `batch_at`. The position of the loader does not change, and bad rows are not written
        again.
        """
        _check_counts("batches_at", start=start, epoch=epoch, stop=0 if stop is None else stop)
        at_least_one("batches_at", step=step)
        size = self.assignment.world_size
        # rounds begin at multiples of the number of ranks: totals omit batches of an incomplete last round
        place = self.pipeline.beginning(epoch)._replace(batch=start // size * size)
        assignment = Assignment(Ranks(0, 1), start % size, step)
        with reading(self.pipeline, place, assignment=assignment, stop=stop) as iteration:
            yield from iteration

    def ledger(self, upto: int | None = None) -> SeenLedger:
        """Return what a model has seen: rows, tokens, batches and epochs by source and file, on all ranks.

        Everything before batch `upto` of the current epoch counts, by default all that was handed out. It follows
        from numbers, not from what this process did: skips, changes of weights and resumes are in it. Rows are
        looked up by the lengths of an index, or the counts of `Rows` without list columns; otherwise windows are
        read, and a warning is logged. Raise OpError when `upto` is after the end of the epoch.
        """
        epoch, batch = self.place[:2]
        _check_counts("ledger", upto=batch if upto is None else upto)
        return ledger_of(self.pipeline, epoch, batch if upto is None else upto)

    def find(self, file: FilePath, row: int, *, epoch: int | None = None) -> list[Found]:
        """Return the batches of an epoch that have a row of a file, which counts from 0: the inverse of `trace`.

        By default it is the current epoch, as it was planned up to its end. Nothing is read where `ledger` reads
        nothing. Raise OpError for a file or row that the source does not have, and when `prepare` makes new rows.
        """
        epoch = self.place.epoch if epoch is None else epoch
        _check_counts("find", row=row, epoch=epoch)
        key = file_of(self.pipeline, str(file)), row
        return batches_of_rows(self.pipeline, [key], epoch)[key]

    @contextmanager
    def _one(self, what: str, number: int, epoch: int, *, traced: bool = False) -> Iterator[tuple[Run, Any]]:
        """Provide the task of a batch by its number, and the run that makes it; raise OpError when the epoch
        has none.

        Bad rows are not written again.
        """
        start, pipeline = self.pipeline.beginning(epoch), self.pipeline
        run_options = RunOptions.of_some(len(pipeline.members), traced=traced)
        with closing(pipeline.run(start, run_options)) as run:  # type: ignore[arg-type]
            yield run, task_by_number(run, what, number, epoch)

    def take(self, n: int) -> list[Record]:
        """Return the first n batches of the coming epoch; the position of the loader does not change."""
        if n < 0:
            raise OpError(f"take: n is {n}, expected 0 or more")
        return self._take(n)

    def _take(self, n: int, keep: Callable[[Record], Record] = lambda batch: batch) -> list[Record]:
        before = self.epoch, self._start, self._progress, self._passes_before
        try:
            with closing(iter(self)) as batches:
                return [keep(batch) for batch in islice(batches, n)]
        finally:
            self.epoch, self._start, self._progress, self._passes_before = before

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the batches of the coming epoch as a stream of Arrow record batches, as `to_arrow` makes them.

        Every reader of Arrow streams can read it: `duckdb.sql("FROM loader")`, `polars.DataFrame(loader)`,
        `pyarrow.table(loader)`. All batches must have the columns and types of the first, so an axis padded to
        the longest row is not possible. An error during iteration becomes an error of the reader, with the same
        message.
        """
        reader = reader_of(iter(self), self.pipeline.empty_batch())
        return reader.__arrow_c_stream__(requested_schema)

    def stats(self) -> Stats:
        """Return the counts of the last iteration so far, and where its time was spent."""
        if self._run is not None:
            self._run.sum_counts()
        return self._stats

    def verdict(self) -> Verdict:
        """Return what the steps of the last iteration waited for, and what would change it.

        The iteration may be running, or have been left early. There is no verdict before 20 steps, and none of
        batches that worker processes of a DataLoader hand out. `sf.verdict` joins those of several ranks.
        """
        return verdict_of(self._stats.timings, self._settings(), self._replayed)

    def _settings(self) -> Settings:
        members = [one for one in self.pipeline.members if one is not None]
        prepares = (one.recipe.prepare for one in members)
        return Settings(
            self.pipeline.threads,
            sum(one.recipe.memory for one in members),
            any(one is not None and not isinstance(one, Net) for one in prepares),
            sum(one.recipe.streams for one in members),
            self.rank,
            self.world_size,
        )

    def replay(self, steps: int = 50) -> Replay:
        """Return the first batches of the coming epoch in memory; the position of the loader does not change.

        A loop over them shows the rate that the consumer could reach with a loader that takes no time.
        """
        return self._replay(steps, lambda batch: batch)

    def _replay(self, steps: int, of: Callable[[Record], Any]) -> Replay:
        if steps < 1:
            raise OpError(f"replay: steps is {steps}, expected 1 or more")
        reuses = any(one.prefetch.reuse for one in self.pipeline.members if one is not None)
        before = self._stats, self._metrics
        self._metrics = None
        try:
            batches = self._take(steps, _copied if reuses else lambda batch: batch)
        finally:
            self._stats, self._metrics = before
        return Replay([*map(of, batches)], self._note_replay)

    def _note_replay(self, seconds: float) -> None:
        self._replayed = seconds

    def metrics(self, path: FilePath, every: float = 30) -> None:
        """Let iterations append times and counts to a file: a line of JSON every so many seconds, and at the end.

        The names are those of `open_metrics`; `time` is in seconds since 1970. Lines are written between steps.
        """
        if not every > 0:
            raise OpError(f"metrics: every is {every}, expected seconds above 0")
        self._metrics = os.fspath(path), float(every)

    def _write_metrics(self, stats: Stats) -> None:
        if self._run is not None:
            self._run.sum_counts()
        assert self._metrics is not None
        line = {"time": round(time(), 3), **metrics_of(stats, self.rank)}
        with open(self._metrics[0], "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def open_metrics(self) -> str:
        """Return times and counts of the last iteration so far as OpenMetrics text, which Prometheus reads."""
        return open_metrics(self.stats(), self.rank)

    def state_dict(self) -> dict[str, Any]:
        """Return the place after the last batch handed out, as JSON-compatible values.

        Before the first batch it is the place at which the next iteration begins. Raise OpError if the worker
        processes of a DataLoader hand out the batches, until the next `set_epoch`: they tell their place only to
        torchdata's StatefulDataLoader.
        """
        if self.is_elsewhere:
            raise OpError(
                "state_dict: the worker processes of a DataLoader hand out the batches, and this process does not "
                "know how many were used\n"
                "  use torchdata's StatefulDataLoader and its state_dict(), or num_workers=0; "
                'loader.to("torch") makes batches in threads'
            )
        return {"format": FORMAT, **self.place.to_json(), **self.pipeline.fingerprint(self.place.epoch)}

    def load_state_dict(self, state: Mapping[str, Any], *, changes: str = "refuse") -> None:
        """Begin the next iteration after the batch that was the last when the state was taken.

        The number of ranks and threads may differ. Raise OpError when the data, a setting, a net or function,
        or what it reads, has changed; the message names the difference. With `changes="accept"` `net` and
        `skip` may change, and `prepare`, `keep` and `require` may change if no row is lost or repeated: at the
        end of a window, and if batches are counted by the rows of the source. Weights and sources of a Mix may
        change from the batch of the state on. New files are accepted too: a begun epoch ends with
        the files of the state, and they join at the next. The plan and `window` may change at the beginning of an
        epoch.
        """
        self._start, self._progress = self.pipeline.start_of(state, changes), None
        self.epoch = self._start.epoch
        self.note_move()

    def to(
        self,
        library: str,
        *,
        pin_memory: bool = False,
        int64: bool | Collection[str] = False,
        cu_seqlens: bool = False,
        ragged: bool = False,
    ) -> "TensorBatches":
        """Return the same batches as dicts of PyTorch tensors, which share their memory: `loader.to("torch")`.

        `pin_memory`, `int64`, `cu_seqlens` and `ragged` are those of `seqflow.torch.to_tensors`. State, epoch and
        length are the loader's. Raise OpError for another library.
        """
        if library != "torch":
            raise OpError(
                f"{type(self).__name__}.to: library is {library!r}, expected 'torch'\n"
                "  the loader itself gives NumPy arrays; tensor.to(device) moves the tensors of a batch"
            )
        options = {"pin_memory": pin_memory, "int64": int64, "cu_seqlens": cu_seqlens, "ragged": ragged}
        return TensorBatches(self, options)

    def _where(self) -> str:
        """Return the place and the rank, as text."""
        if self.is_elsewhere:
            return "batches handed out by the workers of a DataLoader"
        place = self.place
        rank = "" if self.world_size == 1 else f", rank {self.rank} of {self.world_size}"
        return f"epoch {place.epoch}, batch {place.batch}{rank}"


def _copied(batch: Record) -> Record:
    """Return the batch in memory of its own."""
    return replace(batch, tensors={name: tensor.copy() for name, tensor in batch.tensors.items()})


def _files_of(handlers: Sequence[BadRowHandler]) -> list[Quarantine | NoQuarantine]:
    """Return the quarantine files of all sources, of which some may be added while an epoch runs."""
    return [one.file for one in handlers if one.write is not None]


@contextmanager
def reading(pipeline: Pipeline | MixPipeline, start: Place, **options: Any) -> Iterator[Iteration]:
    """Provide an iteration from a place on, with these options of a run; it counts windows when it opens them."""
    with closing(Workers(pipeline.threads)) as workers:
        run_options = replace(RunOptions.of_some(len(pipeline.members)), workers=workers, **options)
        run: Run = pipeline.run(start, run_options)  # type: ignore[arg-type]
        try:
            yield Iteration(run, start, run_options)
        finally:
            workers.close()  # before the run: tasks that have begun use its windows
            run.close()


def _check_counts(what: str, **counts: int) -> None:
    """Raise OpError unless each is an integer, 0 or more."""
    for name, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise OpError(f"{what}: {name} is {value!r}, expected an integer, 0 or more")


class TensorBatches:
    """The batches of a loader as dicts of PyTorch tensors; each is converted when it is handed out."""

    def __init__(self, loader: EpochBatches, options: Mapping[str, Any]) -> None:
        self.loader = loader
        self._options = options

    @property
    def epoch(self) -> int:
        return self.loader.epoch

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.loader)

    @one_at_a_time
    def __iter__(self) -> Generator[dict[str, Any], None, None]:
        from seqflow.torch.loader_dataset import TensorBatch  # it imports torch

        for batch in self.loader:
            tensors = TensorBatch(to_tensors(batch, **self._options), batch)
            yield tensors
            del batch, tensors  # or they would stay in memory until the next ones are made

    def set_epoch(self, epoch: int) -> None:
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any], *, changes: str = "refuse") -> None:
        self.loader.load_state_dict(state, changes=changes)

    def stats(self) -> Stats:
        return self.loader.stats()

    def verdict(self) -> Verdict:
        return self.loader.verdict()

    def replay(self, steps: int = 50) -> Replay:
        return self.loader._replay(steps, lambda batch: to_tensors(batch, **self._options))
