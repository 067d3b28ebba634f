"""Order of the sources of whole batches in one piece of the history of a mix, in which its weights are given."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from seqflow.errors import OpMemoryError
from seqflow.kernels.arrays import Array
from seqflow.kernels.error import KernelMemoryError
from seqflow.kernels.memory import check_memory
from seqflow.loader.epoch.history import Choice, Weights
from seqflow.loader.epoch.weights import Schedule, Shares, assigned, settled, shares_of

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

    Therefore a batch is found without those before it. A source whose weight is 0 is never due. `ahead` are the
    batches that each source had in earlier pieces beyond its share: its first ones are due later by as many.
    """

    def __init__(self, weights: Sequence[float], phases: Array, ahead: Array) -> None:
        self._shares = np.array(weights) / sum(weights)
        is_on = self._shares > 0
        # those of sources that do not come any more are divided among the others
        self._ahead = ahead - self._shares * math.fsum(ahead[is_on].tolist())
        self._phases = phases + np.where(is_on, self._ahead, 0)
        self._reach = np.abs(self._phases)
        self.settled = int(_NEVER)
        """From this batch on, no batch comes: numbers end."""

    def members(self, start: int, count: int) -> tuple[Array, Array]:
        """int64 twice: the sources of `count` batches from `start` on, and the number of earlier batches of
        each source.
        """
        # of the first n batches a source has n * share, give or take share * sources + 1, and what it is ahead;
        # floats round
        margin = self._shares * (len(self._shares) + self._reach.sum()) + self._reach + 2
        margin += (start + count) * self._shares / _NEVER
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
        return max(0, int(due)) if due < _NEVER else None

    def end(self, member: int) -> int | None:
        """Return the batch from which on a source has no share; None if it keeps a share."""
        return None if self._shares[member] else 0

    def ahead(self, batch: int, counts: Array) -> Array:
        """float64[m]: the batches of each source before a batch, `counts`, beyond its share."""
        return self._ahead + counts - self._shares * batch


class ComputedOrder:
    """Order of sources that is computed from the first batch on, with doubling numbers of batches: `found(start,
    stop)` gives the sources of batches. `shares` are those of a `Schedule`.
    """

    def __init__(
        self, sources: int, found: Callable[[int, int], Array], shares: Shares | None = None
    ) -> None:
        self._found, self.shares = found, shares
        self.settled = int(_NEVER) if shares is None else settled(shares)
        """From this batch on, no batch comes from a source whose weight stays at 0."""
        self._members = np.zeros(0, np.int32)
        self._before = np.zeros((1, sources), np.int64)
        """For each chunk, the number of earlier batches of each source."""

    def members(self, start: int, count: int) -> tuple[Array, Array]:
        self._grow(start + count)
        chunk = start // _CHUNK
        of_chunk = self._members[chunk * _CHUNK : start]
        before = self._before[chunk] + np.bincount(of_chunk, minlength=self._before.shape[1])
        return self._members[start : start + count].astype(np.int64), before

    def near(self, member: int, number: int) -> int | None:
        while self._before[-1, member] <= number:
            if self.end(member) is not None and len(self._members) >= self.settled:
                return None  # its weight is 0 from here on: this ends every search
            self._grow(len(self._members) + 1)
        return (bisect_right(self._before[:, member].tolist(), number) - 1) * _CHUNK

    def end(self, member: int) -> int | None:
        return None if self.shares is None else self.shares.end(member)

    def ahead(self, batch: int, counts: Array) -> Array:
        """Return the same as `FixedOrder.ahead`; 0 if a function chooses, which has no shares."""
        if self.shares is None:
            return np.zeros(len(counts))
        until = [self.shares.until(member, batch) for member in range(len(counts))]
        return np.asarray(counts - np.array(until) / self.shares.unit)

    def _grow(self, count: int) -> None:
        """Compute the sources of at least so many batches."""
        known = len(self._members)
        if count <= known:
            return
        # twice as many as needed: the order of weights can only be computed from its beginning
        chunks = -(-2 * count // _CHUNK)
        try:
            check_memory((4, chunks * _CHUNK), np.dtype(np.int64))
        except KernelMemoryError as error:
            raise OpMemoryError(f"Mix: the order of {chunks * _CHUNK} batches: {error}") from None
        found = self._found(known, chunks * _CHUNK)
        sources = self._before.shape[1]
        of_chunk = np.repeat(np.arange(chunks - known // _CHUNK), _CHUNK) * sources + found
        counts = np.bincount(of_chunk, minlength=len(found) // _CHUNK * sources).reshape(-1, sources)
        self._members = np.concatenate([self._members, found.astype(np.int32)])
        self._before = np.concatenate([self._before, self._before[-1] + np.cumsum(counts, axis=0)])


class BatchOrder:
    """Sources of the batches of one piece of a history, counted from its first, if each comes from one source."""

    def __init__(self, weights: Weights, start: int, phases: Array, carried: Sequence[float] | Array) -> None:
        self._order: FixedOrder | ComputedOrder
        sources = len(phases)
        if isinstance(weights, Choice):

            def chosen(first: int, stop: int) -> Array:
                return weights.members(start + first, stop - first)

            self._order = ComputedOrder(sources, chosen)
        elif any(isinstance(one, Schedule) for one in weights):
            shares = shares_of([one.after(start) if isinstance(one, Schedule) else one for one in weights])
            order = np.argsort(np.argsort(phases, kind="stable"), kind="stable")
            self._order = ComputedOrder(
                sources, lambda first, stop: assigned(shares, stop, order)[first:], shares
            )
        else:
            ahead = np.zeros(sources)
            ahead[: len(carried)] = carried
            self._order = FixedOrder([float(one) for one in weights], phases, ahead)  # type: ignore[arg-type]
        self.end, self.settled = self._order.end, self._order.settled
        # a cache on the method would be shared by all mixes, and keep them in memory
        self._chunk = lru_cache(maxsize=4)(self._computed)

    def spans(self, batch: int) -> list[tuple[int, int, int]]:
        """Return the member of a batch, the number of the batch in it, and the number after that."""
        chunk, at = self._chunk(batch // _CHUNK), batch % _CHUNK
        return [(chunk.members[at], chunk.numbers[at], chunk.numbers[at] + 1)]

    def before(self, member: int, batch: int) -> int:
        """Return the number of batches of a member before a batch."""
        chunk = self._chunk(batch // _CHUNK)
        return chunk.before[member] + bisect_left(chunk.places[member], batch)

    def counts(self, batch: int) -> list[int]:
        """Return the number of batches of each member before a batch, of which no chunk is kept."""
        return [int(one) for one in self._order.members(batch, 0)[1]]

    def carried(self, batch: int) -> Array:
        """Return the batches of each member before a batch beyond its share."""
        return self._order.ahead(batch, np.array(self.counts(batch)))

    def batch_of(self, member: int, number: int) -> int | None:
        """Return the batch that is batch `number` of a member; None if there is none."""
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

    def earliest(self, member: int, number: int) -> int:
        """Return a batch before which batch `number` of a member does not come."""
        return 0

    def _computed(self, at: int) -> Chunk:
        members, before = self._order.members(at * _CHUNK, _CHUNK)
        numbers = np.empty_like(members)
        places = [np.flatnonzero(members == member) for member in range(len(before))]
        for member, of in enumerate(places):
            numbers[of] = before[member] + np.arange(len(of))
        of_mix = [(of + at * _CHUNK).tolist() for of in places]
        return Chunk(members.tolist(), numbers.tolist(), before.tolist(), of_mix)
