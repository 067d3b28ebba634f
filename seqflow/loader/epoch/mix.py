"""The table of a mix: its rows point at rows of the tables of its members, pass after pass."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from seqflow.loader.epoch.picks import Picks
from seqflow.loader.epoch.table import Missing, Table

_AT_ONCE = 256
"""Rows that are looked at together. More would begin passes of a short member that lie after the end of the epoch."""


class MixRow(NamedTuple):
    """One batch of a mix."""

    number: int
    parts: tuple[tuple[int, int, int], ...]
    """Member, pass, and row of its table."""


class Passes:
    """The tables of one member: that of its first pass, and of each pass after it, in a new order."""

    def __init__(self, make: Callable[[int], Table], ended: Sequence[int] = ()) -> None:
        self._make = make
        self.counts = list(ended)
        """The rows of each pass that has ended."""
        self._tables: dict[int, Table] = {}

    def table(self, number: int) -> Table:
        """The table of a pass."""
        if number not in self._tables:
            self._tables[number] = self._make(number)
        return self._tables[number]

    def of(self, j: int) -> tuple[int, int]:
        """Pass and row of row j, counted over all passes."""
        ends = list(accumulate(self.counts))
        at = bisect_right(ends, j)
        return at, j - (ends[at - 1] if at else 0)


class MixTable:
    """The batches of a mix by their numbers: row k is there if each member has its last row before row k + 1.

    With `stop="all"` a member that is exhausted begins another pass. `start` is the row at which a run goes on.
    """

    what = "Mix"
    """Name in errors."""

    def __init__(self, picks: Picks, members: Sequence[Passes], stop: str, start: int = 0) -> None:
        self.picks, self.members = picks, members
        self.total: int | None = None
        self._stops_first = stop == "first"
        self._first_ends: list[int | None] = [0 if one.counts else None for one in members]
        """For each member the row at which its first pass has ended."""
        self._known = start
        """The rows before this one are there."""

    def check_end(self) -> None:
        """OpError where the epoch has no end in sight, by the rows of first passes that are known so far."""
        if not self._stops_first:
            # where a table is not counted, it has at least the rows that are planned
            self.picks.check_end(
                [one.counts[0] if one.counts else one.table(0).num_known for one in self.members]
            )

    def has(self, k: int) -> bool | Missing:
        """Return whether there is row k, or the window of a member that has to be planned first."""
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
        return MixRow(k, tuple((member, *self.members[member].of(j)) for member, j in self.picks.of(k)))

    def passes_before(self, member: int, row: int) -> list[int]:
        """The rows of each pass of a member that has ended once all rows before `row` were looked at."""
        counts = self.members[member].counts
        rows = self.picks.before(member, row)
        return counts[: bisect_right(list(accumulate(counts)), rows - 1)]

    @property
    def num_known(self) -> int:
        """The number of rows, or of those that are known to be there."""
        return self._known if self.total is None else self.total

    def _look(self, k: int) -> bool | Missing:
        """Look at rows up to k in all members; it sets `total` where the epoch ends before row k + 1."""
        ends: list[int] = []
        for member in range(len(self.members)):
            end = self._end_of(member, self.picks.before(member, k + 1) - 1)
            if isinstance(end, Missing):
                return end
            if end is not None:
                ends.append(end)
        if not self._stops_first:
            over = [self._over(member, k) for member in range(len(self.members))]
            known = [one for one in over if one is not None]
            if len(known) == len(over):
                ends.append(max(known))
        if not ends:
            return True
        self.total = min(ends)
        for member, passes in enumerate(
            self.members
        ):  # a pass that began after the end of the epoch has not begun
            while passes.counts and self.picks.before(member, self.total + 1) <= sum(passes.counts):
                passes.counts.pop()
        return k < self.total

    def _end_of(self, member: int, j: int) -> int | Missing | None:
        """The row at which the epoch ends because a member has no row up to its j-th; None where it has."""
        passes = self.members[member]
        while True:
            number, done = len(passes.counts), sum(passes.counts)
            if j < done:
                return None
            table = passes.table(number)
            found = table.has(j - done)
            if isinstance(found, Missing):
                return found._replace(member=member, number=number)
            if found:
                return None
            assert table.total is not None
            end = self.picks.row(member, done + table.total)
            if self._stops_first or table.total == 0:
                return end
            passes.counts.append(table.total)
            if self._first_ends[member] is None:
                self._first_ends[member] = end
                self.check_end()

    def _over(self, member: int, k: int) -> int | None:
        """The row from which on a member is exhausted, or has a weight of 0, where that is at most row k."""
        found = (self._first_ends[member], self.picks.end(member))
        return min((one for one in found if one is not None and one <= k), default=None)
