"""Skips: batches of an epoch that are left out by their numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from seqflow.errors import OpError, OpTypeError
from seqflow.json_form import is_count
from seqflow.kernels.arrays import Array

SkipSpan = tuple[int, int, int]
"""The first batch that is left out, the one behind the last, and the epoch."""


def spans_of(skip: Iterable[Sequence[int]] | None) -> tuple[SkipSpan, ...]:
    """The spans in their order, each with its epoch; OpError for what is none, and for two that overlap."""
    if skip is None:
        return ()
    try:
        given = [tuple(one) for one in skip]
    except TypeError:
        raise OpTypeError(f"Loader: skip is {skip!r}, expected {_EXPECTED}") from None
    spans = sorted((_span(one) for one in given), key=lambda span: (span[2], span))
    for one, following in pairwise(spans):
        if one[2] == following[2] and following[0] < one[1]:
            raise OpError(
                f"Loader: skip has {one[:2]} and {following[:2]} of epoch {one[2]}, which overlap\n  give one span"
            )
    return tuple(spans)


_EXPECTED = "spans such as [(5000, 5024)], or [(5000, 5024, 1)] of epoch 1"


def _span(one: tuple[Any, ...]) -> SkipSpan:
    numbers = (*one, 0) if len(one) == 2 else one
    if len(numbers) != 3 or not all(is_count(value) for value in numbers):
        raise OpError(f"Loader: skip has {one!r}, expected {_EXPECTED}")
    start, stop, epoch = numbers
    if stop <= start:
        raise OpError(f"Loader: skip has {one!r}, expected a first batch before the one behind the last")
    return start, stop, epoch


class Skips:
    """The batches of an epoch that are left out; the others keep their numbers."""

    def __init__(self, spans: Iterable[SkipSpan], epoch: int) -> None:
        self.spans = [(start, stop) for start, stop, of in spans if of == epoch]
        lengths = accumulate((stop - start for start, stop in self.spans), initial=0)
        self._before = list(lengths)
        """How many are left out before each span; the last is that of all."""
        self._firsts = [start - before for (start, _), before in zip(self.spans, self._before, strict=False)]
        """For each span how many batches are kept before it."""
        self._starts = [start for start, _ in self.spans]

    def __bool__(self) -> bool:
        return bool(self.spans)

    def kept_before(self, number: int) -> int:
        """How many of the batches before one are kept."""
        at = bisect_right(self._starts, number) - 1
        if at < 0:
            return number
        start, stop = self.spans[at]
        return number - self._before[at] - (min(number, stop) - start)

    def number(self, index: int) -> int:
        """The number of a batch, counted over those that are kept."""
        return index + self._before[bisect_right(self._firsts, index)]

    def numbers(self, indices: Array) -> Array:
        """int64: `number` of many."""
        if not self.spans:
            return indices
        return np.asarray(
            indices + np.array(self._before)[np.searchsorted(self._firsts, indices, side="right")]
        )

    def after(self, batch: int) -> Skips:
        """Those of the batches from one on, which becomes number 0."""
        return Skips(
            [(max(0, start - batch), stop - batch, 0) for start, stop in self.spans if stop > batch], 0
        )

    def between(self, start: int, stop: int) -> Iterator[int]:
        """The batches that are left out, of those from one to another."""
        for first, end in self.spans:
            yield from range(max(first, start), min(end, stop))


NO_SKIPS = Skips((), 0)
