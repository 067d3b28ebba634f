"""Steps of training: which batches of an epoch make one, and which steps exchange rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.loader.schedule.ranks import Ranks
from seqflow.loader.schedule.streams import Rotation, Stream


class PoolBatches(NamedTuple):
    """The batches of a stream that are in one pool of steps."""

    number: int
    """The number of the pool: that of its first step."""
    first: int
    """The first of them, counted over the stream."""
    numbers: Array
    """int64: their numbers in the epoch; of a source of a mix, in the epoch of the mix."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """How the batches of an iteration are numbered in the sequence whose steps they belong to."""

    outer: Callable[[Array], Array]
    """The numbers in the sequence of batches of the iteration."""
    inner: Callable[[int], int]
    """How many batches of the iteration come before a batch of the sequence."""


OWN_NUMBERS = Numbering(lambda numbers: numbers, lambda number: number)
"""Those of a loader of its own."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Consecutive batches, cut into steps of `size` from batch `base` on, and these into pools."""

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

    def pool_of(self, rotation: Rotation, stream: Stream, number: int, window: range | None) -> PoolBatches:
        """The pool of a batch of a stream, as far as the number of batches is known.

        `window` has the batches of the stream in the window of the first one of its step, where a pool is a window's.
        """
        step = self._step_of(rotation, stream, number)
        if self.pool is not None:
            first = step // self.pool * self.pool
            return self._between(rotation, stream, first, first + self.pool)
        assert window is not None
        first = self._step_of(rotation, stream, window.start)
        if window.start and self._step_of(rotation, stream, window.start - 1) == first:
            first += 1
        return self._between(rotation, stream, first, self._step_of(rotation, stream, window.stop - 1) + 1)

    def first_of_step(self, rotation: Rotation, stream: Stream, number: int) -> int:
        """The first batch of a stream that is in the step of one."""
        step = self._step_of(rotation, stream, number)
        return self._between(rotation, stream, step, step + 1).first

    def _step_of(self, rotation: Rotation, stream: Stream, number: int) -> int:
        numbers = np.array([rotation.number_of(stream, number)])
        return int(self.of(self.numbering.outer(numbers))[0])

    def _between(self, rotation: Rotation, stream: Stream, first: int, stop: int) -> PoolBatches:
        """The batches of a stream from one step to another."""
        begin, end = (self.numbering.inner(self.base + step * self.size) for step in (first, stop))
        own, numbers = rotation.of_stream(stream, max(0, begin), end)
        return PoolBatches(first, own, self.numbering.outer(numbers))
