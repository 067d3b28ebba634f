"""Which rows of the table of an epoch a rank gets, and which windows it will read for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Literal, NamedTuple

import numpy as np

from seqflow.errors import BatchPlanError
from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.mix import MixRow, MixTable
from seqflow.loader.epoch.table import Missing, Row, Table
from seqflow.loader.schedule.ranks import Deal
from seqflow.loader.schedule.skips import Skips

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
