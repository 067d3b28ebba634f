"""Reading windows ahead, bounded in bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from itertools import groupby

from seqflow.loader.run.recipe import OpenWindow, PreparedPart
from seqflow.loader.run.workers import Workers
from seqflow.loader.schedule.windows import Part, Window

Spot = tuple[int, int]
"""A stream, and the position of a window in it."""
Read = Callable[[Part, int], PreparedPart]
Open = Callable[[Window, list[PreparedPart], int], OpenWindow]


class Opening:
    """A window on its way into memory: its parts are read by the workers, the last to end plans the batches."""

    def __init__(self, window: Window, read: Read, open: Open, epoch: int, workers: Workers) -> None:
        self.window = window
        self._open_window, self._epoch, self._workers = open, epoch, workers
        self._found: list[PreparedPart | BaseException | None] = [None] * len(window.parts)
        self._left = len(window.parts)
        self._lock = threading.Lock()
        self._future: Future[OpenWindow] = Future()
        self._tasks = [
            workers.submit(partial(self._read_all, list(parts), read))
            for _, parts in groupby(enumerate(window.parts), key=lambda entry: entry[1].number)
        ]
        self.estimate = 0

    def done(self) -> bool:
        """Whether asking for the result will not wait for threads."""
        return self._future.done() or all(task.done() for task in self._tasks)

    def result(self) -> OpenWindow:
        """The window, or the error of its first part that has one."""
        self._workers.help_until(self.done)
        for task in self._tasks:
            task.result()
        self._tasks = []  # those that ran here refer to this window, which would wait for the garbage collector
        return self._future.result()

    def parts(self) -> list[PreparedPart]:
        """What was read, once there is a result."""
        return [part for part in self._found if isinstance(part, PreparedPart)]

    def _read_all(self, parts: list[tuple[int, Part]], read: Read) -> None:
        """Read a block, or slices of one, which go on where the last one ended."""
        for at, part in parts:
            self._read(at, part, read)

    def _read(self, at: int, part: Part, read: Read) -> None:
        try:
            self._found[at] = read(part, self._epoch)
        except BaseException as error:
            self._found[at] = error
        with self._lock:
            self._left -= 1
            last = self._left == 0
        if last:
            self._open()

    def _open(self) -> None:
        try:
            parts: list[PreparedPart] = []
            for found in self._found:
                if isinstance(found, BaseException):
                    raise found
                assert found is not None  # all were read
                parts.append(found)
            self._future.set_result(self._open_window(self.window, parts, self._epoch))
        except BaseException as error:
            self._found = []
            self._future.set_exception(error)


class WindowReader:
    """The windows that are in memory, or on their way there; those that come next are read ahead.

    A window counts from when it is asked for until it is released: first by the source's estimate, times what
    earlier windows took of theirs, then by its tensors. The window that is needed next is always let through.
    """

    def __init__(
        self,
        read: Read,
        open: Open,
        epoch: int,
        workers: Workers,
        find: Callable[[Spot], Window],
        upcoming: Iterator[Spot],
        limit: int,
        prepares: bool,
    ) -> None:
        self._read, self._open, self._epoch, self._workers = read, open, epoch, workers
        self._find, self._upcoming, self._limit = find, upcoming, limit
        self._next: Spot | None = None
        self._growth = None if prepares else 1.0
        """Bytes of a prepared window for each that the source estimates; not known before the first."""
        self._openings: dict[Spot, Opening] = {}
        self._passed: dict[int, int] = {}
        """The first position of each stream that may still be read ahead."""
        self._opened: set[Spot] = set()
        self.bytes_in_flight = 0

    def fill(self) -> None:
        """Begin to read the next windows, as many as memory allows. Without threads nothing is read ahead."""
        if not self._workers.count:
            return
        while (spot := self._peek()) is not None:
            window = self._find(spot)
            if self._openings and (
                self._growth is None or self.bytes_in_flight + self._estimate(window) > self._limit
            ):
                return
            if self._waits(window):
                return
            self._next = None
            if spot not in self._openings and spot[1] >= self._passed.get(spot[0], 0):
                self._begin(spot, window)

    def has(self, spot: Spot) -> bool:
        """Whether the window is in memory, or on its way there."""
        return spot in self._openings

    def ready(self, spot: Spot) -> bool:
        """Whether asking for the window will not wait for threads."""
        return spot in self._openings and self._openings[spot].done()

    def get(self, spot: Spot) -> OpenWindow:
        """The window at a spot; waits for it."""
        if spot not in self._openings:
            self._begin(spot, self._find(spot))
        opening = self._openings[spot]
        opened = opening.result()
        if spot not in self._opened:
            self._opened.add(spot)
            size = opened.rows.nbytes
            self.bytes_in_flight += size - opening.estimate
            if opening.window.nbytes:
                self._growth = max(self._growth or 0.0, size / opening.window.nbytes)
            opening.estimate = size
        return opened

    def parts(self, spot: Spot) -> list[PreparedPart]:
        return self._openings[spot].parts()

    def release(self, stream: int, position: int) -> None:
        """Let go of the windows of a stream before a position."""
        self._passed[stream] = max(position, self._passed.get(stream, 0))
        for spot in [spot for spot in self._openings if spot[0] == stream and spot[1] < position]:
            self.bytes_in_flight -= self._openings.pop(spot).estimate
            self._opened.discard(spot)

    def _waits(self, window: Window) -> bool:
        """Whether slices just before those of the window are still being read: no other thread could go on there."""
        first = window.parts[0]
        return first.start > 0 and any(
            opening.window.parts[-1].number == first.number and not opening.done()
            for opening in self._openings.values()
        )

    def _peek(self) -> Spot | None:
        if self._next is None:
            self._next = next(self._upcoming, None)
        return self._next

    def _estimate(self, window: Window) -> int:
        return int(window.nbytes * (self._growth or 1.0))

    def _begin(self, spot: Spot, window: Window) -> None:
        opening = Opening(window, self._read, self._open, self._epoch, self._workers)
        opening.estimate = self._estimate(window)
        self.bytes_in_flight += opening.estimate
        self._openings[spot] = opening
