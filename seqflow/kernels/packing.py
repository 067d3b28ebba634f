"""Pack several sequences into each row of a fixed capacity."""

from bisect import bisect_left, insort
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array, apart, int64_counts, output, rows, scalar
from seqflow.kernels.checks import (
    check_same_size,
    check_sum,
    check_width,
    checked_indices,
    offsets_of,
    total_of,
)
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.error import slice_outside, too_full
from seqflow.kernels.forms import COUNTS, ROWS
from seqflow.kernels.memory import check_memory

_MOST = 2**63 // 4 - 1
"""Largest capacity of a plan, in which capacity may be a cost; rows of `fill_packed` have fewer elements."""
__all__ = ["PackingPlan", "fill_packed", "plan_packing"]


class PackingPlan(NamedTuple):
    """Assignment of pieces of sequences to rows: pieces row by row, in their order in the row.

    sources[P]: the sequence of each piece; starts[P]: its first element inside that sequence; piece_lengths[P]: its
    number of elements; pieces[R]: the number of pieces in each row. All int64.
    """

    sources: Array
    starts: Array
    piece_lengths: Array
    pieces: Array


@kernel(lengths=COUNTS)
def plan_packing(
    lengths: Array, capacity: int, strategy: str = "best_fit", max_pieces: int = 0
) -> PackingPlan:
    """Plan which sequences share a row of `capacity`: lengths[B] -> sources[P], starts[P], piece_lengths[P],
    pieces[R].

    An empty sequence has no piece; a sequence longer than `capacity` has several, in increasing order. "concat" cuts
    the stream of all sequences after every `capacity` elements. "best_fit" takes the longest sequence first (ties in
    input order) and puts it into the row with the least sufficient room; of equal rooms, the row that changed last.
    "first_fit" takes sequences in input order and puts each into the first row with room. Full pieces of a long
    sequence have their own rows. In best_fit these rows come first, and the remainder is treated like any sequence;
    in first_fit they come in the order of the sequences, and the remainder opens one more row. A row of `max_pieces`
    pieces takes no more of them; 0 is any number, the only one for "concat".
    """
    _check_strategy(capacity, strategy, max_pieces)
    lengths = int64_counts(lengths, "lengths")
    total = total_of(lengths, "lengths")
    check_memory((4, len(lengths) + total // capacity), lengths.dtype)  # upper bound of the number of pieces
    if strategy == "concat":
        return _cut_stream(lengths, total, capacity)
    place = _best_fit if strategy == "best_fit" else _first_fit
    row, sources, starts, sizes = place(lengths, capacity, max_pieces)
    return PackingPlan(sources, starts, sizes, np.bincount(row).astype(np.int64))


@kernel(data=ROWS, lengths=COUNTS, plan=dict.fromkeys(PackingPlan._fields, COUNTS))
def fill_packed(
    data: Array,
    lengths: Array,
    plan: tuple[Array, Array, Array, Array],
    capacity: int,
    value: Any = 0,
    *,
    out: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array]:
    """Write the rows of a plan: packed[R, capacity, *d], int32 segment_ids and position_ids[R, capacity].

    segment_ids count from 1 in each row, position_ids from 0 in each piece; padding is 0 in both and `value` in
    packed. `out` has an array for each of the three. Any plan that stays inside data[sum(lengths), *d] is accepted.
    """
    check_width(capacity)
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    sources, starts, sizes, pieces = (
        int64_counts(array, name) for array, name in zip(plan, PackingPlan._fields, strict=True)
    )
    check_same_size(sources=sources, starts=starts, piece_lengths=sizes)
    fill = scalar(value, data.dtype)
    shape = (len(pieces), capacity)
    given = out or (None, None, None)
    packed = output(given[0], shape + data.shape[1:], data.dtype)
    segment_ids = output(given[1], shape, np.dtype(np.int32), "segment_ids")
    position_ids = output(given[2], shape, np.dtype(np.int32), "position_ids")
    data = apart(data, packed)
    _check_plan(len(data), lengths, sources, starts, sizes, pieces, capacity)

    row = np.repeat(np.arange(len(pieces)), pieces)
    ends, first = offsets_of(sizes), offsets_of(pieces)
    begin = ends[:-1] - ends[first[:-1]][row] + row * capacity  # start of each piece in the flat output
    position = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
    place = np.repeat(begin, sizes) + position
    packed[...] = fill
    packed.reshape(shape[0] * capacity, *data.shape[1:])[place] = data[
        np.repeat(offsets_of(lengths)[sources] + starts, sizes) + position
    ]
    segment_ids[...] = position_ids[...] = 0
    segment_ids.reshape(-1)[place] = np.repeat(np.arange(len(row)) - first[:-1][row] + 1, sizes)
    position_ids.reshape(-1)[place] = position
    return packed, segment_ids, position_ids


def _cut_stream(lengths: Array, total: int, capacity: int) -> PackingPlan:
    ends = np.cumsum(lengths, dtype=np.int64)
    cuts = np.unique(np.concatenate([ends, np.arange(0, total, capacity)]))
    cuts = cuts[cuts < total] if total else cuts[:0]
    sources = np.searchsorted(ends, cuts, side="right")
    starts = cuts - (ends - lengths)[sources]
    return PackingPlan(sources, starts, np.diff(cuts, append=total), np.bincount(cuts // capacity))


Pieces = list[tuple[int, int, int, int]]
"""(row, source, start, length)"""


def _best_fit(lengths: Array, capacity: int, max_pieces: int) -> Array:
    """Place the longest first, each into the least sufficient room; of equal rooms into the one that changed last."""
    full, remainders = _cut(lengths, capacity)
    placed: Pieces = []
    num_rows = int(full.sum())
    rows_of: dict[int, list[int]] = defaultdict(list)  # room -> rows with that room, in the order of change
    rooms: list[int] = []  # rooms of existing rows, ascending
    counts: dict[int, int] = defaultdict(int)  # pieces of each row
    for source in np.argsort(-remainders, kind="stable").tolist():
        size = int(remainders[source])
        if size == 0:
            break
        fit = bisect_left(rooms, size)
        if fit == len(rooms):
            room, row, num_rows = capacity, num_rows, num_rows + 1
        else:
            room = rooms[fit]
            row = rows_of[room].pop()
            if not rows_of[room]:
                rooms.pop(fit)
        placed.append((row, source, int(lengths[source]) - size, size))
        counts[row] += 1
        if room > size and counts[row] != max_pieces:
            if not rows_of[room - size]:
                insort(rooms, room - size)
            rows_of[room - size].append(row)
    return _with_full(full, offsets_of(full)[:-1], placed, capacity)


def _first_fit(lengths: Array, capacity: int, max_pieces: int) -> Array:
    """Place sequences in input order, each into the first row with room; cut sequences open their own rows."""
    full, remainders = _cut(lengths, capacity)
    placed: Pieces = []
    first_rows = np.zeros_like(full)
    rows, room, counts = np.zeros((3, len(lengths)), np.int64)  # rows opened by remainders
    opened = num_rows = 0
    for source, (cut, size) in enumerate(zip(full.tolist(), remainders.tolist(), strict=True)):
        first_rows[source] = num_rows
        num_rows += cut
        if size == 0:
            continue
        # the remainder of a cut sequence opens a row, as the docstring of `plan_packing` says
        fits = room[: 0 if cut else opened] >= size
        at = int(np.argmax(fits)) if fits.any() else opened
        if at == opened:
            rows[at], room[at] = num_rows, capacity
            opened, num_rows = opened + 1, num_rows + 1
        room[at] -= size
        counts[at] += 1
        if counts[at] == max_pieces:
            room[at] = 0
        placed.append((int(rows[at]), source, cut * capacity, size))
    return _with_full(full, first_rows, placed, capacity)


def _cut(lengths: Array, capacity: int) -> tuple[Array, Array]:
    """Return the number of full pieces of each sequence, and its remainder: a sequence that fits is all remainder."""
    full = np.where(lengths > capacity, lengths // capacity, 0)
    return full, lengths - full * capacity


def _with_full(full: Array, first_rows: Array, placed: Pieces, capacity: int) -> Array:
    """Return int64[4, P]: the full pieces, in their own rows from first_rows on, and the placed pieces, ordered by
    row.
    """
    sources = np.repeat(np.arange(len(full)), full)
    number = np.arange(len(sources)) - np.repeat(offsets_of(full)[:-1], full)
    cut = np.stack([first_rows[sources] + number, sources, number * capacity, np.full_like(number, capacity)])
    table = np.concatenate([cut, np.array(placed, np.int64).reshape(-1, 4).T], axis=1)
    order = np.argsort(table[0], kind="stable")  # pieces of a row stay in the order they were placed
    return np.take(table, order, axis=1)


def _check_plan(
    num_values: int, lengths: Array, sources: Array, starts: Array, sizes: Array, pieces: Array, capacity: int
) -> None:
    check_sum(lengths, num_values, "data")
    check_sum(pieces, len(sizes), "piece_lengths", "pieces")
    total_of(sizes, "piece_lengths")
    checked_indices(sources, len(lengths), False, None, "sources")
    room = lengths[sources]
    bad = np.flatnonzero((starts < 0) | (sizes > room) | (starts > room - sizes))
    if len(bad):
        k = int(bad[0])
        raise slice_outside("starts", k, int(starts[k]), int(sizes[k]), int(room[k]))
    row_total = np.diff(offsets_of(sizes)[offsets_of(pieces)])
    bad = np.flatnonzero(row_total > capacity)
    if len(bad):
        raise too_full(int(bad[0]), int(row_total[bad[0]]), capacity)


def _check_strategy(capacity: int, strategy: str, max_pieces: int) -> None:
    """Raise ValueError for a capacity below 1, an unknown strategy of packing, or a bound that it cannot hold to."""
    if strategy not in ("best_fit", "first_fit", "concat"):
        raise ValueError(f"strategy is {strategy!r}, expected 'best_fit', 'first_fit' or 'concat'")
    if not 1 <= capacity <= _MOST:
        raise ValueError(f"capacity is {capacity}, expected 1 to {_MOST}")
    if max_pieces < 0 or (max_pieces and strategy == "concat"):
        raise ValueError(f"max_pieces is {max_pieces}, expected 0 or more, and 0 for 'concat'")
