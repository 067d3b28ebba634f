"""Steps of training: which rows of the table make one, and which steps exchange rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.deal import Ranks
from seqflow.loader.epoch.table import OWN_NUMBERS, Missing, Numbering, Table


class PoolRows(NamedTuple):
    """The rows of one stream that are in one pool of steps."""

    number: int
    """The number of the pool: that of its first step."""
    first: int
    """The place of the first of them in the stream."""
    numbers: Array
    """int64: their numbers in the epoch; of a source of a mix, in the epoch of the mix."""

    @property
    def stop(self) -> int:
        return self.first + len(self.numbers)


@dataclass(frozen=True, slots=True)
class Steps:
    """Consecutive batches, cut into steps of `size` from batch `base` on, and these into pools of `pool` steps.

    Without `pool` a pool has the steps that begin in one window.
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
        """int64: which of the group gets each batch of the sequence."""
        return (numbers - self.base) % self.group

    def pool_of(self, table: Table, stream: int, place: int) -> PoolRows | Missing:
        """The pool of a row that is there; where not all of its windows are planned, the next one to plan."""
        step = self._step_of(table, stream, place)
        if self.pool is not None:
            first = step // self.pool * self.pool
            return self._there(table, stream, self._between(table, stream, first, first + self.pool))
        of = table.streams[stream]
        start, stop = of.span(of.window_of(self._between(table, stream, step, step + 1).first))
        first = self._step_of(table, stream, start)
        if start and self._step_of(table, stream, start - 1) == first:
            first += 1
        last = self._step_of(table, stream, stop - 1)
        return self._there(table, stream, self._between(table, stream, first, last + 1))

    def _step_of(self, table: Table, stream: int, place: int) -> int:
        numbers = table.turns.numbers(stream, np.array([place]))
        return int(self.of(self.numbering.outer(numbers))[0])

    def _between(self, table: Table, stream: int, first: int, stop: int) -> PoolRows:
        """The rows of a stream from one step to before another."""
        begin, end = (max(0, self.numbering.inner(self.base + step * self.size)) for step in (first, stop))
        if table.total is not None:
            end = max(begin, min(end, table.total))
        turns = table.turns
        own = turns.before(stream, begin)
        numbers = turns.numbers(stream, np.arange(own, turns.before(stream, end)))
        return PoolRows(first, own, self.numbering.outer(numbers))

    @staticmethod
    def _there(table: Table, stream: int, pool: PoolRows) -> PoolRows | Missing:
        """The rows of a pool that there are."""
        of = table.streams[stream]
        found = of.has(pool.stop - 1)
        if isinstance(found, Missing):
            return found._replace(stream=stream)
        return pool if found else pool._replace(numbers=pool.numbers[: of.planned - pool.first])
