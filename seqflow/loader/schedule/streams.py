"""Streams of windows: which windows hold each batch of an epoch, as far as that is known."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count, pairwise
from math import gcd
from typing import NamedTuple

import numpy as np

from seqflow.errors import BatchPlanError, OpError
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.rows import Rows
from seqflow.loader.schedule.parts import Parts
from seqflow.loader.schedule.ranks import Deal
from seqflow.loader.schedule.skips import NO_SKIPS, Skips
from seqflow.loader.schedule.windows import Window, Windows

_KEPT_WINDOWS = 64
"""Windows that are kept when they were made: each is asked for several times, while it is near."""
WindowAddress = tuple[int, int]
"""A stream, and the position of a window in it."""


class BatchAddress(NamedTuple):
    """Batch `number` of the window at `position` of a stream."""

    stream: int
    position: int
    number: int

    @property
    def window(self) -> WindowAddress:
        return self.stream, self.position


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A window of a stream, its first batch, counted over the stream, and how many batches it has."""

    position: int
    first: int
    batches: int


class Stream:
    """The windows of one stream, and how many batches each has.

    The windows may be found while they are asked for. Counts are given at first, or when a window was planned.
    """

    def __init__(
        self,
        number: int,
        windows: Iterable[Window],
        counts: list[int] | None = None,
        again: Callable[[], Iterable[Window]] | None = None,
    ) -> None:
        self.number = number
        self._again = again
        """Gives the windows anew, where they have their rows with them and are not kept."""
        self._listed = windows if isinstance(windows, Windows) else None
        """All windows, where they are listed; each is made when it is asked for."""
        self._made: OrderedDict[int, Window] = OrderedDict()
        """Those that were asked for last."""
        self._windows: list[Window] = []
        """Those of a stream, so far."""
        self._rest = iter(() if self._listed is not None else windows)
        self._start = 0
        """The position of the first window whose batches are counted."""
        self._firsts = [0]
        """The first batch of each window from there on."""
        self.counted = counts is not None
        for batches in counts or ():
            self._firsts.append(self._firsts[-1] + batches)
        self._parts = Parts(None)
        self.part = 0
        """The part whose batches are asked for now: there are none behind it."""
        self.is_cut = False

    def cut_into(self, parts: Parts, part: int = 0) -> None:
        """Cut the windows, none of which was found yet, into parts, and begin with one of them."""
        self._parts, self.part, self.is_cut = parts, part, True
        if self._listed is not None:
            parts.add_all(self._listed)

    def start_at(self, checkpoint: Checkpoint) -> None:
        """Go on behind a window whose batches were counted before; OpError where there is no such window."""
        if self._again is not None:
            self._pass_over(checkpoint.position)
        if not self.has(checkpoint.position):
            raise OpError(
                f"load_state_dict: the state is in window {checkpoint.position} of stream {self.number}, which has "
                f"{self._num_found}: the state is damaged"
            )
        self._start = checkpoint.position
        self._firsts = [checkpoint.first, checkpoint.first + checkpoint.batches]

    def _pass_over(self, position: int) -> None:
        """Find the windows before a position, and let go of their rows."""
        while (at := len(self._windows)) < position and self.window(at) is not None:
            self._windows[at] = replace(self._windows[at], slices=())

    def window(self, position: int) -> Window | None:
        """The window at a position; None behind the last."""
        if self._listed is not None:
            return self._listed_window(self._listed, position)
        while len(self._windows) <= position:
            window = next(self._rest, None)
            if window is None:
                return None
            self._parts.add(window)
            self._windows.append(window)
        return self._windows[position]

    def _listed_window(self, windows: Windows, position: int) -> Window | None:
        if position >= len(windows):
            return None
        if (made := self._made.get(position)) is None:
            made = self._made[position] = windows[position]
            if len(self._made) > _KEPT_WINDOWS:
                self._made.popitem(last=False)
        return made

    def has(self, position: int) -> bool:
        """Whether there is a window at a position. The parts of all windows up to there are known then."""
        if self._listed is None:
            return self.window(position) is not None
        return position < len(self._listed)

    @property
    def num_listed(self) -> int | None:
        """The number of windows; None where they are found while they are asked for."""
        return None if self._listed is None else len(self._listed)

    @property
    def _num_found(self) -> int:
        """How many windows are known by now."""
        return len(self._windows) if self._listed is None else len(self._listed)

    @property
    def part_stop(self) -> int | None:
        """The position behind the last window of the part, as far as it is known."""
        return self._parts.stop(self.part)

    @property
    def part_windows(self) -> range:
        """The positions of the windows of the part, all of which are looked for."""
        self.find_part(self.part)
        start, stop = self._parts.start(self.part), self._parts.stop(self.part)
        return range(start, self._num_found if stop is None else stop)

    @property
    def part_first(self) -> int:
        """The first batch of the part; all windows before it are counted."""
        return self._firsts[self._parts.start(self.part) - self._start]

    def find_part(self, part: int) -> None:
        """Find all windows of the first parts, up to this one."""
        while self._parts.stop(part) is None and self.has(self._num_found):
            pass

    def _is_behind_part(self, position: int) -> bool:
        """Whether a window, if it is one, belongs to a later part."""
        self.has(position)
        stop = self._parts.stop(self.part)
        return stop is not None and position >= stop

    def count(self, position: int, batches: int) -> None:
        """A window was planned: it has so many batches."""
        at = position - self._start
        if at == len(self._firsts) - 1:
            self._firsts.append(self._firsts[at] + batches)

    def check(self, position: int, batches: int) -> None:
        """OpError where a window has other batches than an index, or a state, has counted."""
        at = position - self._start
        counted = self._firsts[at : at + 2] if at >= 0 else []
        if len(counted) == 2 and counted[1] - counted[0] != batches:
            raise OpError(
                f"Loader: window {position} of stream {self.number} has {batches} batches, and "
                f"{counted[1] - counted[0]} by the lengths index or the state: these are of other data, or damaged"
            )

    def checkpoint(self, position: int) -> Checkpoint:
        at = position - self._start
        first, end = self._firsts[at : at + 2]
        return Checkpoint(position, first, end - first)

    def is_last(self, address: BatchAddress) -> bool:
        """Whether a batch is the last of its window."""
        at = address.position - self._start
        return address.number == self._firsts[at + 1] - self._firsts[at] - 1

    def next_window(self, address: BatchAddress) -> int:
        """The position at which a stream that is resumed behind this window would go on."""
        following = address.position + 1
        if not self.counted:
            return following
        behind = max(following, bisect_right(self._firsts, self._firsts[following]) - 1)
        _, stop = self._part_of(address, behind)
        return behind if stop is None else min(behind, stop)

    def _part_of(self, address: BatchAddress, until: int) -> tuple[int, int | None]:
        """Start and stop of the part of a window, where those up to a position are known."""
        self.has(until)
        return self._parts.around(address.position)

    def without_batches(self, address: BatchAddress) -> list[int]:
        """The windows that are known to have no batches, and are read with a batch: so each is read by one rank.

        They are those behind the last batch of a window, and those before the first batch of the stream; where it is
        cut into parts, those of the batch's own.
        """
        if not self.counted:
            return []
        start, _ = self._part_of(address, address.position)
        is_first = self._firsts[address.position] + address.number == self._firsts[start]
        behind = range(address.position + 1, self.next_window(address)) if self.is_last(address) else ()
        return [*(range(start, address.position) if is_first else ()), *behind]

    @property
    def num_windows(self) -> int:
        """The number of windows, all of which are looked for."""
        while self.has(self._num_found):
            pass
        return self._num_found

    def from_its_start(self) -> Stream:
        """The same windows, with nothing counted."""
        windows: Iterable[Window] | None = self._listed
        if windows is None:
            windows = self._windows[: self.num_windows] if self._again is None else self._again()
        return Stream(self.number, windows, again=self._again)

    @property
    def begins_at_start(self) -> bool:
        """Whether its first windows are among those that are counted."""
        return self._start == 0

    @property
    def first_open(self) -> int:
        """The position of the first window whose batches are not counted yet."""
        return self._start + len(self._firsts) - 1

    @property
    def last(self) -> int:
        """Batches of the windows so far."""
        return self._firsts[-1]

    @property
    def num_batches(self) -> int | None:
        """Batches of all windows, where they were counted before anything was read."""
        return self._firsts[-1] if self.counted else None

    def has_batches(self, windows: range) -> bool:
        """Whether some of the windows, whose batches were counted, have any."""
        return bool(windows) and self._firsts[windows.stop] > self._firsts[windows.start]

    def locate(self, batch: int) -> BatchAddress | int | None:
        """The address of a batch; the position of the window to plan first; None behind the last batch."""
        at = bisect_right(self._firsts, batch) - 1
        if at < 0:
            raise OpError(
                f"load_state_dict: batch {batch} of stream {self.number} lies before its window, which begins with "
                f"batch {self._firsts[0]}: the state is damaged"
            )
        position = self._start + at
        if self._is_behind_part(position):
            return None
        if at < len(self._firsts) - 1:
            return BatchAddress(self.number, position, batch - self._firsts[at])
        return None if self.counted or not self.has(position) else position


