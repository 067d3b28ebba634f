"""The batches of one rank in one epoch, made ahead of whoever takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from seqflow.loader.epoch.deal import Skips
from seqflow.loader.epoch.ranks import Deal
from seqflow.loader.epoch.state import Progress, check_start
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.turns import TurnsOfRank
from seqflow.loader.run.workers import Task, Workers
from seqflow.record import Record
from seqflow.record.batch_memory import BatchMemory

_MOST_BATCHES = 8
_MOST_CELLS = 1 << 19
"""A task makes several small batches: at most so many, of so many cells together. Handing a task to a thread costs as
much as gathering a small batch."""


class Run(Protocol):
    """One pass over a source or a mix: it makes turns into batches, hands these out, and counts."""

    progress: Progress

    @property
    def start(self) -> Any: ...
    @property
    def table(self) -> Any: ...
    @property
    def turns(self) -> Any: ...
    @property
    def deal(self) -> Deal: ...
    @property
    def skips(self) -> Skips: ...

    def fill(self) -> None:
        """Begin to read the next windows."""

    def make(self, turns: list[Any]) -> list[Any]:
        """Make the batches of some turns, in any thread, up to the first error, which has the field `error`."""

    def hand_out(self, made: Any) -> tuple[Record, BatchMemory | None]:
        """Return the batch as the user gets it, and its memory until the next one; the progress is after it then."""

    def free(self, memory: BatchMemory) -> None:
        """Take back the memory of the last batch."""

    def end(self, turns: TurnsOfRank) -> None:
        """Count what is in no batch."""

    def sum_counts(self) -> None:
        """Bring the counts up to date."""

    def close(self) -> None:
        """Let go of what is in memory."""


class Iteration:
    """The batches of a rank: the thread that iterates hands out; the workers read windows and make batches ahead."""

    def __init__(self, run: Run, workers: Workers, stats: Stats) -> None:
        self.run, self._workers, self._stats = run, workers, stats
        self._turns = TurnsOfRank(run.turns, run.start.batch, run.deal, run.skips)
        self._ahead: deque[Task[list[Any]]] = deque()
        self._is_first = True

    @property
    def progress(self) -> Progress:
        return self.run.progress

    def __iter__(self) -> Iterator[Record]:
        run = self.run
        while True:
            self._workers.check_process()
            run.fill()
            self._make_ahead(wait=True)
            if not self._ahead:
                run.end(self._turns)
                return
            started = perf_counter()
            task = self._ahead.popleft()
            self._workers.help_until(task.done)
            chunk = task.result()
            self._stats.seconds_waiting += perf_counter() - started
            chunk.reverse()
            while chunk:
                made = chunk.pop()
                if made.error is not None:
                    raise made.error
                batch, memory = run.hand_out(made)
                del made
                yield batch
                del batch  # the consumer may drop it before the next one is made
                if memory is not None:
                    run.free(memory)
                self._workers.check_process()
                self._make_ahead(wait=False)

    def close(self) -> None:
        """Let go of what is in memory."""
        self.run.close()

    def check_start(self) -> None:
        """OpError where nothing was handed out because the state that was loaded lies after the end of the epoch."""
        run = self.run
        if self.progress.position is run.start:
            check_start(run.start, run.table.num_known, run.deal, run.skips)

    def _make_ahead(self, *, wait: bool) -> None:
        """Let the workers make the next batches; with `wait` there is at least one, unless this is the end."""
        while len(self._ahead) <= self._workers.count:
            turns = self._next_turns(wait=wait and not self._ahead)
            if not turns:
                return
            self._is_first = False
            self._ahead.append(self._workers.submit(partial(self.run.make, turns), urgent=True))

    def _next_turns(self, *, wait: bool) -> list[Any]:
        """The next batches to make in one task; none where that takes waiting, or there are no more."""
        turns: list[Any] = []
        cells = 0
        most = 1 if self._is_first else _MOST_BATCHES  # the first batch should not wait for seven others
        while len(turns) < most and cells < _MOST_CELLS:
            turn = self._turns.next(wait=wait and not turns)
            if turn is None:
                break
            turns.append(turn)
            cells += turn.size.cells
        return turns
