"""The batches of one rank in one epoch: the choice of the next batch, and making batches ahead of the consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from seqflow.errors import OpError
from seqflow.loader.epoch.assign_ranks import (
    ALL_BATCHES,
    NO_SKIPS,
    AssignedEntry,
    Assignment,
    Skips,
    Steps,
    assigned_entry,
)
from seqflow.loader.epoch.state import Place, Position, Progress, check_start
from seqflow.loader.epoch.table import OWN_NUMBERS, Missing, Numbering, Table
from seqflow.loader.order.windows import Parts, StreamWindows
from seqflow.loader.plans.balanced_pools import Totals
from seqflow.loader.plans.plan import NO_ROWS
from seqflow.loader.run.ledger import BadRowHandler, Stats
from seqflow.loader.run.workers import Workers
from seqflow.record import Record
from seqflow.record.batch_memory import BatchMemory

_MOST_BATCHES = 8
_MOST_CELLS = 1 << 19
"""A task makes several small batches: at most so many, with at most so many cells together. Handing a task to a
thread costs as much as gathering a small batch."""


def most_made(cells: int, threads: int) -> int:
    """Return the largest number of batches with this many cells that are in memory at one time: those of the tasks
    ahead, and those of one task that are handed out.
    """
    return (threads + 2) * min(_MOST_BATCHES, -(-_MOST_CELLS // max(1, cells)))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run: its share of the epoch, and how batches are counted."""

    workers: Workers
    handlers: list[BadRowHandler]
    """Receivers of bad rows: one for each source."""
    stats: Stats
    at_once: bool = False
    """Whether windows count when they are opened; otherwise with the first batch of them that is handed out."""
    counts_on: bool = False
    """Whether windows of batches before the start of the run were counted by the run before."""
    traced: bool = False
    """Whether windows number their rows."""
    by_lengths: bool = False
    """Whether windows are planned by known lengths, and have no values."""
    assignment: Assignment = ALL_BATCHES
    skips: Skips = NO_SKIPS
    stop: int | None = None
    """Number of the batch before which the run ends, whatever follows it; None is the end of the epoch."""
    parts: Parts | None = None
    """Parts of the windows of the only stream; they are requested one after another."""
    numbering: Numbering = OWN_NUMBERS
    """Numbering of the steps that batches belong to, if they are those of a mix."""

    @classmethod
    def of_some(cls, members: int = 1, **options: Any) -> RunOptions:
        """return options for single batches by number, in this thread: their bad rows are not written again."""
        handlers = [BadRowHandler() for _ in range(members)]
        return cls(Workers(0), handlers, Stats(), at_once=True, **options)


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """All facts that decide the batches of one pass over a source, and their order."""

    start: Position
    table: Table
    layout: StreamWindows
    again: Callable[[], Run] | None = None
    """Begins another run at the first batch of the epoch, if this run begins later."""
    steps: Steps | None = None
    totals: Totals | None = None
    closed_before: int = 0
    """Windows before this position of the only stream were counted by the run that this one continues."""


class Run(Protocol):
    """Protocol: one pass over a source or a mix, which makes tasks from rows, and batches from tasks; hands out
    and counts.
    """

    progress: Progress

    @property
    def table(self) -> Any:
        """Table of the rows: that of a source, or of a mix."""

    def plan(self, window: Missing, *, wait: bool) -> bool:
        """Plan a window that the table needs; return False if that requires waiting."""

    def of(self, row: Any, following: int, *, wait: bool) -> Any | None:
        """Return the task of a row, after which a run goes on at row `following`; None if that requires waiting."""

    def rows_passed(self, number: int) -> int | None:
        """Return the data rows to count for a skipped row, if they are known without reading; otherwise None."""

    def first(self) -> Run:
        """Return a run for tasks of the first rows of the epoch, which a resumed run may not have."""

    def fill(self) -> None:
        """Begin to read the next windows."""

    def make(self, tasks: list[Any]) -> list[Any]:
        """Make the batches of some tasks, in any thread, up to the first error, which has the field `error`."""

    def finished(self, made: Any) -> Record:
        """Return a batch as users get it."""

    def hand_out(self, made: Any) -> tuple[Record, BatchMemory | None]:
        """Return the batch as users get it, and its memory until the next one; the progress is then after it."""

    def free(self, memory: BatchMemory) -> None:
        """Take back the memory of the last batch."""

    def end(self, iteration: Iteration) -> None:
        """Count the rows that are in no batch."""

    def sum_counts(self) -> None:
        """Bring the counts up to date."""

    def close(self) -> None:
        """Release what is in memory."""


def task_at(run: Run, k: int, *, wait: bool) -> Any | None:
    """Return the task of row k; None after the last row, and if that requires waiting."""
    while isinstance(found := run.table.find(k), Missing):
        if not run.plan(found, wait=wait):
            return None
    return None if found is None else run.of(found, k + 1, wait=wait)


def task_by_number(run: Run, what: str, number: int, epoch: int) -> Any:
    """Return the task of a row by its number; raise OpError, its message beginning with `what`, when the epoch
    has no such row.
    """
    found = task_at(run, number, wait=True)
    if found is None:
        raise OpError(
            f"{what}: number is {number}, expected less than {run.table.num_known}, the batches of epoch {epoch}"
        )
    return found


