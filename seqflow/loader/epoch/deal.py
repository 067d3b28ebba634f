"""Which rows of the table of an epoch a rank gets, and which windows it will read for them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, count, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from seqflow.errors import BatchPlanError, OpError, OpTypeError
from seqflow.json_form import is_count
from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.mix import MixRow, MixTable
from seqflow.loader.epoch.ranks import Deal
from seqflow.loader.epoch.table import Missing, Row, Table

_AT_ONCE = 4096
"""Rows that are looked at together when windows are read ahead."""


AnyTable = Table | MixTable


class Dealt(NamedTuple):
    """A row as one rank gets it."""

    row: Row | MixRow | None
    """None of a row that is repeated."""
    number: int
    """Its number; of an empty batch that of the first row of the round, whose tensors it has."""
    fill: Literal["", "pad", "repeat"]
    """Whether it only fills the last round: without rows, or with one of the epoch's first rows."""
    next: int
    """The first row of the next round of all ranks, where a state goes on."""


def dealt(table: AnyTable, index: int, deal: Deal, skips: Skips) -> Dealt | Missing | None:
    """Return the row of a rank in the round that begins with kept row `index`; None where there is no such round.

    Kept rows are those that are not skipped. It looks at one round of one table and reads nothing: so it ends, and a
    loop over rounds ends with the table. Where a window has to be planned first, that window is the answer.
    """
    ranks = deal.ranks
    world_size = ranks.world_size
    own, after = index + ranks.rank, index + world_size * (deal.workers - deal.worker)
    if skips:
        own, after = skips.number(own), skips.number(after - 1) + 1
    if world_size > 1:
        whole = table.has(skips.number(index + world_size - 1))
        if isinstance(whole, Missing):
            return whole
        if not whole and (ranks.tail == "drop" or table.has(own) is not True):
            return _filler(table, index, deal, skips)
    found = table.find(own)
    if found is None or isinstance(found, Missing):
        return found
    return Dealt(found, own, "", after if table.total is None else min(after, table.total))


def _filler(table: AnyTable, index: int, deal: Deal, skips: Skips) -> Dealt | Missing | None:
    """Return the filler for a rank that has no row in the last, incomplete round."""
    total = table.total
    assert total is not None  # a row of the round is missing
    if deal.tail == "drop":
        if index == 0:
            raise BatchPlanError(
                f"{table.what}: an epoch has fewer batches than world_size = {deal.world_size}, and tail='drop' "
                "leaves none\n  use tail='pad' or 'repeat', or smaller batches"
            )
        return None
    first = skips.number(index)
    if not table.has(first):
        return None
    if deal.tail == "repeat":
        return Dealt(None, skips.number((index + deal.rank) % skips.kept_before(total)), "repeat", total)
    found = table.find(first)
    if found is None or isinstance(found, Missing):
        return found
    return Dealt(found, first, "pad", total)


def upcoming(
    table: Table,
    index: int,
    deal: Deal,
    skips: Skips,
    reach: Callable[[int], tuple[int, int, int]] | None = None,
) -> Iterator[tuple[int, int]]:
    """Stream and position of the windows with rows for a rank, from kept row `index` on, in order, for reading ahead.

    `reach` gives stream, first and last window of a row that is dealt together with others. Where batches are counted
    while they are read, these are all windows from the first one on that is not planned yet, without an end.
    """
    if not table.counted:
        (only,) = table.streams
        yield from ((0, at) for at in count(only.base + len(only.firsts) - 1))
        return
    seen = [-1] * len(table.streams)
    kept = skips.kept_before(table.total or 0)
    stride = min(deal.stride, max(1, kept))  # a number of ranks may be beyond 64 bits
    for low in range(index + deal.rank, kept, stride * _AT_ONCE):
        indices = np.arange(low, min(kept, low + stride * _AT_ONCE), stride)
        for stream, first, last in _windows(table, skips.numbers(indices), reach):
            if last > seen[stream]:
                positions, of = range(max(seen[stream] + 1, first), last + 1), table.streams[stream]
                yield from ((stream, at) for at in positions if of.crosses or of.count_of(at))
                seen[stream] = last


def _windows(
    table: Table, numbers: Array, reach: Callable[[int], tuple[int, int, int]] | None
) -> Iterator[tuple[int, int, int]]:
    """Stream, first and last window of the rows that reach further than the rows before them."""
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
"""The first batch that is left out, the one behind the last, and the epoch."""


def spans_of(skip: Iterable[Sequence[int]] | None) -> tuple[SkipSpan, ...]:
    """The spans in their order, each with its epoch; OpError for what is none, and for two that overlap."""
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
        raise OpError.of("Loader.skip", f"has {one!r}, expected a first batch before the one behind the last")
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
        """Return the skips from a batch on, which becomes number 0."""
        return Skips(
            [(max(0, start - batch), stop - batch, 0) for start, stop in self.spans if stop > batch], 0
        )

    def between(self, start: int, stop: int) -> Iterator[int]:
        """The batches that are left out, of those from one to another."""
        for first, end in self.spans:
            yield from range(max(first, start), min(end, stop))


NO_SKIPS = Skips((), 0)
