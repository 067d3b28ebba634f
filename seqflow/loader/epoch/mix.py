"""The table of a mix: its rows refer to rows of the tables of its members, in an order set by weights and a seed."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, NoReturn

import numpy as np

from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.history import Change, Choice, Weights
from seqflow.loader.epoch.orders import BatchOrder
from seqflow.loader.epoch.quotas import Quotas
from seqflow.loader.epoch.table import Missing, Numbering, Table
from seqflow.loader.epoch.weights import LARGEST, Schedule, shares_of
from seqflow.ops.shared.random_bits import sequence_bits, uniform

_PASSES = 1 << 20
"""Most passes over a source in an epoch: an epoch with more is refused as endless."""


class Picks:
    """Sources of each batch of an epoch, and the numbers of their batches; in a mix of rows, each batch has rows
    of all sources, and the numbers are those of rows.

    They follow from the pieces of a history: each piece says which source is next from its first batch on, and
    how many batches, or rows, of a source came before a batch, after those that the pieces before it had reached.
    """

    def __init__(self, changes: Sequence[Change], rows: int | None, key: int) -> None:
        self.rows, self._key = rows, key
        """Rows of a batch in a mix of rows; None if each batch comes from one source."""
        self._changes: list[Change] = []
        self._starts: list[int] = []
        self._pieces: list[Quotas | BatchOrder] = []
        self._done: list[list[int]] = []
        """For each piece, the number of batches, or rows, of each member before it."""
        for change in changes:
            self.add(change)

    def add(self, change: Change) -> None:
        """Add weights from a batch on, in place of those that would begin there or later."""
        while self._starts and self._starts[-1] >= change.batch:
            for of in (self._changes, self._starts, self._pieces, self._done):
                of.pop()
        weights: Any = change.weights
        carried: Any = ()
        phases = uniform(sequence_bits(self._key, len(weights)))
        done = list(change.before or ())
        if self._pieces and not done:
            last, length = self._pieces[-1], change.batch - self._starts[-1]
            done = [sum(pair) for pair in zip(self._done[-1], last.counts(length), strict=True)]
            carried = last.carried(length)
        self._changes.append(change)
        self._starts.append(change.batch)
        self._done.append([*done, *[0] * (len(weights) - len(done))])
        if self.rows is None:
            self._pieces.append(BatchOrder(weights, change.batch, phases, carried))
        else:
            self._pieces.append(Quotas(weights, self.rows, phases.tolist(), carried))

    @property
    def weights(self) -> Weights:
        """Weights of the last piece."""
        return self._changes[-1].weights

    def _at(self, batch: int) -> tuple[Quotas | BatchOrder, int, list[int]]:
        """Return the piece that has a batch, the number of the batch in it, and the counts before the piece."""
        at = bisect_right(self._starts, batch) - 1
        return self._pieces[at], batch - self._starts[at], self._done[at]

    def spans(self, number: int) -> list[tuple[int, int, int]]:
        """Return members, each with the first of its batches or rows, and the one after the last."""
        piece, at, done = self._at(number)
        return [
            (member, done[member] + start, done[member] + stop) for member, start, stop in piece.spans(at)
        ]

    def before(self, member: int, batch: int) -> int:
        """Return the number of batches, or rows, of a member before a batch of the mix."""
        piece, at, done = self._at(batch)
        return done[member] + piece.before(member, at) if member < len(done) else 0

    def counts(self, batch: int) -> tuple[int, ...]:
        """Return the number of batches, or rows, of each member before a batch of the mix."""
        piece, at, done = self._at(batch)
        return tuple(map(sum, zip(done, piece.counts(at), strict=True)))

    def row(self, member: int, number: int) -> int | None:
        """Return the batch of the mix that has batch, or row, `number` of a member; None if there is none."""
        piece, start, done = self._of_row(member, number)
        found = None if piece is None else piece.batch_of(member, number - done)
        return None if found is None else start + found

    def _of_row(self, member: int, number: int) -> tuple[Quotas | BatchOrder | None, int, int]:
        """Return the piece that has batch, or row, `number` of a member, its first batch, and the member's before."""
        at = bisect_right(self._done, number, key=lambda of: of[member] if member < len(of) else 0) - 1
        is_there = member < len(self._done[at])
        return (
            self._pieces[at] if is_there else None,
            self._starts[at],
            self._done[at][member] if is_there else 0,
        )

    def earliest(self, member: int, number: int) -> int:
        """Return a batch before which batch, or row, `number` of a member does not come."""
        piece, start, done = self._of_row(member, number)
        return 0 if piece is None else start + (piece.earliest(member, number - done) or 0)

    def end_of(self, member: int, count: int) -> int | None:
        """Return the batch of the mix before which a member with so many batches, or rows, is exhausted.

        That is the batch for which it has none; in a mix of rows the one after its last row, whose batch is
        completed by the next pass.
        """
        row = self.row(member, count - (self.rows is not None))
        return row if row is None or self.rows is None else row + 1

    def check_end(self, counts: Sequence[int | None]) -> None:
        """Raise OpError when an epoch that ends with the last source is endless; `counts` has the known counts."""
        weights, begun = self.weights, self._starts[-1]
        assert not isinstance(weights, Choice)
        shares = shares_of([one.after(begun) if isinstance(one, Schedule) else one for one in weights])
        each = 1 if self.rows is None else self.rows
        stops = {}
        for member, count in enumerate(counts):
            if member < len(weights) and weights[member] != 0:
                target = (
                    min(max(1, -(-((count or 1) - self._done[-1][member]) // each)), LARGEST) * shares.unit
                )
                reached = int(shares.reached(member, np.array([target]), LARGEST + 1)[0])
                stops[member] = begun + min(reached, shares.end(member) or LARGEST + 1)
        shortest = min((stop for member, stop in stops.items() if counts[member]), default=LARGEST)
        member = max(stops, key=lambda member: stops[member])
        if stops[member] > min(LARGEST, _PASSES * shortest):
            raise OpError(
                f"Mix: the weight of source {member} is {weights[member]!r}, so small that an epoch "
                f"with stop='all' would have more than {min(LARGEST, _PASSES * shortest):,} batches\n"
                "  raise the weight, leave the source out, or use stop='first'"
            )

    def end(self, member: int) -> int | None:
        """Return the batch from which on a member has a weight of 0; None if its weight stays above 0."""
        following = None
        for change, start, piece in reversed([*zip(self._changes, self._starts, self._pieces, strict=True)]):
            found = piece.end(member) if member < len(change.weights) else 0
            if found != 0:
                return min(
                    (one for one in (found and start + found, following) if one is not None), default=None
                )
            following = start
        return 0

    def would_come(self, member: int, batch: int) -> bool:
        """Return whether a member without batches ends the mix before the batch after this one; if it has a
        weight from the beginning, it always does.
        """
        weights = self._changes[0].weights
        if not isinstance(weights, Choice):
            weight = weights[member] if member < len(weights) else 0.0
            if (weight.at(0) if isinstance(weight, Schedule) else weight) > 0:
                return True
            return self.before(member, batch + 1) > 0
        # the first function of a history may not be known
        return batch > 0 and self.before(member, batch + 1) > 0

    def total(self, counts: Mapping[int, int], stop: str) -> int:
        """Return the number of batches of an epoch, from the batches, or rows, of a pass over each member."""
        if stop == "all":
            self.check_end([counts.get(member, 0) for member in range(len(self._done[-1]))])
            ends = [
                min(end for end in (self.end_of(*of), self.end(of[0])) if end is not None)
                for of in counts.items()
            ]
            return max(ends, default=0)
        found: list[int] = []
        if isinstance(self.weights, Choice):
            # whatever is chosen, one of the sources is exhausted by then
            most = sum(counts.values())
            counts = {
                member: count for member, count in counts.items() if self.before(member, most + 1) > count
            }
        least = {of: self.earliest(*of) for of in counts.items()}
        for of in sorted(least, key=lambda of: least[of]):
            # a row of a source that comes rarely takes long to be found
            if least[of] <= min(found, default=least[of]) and (row := self.row(*of)) is not None:
                found.append(row)
        return min(found, default=0)

    def numbering(self, member: int, done: int) -> Numbering:
        """Return the numbering in the mix of the batches, or rows, of a member, after `done` of earlier passes."""

        def outer(numbers: Array) -> Array:
            if self.rows is not None and len(numbers):
                # a batch has many rows: look up batches, not rows
                first, last = (self.row(member, int(numbers[at]) + done) for at in (0, -1))
                assert first is not None
                assert last is not None
                before = [self.before(member, batch) for batch in range(first, last + 1)]
                return first + np.searchsorted(before, numbers + done, side="right") - 1
            rows = [self.row(member, number) for number in (numbers + done).tolist()]
            if None in rows:  # batches that never come belong where the last one is that does
                last_piece = self._pieces[-1]
                assert isinstance(last_piece, BatchOrder)
                came = self.before(member, self._starts[-1] + last_piece.settled)
                last = self.row(member, came - 1) if came else 0
                rows = [last if row is None else row for row in rows]
            return np.array(rows, np.int64)

        return Numbering(outer, lambda number: self.before(member, max(0, number)) - done)


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
        self.picks, self._table_of, self.counts = picks, table_of, [*counts]
        """`counts` has the number of rows of each pass of a member that has ended."""
        self.total: int | None = None
        self._stops_first, self._refuse = stop == "first", refuse
        self._first_ends = [picks.end_of(at, ended[0]) if ended else None for at, ended in enumerate(counts)]
        """For each member, the row at which its first pass has ended."""
        self._empty: list[int] = []
        """Members whose first pass has no rows."""
        self._known = self._start = start
        """All rows before this one are known to exist."""
        self._lasting = [at for at in range(len(counts)) if not self._is_over(at)]
        """Members that come after the first row, so that their tables are needed."""

    def change(self, change: Change) -> None:
        """Go on with other weights from a batch on: forget what was found of the rows from there on."""
        self.picks.add(change)
        if self.total is None or self.total >= change.batch:
            self.total, self._known = None, min(self._known, change.batch)
        self.counts += [[] for _ in range(len(change.weights) - len(self.counts))]
        for member, ended in enumerate(self.counts):
            while ended and self.picks.before(member, change.batch) <= sum(ended):
                ended.pop()
        self._first_ends = [self.picks.end_of(at, of[0]) if of else None for at, of in enumerate(self.counts)]
        self._lasting = [at for at in range(len(self.counts)) if not self._is_over(at)]
        self.check_end()

    def _is_over(self, member: int) -> bool:
        """Return whether a member does not come any more from the first row on, so that its table is not needed."""
        end = self.picks.end(member)
        return end is not None and end <= self._start

    def check_end(self) -> None:
        """Raise OpError when the epoch is endless, judged by the rows of first passes that are known so far."""
        if not self._stops_first:
            # where a table is not counted, it has at least the rows that are planned
            self.picks.check_end(
                [
                    ended[0]
                    if ended
                    else None
                    if self._is_over(member)
                    else self._table_of(member, 0).num_known
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
        first_ends = [*self._first_ends]
        ends = self._ends(k)
        if self._first_ends != first_ends:  # once for all members: each check walks over all of them
            self.check_end()
        if isinstance(ends, Missing):
            return ends
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

    def _ends(self, k: int) -> list[int] | Missing:
        """Return the rows up to k + 1 at which the epoch ends because a member has no further row."""
        ends: list[int] = []
        for member in self._lasting:
            # a source without rows is found at once
            first = 0 if self.picks.would_come(member, 0) else -1
            if self.picks.rows is not None and not self._stops_first:
                first = max(first, self.picks.before(member, k))  # its last row may have come before
            end = self._end_of(member, max(first, self.picks.before(member, k + 1) - 1))
            if isinstance(end, Missing):
                return end
            if end is not None:
                ends.append(end)
        return ends

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

    def _over(self, member: int, k: int) -> int | None:
        """Return the row from which on a member is exhausted, or has a weight of 0, if it is at most row k."""
        found = (self._first_ends[member], self.picks.end(member))
        return min((one for one in found if one is not None and one <= k), default=None)
