"""The batches of one rank in one epoch, made ahead of whoever takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any, Protocol

from seqflow.loader.run.batch_of_step import batch_of_step
from seqflow.loader.run.making import Made
from seqflow.loader.run.source_run import SourceRun
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.turns import NextTurns, TurnsByNumber, TurnsOfRank
from seqflow.loader.run.workers import Task, Workers
from seqflow.loader.schedule.state import Position, Progress, check_start
from seqflow.record import Record
from seqflow.record.batch_memory import BatchMemory

_MOST_BATCHES = 8
_MOST_CELLS = 1 << 19
"""A task makes several small batches: at most so many, of so many cells together. Handing a task to a thread costs as
much as gathering a small batch."""


class Making(Protocol):
    """What an iteration is over: it makes turns into batches, hands these out, and counts."""

    def fill(self) -> None:
        """Begin to read the next windows."""

    def make(self, turns: list[Any]) -> list[Any]:
        """The batches of some turns, in any thread, up to the first error, which has the field `error`."""

    def hand_out(self, made: Any) -> tuple[Record, BatchMemory | None]:
        """The batch as the user gets it, and the memory it lies in until the next one; the place is after it then."""

    def free(self, memory: BatchMemory) -> None:
        """Take back the memory of the last batch."""

    def end(self) -> None:
        """Count what is in no batch."""


class BatchIterator:
    """One iteration: the thread that iterates hands out; windows are read, and batches made, ahead by the workers."""

    def __init__(self, making: Making, turns: NextTurns, workers: Workers, stats: Stats) -> None:
        self._making, self._turns, self._workers, self._stats = making, turns, workers, stats
        self._ahead: deque[Task[list[Any]]] = deque()
        self._is_first = True

    def __iter__(self) -> Iterator[Record]:
        making = self._making
        while True:
            self._workers.check_process()
            making.fill()
            self._make_ahead(wait=True)
            if not self._ahead:
                making.end()
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
                batch, memory = making.hand_out(made)
                del made
                yield batch
                del batch  # the consumer may drop it before the next one is made
                if memory is not None:
                    making.free(memory)
                self._workers.check_process()
                self._make_ahead(wait=False)

    def _make_ahead(self, *, wait: bool) -> None:
        """Let the workers make the next batches; with `wait` there is at least one, unless this is the end."""
        while len(self._ahead) <= self._workers.count:
            turns = self._next_turns(wait=wait and not self._ahead)
            if not turns:
                return
            self._is_first = False
            self._ahead.append(self._workers.submit(partial(self._making.make, turns), urgent=True))

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


class SourceIteration:
    """An iteration over one source: the batches of a rank, of one part after another, or some by their numbers."""

    def __init__(
        self, run: SourceRun, workers: Workers, stats: Stats, numbers: Iterator[int] | None = None
    ) -> None:
        self.run, self._part = run, 0
        self.progress = Progress(run.epoch.start)
        epoch = run.epoch
        self._of_rank = (
            None
            if numbers is not None
            else TurnsOfRank(run.turns, epoch.start.batch, epoch.deal, epoch.skips)
        )
        """None where the batches are not those of a rank."""
        self._turns: NextTurns = self._of_rank or TurnsByNumber(run.turns, numbers or iter(()))
        self._workers, self._stats = workers, stats

    def __iter__(self) -> Iterator[Record]:
        return iter(BatchIterator(self, self._turns, self._workers, self._stats))

    def close(self) -> None:
        """Let go of what is in memory."""
        self.run.close()

    def parts(self, first: int) -> Iterator[PartBatches]:
        """The batches of each part of the only stream, from part `first` on."""
        epoch = self.run.epoch
        assert epoch.parts is not None
        for number in count(first):
            self._part = number
            self.run.begin_part(number)
            yield PartBatches(number, self)
            stop = epoch.parts.stop(number)
            if stop is None or epoch.layout.window((0, stop)) is None:
                return

    def check_start(self) -> None:
        """OpError where nothing was handed out because the state that was loaded lies after the end of the epoch."""
        epoch = self.run.epoch
        if self.progress.position is epoch.start:
            check_start(epoch.start, self.run.table.num_known, epoch.deal, epoch.skips)

    def fill(self) -> None:
        self.run.reader.fill()

    def make(self, turns: list[Any]) -> list[Made]:
        return self.run.maker.make(turns)

    def free(self, memory: BatchMemory) -> None:
        self.run.maker.free.append(memory)

    def hand_out(self, made: Made) -> tuple[Record, BatchMemory | None]:
        made = self.run.maker.finish(made)
        is_last = self.run.hand_out(made)
        self._note(made.turn.next, at_window_end=is_last)
        batch = made.batch
        assert batch is not None
        return (batch if made.turn.totals is None else batch_of_step(batch, made.turn)), made.memory

    def end(self) -> None:
        self.run.count_rest(self._of_rank)
        if self._of_rank is not None and self.run.note_end_of_part(self._part):
            # not the row after the last that is kept: those that are skipped before the end are counted
            self._note(self.run.table.streams[0].planned, at_window_end=True)

    def _note(self, following: int, *, at_window_end: bool) -> None:
        """Note the place after a batch: a run goes on at row `following`."""
        epoch, progress = self.run.epoch, self.progress
        progress.at_window_end = at_window_end
        progress.position = Position(epoch.start.epoch, following, self.run.checkpoint, epoch.deal.world_size)


class PartBatches:
    """The batches of one part; once they were handed out, all that is counted belongs to them and those before."""

    def __init__(self, number: int, of: SourceIteration) -> None:
        self.number, self._of = number, of

    def __iter__(self) -> Iterator[Record]:
        return iter(self._of)

    @property
    def is_full(self) -> bool:
        """Whether the part has reached its size; known when its batches were handed out."""
        parts = self._of.run.epoch.parts
        return parts is not None and parts.stop(self.number) is not None

    @property
    def num_batches(self) -> int:
        """The batches of the part, those that are skipped with them; known when its batches were handed out."""
        (stream,) = self._of.run.table.streams
        return stream.planned - stream.start_batch

    @property
    def last_batches(self) -> int:
        """The batches of its last window."""
        (stream,) = self._of.run.table.streams
        return stream.count_of(stream.stop - 1) or 0
