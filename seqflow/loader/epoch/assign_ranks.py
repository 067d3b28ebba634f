"""Rows of the table of an epoch that belong together: those of a rank, and the windows it reads; those of a step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, islice, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from seqflow.errors import BatchPlanError, OpError, OpTypeError
from seqflow.json_schema import is_count
from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.mix import MixRow, MixTable
from seqflow.loader.epoch.ranks import Ranks, Tail
from seqflow.loader.epoch.table import OWN_NUMBERS, BatchEntry, Missing, Numbering, Table


@dataclass(frozen=True, slots=True)
class Assignment:
    """Batches that a worker of a rank makes: those of a rank are assigned to its workers in turn."""

    ranks: Ranks
    worker: int = 0
    workers: int = 1

    @property
    def rank(self) -> int:
        return self.ranks.rank

    @property
    def world_size(self) -> int:
        return self.ranks.world_size

    @property
    def tail(self) -> Tail:
        return self.ranks.tail

    @property
    def stride(self) -> int:
        """Distance from one batch of a worker to its next."""
        return self.ranks.world_size * self.workers

    def first(self, start: int) -> int:
        """Return the first batch of a worker's first round; `start` is the first batch that no one has got."""
        return start + self.ranks.world_size * self.worker

    @property
    def marks(self) -> tuple[str, ...]:
        """Marks in the names of files that tell ranks, and their workers, apart; empty if there is one."""
        rank = (f"rank{self.rank}",) if self.world_size > 1 else ()
        return (*rank, f"worker{self.worker}") if self.workers > 1 else rank


ALL_BATCHES = Assignment(Ranks(0, 1))
"""The batches of the only worker of a single rank."""


_AT_ONCE = 4096
"""Number of rows that are looked up together when windows are read ahead."""


AnyTable = Table | MixTable


class AssignedEntry(NamedTuple):
    """A row as one rank gets it."""

    row: BatchEntry | MixRow | None
    """The row; None if it is repeated."""
    number: int
    """Its number; for an empty batch, the number of the first row of the round, whose tensors it has."""
    fill: Literal["", "pad", "repeat"]
    """Whether and how it fills the last round: without rows, or with one of the epoch's first rows."""
    next: int
    """The first row of the next round of all ranks, where a state goes on."""


def assigned_entry(
    table: AnyTable, index: int, assignment: Assignment, skips: Skips
) -> AssignedEntry | Missing | None:
    """Return the row of a rank in the round that begins with kept row `index`; None if there is no such round.

    Kept rows are those that are not skipped. The function looks at one round of one table and reads nothing;
    therefore it ends, and a loop over rounds ends with the table. If a window has to be planned first, return
    that window.
    """
    ranks = assignment.ranks
    world_size = ranks.world_size
    own, after = index + ranks.rank, index + world_size * (assignment.workers - assignment.worker)
    if skips:
        own, after = skips.number(own), skips.number(after - 1) + 1
    if world_size > 1:
        # the last row of the round, not that of this rank: all ranks must agree whether it is complete
        whole = table.has(skips.number(index + world_size - 1))
        if isinstance(whole, Missing):
            return whole
        if not whole and (ranks.tail == "drop" or table.has(own) is not True):
            return _filler(table, index, assignment, skips)
    found = table.find(own)
    if found is None or isinstance(found, Missing):
        return found
    return AssignedEntry(found, own, "", after if table.total is None else min(after, table.total))


def _filler(
    table: AnyTable, index: int, assignment: Assignment, skips: Skips
) -> AssignedEntry | Missing | None:
    """Return the filler for a rank that has no row in the last, incomplete round."""
    total = table.total
    assert total is not None  # a row of the round is missing
    if assignment.tail == "drop":
        if index == 0:
            raise BatchPlanError(
                f"{table.what}: an epoch has fewer batches than world_size = {assignment.world_size}, and "
                "tail='drop' leaves none\n  use tail='pad' or 'repeat', or smaller batches"
            )
        return None
    first = skips.number(index)
    if not table.has(first):
        return None
    if assignment.tail == "repeat":
        return AssignedEntry(
            None, skips.number((index + assignment.rank) % skips.kept_before(total)), "repeat", total
        )
    found = table.find(first)
    if found is None or isinstance(found, Missing):
        return found
    return AssignedEntry(found, first, "pad", total)


