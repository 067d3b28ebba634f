"""Which batches of its sources each batch of a mix is made of: a pure function of weights, seed, epoch and number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqflow.errors import OpError, OpMemoryError
from seqflow.kernels.arrays import Array
from seqflow.kernels.error import KernelMemoryError
from seqflow.kernels.memory import check_memory
from seqflow.loader.epoch.steps import Numbering
from seqflow.loader.schedule.assignment import assigned, settled
from seqflow.loader.schedule.weights import LARGEST, Schedule, Shares, Weight, shares_of
from seqflow.ops.shared.random_bits import sequence_bits, uniform

_PASSES = 1 << 20
"""An epoch in which a source would be read more often has no end in sight."""


class Picks:
    """The source of each batch of an epoch, and the number of its batch; with quotas each batch is of all sources."""

    def __init__(self, weights: Sequence[Weight], quotas: Sequence[int] | None, key: int) -> None:
        self._weights, self._quotas = weights, quotas
        self._phases = uniform(sequence_bits(key, len(weights)))
        changing = any(isinstance(weight, Schedule) for weight in weights)
        self._shares: Shares | None = shares_of(weights) if changing else None
        self._settled = 0 if self._shares is None else settled(self._shares)
        """No batch from here on comes from a member whose weight stays at 0."""
        self._members = np.zeros(0, np.int64)
        self._numbers = np.zeros(0, np.int64)
        self._places = [np.zeros(0, np.int64)] * len(weights)
        """int64: for each member the batches of the mix that are its own."""

    def of(self, number: int) -> list[tuple[int, int]]:
        """Pairs of a member and the number of its batch."""
        if self._quotas is not None:
            return [(member, number) for member in range(len(self._quotas))]
        self._grow(number + 1)
        return [(int(self._members[number]), int(self._numbers[number]))]

    def before(self, member: int, batch: int) -> int:
        """How many batches of a member come before a batch of the mix."""
        if self._quotas is not None:
            return batch
        self._grow(batch)
        return int(np.searchsorted(self._places[member], batch))

    def row(self, member: int, number: int) -> int | None:
        """The batch of the mix that has batch `number` of a member; None where none ever has."""
        if self._quotas is not None:
            return number
        while len(self._places[member]) <= number:
            if self._has_ended(member):
                return None  # its weight is 0 from here on: this ends every search
            self._grow(len(self._members) + 1)
        return int(self._places[member][number])

    def check_end(self, counts: Sequence[int | None]) -> None:
        """OpError where an epoch that ends with the last source has no end in sight; `counts` has what is known."""
        if self._quotas is not None:
            return
        shares = self._shares or shares_of(self._weights)
        stops = [
            min(
                int(
                    shares.reached(member, np.array([min(count or 1, LARGEST) * shares.unit]), LARGEST + 1)[0]
                ),
                end,
            )
            for member, count in enumerate(counts)
            for end in [shares.end(member) or LARGEST + 1]
        ]
        shortest = min((stop for stop, count in zip(stops, counts, strict=True) if count), default=LARGEST)
        if max(stops) > min(LARGEST, _PASSES * shortest):
            member = int(np.argmax(stops))
            raise OpError(
                f"Mix: the weight of source {member} is {self._weights[member]!r}, so small that an epoch of "
                f"stop='all' has no end in sight: more than {min(LARGEST, _PASSES * shortest):,} batches\n"
                "  raise the weight, leave the source out, or use stop='first'"
            )

    def end(self, member: int) -> int | None:
        """The batch from which on a member has a weight of 0; None where it keeps another one."""
        return None if self._shares is None else self._shares.end(member)

    def numbering(self, member: int, done: int) -> Numbering:
        """How the batches of a member, behind so many of earlier passes, are numbered in the mix."""

        def outer(numbers: Array) -> Array:
            if self._quotas is not None:
                return numbers + done
            self.row(member, int(numbers.max(initial=0)) + done)
            places = self._places[member]
            return np.take(places, numbers + done, mode="clip") if len(places) else numbers

        return Numbering(outer, lambda number: self.before(member, max(0, number)) - done)

    def _has_ended(self, member: int) -> bool:
        """Whether all batches of a member are known."""
        return self.end(member) is not None and len(self._members) >= self._settled

    def _grow(self, count: int) -> None:
        """Know the members of at least so many batches."""
        if count > len(self._members):
            self._members, self._numbers = self._merged(2 * count + 1024)
            self._places = [np.flatnonzero(self._members == one) for one in range(len(self._places))]

    def _merged(self, count: int) -> tuple[Array, Array]:
        """int64[count] twice: for each batch the member, and the number of its batch."""
        try:
            check_memory((4, count), np.dtype(np.int64))
        except KernelMemoryError as error:
            raise OpMemoryError(f"Mix: the order of {count} batches: {error}") from None
        if self._shares is None:
            return self._by_due_time(np.array(self._weights), count)
        order = np.argsort(np.argsort(self._phases, kind="stable"), kind="stable")
        members = assigned(self._shares, count, order)
        numbers = np.empty_like(members)
        for member in range(len(order)):
            places = np.flatnonzero(members == member)
            numbers[places] = np.arange(len(places))
        return members, numbers

    def _by_due_time(self, weights: Array, count: int) -> tuple[Array, Array]:
        """With weights that stay as they are batch j is due at (j + phase) / weight."""
        shares = weights / sum(self._weights)  # type: ignore[arg-type]
        each = [np.arange(int(count * share) + 2) for share in shares]
        due = np.concatenate(
            [(ones + phase) / share for ones, phase, share in zip(each, self._phases, shares, strict=True)]
        )
        members = np.repeat(np.arange(len(each)), [len(ones) for ones in each])
        order = np.lexsort((members, due))[:count]
        return members[order], np.concatenate(each)[order]
