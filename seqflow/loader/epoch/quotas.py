"""Rows that each source gives to each batch of a mix of rows: proportions with remainders that carry over."""

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

_UNIT = 1 << 64
"""Part of a row in which shares are measured: integers, so that sums are exact on all machines."""
_CHUNK = 256
"""Batches that are computed together, in about a millisecond."""


class Quotas:
    """Rows of each of m sources in the first k batches of n rows: all integers, together k * n, never falling.

    Let x be a source's share of the first k batches, and e = 1 / (2m - 2). Row j of the source may come once x
    has reached j + e, and must come before x exceeds j + 1 - e: therefore each source is at most 1 - e rows
    away from its share after any number of batches. Of the rows that may come, those come first that are due
    first, which keeps all of these bounds (Tijdeman's chairman assignment). A batch is a function of its number:
    which rows have come after k batches follows from the rows that came since the slowest source was last due,
    because all rows that could have come before are due by then. So it is computed from there, or from a batch
    before, and from nothing else.

    `owed` are the rows that each source had in earlier pieces of a history less than its share, by which its rows
    are due earlier. Others that are ahead then have to wait, so that up to m rows may come after they are due.
    """

    def __init__(
        self, weights: Sequence[float], n: int, order: Sequence[int], owed: Sequence[Fraction] = ()
    ) -> None:
        total, step = sum(map(Fraction, weights)), max(2 * sum(weight > 0 for weight in weights) - 2, 2)
        self._unit, self.n, self._order = step * _UNIT, n, order
        """Units of a row; rows of a batch; the order of sources whose rows are due at the same time."""
        self._shares = [int(Fraction(weight) / total * self._unit) for weight in weights]
        self._shares[self._shares.index(max(self._shares))] += self._unit - sum(self._shares)
        on = [member for member, share in enumerate(self._shares) if share]
        slowest = min(self._shares[member] for member in on) * n
        self._owed = [*owed, *[Fraction(0)] * (len(weights) - len(owed))]
        # those of sources that do not come any more are divided among the others
        left = sum((self._owed[member] for member in on), Fraction(0))
        self._owed = [
            one - left * share / self._unit for one, share in zip(self._owed, self._shares, strict=True)
        ]
        self._begun = [
            int(self._owed[at] * self._unit) if share else 0 for at, share in enumerate(self._shares)
        ]
        self._begun[on[0]] -= sum(self._begun)
        """Units of each source before the first batch."""
        self._late = 2 * len(on) if any(self._begun) else 0
        """Batches by which a row may come after it is due."""
        self._lag = -(-(self._unit - 2 * _UNIT) // slowest) + 1 + self._late
        """Batches in which all rows come that could come before them."""
        self._last: tuple[int, list[int]] = 0, [0] * len(self._shares)
        """The batch after the last chunk that was computed, and the rows of each source before it."""
        # a cache on the method would be shared by all mixes, and keep them in memory
        self._chunk = lru_cache(maxsize=4)(self._computed)

    def spans(self, batch: int) -> list[tuple[int, int, int]]:
        """Return the members that have rows of a batch, the first of these rows, and the one after the last."""
        found = zip(self.counts(batch), self.counts(batch + 1), strict=True)
        return [(member, start, stop) for member, (start, stop) in enumerate(found) if start < stop]

    def counts(self, batch: int) -> list[int]:
        """Return the number of rows of each source before a batch."""
        return self._chunk(batch // _CHUNK)[batch % _CHUNK]

    def before(self, member: int, batch: int) -> int:
        """Return the number of rows of a source before a batch."""
        return self.counts(batch)[member]

    def carried(self, batch: int) -> list[Fraction]:
        """Return the rows that each source has had less than its share before a batch."""
        rows = batch * self.n
        shares = (Fraction(rows * share, self._unit) for share in self._shares)
        return [
            owed + x - count for owed, x, count in zip(self._owed, shares, self.counts(batch), strict=True)
        ]

    def batch_of(self, member: int, row: int) -> int | None:
        """Return the batch that has a row of a source; None if its weight is 0."""
        first = self.earliest(member, row)
        if first is None:
            return None
        share = self._shares[member] * self.n
        last = max(0, (row + 1) * self._unit - self._begun[member]) // share + 1 + self._late
        return first + bisect_right(range(first, last), row, key=lambda k: self.before(member, k + 1))

    def earliest(self, member: int, row: int) -> int | None:
        """Return a batch before which a row of a source does not come; None if its weight is 0."""
        share = self._shares[member] * self.n
        return max(0, (row * self._unit - self._begun[member]) // share - 1) if share else None

    def end(self, member: int) -> int | None:
        """Return the batch from which on a source has no share; None if it keeps a share."""
        return None if self._shares[member] else 0

    def _computed(self, at: int) -> list[list[int]]:
        """Return the rows before each batch of a chunk."""
        first = at * _CHUNK
        start, counts = self._last
        if start != first:
            start = max(0, first - self._lag)
            counts = self._next([0] * len(self._shares), start)
        for batch in range(start, first):
            counts = self._next(counts, batch + 1)
        found = [counts]
        for batch in range(first, first + _CHUNK):
            found.append(self._next(found[-1], batch + 1))
        self._last = first + _CHUNK, found[-1]
        return found

    def _next(self, counts: Sequence[int], batch: int) -> list[int]:
        """Return the rows before a batch, from those before an earlier one."""
        rows, unit, most = batch * self.n, self._unit, self._unit - _UNIT
        shares = [begun + rows * share for begun, share in zip(self._begun, self._shares, strict=True)]
        # rows that are due have come: x - 1 + e rounded up
        found = [max(count, -((most - x) // unit)) for count, x in zip(counts, shares, strict=True)]
        left = rows - sum(found)

        def due(at: int, row: int) -> tuple[int, int]:
            return -(-(row * unit + most - self._begun[at]) // self._shares[at]), self._order[at]

        if left > 0:
            on = (at for at, share in enumerate(self._shares) if share)
            may = [at for at in on if found[at] < (shares[at] + most) // unit]
            for at in sorted(may, key=lambda at: due(at, found[at]))[:left]:
                found[at] += 1
        for _ in range(-left):  # more are due than come: the last ones wait
            late = [at for at, count in enumerate(counts) if found[at] > count]
            found[max(late, key=lambda at: due(at, found[at] - 1))] -= 1
        return found
