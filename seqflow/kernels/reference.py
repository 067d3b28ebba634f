"""What every kernel means, in NumPy. The functions of `seqflow.kernels`, whose docstrings hold here as well."""

from bisect import bisect_left, insort
from collections import defaultdict
from itertools import accumulate
from typing import Any

import numpy as np

from seqflow.kernels import arrays
from seqflow.kernels.arrays import (
    Array,
    PackingPlan,
    apart,
    check_padded,
    check_pair,
    check_room,
    check_same_size,
    check_side,
    check_strategy,
    check_width,
    output,
    reduced_dtype,
    rows,
    scalar,
)
from seqflow.kernels.error import (
    MAX_INT64,
    negative,
    outside,
    overflow,
    slice_outside,
    too_full,
    wrong_sum,
)


def check_lengths(lengths: Array) -> int:
    return _total(_counts(lengths, "lengths"), "lengths")


def quick_check_lengths(lengths: Array) -> int:
    if not (isinstance(lengths, np.ndarray) and lengths.ndim == 1 and lengths.dtype in (np.int32, np.int64)):
        raise TypeError("lengths are not a 1-D array of int32 or int64")
    return check_lengths(lengths)


def max_length(lengths: Array) -> int:
    lengths = _counts(lengths, "lengths")
    _check_not_negative(lengths, "lengths")
    return int(lengths.max(initial=0))


def lengths_to_offsets(lengths: Array) -> Array:
    lengths = _counts(lengths, "lengths")
    _total(lengths, "lengths")
    return _offsets(lengths)


def lengths_to_segment_ids(lengths: Array) -> Array:
    lengths = _counts(lengths, "lengths")
    _total(lengths, "lengths")
    return np.repeat(np.arange(len(lengths)), lengths)


def segment_reduce(kind: str, data: Array, lengths: Array, empty: Any = 0) -> Array:
    data, lengths = rows(data, "data"), _counts(lengths, "lengths")
    dtype = reduced_dtype(kind, data.dtype)
    _check_sum(lengths, len(data), "data")
    out = np.full((len(lengths), *data.shape[1:]), scalar(empty, dtype), dtype)
    filled = lengths > 0
    if filled.any():
        ufunc = {"max": np.maximum, "min": np.minimum}.get(kind, np.add)
        with np.errstate(all="ignore"):
            reduced = ufunc.reduceat(_widened(kind, data), _offsets(lengths)[:-1][filled], axis=0)
            if kind == "mean":
                reduced = reduced / lengths[filled].reshape(-1, *[1] * (data.ndim - 1))
            out[filled] = reduced.astype(dtype)
    return out


def gather(
    data: Array,
    indices: Array,
    *,
    wrap: bool = False,
    ignore_index: int | None = None,
    out: Array | None = None,
) -> Array:
    data, indices = rows(data, "data"), _integers(indices, "indices")
    out = output(out, indices.shape + data.shape[1:], data.dtype)
    data = apart(data, out)
    picked, used = _checked(indices, len(data), wrap, ignore_index)
    out[used] = data[picked[used]]
    out[~used] = np.zeros((), data.dtype)
    return out


def gather_segment_reduce(
    kind: str, table: Array, indices: Array, lengths: Array, empty: Any = 0, ignore_index: int | None = None
) -> Array:
    table, indices, lengths = rows(table, "table"), _counts(indices, "indices"), _counts(lengths, "lengths")
    reduced_dtype(kind, table.dtype)
    _check_sum(lengths, len(indices), "indices")
    picked, used = _checked(indices, len(table), False, ignore_index)
    before = np.concatenate([[0], np.cumsum(used)])
    kept = np.diff(before[_offsets(lengths)])
    return segment_reduce(kind, table[picked[used]], kept, empty)


def move_slices(
    source: Array, source_starts: Array, sizes: Array, target: Array, target_starts: Array
) -> None:
    source, sizes = rows(source, "source"), _counts(sizes, "sizes")
    source_starts = _counts(source_starts, "source_starts")
    target_starts = _counts(target_starts, "target_starts")
    check_same_size(source_starts=source_starts, sizes=sizes, target_starts=target_starts)
    check_pair(source, target)
    source = apart(source, target)
    _check_slices(len(source), source_starts, sizes, len(target), target_starts)
    for start, size, to in zip(source_starts.tolist(), sizes.tolist(), target_starts.tolist(), strict=True):
        target[to : to + size] = source[start : start + size]