class Iteration:
    """Batches that are assigned to a rank, or its worker, round after round, from a place on.

    The iterating thread hands batches out; the workers read windows and make batches ahead.
    """

    def __init__(self, run: Run, start: Place, run_options: RunOptions) -> None:
        self.run, self._start = run, start
        self._workers, self._stats = run_options.workers, run_options.stats
        self._assignment, self._skips, self._stop = (
            run_options.assignment,
            run_options.skips,
            run_options.stop,
        )
        self._index = self._assignment.first(self._skips.kept_before(start.batch))
        """First row of the next round, counted over kept rows."""
        self._passed_until = start.batch
        """The data rows of all skipped rows before this row are counted."""
        self.rows_passed = 0
        """Number of data rows of skipped rows since the last task."""
        self._ahead: deque[Future[list[Any]]] = deque()
        self._is_first = True

    @property
    def progress(self) -> Progress:
        return self.run.progress

    def __iter__(self) -> Iterator[Record]:
        run, timings, times = self.run, self._stats.timings, self._workers.times
        while True:
            self._workers.check_process()
            self._make_ahead(wait=True)
            if not self._ahead:
                if self._stop is None:  # otherwise rows that are left are those of later batches
                    run.end(self)
                return
            future = self._ahead.popleft()
            chunk = self._workers.result(future)
            chunk.reverse()
            while chunk:
                made = chunk.pop()
                if made.error is not None:
                    raise made.error
                batch, memory = run.hand_out(made)
                del made
                self._stats.seconds_waiting = times.waited
                timings.handed_out()
                yield batch
                timings.requested()
                del batch  # the consumer may drop it before the next one is made
                if memory is not None:
                    run.free(memory)
                self._workers.check_process()
                self._make_ahead(wait=False)

    def check_start(self) -> None:
        """Raise OpError when nothing was handed out because the loaded state lies after the end of the epoch."""
        if self.progress.position is self._start:
            check_start(self._start, self.run.table.num_known, self._assignment, self._skips)

    def _make_ahead(self, *, wait: bool) -> None:
        """Let the workers make the next batches; with `wait` there is at least one, unless the epoch has ended."""
        self.run.fill()  # after each batch: the last of a window makes room for another one
        while len(self._ahead) <= self._workers.count:
            tasks = self._next_tasks(wait=wait and not self._ahead)
            if not tasks:
                return
            self._is_first = False
            self._ahead.append(self._workers.submit(partial(self.run.make, tasks), urgent=True))

    def _next_tasks(self, *, wait: bool) -> list[Any]:
        """Return the next batches to make in one task; none if that requires waiting, or there are no more."""
        tasks: list[Any] = []
        cells = 0
        most = 1 if self._is_first else _MOST_BATCHES  # the first batch should not wait for seven others
        while len(tasks) < most and cells < _MOST_CELLS:
            task = self._next(wait=wait and not tasks)
            if task is None:
                break
            tasks.append(task)
            cells += task.size.cells
        return tasks

    def _next(self, *, wait: bool) -> Any | None:
        """Return the next task; None if that requires waiting, and after the last."""
        assignment, skips, run = self._assignment, self._skips, self.run
        if self._stop is not None and skips.number(self._index + assignment.rank) >= self._stop:
            return None
        if skips and not self._pass_over(wait=wait):
            return None
        while isinstance(found := assigned_entry(run.table, self._index, assignment, skips), Missing):
            if not run.plan(found, wait=wait):
                return None
        if found is None:
            return None
        if found.row is None or found.fill:
            task = self._filler(found, wait=wait)
        else:
            task = run.of(found.row, found.next, wait=wait)
        if task is not None:
            self._index += assignment.stride
            if self.rows_passed:
                task = task._replace(passed=self.rows_passed)
                self.rows_passed = 0
        return task

    def dropped(self) -> Any | None:
        """Return the task that the rank would have in the last round if it is incomplete and dropped; otherwise
        None.
        """
        assignment = self._assignment
        own = self._skips.number(self._index + assignment.rank)
        if assignment.world_size == 1 or assignment.tail != "drop" or self.run.table.has(own) is not True:
            return None
        return task_at(self.run, own, wait=True)

    def _filler(self, found: AssignedEntry, *, wait: bool) -> Any | None:
        if found.row is None:
            repeated = task_at(self.run.first(), found.number, wait=True)
            assert repeated is not None
            return repeated._replace(next=found.next, fill=found.fill)
        task = self.run.of(found.row, found.next, wait=wait)
        return None if task is None else task._replace(size=NO_ROWS, fill="pad")

    def _pass_over(self, *, wait: bool) -> bool:
        """Count the data rows that are skipped before or in the next round; exactly one rank counts each.

        Return False if that requires waiting.
        """
        assignment, run = self._assignment, self.run
        stop = self._skips.number(self._index + assignment.world_size - 1)
        for number in self._skips.between(self._passed_until, stop):
            while isinstance(found := run.table.has(number), Missing):
                if not run.plan(found, wait=wait):
                    return False
            if not found:  # a span may be longer than any epoch
                break
            if number % assignment.stride == assignment.first(0) + assignment.rank:
                rows = run.rows_passed(number)
                if rows is None:
                    task = task_at(run, number, wait=wait)
                    if task is None:
                        return False
                    rows = task.size.begun
                self.rows_passed += rows
            self._passed_until = number + 1
        return True
