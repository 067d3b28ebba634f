"""The batches of a server: made once for all who ask near in time, and kept in bounded memory.

Nothing that is kept decides what a batch is: each is a function of its epoch and number, and is made again when it is
no longer there.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from functools import reduce
from operator import add
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.loader import Loader, Mix
from seqflow.loader.epoch.assign_ranks import Assignment
from seqflow.loader.epoch.ranks import Ranks
from seqflow.loader.epoch.state import MixPosition, Place, Position
from seqflow.loader.epochs import reading
from seqflow.loader.plans.plan import NO_ROWS
from seqflow.loader.run.iterator import Run, RunOptions, task_by_number
from seqflow.loader.run.ledger import Stats
from seqflow.record import Record
from seqflow.serving.tickets import Ticket
from seqflow.serving.wire import EncodedBatch, encode

WINDOWS_OF_RUN = 8
"""Consecutive windows that one server prepares: with single windows, a reader was begun for each, at 4-9× the CPU."""
_REACH = 256
"""Batches that a producer makes on the way to a requested one, rather than beginning another producer there."""
_MOST_PRODUCERS = 8
_MOST_EPOCHS = 4
"""Epochs of which facts are kept."""


class CountedEpoch(NamedTuple):
    """Batches of an epoch, as far as they are known before reading."""

    total: int | None
    firsts: Array | None
    """int64: the first batch of each run of windows; None if batches are counted while they are read."""


class Segment(NamedTuple):
    """Batches that one producer makes: those of a run of windows, of one stream, or of an epoch."""

    first: int
    stop: int | None
    step: int = 1


class Producer:
    """A running iteration over a segment, for one client at a time."""

    def __init__(
        self,
        pipeline: Any,
        segment: Segment,
        start: Place,
        count: Callable[[Stats], None],
        *,
        counted: bool,
    ) -> None:
        self._opened = ExitStack()
        assignment = Assignment(Ranks(0, 1), 0, segment.step)
        handlers = pipeline.handlers()
        self.handler = next((one for one in handlers if one.policy.policy != "raise"), handlers[0])
        """Receiver of bad rows, with the limits of the job."""
        iteration = self._opened.enter_context(
            reading(pipeline, start, assignment=assignment, stop=segment.stop, handlers=handlers)
        )
        self._run, self._stats, self._derived = iteration.run, iteration._stats, pipeline.derived
        self._batches = iter(iteration)
        self.segment, self.step, self.counted, self._add = segment, segment.step, counted, count
        self.next = start.batch
        """Number of the batch that it makes next."""
        self.lock = threading.Lock()
        self.is_ended = False
        self.used = monotonic()

    @property
    def stats(self) -> Stats:
        self._run.sum_counts()
        return self._stats

    def make(self) -> tuple[int, EncodedBatch] | None:
        """Return the next batch with its number; None after the last."""
        before = self._counts()
        batch = next(self._batches, None)
        if batch is None:
            return None
        assert batch.number is not None
        sizes = [now - then for now, then in zip(self._counts(), before, strict=True)]
        facts: dict[str, Any] = {"size": sizes, "at_window_end": self._run.progress.at_window_end}
        if not self.counted:
            facts["place"] = self._run.progress.position.to_json()
        return batch.number, encode(batch, self._derived, facts)

    def _counts(self) -> list[int]:
        stats = self.stats
        return [stats.rows, stats.tokens, stats.cells, stats.shared]

    def close(self) -> None:
        """End the iteration, after the batch that is being made."""
        with self.lock:
            self.end()

    def end(self) -> None:
        """End the iteration; the caller holds the lock."""
        if not self.is_ended:
            self.is_ended = True
            self._add(self.stats)
            self._opened.close()


class Batches:
    """The encoded batches of a loader, by epoch, size of a step, and number."""

    def __init__(self, loader: Loader | Mix, memory: int) -> None:
        self.loader, self._memory = loader, memory
        self.streams = loader.streams if isinstance(loader, Loader) else 1
        self.counts: Counter[str] = Counter()
        self._lock, self._counting = threading.Lock(), threading.Lock()
        self._epochs: dict[int, CountedEpoch] = {}
        self._pipelines: dict[int, Any] = {}
        self._kept: OrderedDict[tuple[int, int, int], EncodedBatch] = OrderedDict()
        self._bytes = 0
        self._producers: dict[tuple[int, int, Segment, float], Producer] = {}
        self._ends: dict[int, int] = {}
        """Numbers of batches of epochs whose end was found while reading."""
        self._rows: dict[int, dict[Segment, tuple[int, int, Counter[str]]]] = {}
        """For each epoch and segment, the rows that were read: usable ones, bad ones, and the reasons."""
        self._refused: dict[int, Exception] = {}
        """Epochs with more bad rows than the job allows."""

    def epoch(self, epoch: int) -> CountedEpoch:
        """Return what is known of an epoch before reading; an index that is missing is made."""
        with self._counting:
            if epoch not in self._epochs:
                found = None
                if isinstance(self.loader, Loader):
                    found = self.loader.pipeline.first_batches(epoch, WINDOWS_OF_RUN)
                if found is None:
                    self._epochs[epoch] = CountedEpoch(self.pipeline(1).num_batches(epoch), None)
                else:
                    if not found[1]:
                        self.loader.take(1)  # all rows may be bad, which is an error
                    self._epochs[epoch] = CountedEpoch(found[1], found[0])
                while len(self._epochs) > _MOST_EPOCHS:
                    self._epochs.pop(next(iter(self._epochs)))
            return self._epochs[epoch]

    def end_of(self, epoch: int) -> int | None:
        """Return the number of batches of an epoch; None if its end is not known yet."""
        total = self.epoch(epoch).total
        return self._ends.get(epoch) if total is None else total

    def pipeline(self, size: int) -> Any:
        """Return the pipeline of all batches, in steps of a size."""
        if size not in self._pipelines:
            self._pipelines[size] = self.loader.pipeline.all_batches(size)
        return self._pipelines[size]

    def get(self, ticket: Ticket, number: int) -> EncodedBatch | None:
        """Return a batch of the epoch of a ticket; None if it has no such batch."""
        known = self.epoch(ticket.epoch)
        key = ticket.epoch, ticket.size, number
        while True:
            with self._lock:
                if (error := self._refused.get(ticket.epoch)) is not None:
                    raise error
                end = self._ends.get(ticket.epoch) if known.total is None else known.total
                if end is not None and number >= end:
                    return None
                found = self._kept.get(key)
                if found is not None:
                    self._kept.move_to_end(key)
                    self.counts["hits"] += 1
                    return found
                producer, old = self._producer(ticket, number, known)
            for one in old:
                one.close()
            with producer.lock:
                if producer.is_ended or producer.next > number:  # another client was here first
                    continue
                made = self._make(producer, ticket, known)
            if made is not None and made[0] == number:
                return made[1]

    def _make(
        self, producer: Producer, ticket: Ticket, known: CountedEpoch
    ) -> tuple[int, EncodedBatch] | None:
        """Return the next batch of a producer, which then is kept; the producer is closed after its last."""
        made = None
        try:
            made = producer.make()
        finally:
            if made is None:
                producer.end()
        with self._lock:
            if made is None:
                if producer.counted:
                    raise OpError(
                        f"serve: batch {producer.next} of epoch {ticket.epoch} did not come: the data have changed"
                    )
                self._ends[ticket.epoch] = producer.next
                self._check_rows(ticket.epoch, producer, at_end=True)
                return None
            number, batch = made
            # together: another client that sees the producer ahead must find the batch
            producer.next = number + producer.step
            self.counts["made"] += 1
            self._keep((ticket.epoch, ticket.size, number), batch)
            last = producer.segment.stop or known.total
            self._check_rows(ticket.epoch, producer, at_end=last is not None and producer.next >= last)
        return made

    def _check_rows(self, epoch: int, producer: Producer, *, at_end: bool) -> None:
        """Raise ProviderError when more rows of an epoch are bad than the job allows, of those that this server has
        read. Rows that it reads again count once; a share is that of whole segments.
        """
        stats, rows = producer.stats, self._rows.setdefault(epoch, {})
        while len(self._rows) > _MOST_EPOCHS:
            self._rows.pop(next(iter(self._rows)))
        found = stats.prepared, stats.bad_rows, stats.reasons + type(stats.reasons)()
        rows[producer.segment] = max(
            rows.get(producer.segment, found), found, key=lambda one: one[0] + one[1]
        )
        usable, bad, reasons = zip(*rows.values(), strict=True)
        counts = Stats(rows=sum(usable), bad_rows=sum(bad), reasons=reduce(add, reasons))
        try:
            producer.handler.check_bounds(counts, at_end=at_end)
            if self._ends.get(epoch) == 0:
                producer.handler.check(counts)
        except Exception as error:
            self._refused[epoch] = error
            raise

    def _keep(self, key: tuple[int, int, int], batch: EncodedBatch) -> None:
        """Keep a batch, which may be there: a producer makes all batches on its way. The oldest ones leave."""
        before = self._kept.pop(key, None)
        self._bytes += batch.nbytes - (0 if before is None else before.nbytes)
        self._kept[key] = batch
        while self._bytes > self._memory and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes

    def _producer(self, ticket: Ticket, number: int, known: CountedEpoch) -> tuple[Producer, list[Producer]]:
        """Return the producer that comes to a batch next, begun if there is none, and those to close for it."""
        counted = known.firsts is not None
        segment = self._segment(known, number)
        near = [
            one
            for (epoch, size, of, _), one in self._producers.items()
            if (epoch, size, of) == (ticket.epoch, ticket.size, segment)
            and not one.is_ended
            and one.next <= number
            and (not counted or number - one.next <= _REACH * segment.step)
        ]
        start = self._start(ticket, number, segment, counted=counted)
        found = max(near, key=lambda one: one.next, default=None)
        if found is None or (not counted and start.batch > found.next):
            found = Producer(self.pipeline(ticket.size), segment, start, self._add_stats, counted=counted)
            self._producers[ticket.epoch, ticket.size, segment, monotonic()] = found
            self.counts["opened"] += 1
        found.used = monotonic()
        most = max(_MOST_PRODUCERS, 2 * self.streams)
        by_use = sorted(self._producers.items(), key=lambda item: (not item[1].is_ended, item[1].used))
        old = [key for key, one in by_use[: max(0, len(by_use) - most)] if one is not found]
        return found, [self._producers.pop(key) for key in old]

    def _segment(self, known: CountedEpoch, number: int) -> Segment:
        if known.firsts is None:
            return Segment(0, None)
        if self.streams > 1:
            return Segment(number % self.streams, None, self.streams)
        at = int(np.searchsorted(known.firsts, number, side="right"))
        return Segment(int(known.firsts[at - 1]), int(known.firsts[at]) if at < len(known.firsts) else None)

    def _start(self, ticket: Ticket, number: int, segment: Segment, *, counted: bool) -> Place:
        """Return the place at which a producer of a segment begins for a batch."""
        beginning: Place = self.pipeline(ticket.size).beginning(ticket.epoch)
        if counted:
            # other ranks of the client need the batches from `low` on, too
            low = max(segment.first, min(ticket.low, number))
            low += (segment.first - low) % segment.step
            return beginning._replace(batch=low if number - low <= _REACH * segment.step else number)
        place = ticket.place
        if place is None or place["batch"] > number:
            return beginning
        if "members" in place:
            return MixPosition(ticket.epoch, place["batch"], 1, False, place["members"])
        return Position.from_json({**place, "ranks": 1})

    def empty(self, ticket: Ticket, number: int) -> EncodedBatch | None:
        """Return a batch without rows that has the tensors of another one, and its place."""
        if self.get(ticket, number) is None:
            return None
        pipeline = self.pipeline(ticket.size)
        counted = self.epoch(ticket.epoch).firsts is not None
        start = self._start(ticket, number, Segment(number, None), counted=counted)
        run: Run = pipeline.run(start, RunOptions.of_some(len(pipeline.members)))
        try:
            task = task_by_number(run, "batch", number, ticket.epoch)._replace(size=NO_ROWS, fill="pad")
            (made,) = run.make([task])
            if made.error is not None:
                raise made.error
            batch: Record = run.finished(made)
            return encode(batch, pipeline.derived, {"size": [0, 0, 0, 0]})
        finally:
            run.close()

    def _add_stats(self, stats: Stats) -> None:
        for name in _COUNTED:
            self.counts[name] += getattr(stats, name)

    def summary(self) -> dict[str, Any]:
        """Return the counts of all producers so far."""
        with self._lock:
            found = Counter(self.counts)
            running = [one for one in self._producers.values() if not one.is_ended]
        for name in _COUNTED:
            found[name] += sum(getattr(one._stats, name) for one in running)
        seconds = {name: found.pop(f"seconds_{name}") for name in _STAGES}
        slowest = max(seconds, key=lambda name: seconds[name])
        return {**found, "kept_bytes": self._bytes, "producers": len(running), "slowest": slowest}

    def close(self) -> None:
        """End all producers."""
        with self._lock:
            running = list(self._producers.values())
            self._producers.clear()
        for one in running:
            one.close()


_STAGES = "reading", "preparing", "planning", "making"
_COUNTED = "rows_read", "bad_rows", "filtered", "skipped", *(f"seconds_{name}" for name in _STAGES)