def pad(
    data: Array,
    lengths: Array,
    width: int,
    value: Any = 0,
    side: str = "right",
    *,
    truncate: bool = False,
    out: Array | None = None,
    mask: Array | None = None,
) -> tuple[Array, Array]:
    check_side(side)
    check_width(width)
    data, lengths = rows(data, "data"), _counts(lengths, "lengths")
    fill = scalar(value, data.dtype)
    shape = (len(lengths), width)
    out = output(out, shape + data.shape[1:], data.dtype)
    mask = output(mask, shape, np.dtype(bool), "mask")
    _check_sum(lengths, len(data), "data")
    if not truncate:
        check_room(lengths, width)
    data = apart(apart(data, out), mask)
    taken = np.minimum(lengths, width)
    dropped = lengths - taken if side == "left" else np.zeros_like(lengths)
    inside = np.arange(len(data)) - np.repeat(_offsets(lengths)[:-1] + dropped, lengths)
    mask[...] = _mask(taken, width, side)
    out[...] = fill
    out[mask] = data[(inside >= 0) & (inside < np.repeat(taken, lengths))]
    return out, mask


def unpad(padded: Array, lengths: Array, side: str = "right", *, out: Array | None = None) -> Array:
    check_side(side)
    padded, lengths = rows(padded, "padded"), _counts(lengths, "lengths")
    check_padded(padded, lengths)
    total = _total(lengths, "lengths")
    check_room(lengths, padded.shape[1])
    out = output(out, (total, *padded.shape[2:]), padded.dtype)
    out[...] = apart(padded, out)[_mask(lengths, padded.shape[1], side)]
    return out


def plan_packing(lengths: Array, capacity: int, strategy: str = "best_fit") -> PackingPlan:
    check_strategy(capacity, strategy)
    lengths = _counts(lengths, "lengths")
    total = _total(lengths, "lengths")
    if strategy == "concat":
        return _cut_stream(lengths, total, capacity)
    placed = _best_fit(lengths, capacity) if strategy == "best_fit" else _first_fit(lengths, capacity)
    placed.sort(key=lambda piece: piece[0])  # stable: pieces of a row stay in the order they were placed
    table = np.array(placed, np.int64).reshape(-1, 4).T.copy()
    return PackingPlan(table[1], table[2], table[3], np.bincount(table[0]).astype(np.int64))


