"""The table of a mix: its rows refer to rows of the tables of its members, in an order set by weights and a seed."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, NoReturn

import numpy as np

from seqflow.errors import OpError, OpMemoryError
from seqflow.kernels.arrays import Array
from seqflow.kernels.error import KernelMemoryError
from seqflow.kernels.memory import check_memory
from seqflow.loader.epoch.quotas import Quotas
from seqflow.loader.epoch.table import Missing, Numbering, Table
from seqflow.loader.epoch.weights import LARGEST, Schedule, Weight, assigned, settled, shares_of
from seqflow.ops.shared.random_bits import sequence_bits, uniform

_PASSES = 1 << 20
"""Most passes over a source in an epoch: an epoch with more is refused as endless."""


_NEVER = 2.0**50
"""No epoch has this many batches; up to here, numbers of batches are exact as floats."""


_CHUNK = 2048
"""Batches whose sources are found together: merging so many takes 0.1 ms, and few are computed without being used."""


class Chunk(NamedTuple):
    """Sources of consecutive batches of a mix."""

    members: list[int]
    """Source of each batch."""
    numbers: list[int]
    """Number of each batch in its source."""
    before: list[int]
    """For each source, the number of its batches before the first of these."""
    places: list[list[int]]
    """For each source, the numbers of its batches in the mix."""


class FixedOrder:
    """Order of sources with fixed weights: batch j of a source is due at (j + phase) / share.

    Therefore a batch is found without those before it. A source whose weight is 0 is never due.
    """

    def __init__(self, weights: Sequence[float], phases: Array) -> None:
        self._shares, self._phases = np.array(weights) / sum(weights), phases
        self.settled = int(_NEVER)
        """From this batch on, no batch comes: numbers end."""

    def members(self, start: int, count: int) -> tuple[Array, Array]:
        """int64 twice: the sources of `count` batches from `start` on, and the number of earlier batches of
        each source.
        """
        # of the first n batches a source has n * share, give or take share * sources + 1; floats round
        margin = self._shares * len(self._shares) + 2 + (start + count) * self._shares / _NEVER
        lows = np.maximum(0, np.floor(start * self._shares - margin)).astype(np.int64)
        highs = np.ceil((start + count) * self._shares + margin).astype(np.int64)
        each = [np.arange(low, high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            due = np.concatenate(
                [
                    (ones + phase) / share
                    for ones, phase, share in zip(each, self._phases, self._shares, strict=True)
                ]
            )
        members = np.repeat(np.arange(len(each)), [len(ones) for ones in each])
        # equal due times are ordered by source, so that all ranks find the same order
        members = members[np.lexsort((members, due))]
        skipped = max(0, start - int(lows.sum()))
        before = lows + np.bincount(members[:skipped], minlength=len(lows))
        return members[skipped : skipped + count], before

    def near(self, member: int, number: int) -> int | None:
        """Return a batch at most one chunk away from batch `number` of a source; None if it has no such batch."""
        share = self._shares[member]
        due = (number + self._phases[member]) / share if share else _NEVER
        return int(due) if due < _NEVER else None


class ScheduledOrder:
    """Order of sources whose weights change with the number of the batch; it is computed from the first batch on."""

    def __init__(self, weights: Sequence[Weight], phases: Array) -> None:
        self.shares = shares_of(weights)
        self.settled = settled(self.shares)
        """From this batch on, no batch comes from a source whose weight stays at 0."""
        self._order = np.argsort(np.argsort(phases, kind="stable"), kind="stable")
        self._members = np.zeros(0, np.int32)
        self._before = np.zeros((1, len(weights)), np.int64)
        """For each chunk, the number of earlier batches of each source."""

    def members(self, start: int, count: int) -> tuple[Array, Array]:
        self._grow(start + count)
        before = self._before[start // _CHUNK]
        return self._members[start : start + count].astype(np.int64), before

    def near(self, member: int, number: int) -> int | None:
        while self._before[-1, member] <= number:
            if self.shares.end(member) is not None and len(self._members) >= self.settled:
                return None  # its weight is 0 from here on: this ends every search
            self._grow(len(self._members) + 1)
        return (bisect_right(self._before[:, member].tolist(), number) - 1) * _CHUNK

    def _grow(self, count: int) -> None:
        """Compute the sources of at least so many batches."""
        if count <= len(self._members):
            return
        # twice as many as needed: the order can only be computed from its beginning
        chunks = -(-2 * count // _CHUNK)
        try:
            check_memory((4, chunks * _CHUNK), np.dtype(np.int64))
        except KernelMemoryError as error:
            raise OpMemoryError(f"Mix: the order of {chunks * _CHUNK} batches: {error}") from None
        found = assigned(self.shares, chunks * _CHUNK, self._order)
        of_chunk = np.repeat(np.arange(chunks), _CHUNK) * len(self._order) + found
        counts = np.bincount(of_chunk, minlength=chunks * len(self._order)).reshape(chunks, -1)
        self._members = found.astype(np.int32)
        self._before = np.concatenate([self._before[:1] * 0, np.cumsum(counts, axis=0)])


class Picks:
    """Sources of each batch of an epoch, and the numbers of their batches; in a mix of rows, each batch has rows
    of all sources, and the numbers are those of rows.
    """

    def __init__(self, weights: Sequence[Weight], rows: int | None, key: int) -> None:
        self._weights = weights
        phases = uniform(sequence_bits(key, len(weights)))
        fixed = [weight for weight in weights if not isinstance(weight, Schedule)]
        self._scheduled = None if len(fixed) == len(weights) else ScheduledOrder(weights, phases)
        self._order = self._scheduled or FixedOrder(fixed, phases)
        self.quotas = None if rows is None else Quotas(fixed, rows, phases.tolist())
        """Rows of each source in each batch; None if each batch comes from one source."""
        # a cache on the method would be shared by all mixes, and keep them in memory
        self._chunk = lru_cache(maxsize=4)(self._found)

    def spans(self, number: int) -> list[tuple[int, int, int]]:
        """Return members, each with the first of its batches or rows, and the one after the last."""
        if self.quotas is None:
            return [(member, of_member, of_member + 1) for member, of_member in self.of(number)]
        found = zip(self.quotas.before(number), self.quotas.before(number + 1), strict=True)
        return [(member, start, stop) for member, (start, stop) in enumerate(found) if start < stop]

    def of(self, number: int) -> list[tuple[int, int]]:
        """Return the member, and the number of its batch, if each batch comes from one source."""
        chunk, at = self._chunk(number // _CHUNK), number % _CHUNK
        return [(chunk.members[at], chunk.numbers[at])]

    def before(self, member: int, batch: int) -> int:
        """Return the number of batches, or rows, of a member before a batch of the mix."""
        if self.quotas is not None:
            return self.quotas.before(batch)[member]
        chunk = self._chunk(batch // _CHUNK)
        return chunk.before[member] + bisect_left(chunk.places[member], batch)

    def row(self, member: int, number: int) -> int | None:
        """Return the batch of the mix that has batch, or row, `number` of a member; None if there is none."""
        if self.quotas is not None:
            return self.quotas.batch_of(member, number)
        near = self._order.near(member, number)
        if near is None:
            return None
        at = near // _CHUNK
        while (chunk := self._chunk(at)).before[member] > number:
            at -= 1
        while chunk.before[member] + len(chunk.places[member]) <= number:
            at += 1
            chunk = self._chunk(at)
        return chunk.places[member][number - chunk.before[member]]

    def end_of(self, member: int, count: int) -> int | None:
        """Return the batch of the mix before which a member with so many batches, or rows, is exhausted.

        That is the batch for which it has none; in a mix of rows the one after its last row, whose batch is
        completed by the next pass.
        """
        row = self.row(member, count - (self.quotas is not None))
        return row if row is None or self.quotas is None else row + 1

    def check_end(self, counts: Sequence[int | None]) -> None:
        """Raise OpError when an epoch that ends with the last source is endless; `counts` has the known counts."""
        shares = self._scheduled.shares if self._scheduled else shares_of(self._weights)
        each = 1 if self.quotas is None else self.quotas.n
        stops = {}
        for member, count in enumerate(counts):
            if self._weights[member] != 0:
                target = min(-(-(count or 1) // each), LARGEST) * shares.unit
                reached = int(shares.reached(member, np.array([target]), LARGEST + 1)[0])
                stops[member] = min(reached, shares.end(member) or LARGEST + 1)
        shortest = min((stop for member, stop in stops.items() if counts[member]), default=LARGEST)
        member = max(stops, key=lambda member: stops[member])
        if stops[member] > min(LARGEST, _PASSES * shortest):
            raise OpError(
                f"Mix: the weight of source {member} is {self._weights[member]!r}, so small that an epoch "
                f"with stop='all' would have more than {min(LARGEST, _PASSES * shortest):,} batches\n"
                "  raise the weight, leave the source out, or use stop='first'"
            )

    def end(self, member: int) -> int | None:
        """Return the batch from which on a member has a weight of 0; None if its weight stays above 0."""
        if self._weights[member] == 0:
            return 0
        return None if self._scheduled is None else self._scheduled.shares.end(member)

    def would_come(self, member: int, batch: int) -> bool:
        """Return whether a member without batches ends the mix before the batch after this one; if it has a
        weight from the beginning, it always does.
        """
        weight = self._weights[member]
        if (weight.at(0) if isinstance(weight, Schedule) else weight) > 0:
            return True
        return weight != 0 and self.before(member, batch + 1) > 0

    def total(self, counts: Mapping[int, int], stop: str) -> int:
        """Return the number of batches of an epoch, from the batches, or rows, of a pass over each member."""
        if stop == "all":
            self.check_end([counts.get(member, 0) for member in range(len(self._weights))])
            ends = [
                min(end for end in (self.end_of(*of), self.end(of[0])) if end is not None)
                for of in counts.items()
            ]
            return max(ends, default=0)
        found: list[int] = []
        quotas = self.quotas
        least = {of: 0 if quotas is None else quotas.earliest(*of) or 0 for of in counts.items()}
        for of in sorted(least, key=lambda of: least[of]):
            # a row of a source that comes rarely takes long to be found
            if least[of] <= min(found, default=least[of]) and (row := self.row(*of)) is not None:
                found.append(row)
        return min(found, default=0)

    def numbering(self, member: int, done: int) -> Numbering:
        """Return the numbering in the mix of the batches, or rows, of a member, after `done` of earlier passes."""

        def outer(numbers: Array) -> Array:
            if self.quotas is not None and len(numbers):
                # a batch has many rows: look up batches, not rows
                first, last = (self.row(member, int(numbers[at]) + done) for at in (0, -1))
                assert first is not None
                assert last is not None
                before = [self.before(member, batch) for batch in range(first, last + 1)]
                return first + np.searchsorted(before, numbers + done, side="right") - 1
            rows = [self.row(member, number) for number in (numbers + done).tolist()]
            if None in rows:  # batches that never come belong where the last one is that does
                came = self.before(member, self._order.settled)
                last = self.row(member, came - 1) if came else 0
                rows = [last if row is None else row for row in rows]
            return np.array(rows, np.int64)

        return Numbering(outer, lambda number: self.before(member, max(0, number)) - done)

    def _found(self, at: int) -> Chunk:
        members, before = self._order.members(at * _CHUNK, _CHUNK)
        numbers = np.empty_like(members)
        places = [np.flatnonzero(members == member) for member in range(len(before))]
        for member, of in enumerate(places):
            numbers[of] = before[member] + np.arange(len(of))
        of_mix = [(of + at * _CHUNK).tolist() for of in places]
        return Chunk(members.tolist(), numbers.tolist(), before.tolist(), of_mix)


_AT_ONCE = 256
"""Rows looked up together. More would begin passes of a short member that lie after the end of the epoch."""


class MixRow(NamedTuple):
    """One batch of a mix."""

    number: int
    parts: tuple[tuple[int, int, int, int], ...]
    """Member, pass, and the first of the rows of its table and the one after the last, of each part."""


class MixTable:
    """The batches of a mix by their numbers: row k exists if each member has its last row before row k + 1.

    With `stop="all"`, an exhausted member begins another pass in a new order: `table_of` gives the table of a
    member and a pass. `refuse` raises the error for a member without rows. `start` is the row at which a run
    goes on.
    """

    what = "Mix"
    """Name of the mix in errors."""

    def __init__(
        self,
        picks: Picks,
        table_of: Callable[[int, int], Table],
        counts: Sequence[list[int]],
        stop: str,
        refuse: Callable[[int], NoReturn],
        start: int = 0,
    ) -> None:
        self.picks, self._table_of, self.counts = picks, table_of, counts
        """`counts` has the number of rows of each pass of a member that has ended."""
        self.total: int | None = None
        self._stops_first, self._refuse = stop == "first", refuse
        self._first_ends = [picks.end_of(at, ended[0]) if ended else None for at, ended in enumerate(counts)]
        """For each member, the row at which its first pass has ended."""
        self._empty: list[int] = []
        """Members whose first pass has no rows."""
        self._known = start
        """All rows before this one are known to exist."""

    def check_end(self) -> None:
        """Raise OpError when the epoch is endless, judged by the rows of first passes that are known so far."""
        if not self._stops_first:
            # where a table is not counted, it has at least the rows that are planned
            self.picks.check_end(
                [
                    ended[0] if ended else self._table_of(member, 0).num_known
                    for member, ended in enumerate(self.counts)
                ]
            )

    def has(self, k: int) -> bool | Missing:
        """Return whether row k exists, or the window of a member that has to be planned first."""
        while self.total is None and self._known <= k:
            upto = min(k, self._known + _AT_ONCE)
            found = self._look(upto)
            if isinstance(found, Missing):
                return found
            if found:
                self._known = upto + 1
        return self.total is None or k < self.total

    def find(self, k: int) -> MixRow | Missing | None:
        """Return row k; None after the last; or the window of a member that has to be planned first."""
        found = self.has(k)
        if isinstance(found, Missing):
            return found
        if not found:
            return None
        return MixRow(k, tuple(part for of in self.picks.spans(k) for part in self._parts(*of)))

    def _parts(self, member: int, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield member, pass and rows of some rows of a member, which are counted over all passes."""
        ends = list(accumulate(self.counts[member], initial=0))
        while start < stop:
            at = bisect_right(ends, start) - 1
            end = stop if at + 1 == len(ends) else min(stop, ends[at + 1])
            yield member, at, start - ends[at], end - ends[at]
            start = end

    def passes_before(self, member: int, row: int) -> list[int]:
        """Return the number of rows of each ended pass of a member, once all rows before `row` were looked up."""
        counts = self.counts[member]
        rows = self.picks.before(member, row)
        return counts[: bisect_right(list(accumulate(counts)), rows - 1)]

    @property
    def num_known(self) -> int:
        """Number of rows, or of rows that are known so far."""
        return self._known if self.total is None else self.total

    def _look(self, k: int) -> bool | Missing:
        """Look up the rows up to k in all members; set `total` if the epoch ends before row k + 1."""
        ends: list[int] = []
        for member in range(len(self.counts)):
            # a source without rows is found at once
            first = 0 if self.picks.would_come(member, 0) else -1
            if self.picks.quotas is not None and not self._stops_first:
                first = max(first, self.picks.before(member, k))  # its last row may have come before
            end = self._end_of(member, max(first, self.picks.before(member, k + 1) - 1))
            if isinstance(end, Missing):
                return end
            if end is not None:
                ends.append(end)
        if not self._stops_first:
            over = [self._over(member, k) for member in range(len(self.counts))]
            known = [one for one in over if one is not None]
            if len(known) == len(over):
                ends.append(max(known))
        if not ends:
            return True
        self.total = min(ends)
        for member in self._empty:
            if self.picks.would_come(member, self.total):
                self._refuse(member)
        for member, ended in enumerate(self.counts):
            # a pass that began after the end of the epoch has not begun
            while ended and self.picks.before(member, self.total + 1) <= sum(ended):
                ended.pop()
        return k < self.total

    def _end_of(self, member: int, j: int) -> int | Missing | None:
        """Return the row at which the epoch ends because a member has no j-th row; None if it has one."""
        ended = self.counts[member]
        while True:
            number, done = len(ended), sum(ended)
            if j < done:
                return None
            table = self._table_of(member, number)
            found = table.has(j - done)
            if isinstance(found, Missing):
                return found._replace(member=member, number=number)
            if found:
                return None
            assert table.total is not None
            if table.total == 0:
                self._empty.append(member)
            if self._stops_first or table.total == 0:
                return self.picks.row(member, done + table.total)
            ended.append(table.total)
            if self._first_ends[member] is None:
                self._first_ends[member] = self.picks.end_of(member, done + table.total)
                self.check_end()

    def _over(self, member: int, k: int) -> int | None:
        """Return the row from which on a member is exhausted, or has a weight of 0, if it is at most row k."""
        found = (self._first_ends[member], self.picks.end(member))
        return min((one for one in found if one is not None and one <= k), default=None)
