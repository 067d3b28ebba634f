"""The table of an epoch: one row for each batch. Only this module knows the meaning of a batch's number.

The table stores columns with an entry for each *window* (its first batch; for batches that run across windows,
its first row) and a few segments for the turns of streams. Rows of the table are computed from them, one or
many at a time, so that the cost of an epoch of 100 million batches depends on the number of its windows only.
The table reads nothing and never waits: it returns a row, None after the last row, or the window that has to be
planned first.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seqflow.errors import BatchPlanError, OpError
from seqflow.kernels.arrays import Array

Piece = tuple[int, int, int]
"""Window, start and stop: rows of a window, or some of its planned batches."""


class Missing(NamedTuple):
    """A window that has to be planned before the table can answer."""

    position: int
    stream: int = 0
    member: int = 0
    number: int = 0
    """In a mix, the member and its pass."""


class BatchEntry(NamedTuple):
    """One batch of the epoch."""

    number: int
    stream: int
    place: int
    """Its number in its stream."""
    window: int
    """Position in the stream of the window that it begins in, and that owns it."""
    inside: int
    """Its number among the batches that begin in this window."""
    pieces: tuple[Piece, ...]
    """Its parts: one planned batch of its window, or rows of one or more windows."""


class StreamOrder:
    """The windows of one stream as a column: `firsts[i]` is the first batch of window `base + i`, in the stream.

    The last entry of `firsts` is the number of batches planned so far. Windows make the stream longer, one
    after another, unless their batches were `counted` before anything was read.
    """

    crosses = False
    """Whether pieces are rows, which may come from several windows."""

    def __init__(
        self,
        windows: int | None,
        counts: Sequence[int] | Array | None = None,
        *,
        base: int = 0,
        first: int = 0,
    ) -> None:
        self.base, self.counted = base, counts is not None
        # an array, not a list: 8 bytes for each window
        self.firsts = array("q", [first])
        if counts is not None:
            ends = first + np.cumsum(np.asarray(counts, np.int64))
            self.firsts.frombytes(ends.astype(np.int64).tobytes())
        self.windows = sys.maxsize if windows is None else windows
        self.cut(0, None)
        self.is_cut = False

    def cut(self, start: int, stop: int | None) -> None:
        """Keep only batches that begin in the windows from `start` to before `stop`: those of a part."""
        self.is_cut = True
        self.start, self.stop = start, self.windows if stop is None else min(stop, self.windows)
        self._there = self.firsts[min(max(0, self.stop - self.base), len(self.firsts) - 1)]

    def end(self, position: int) -> None:
        """Record that there is no window at `position`, or none of this part."""
        self.stop = position

    @property
    def planned(self) -> int:
        """Number of batches of the windows planned so far, up to `stop`."""
        return self._there

    @property
    def start_batch(self) -> int:
        """First batch of window `start`."""
        return self.firsts[self.start - self.base]

    def has(self, place: int) -> bool | Missing:
        """Return whether a batch exists, or the window that has to be planned first."""
        if place < self._there:
            return True
        position = self.base + len(self.firsts) - 1
        return False if position >= self.stop else Missing(position)

    def add(self, batches: int) -> None:
        """Add the number of batches of the next window."""
        self._there += batches
        self.firsts.append(self._there)

    def count_of(self, position: int) -> int | None:
        """Return the number of batches of a window; None if it is not planned, or lies before the first known
        window.
        """
        at = position - self.base
        return self.firsts[at + 1] - self.firsts[at] if 0 <= at < len(self.firsts) - 1 else None

    def span(self, position: int) -> tuple[int, int]:
        """Return the first batch of a planned window, and the one after its last."""
        at = position - self.base
        return self.firsts[at], self.firsts[at + 1]

    def is_last(self, row: BatchEntry) -> bool:
        """Return whether a batch is the last of its window."""
        at = row.window - self.base
        return at >= 0 and row.place + 1 == self.firsts[at + 1]

    def row(self, number: int, stream: int, place: int) -> BatchEntry:
        """Return the row of a batch that exists."""
        at = bisect_right(self.firsts, place) - 1
        if at < 0:
            raise OpError(
                f"load_state_dict: batch {place} of stream {stream} lies before its window, which begins with batch "
                f"{self.firsts[0]}: the state is damaged"
            )
        inside = place - self.firsts[at]
        return BatchEntry(
            number, stream, place, self.base + at, inside, ((self.base + at, inside, inside + 1),)
        )

    def window_of(self, place: int) -> int:
        """Return the position of the window in which a batch begins."""
        # equal entries are windows without batches: the last one of them has the batch
        return self.base + bisect_right(self.firsts, place) - 1

    def next_window(self, position: int) -> int:
        """Return the position at which a run goes on after a window: the next window with batches, if it is known."""
        if not self.counted:
            return position + 1
        # equal entries are windows without batches, which are passed over
        return min(max(position + 1, bisect_right(self.firsts, self.firsts[position + 1]) - 1), self.stop)

    def without_batches(self, row: BatchEntry | None) -> Sequence[int]:
        """Return the positions of the windows without batches that belong to a row; without a row, those that
        belong to none.

        They belong to the row before them, and those at the start to the first row, so that exactly one rank
        counts each. If there are no rows, all ranks count them. If batches are counted while they are read,
        each window is opened for that.
        """
        if not self.counted:
            return ()
        if row is None:
            return range(self.start, self.stop) if self.planned == self.start_batch else ()
        after = range(row.window + 1, self.next_window(row.window)) if self.is_last(row) else ()
        return [*range(self.start, row.window), *after] if row.place == self.firsts[self.start] else after

    def windows_of(self, places: Array) -> tuple[Array, Array]:
        """int64 twice: the first and the last window that each of some counted batches takes rows from."""
        own = np.searchsorted(np.frombuffer(self.firsts, np.int64), places, side="right") - 1
        return own, own


class RowStream(StreamOrder):
    """Batches of n rows that run across windows with known rows: nothing is read to count them.

    `rows` are those of each window, and `before` those of the stream before the first of these windows.
    """

    crosses = True

    def __init__(
        self,
        rows: Sequence[int] | Array,
        n: int,
        *,
        drop_last: bool = False,
        before: int = 0,
    ) -> None:
        ends = before + np.concatenate([[0], np.cumsum(np.asarray(rows, np.int64))]).astype(np.int64)
        self.n = n
        self.ends = array("q", ends.tobytes())
        """The first row of each window, and the row after the last."""
        last = self.ends[-1]
        most = last // n if drop_last else -(-last // n)
        self.kept = most * n if drop_last else last
        """Rows from this one on are in no batch."""
        # rounded up: a batch that begins before a row counts, even if it ends after it
        begun = np.minimum(-(-ends // n), most)
        self.skipped = int(begun[0])
        """Number of batches that begin before the first window, in an earlier part: places are counted after them."""
        super().__init__(len(ends) - 1, np.diff(begun))

    def first_row(self, place: int) -> int:
        """Return the first row of a batch; the row after the last if there is no such batch."""
        return min((place + self.skipped) * self.n, self.ends[-1])

    def row(self, number: int, stream: int, place: int) -> BatchEntry:
        start = self.first_row(place)
        pieces = self._pieces(start, min(start + self.n, self.ends[-1]))
        window = pieces[0][0]
        return BatchEntry(number, stream, place, window, place - self.firsts[window], pieces)

    def _pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
        """Return the windows of some data rows, at least one, each with its part of them."""
        ends = self.ends
        at = bisect_right(ends, start) - 1
        before = ends[at]
        if stop <= ends[at + 1]:
            return ((at, start - before, stop - before),)
        pieces = []
        while start < stop:
            end = min(stop, ends[at + 1])
            if end > start:  # windows without rows are stepped over
                pieces.append((at, start - ends[at], end - ends[at]))
            start, at = end, at + 1
        return tuple(pieces)

    def windows_of(self, places: Array) -> tuple[Array, Array]:
        first, _ = super().windows_of(places)
        ends = np.frombuffer(self.ends, np.int64)
        after = np.minimum((places + 1 + self.skipped) * self.n, ends[-1])
        return first, np.searchsorted(ends, after - 1, side="right") - 1

    def read_until(self, position: int) -> int:
        """Return the position after the last window that is read for batches begun before a window, dropped
        batches included.
        """
        begun = -(-self.ends[position] // self.n)
        return bisect_left(self.ends, self.first_row(begun - self.skipped), lo=position)

    def dropped_of(self, position: int) -> int:
        """Return the number of rows of a window that are in no batch."""
        start, stop = self.ends[position : position + 2]
        return stop - max(start, min(stop, self.kept))

    def without_batches(self, row: BatchEntry | None) -> Sequence[int]:
        """Return the positions of the windows that no batch takes rows from: they belong to no row.

        In a part, these include windows whose rows are all in a batch of an earlier part.
        """
        if row is not None:
            return ()
        ends = np.frombuffer(self.ends, np.int64)[self.start : self.stop + 1]
        first = self.first_row(self.start_batch)
        is_left = np.minimum(ends[1:], self.kept) <= np.maximum(ends[:-1], first)
        return (self.start + np.flatnonzero(is_left)).tolist()


class SingleRows(RowStream):
    """Batches of single rows, of which a mix takes as many as it needs."""

    def __init__(self, rows: Sequence[int] | Array) -> None:
        super().__init__(rows, 1)

    def part(self, stream: int, start: int, stop: int) -> BatchEntry:
        """Return the rows `start` … `stop` - 1 as one row of the table: that of the last of them."""
        pieces = self._pieces(start, stop)
        return BatchEntry(-1, stream, stop - 1, pieces[-1][0], start, pieces)


class Turns:
    """Stream of each batch: batch k comes from stream `k mod C`; exhausted streams are passed over.

    There is a segment for each stream that ends: from batch `starts[s]` on, the streams `alive[s]` take turns,
    and before it `done[s]` batches of each stream have come. `counts` has None for a single stream whose count
    is unknown.
    """

    def __init__(self, counts: Sequence[int | None]) -> None:
        self.starts: list[int] = []
        self.alive: list[list[int]] = []
        self._done: list[list[int]] = []
        done, at = [0] * len(counts), 0
        # an unknown count makes one segment, which never ends
        left = [1 if count is None else count for count in counts]
        while any(left):
            alive = [stream for stream, one in enumerate(left) if one]
            self.starts.append(at)
            self.alive.append(alive)
            self._done.append(list(done))
            # one segment for all rounds until the next stream is exhausted
            rounds = min(left[stream] for stream in alive)
            at += rounds * len(alive)
            for stream in alive:
                left[stream] -= rounds
                done[stream] += rounds
        self.total = None if None in counts else at
        self.done = np.array(self._done, np.int64).reshape(len(self._done), len(counts))
        self._is_one = len(counts) == 1

    def of(self, k: int) -> tuple[int, int]:
        """Return the stream of a batch, and its place in the stream."""
        if self._is_one:
            return 0, k
        at = bisect_right(self.starts, k) - 1
        alive = self.alive[at]
        turn, which = divmod(k - self.starts[at], len(alive))
        return alive[which], self._done[at][alive[which]] + turn

    def numbers(self, stream: int, places: Array) -> Array:
        """int64: the numbers in the epoch of batches of a stream."""
        if self._is_one:
            return places
        segments = np.searchsorted(self.done[:, stream], places, side="right") - 1
        found = np.empty_like(places)
        for at in np.unique(segments).tolist():
            of, alive = segments == at, self.alive[at]
            found[of] = (
                self.starts[at] + (places[of] - self.done[at, stream]) * len(alive) + alive.index(stream)
            )
        return found

    def before(self, stream: int, k: int) -> int:
        """Return the number of batches of a stream before batch k."""
        if self._is_one:
            return k
        at = bisect_right(self.starts, k) - 1
        if at < 0:
            return 0
        found, alive = self._done[at][stream], self.alive[at]
        if stream not in alive:
            return found
        # rounded up: the round that k is in counts if the stream comes before k
        return found + max(0, -((self.starts[at] + alive.index(stream) - k) // len(alive)))


@dataclass(frozen=True, slots=True)
class Numbering:
    """Numbers of the rows of a table in the sequence whose steps they belong to."""

    outer: Callable[[Array], Array]
    """Function: numbers in the sequence, from rows of the table."""
    inner: Callable[[int], int]
    """Function: the number of rows of the table before a number of the sequence."""


OWN_NUMBERS = Numbering(lambda numbers: numbers, lambda number: number)
"""Numbering of a loader that is not in a mix."""


class Table:
    """The batches of an epoch by their numbers. Windows make it longer; a given `total` makes it shorter.

    Either the batches of all streams are counted, or there is one stream.
    """

    what = "Loader"
    """Name of the loader in errors."""

    def __init__(self, streams: Sequence[StreamOrder], total: int | None = None) -> None:
        self.streams = streams
        self.counted = all(one.counted for one in streams)
        self.turns = Turns([one.planned if self.counted else None for one in streams])
        self.total = self.turns.total if total is None else total
        """Number of rows; None if it is not known yet."""

    def has(self, k: int) -> bool | Missing:
        """Return whether row k exists, or the window that has to be planned first.

        A given number of rows is not checked here: `find` refuses a row that its stream does not have.
        """
        if self.total is not None:
            return k < self.total
        found = self.streams[0].has(k)
        if found is False:
            self.total = self.streams[0].planned
        return found

    def find(self, k: int) -> BatchEntry | Missing | None:
        """Return row k; None after the last; or the window that has to be planned first."""
        if self.total is not None and k >= self.total:
            return None
        number, place = self.turns.of(k)
        stream = self.streams[number]
        found = stream.has(place)
        if found is True:
            return stream.row(k, number, place)
        if found is False:
            if self.total is None or stream.is_cut:
                self.total = stream.planned
                return None
            raise BatchPlanError(
                f"Loader: stream {number} of {len(self.streams)} ends after {stream.planned} batches, but an epoch "
                f"of {self.total} batches needs more of it\n  lower steps_per_epoch"
            )
        return found if not number else found._replace(stream=number)

    def add(self, window: Missing, batches: int) -> None:
        """Add the number of batches of a window that had to be planned first."""
        self.streams[window.stream].add(batches)

    def end(self, window: Missing) -> None:
        """Record that there is no such window."""
        self.streams[window.stream].end(window.position)

    @property
    def is_from_start(self) -> bool:
        """Whether the table has the first rows of the epoch; the table of a resumed run may not have them."""
        return all(one.firsts[0] == 0 for one in self.streams)

    @property
    def num_known(self) -> int:
        """Number of rows, or of rows planned so far."""
        return sum(one.planned for one in self.streams) if self.total is None else self.total

    def parts(self, start: int, stop: int) -> Iterator[BatchEntry]:
        """Yield the rows `start` … `stop` - 1, all of one stream together; the streams are `SingleRows`."""
        for number, stream in enumerate(self.streams):
            first, last = (self.turns.before(number, k) for k in (start, stop))
            if first < last:
                assert isinstance(stream, SingleRows)
                yield stream.part(number, first, last)

    def windows_of(self, numbers: Array) -> tuple[Array, Array, Array]:
        """int64 three times: stream, first and last window of many rows of a counted table."""
        turns = self.turns
        at = np.searchsorted(turns.starts, numbers, side="right") - 1
        streams, places, first, last = (np.empty_like(numbers) for _ in range(4))
        for segment in np.unique(at).tolist():
            of, alive = np.flatnonzero(at == segment), np.array(turns.alive[segment])
            turn, which = np.divmod(numbers[of] - turns.starts[segment], len(alive))
            streams[of], places[of] = alive[which], turns.done[segment, alive[which]] + turn
        for stream in np.unique(streams).tolist():
            of = np.flatnonzero(streams == stream)
            first[of], last[of] = self.streams[stream].windows_of(places[of])
        return streams, first, last
