"""Streams: which window holds the j-th batch of a stream, as far as that is known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from seqflow.errors import OpError
from seqflow.loader.schedule.windows import Window


class Place(NamedTuple):
    """Batch `number` of the window at `position` of a stream."""

    stream: int
    position: int
    number: int


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

    def __init__(self, number: int, windows: Iterable[Window], counts: list[int] | None = None) -> None:
        self.number = number
        self._windows: list[Window] = []
        self._rest = iter(windows)
        self._start = 0
        """The position of the first window whose batches are counted."""
        self._firsts = [0]
        """The first batch of each window from there on."""
        self.counted = counts is not None
        for count in counts or ():
            self._firsts.append(self._firsts[-1] + count)

    def start_at(self, checkpoint: Checkpoint) -> None:
        """Go on behind a window whose batches were counted before; OpError where there is no such window."""
        if self.window(checkpoint.position) is None:
            raise OpError(
                f"load_state_dict: the state is in window {checkpoint.position} of stream {self.number}, which has "
                f"{len(self._windows)}: the state is damaged"
            )
        self._start = checkpoint.position
        self._firsts = [checkpoint.first, checkpoint.first + checkpoint.batches]

    def window(self, position: int) -> Window | None:
        """The window at a position; None behind the last."""
        while len(self._windows) <= position:
            window = next(self._rest, None)
            if window is None:
                return None
            self._windows.append(window)
        return self._windows[position]

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

    def is_last(self, place: Place) -> bool:
        """Whether a batch is the last of its window."""
        at = place.position - self._start
        return place.number == self._firsts[at + 1] - self._firsts[at] - 1

    def next_window(self, place: Place) -> int:
        """The position at which a stream that is resumed behind this window would go on."""
        following = place.position + 1
        if not self.counted:
            return following
        return max(following, bisect_right(self._firsts, self._firsts[following]) - 1)

    def without_batches(self, place: Place) -> list[int]:
        """The windows that are known to have no batches, and are read with a batch: so each is read by one rank.

        They are those behind the last batch of a window, and those before the first batch of the stream.
        """
        if not self.counted:
            return []
        is_first = self._firsts[place.position] + place.number == 0
        behind = range(place.position + 1, self.next_window(place)) if self.is_last(place) else ()
        return [*(range(place.position) if is_first else ()), *behind]

    @property
    def num_windows(self) -> int:
        """The number of windows, all of which are looked for."""
        self._windows += self._rest
        return len(self._windows)

    def from_its_start(self) -> Stream:
        """The same windows, all of which were found, with nothing counted."""
        return Stream(self.number, self._windows[: self.num_windows])

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

    def locate(self, batch: int) -> Place | int | None:
        """The place of a batch; the position of the window to plan first; None behind the last batch."""
        at = bisect_right(self._firsts, batch) - 1
        if at < 0:
            raise OpError(
                f"load_state_dict: batch {batch} of stream {self.number} lies before its window, which begins with "
                f"batch {self._firsts[0]}: the state is damaged"
            )
        if at < len(self._firsts) - 1:
            return Place(self.number, self._start + at, batch - self._firsts[at])
        position = self._start + at
        return None if self.counted or self.window(position) is None else position