def fill_packed(
    data: Array,
    lengths: Array,
    plan: tuple[Array, Array, Array, Array],
    capacity: int,
    value: Any = 0,
    *,
    out: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array]:
    check_width(capacity)
    data, lengths = rows(data, "data"), _counts(lengths, "lengths")
    sources, starts, sizes, pieces = (
        _counts(array, name) for array, name in zip(plan, PackingPlan._fields, strict=True)
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
    ends, first = _offsets(sizes), _offsets(pieces)
    begin = ends[:-1] - ends[first[:-1]][row] + row * capacity  # of each piece, in the flat output
    position = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
    place = np.repeat(begin, sizes) + position
    packed[...] = fill
    packed.reshape(shape[0] * capacity, *data.shape[1:])[place] = data[
        np.repeat(_offsets(lengths)[sources] + starts, sizes) + position
    ]
    segment_ids[...] = position_ids[...] = 0
    segment_ids.reshape(-1)[place] = np.repeat(np.arange(len(row)) - first[:-1][row] + 1, sizes)
    position_ids.reshape(-1)[place] = position
    return packed, segment_ids, position_ids


# How packing decides: lists of (row, source, start, length)

Pieces = list[tuple[int, int, int, int]]


def _cut_stream(lengths: Array, total: int, capacity: int) -> PackingPlan:
    ends = np.cumsum(lengths, dtype=np.int64)
    cuts = np.unique(np.concatenate([ends, np.arange(0, total, capacity)]))
    cuts = cuts[cuts < total] if total else cuts[:0]
    sources = np.searchsorted(ends, cuts, side="right")
    starts = cuts - (ends - lengths)[sources]
    return PackingPlan(sources, starts, np.diff(cuts, append=total), np.bincount(cuts // capacity))


def _best_fit(lengths: Array, capacity: int) -> Pieces:
    """Longest first, each into the least room that is enough; of equal rooms the one that changed last."""
    placed: Pieces = []
    for source in np.flatnonzero(lengths > capacity).tolist():
        for start in range(0, int(lengths[source]) // capacity * capacity, capacity):
            placed.append((len(placed), source, start, capacity))
    num_rows = len(placed)
    remainders = np.where(lengths > capacity, lengths % capacity, lengths)
    rows_of: dict[int, list[int]] = defaultdict(list)  # room -> the rows that have it, the last changed last
    rooms: list[int] = []  # those that some row has, ascending
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
        if room > size:
            if not rows_of[room - size]:
                insort(rooms, room - size)
            rows_of[room - size].append(row)
    return placed


def _first_fit(lengths: Array, capacity: int) -> Pieces:
    """In input order, each into the first row with room; what was cut opens rows of its own."""
    placed: Pieces = []
    room = np.zeros(len(lengths) + 1, np.int64)
    num_rows = 0
    for source, length in enumerate(lengths.tolist()):
        for start in range(0, length, capacity):
            size = min(capacity, length - start)
            fits = room[:num_rows] >= size if length <= capacity else np.zeros(0, bool)
            row = int(np.argmax(fits)) if fits.any() else num_rows
            if row == num_rows:
                num_rows += 1
                if num_rows > len(room):
                    room = np.concatenate([room, np.zeros_like(room)])
                room[row] = capacity
            room[row] -= size
            placed.append((row, source, start, size))
    return placed


# Checks


def _integers(values: Any, argument: str) -> Array:
    return arrays.integers(values, argument).astype(np.int64, copy=False)


def _counts(values: Any, argument: str) -> Array:
    return arrays.counts(values, argument).astype(np.int64, copy=False)


def _offsets(lengths: Array) -> Array:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _mask(taken: Array, width: int, side: str) -> Array:
    positions = np.arange(width)
    return positions < taken[:, None] if side == "right" else positions >= width - taken[:, None]


def _widened(kind: str, data: Array) -> Array:
    """Data in the dtype they are added up in."""
    if kind in ("max", "min"):
        return data
    if data.dtype.kind in "fc":
        return data.astype(np.result_type(data.dtype, np.float64), copy=False)
    return data.astype(reduced_dtype(kind, data.dtype), copy=False)


def _check_not_negative(lengths: Array, argument: str) -> None:
    bad = np.flatnonzero(lengths < 0)
    if len(bad):
        raise negative(argument, int(bad[0]), int(lengths[bad[0]]))


def _total(lengths: Array, argument: str) -> int:
    """The sum of lengths, none of which may be negative; their first fault is raised."""
    bad = np.flatnonzero(lengths < 0)
    sound = lengths[: bad[0]] if len(bad) else lengths
    if int(sound.max(initial=0)) * len(sound) > MAX_INT64:
        values = sound.tolist()
        for position, running in enumerate(accumulate(values)):
            if running > MAX_INT64:
                room = MAX_INT64 - (running - values[position]) + 1
                raise overflow(argument, position, values[position], 0, room)
    _check_not_negative(lengths, argument)
    return int(lengths.sum(dtype=np.int64))


def _check_sum(lengths: Array, expected: int, owner: str, argument: str = "lengths") -> None:
    total = _total(lengths, argument)
    if total != expected:
        raise wrong_sum(argument, total, expected, owner)


def _checked(
    indices: Array, num_rows: int, wrap: bool, ignore_index: int | None, argument: str = "indices"
) -> tuple[Array, Array]:
    """Indices that count from the start, and which of them are used at all."""
    used = np.ones(indices.shape, bool) if ignore_index is None else indices != ignore_index
    low = -num_rows if wrap else 0
    bad = np.flatnonzero(used & ((indices < low) | (indices >= num_rows)))
    if len(bad):
        raise outside(argument, int(bad[0]), int(indices.flat[bad[0]]), low, num_rows)
    return np.where(indices < 0, indices + num_rows, indices), used


def _check_slices(
    source_rows: int, source_starts: Array, sizes: Array, target_rows: int, target_starts: Array
) -> None:
    below = sizes < 0
    from_bad = (source_starts < 0) | (sizes > source_rows) | (source_starts > source_rows - sizes)
    to_bad = (target_starts < 0) | (sizes > target_rows) | (target_starts > target_rows - sizes)
    bad = np.flatnonzero(below | from_bad | to_bad)
    if len(bad):
        k = int(bad[0])
        size = int(sizes[k])
        if below[k]:
            raise negative("sizes", k, size)
        if from_bad[k]:
            raise slice_outside("source_starts", k, int(source_starts[k]), size, source_rows)
        raise slice_outside("target_starts", k, int(target_starts[k]), size, target_rows)


def _check_plan(
    num_values: int, lengths: Array, sources: Array, starts: Array, sizes: Array, pieces: Array, capacity: int
) -> None:
    _check_sum(lengths, num_values, "data")
    _check_sum(pieces, len(sizes), "piece_lengths", "pieces")
    _total(sizes, "piece_lengths")
    _checked(sources, len(lengths), False, None, "sources")
    room = lengths[sources]
    bad = np.flatnonzero((starts < 0) | (sizes > room) | (starts > room - sizes))
    if len(bad):
        k = int(bad[0])
        raise slice_outside("starts", k, int(starts[k]), int(sizes[k]), int(room[k]))
    row_total = np.diff(_offsets(sizes)[_offsets(pieces)])
    bad = np.flatnonzero(row_total > capacity)
    if len(bad):
        raise too_full(int(bad[0]), int(row_total[bad[0]]), capacity)