class Rotation:
    """Batch k of the epoch comes from stream `k mod C`; a stream that has run out is skipped."""

    def __init__(self, streams: Sequence[Stream], total: int | None, before: Array | None = None) -> None:
        self.streams = streams
        counts = [stream.num_batches for stream in streams]
        self.counted = None not in counts
        self.total = total
        self._order: Array | None = None
        self._sorter: Array | None = None
        if self.counted:
            self.total = sum(counts) if total is None else total  # type: ignore[arg-type]
            if len(streams) > 1:
                self._order = _rotation([count or 0 for count in counts], before)
                if before is not None:  # after a change the turns begin again with stream 0
                    self._sorter = np.argsort(self._order)

    @property
    def has_one_window(self) -> bool:
        """Whether a window holds everything."""
        return len(self.streams) == 1 and not self.streams[0].has(1)

    def name_of(self, address: WindowAddress) -> str:
        """Which window of how many it is, where that is known, for those who watch."""
        stream, position = address
        counts = [one.num_listed for one in self.streams]
        number = f"window {position * len(counts) + stream + 1:,}"
        return number if None in counts else f"{number} of {sum(map(int, counts)):,}"  # type: ignore[arg-type]

    def window(self, address: WindowAddress) -> Window:
        """A window that is known to be there."""
        stream, position = address
        window = self.streams[stream].window(position)
        assert window is not None
        return window

    def turn(self, batch: int) -> tuple[Stream, int]:
        """The stream of a batch, and its number in the stream."""
        if self._order is not None and batch < len(self._order):
            number, stream = divmod(int(self._order[batch]), len(self.streams))
        else:
            number, stream = divmod(batch, len(self.streams))
        return self.streams[stream], number

    def number_of(self, stream: Stream, number: int) -> int:
        """The number in the epoch of a batch of a stream."""
        code = number * len(self.streams) + stream.number
        if self._order is None:
            return code
        at = int(np.searchsorted(self._order, code, sorter=self._sorter))
        return at if self._sorter is None or at == len(self._sorter) else int(self._sorter[at])

    def of_stream(self, stream: Stream, start: int, stop: int) -> tuple[int, Array]:
        """The first batch of a stream among some of the epoch, and the numbers in the epoch of all of them."""
        streams = len(self.streams)
        if self.total is not None:
            stop = max(start, min(stop, self.total))
        if self._order is None:
            first = -((stream.number - start) // streams)
            return first, np.arange(first * streams + stream.number, stop, streams)
        codes = self._order[start:stop]
        places = np.flatnonzero(codes % streams == stream.number)
        first = int(codes[places[0]]) // streams if len(places) else 0
        return first, places + start

    def order_until(self, batch: int) -> Array | None:
        """The order of the first batches, for a rotation that begins alike; None where it needs none."""
        return None if self._order is None else self._order[:batch]

    def dealt_before(self, stream: int, batch: int) -> int:
        """How many batches of a stream come before a batch."""
        streams = len(self.streams)
        if self._order is None or batch > len(self._order):
            return len(range(stream, batch, streams))
        return int(np.count_nonzero(self._order[:batch] % streams == stream))

    def locate(self, batch: int) -> BatchAddress | WindowAddress | None:
        """The address of a batch; stream and position of the window to plan first; None behind the last batch."""
        if self.total is not None and batch >= self.total:
            return None
        stream, number = self.turn(batch)
        found = stream.locate(number)
        if found is None and self.total is not None and stream.part_stop is None:
            raise BatchPlanError(
                f"Loader: stream {stream.number} of {len(self.streams)} ends after {number} batches, but an epoch "
                f"of {self.total} batches needs more of it\n  lower steps_per_epoch"
            )
        return (stream.number, found) if isinstance(found, int) else found

    def upcoming(
        self,
        deal: Deal,
        start: int,
        following: Callable[[BatchAddress], list[WindowAddress]] | None = None,
        skips: Skips = NO_SKIPS,
    ) -> Iterator[WindowAddress]:
        """Stream and position of the windows that a rank will need from batch `start` on, in order.

        `following` are the windows behind its own from which a batch takes rows.
        """
        if self.counted:
            yield from self._known(deal, start, following or (lambda address: []), skips)
        else:
            yield from self._unknown(deal, start)

    def _known(
        self,
        deal: Deal,
        start: int,
        following: Callable[[BatchAddress], list[WindowAddress]],
        skips: Skips,
    ) -> Iterator[WindowAddress]:
        seen: dict[int, int] = {}
        kept = skips.kept_before(self.total or 0)
        for index in range(deal.first(skips.kept_before(start)) + deal.rank, kept, deal.stride):
            address = self.locate(skips.number(index))
            if not isinstance(address, BatchAddress):
                continue
            empty = [
                (address.stream, position)
                for position in self.streams[address.stream].without_batches(address)
            ]
            for stream, position in sorted([*empty, address.window, *following(address)]):
                if seen.get(stream, -1) < position:
                    seen[stream] = position
                    yield stream, position

    def from_its_start(self) -> Rotation:
        """The same streams, all windows of which were found, with nothing counted."""
        return Rotation([stream.from_its_start() for stream in self.streams], None)

    def streams_of(self, deal: Deal, start: int) -> list[Stream]:
        """The streams from which a rank gets batches."""
        step = gcd(deal.stride, len(self.streams))
        first = deal.first(start) + deal.rank
        return [stream for stream in self.streams if (stream.number - first) % step == 0]

    def _unknown(self, deal: Deal, start: int) -> Iterator[WindowAddress]:
        open_streams = self.streams_of(deal, start)
        firsts = {stream.number: stream.first_open for stream in open_streams}
        for ahead in count():
            found = False
            for stream in open_streams:
                position = firsts[stream.number] + ahead
                if stream.has(position):
                    found = True
                    yield stream.number, position
            if not found:
                return


def _rotation(counts: Sequence[int], before: Array | None = None) -> Array:
    """int64[sum(counts)]: for each batch its number in its stream times the streams, plus its stream.

    `before` are the first of them, where they are known: the others come in turn behind them.
    """
    streams = len(counts)
    before = np.zeros(0, np.int64) if before is None else before
    done = np.bincount(before % streams, minlength=streams).tolist()
    codes = [
        np.arange(max(0, count - first), dtype=np.int64) * streams + stream
        for stream, (count, first) in enumerate(zip(counts, done, strict=True))
    ]
    turns = np.sort(np.concatenate(codes))
    return np.concatenate([before, turns + np.array(done, np.int64)[turns % streams] * streams])


class Crossing:
    """Which rows of which windows make each batch of `Rows`, where the rows are known before anything is read.

    So no batch but the last of a stream is short. A batch belongs to the window of its first row, as that one's last:
    whoever makes it reads the next window, too, and a resumed run begins with the window that owns the next batch.

    Of a part of a stream `rows` are those of its windows and of the following ones from which it takes rows, and
    `first_row` says how many are before it. `resumed` lists for each stream batches, with their first rows, behind a
    batch that was the last before files were added: that one may have been short.
    """

    def __init__(
        self,
        plan: Rows,
        rows: Sequence[Iterable[int]],
        first_row: int = 0,
        resumed: Sequence[Sequence[tuple[int, int]]] | None = None,
    ) -> None:
        self.plan = Rows(plan.n, lengths=plan.lengths)
        self._ends = [list(accumulate(of_stream, initial=first_row)) for of_stream in rows]
        """For each stream the first row of each window, and the row behind its last."""
        self.resumed = [[(0, 0)] for _ in rows] if resumed is None else resumed
        self.counts: list[list[int]] = []
        """For each stream the number of batches of each window."""
        self._kept: list[int] = []
        """For each stream the rows that batches are made of; those behind them are dropped."""
        for stream, ends in enumerate(self._ends):
            batch, row = self.resumed[stream][-1]
            most = batch + (ends[-1] - row) // plan.n if plan.drop_last else self._begun(stream, ends[-1])
            begun = [min(self._begun(stream, end), most) for end in ends]
            self.counts.append([stop - start for start, stop in pairwise(begun)])
            self._kept.append(row + (most - batch) * plan.n if plan.drop_last else ends[-1])

    def _begun(self, stream: int, row: int) -> int:
        """How many batches of a stream begin before a row."""
        batch, first = next(one for one in reversed(self.resumed[stream]) if one[1] <= row)
        return batch - (first - row) // self.plan.n

    def first_row(self, stream: int, batch: int) -> int:
        """The first row of a batch of a stream; the row behind the last where there is no such batch."""
        of, first = next(one for one in reversed(self.resumed[stream]) if one[0] <= batch)
        return min(first + (batch - of) * self.plan.n, self._ends[stream][-1])

    def resumed_behind(self, dealt: Sequence[int]) -> list[list[tuple[int, int]]]:
        """`resumed` where other windows come behind so many batches of each stream."""
        return [
            [*of, (batches, self.first_row(stream, batches))]
            for stream, (of, batches) in enumerate(zip(self.resumed, dealt, strict=True))
        ]

    def following(self, address: BatchAddress) -> list[WindowAddress]:
        """The windows after its own from which a batch takes rows."""
        ends = self._ends[address.stream]
        batch = self._begun(address.stream, ends[address.position]) + address.number
        stop = self.first_row(address.stream, batch + 1)
        last = address.position
        while ends[last + 1] < stop:
            last += 1
        return [(address.stream, position) for position in range(address.position + 1, last + 1)]

    def lead(self, window: WindowAddress) -> int:
        """How many rows of a window belong to the last batch of an earlier one."""
        stream, position = window
        start = self._ends[stream][position]
        first = next(row for _, row in reversed(self.resumed[stream]) if row <= start)
        return (first - start) % self.plan.n

    def dropped_of(self, window: WindowAddress) -> int:
        """The rows of a window that no batch is made of."""
        stream, position = window
        start, stop = self._ends[stream][position : position + 2]
        return stop - max(start, min(stop, self._kept[stream]))

    def gives_rows(self, window: WindowAddress) -> bool:
        """Whether a batch takes rows from a window."""
        stream, position = window
        start, stop = self._ends[stream][position : position + 2]
        return start < min(stop, self._kept[stream])

    def windows_without_rows(self, stream: int, windows: range) -> list[int]:
        """The positions, of these, of the windows from which no batch takes rows."""
        return [at for at in windows if not self.gives_rows((stream, at))]

    def rows_never_read(self, stream: int, windows: range) -> int:
        """The rows of those of these windows that no batch takes rows from."""
        ends, kept = self._ends[stream], self._kept[stream]
        return sum(ends[at + 1] - ends[at] for at in windows if ends[at] >= kept)

    def part(self, stream: int, start: int, stop: int) -> tuple[int, int]:
        """The rows before window `start` of a stream, and the windows behind `stop` that its last batch reads."""
        ends = self._ends[stream]
        end = self.first_row(stream, self._begun(stream, ends[stop]))
        following = bisect_left(ends, end, lo=stop) - stop
        return ends[start], following