def upcoming(
    table: Table,
    index: int,
    assignment: Assignment,
    skips: Skips,
    reach: Callable[[int], tuple[int, int, int]] | None = None,
    stop: int | None = None,
) -> Iterator[tuple[int, int]]:
    """Yield stream and position of the windows with rows for a rank, from kept row `index` on, in order, to
    read ahead.

    `reach` gives stream, first and last window of a row that is balanced with others. Rows from `stop` on are not
    read. If batches are
    counted while they are read, yield all windows from the first unplanned one on, without an end.
    """
    if not table.counted:
        (only,) = table.streams
        yield from ((0, at) for at in count(only.base + len(only.firsts) - 1))
        return
    seen = [-1] * len(table.streams)
    # a given total may exceed the batches by any amount: `find` refuses the first missing row
    rows = min(table.total or 0, table.turns.total or 0)
    kept = skips.kept_before(rows if stop is None else min(rows, stop))
    stride = min(assignment.stride, max(1, kept))  # a number of ranks may be beyond 64 bits
    for low in range(index + assignment.rank, kept, stride * _AT_ONCE):
        indices = np.arange(low, min(kept, low + stride * _AT_ONCE), stride)
        for stream, first, last in _windows(table, skips.numbers(indices), reach):
            if last > seen[stream]:
                positions, of = range(max(seen[stream] + 1, first), last + 1), table.streams[stream]
                # windows without batches need not be read
                yield from ((stream, at) for at in positions if of.crosses or of.count_of(at))
                seen[stream] = last


def _windows(
    table: Table, numbers: Array, reach: Callable[[int], tuple[int, int, int]] | None
) -> Iterator[tuple[int, int, int]]:
    """Yield stream, first and last window of the rows that reach further than the rows before them."""
    if reach is not None:
        yield from map(reach, numbers.tolist())
        return
    streams, firsts, lasts = table.windows_of(numbers)
    further = np.zeros(len(numbers), bool)
    for stream in np.unique(streams).tolist():
        of = np.flatnonzero(streams == stream)
        further[of] = np.diff(np.maximum.accumulate(lasts[of]), prepend=-1) > 0
    for at in np.flatnonzero(further).tolist():
        yield int(streams[at]), int(firsts[at]), int(lasts[at])


SkipSpan = tuple[int, int, int]
"""The first batch to omit, the one after the last, and the epoch."""


def spans_of(skip: Iterable[Sequence[int]] | None) -> tuple[SkipSpan, ...]:
    """Return the spans in order, each with its epoch; raise OpError when one is malformed, or two overlap."""
    if skip is None:
        return ()
    try:
        given = [tuple(one) for one in skip]
    except TypeError:
        raise OpTypeError.of("Loader.skip", f"is {skip!r}, expected {_EXPECTED}") from None
    spans = sorted((_span(one) for one in given), key=lambda span: (span[2], span))
    for one, following in pairwise(spans):
        if one[2] == following[2] and following[0] < one[1]:
            raise OpError.of(
                "Loader.skip",
                f"has {one[:2]} and {following[:2]} of epoch {one[2]}, which overlap\n  give one span",
            )
    return tuple(spans)


_EXPECTED = "spans such as [(5000, 5024)], or [(5000, 5024, 1)] of epoch 1"


def _span(one: tuple[Any, ...]) -> SkipSpan:
    numbers = (*one, 0) if len(one) == 2 else one
    if len(numbers) != 3 or not all(is_count(value) for value in numbers):
        raise OpError.of("Loader.skip", f"has {one!r}, expected {_EXPECTED}")
    start, stop, epoch = numbers
    if stop <= start:
        raise OpError.of("Loader.skip", f"has {one!r}, expected a first batch before the end")
    return start, stop, epoch


class Skips:
    """Omitted batches of an epoch; the others keep their numbers."""

    def __init__(self, spans: Iterable[SkipSpan], epoch: int) -> None:
        self.spans = [(start, stop) for start, stop, of in spans if of == epoch]
        lengths = accumulate((stop - start for start, stop in self.spans), initial=0)
        self._before = list(lengths)
        """Number of omitted batches before each span; the last entry is their total."""
        self._firsts = [start - before for (start, _), before in zip(self.spans, self._before, strict=False)]
        """Number of kept batches before each span."""
        self._starts = [start for start, _ in self.spans]

    def __bool__(self) -> bool:
        return bool(self.spans)

    def kept_before(self, number: int) -> int:
        """Return the number of kept batches before a batch."""
        at = bisect_right(self._starts, number) - 1
        if at < 0:
            return number
        start, stop = self.spans[at]
        return number - self._before[at] - (min(number, stop) - start)

    def number(self, index: int) -> int:
        """Return the number of a batch from its place among the kept ones."""
        return index + self._before[bisect_right(self._firsts, index)]

    def numbers(self, indices: Array) -> Array:
        """int64: `number` of many."""
        if not self.spans:
            return indices
        return np.asarray(
            indices + np.array(self._before)[np.searchsorted(self._firsts, indices, side="right")]
        )

    def after(self, batch: int) -> Skips:
        """Return the skips from a batch on; that batch becomes number 0."""
        return Skips(
            [(max(0, start - batch), stop - batch, 0) for start, stop in self.spans if stop > batch], 0
        )

    def between(self, start: int, stop: int) -> Iterator[int]:
        """Yield the omitted batches in a range."""
        at = max(0, bisect_right(self._starts, start) - 1)  # the last span that may begin before the range
        for first, end in islice(self.spans, at, None):
            if first >= stop:
                return
            yield from range(max(first, start), min(end, stop))


NO_SKIPS = Skips((), 0)


class StepPool(NamedTuple):
    """Rows of one stream that are in one pool of steps."""

    number: int
    """Number of the pool: that of its first step."""
    first: int
    """Place of the first of them in the stream."""
    numbers: Array
    """int64: their numbers in the epoch; for a source of a mix, in the epoch of the mix."""

    @property
    def stop(self) -> int:
        return self.first + len(self.numbers)


@dataclass(frozen=True, slots=True)
class Steps:
    """Consecutive batches, cut into steps of `size` from batch `base` on, and steps cut into pools of `pool` steps.

    Without `pool`, a pool has the steps that begin in one window.
    """

    size: int
    group: int
    pool: int | None
    ranks: Ranks
    base: int = 0
    numbering: Numbering = OWN_NUMBERS

    def of(self, numbers: Array) -> Array:
        """int64: the step of each batch of the sequence."""
        return (numbers - self.base) // self.size

    def columns(self, numbers: Array) -> Array:
        """int64: the rank of the group that gets each batch of the sequence."""
        return (numbers - self.base) % self.group

    def pool_of(self, table: Table, stream: int, place: int) -> StepPool | Missing:
        """Return the pool of a row that exists; if not all of its windows are planned, return the next one to
        plan.
        """
        step = self._step_of(table, stream, place)
        if self.pool is not None:
            first = step // self.pool * self.pool
            return self._there(table, stream, self._between(table, stream, first, first + self.pool))
        of = table.streams[stream]
        start, stop = of.span(of.window_of(self._between(table, stream, step, step + 1).first))
        first = self._step_of(table, stream, start)
        # a step that begins in an earlier window belongs to the pool of that window
        if start and self._step_of(table, stream, start - 1) == first:
            first += 1
        last = self._step_of(table, stream, stop - 1)
        return self._there(table, stream, self._between(table, stream, first, last + 1))

    def _step_of(self, table: Table, stream: int, place: int) -> int:
        numbers = table.turns.numbers(stream, np.array([place]))
        return int(self.of(self.numbering.outer(numbers))[0])

    def _between(self, table: Table, stream: int, first: int, stop: int) -> StepPool:
        """Return the rows of a stream from one step to before another."""
        begin, end = (max(0, self.numbering.inner(self.base + step * self.size)) for step in (first, stop))
        if table.total is not None:
            end = max(begin, min(end, table.total))
        turns = table.turns
        own = turns.before(stream, begin)
        numbers = turns.numbers(stream, np.arange(own, turns.before(stream, end)))
        return StepPool(first, own, self.numbering.outer(numbers))

    @staticmethod
    def _there(table: Table, stream: int, pool: StepPool) -> StepPool | Missing:
        """Return the rows of a pool that exist."""
        of = table.streams[stream]
        found = of.has(pool.stop - 1)
        if isinstance(found, Missing):
            return found._replace(stream=stream)
        return pool if found else pool._replace(numbers=pool.numbers[: of.planned - pool.first])
