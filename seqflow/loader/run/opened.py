"""The windows that an iteration has in memory: opened for a batch, counted with their first one, then let go of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Protocol

from seqflow.errors import OpError
from seqflow.loader.epoch.table import RowStream, Stream
from seqflow.loader.run.bad_rows import BadRowHandler
from seqflow.loader.run.reading import WindowReader
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.windows import OpenWindow, WindowMaker
from seqflow.loader.schedule.layout import Layout, WindowAddress


class Windows(Protocol):
    """Windows by their addresses."""

    def exists(self, address: WindowAddress) -> bool:
        """Whether there is such a window."""

    def get(self, address: WindowAddress, *, wait: bool) -> OpenWindow | None:
        """The window, read and planned; None where that takes waiting."""


class WindowsAgain:
    """Windows that are read when they are asked for, a second time, of which nothing is counted."""

    def __init__(self, maker: WindowMaker, layout: Layout, epoch: int) -> None:
        self._maker, self._layout, self._epoch = maker, layout, epoch
        self._opened: dict[WindowAddress, OpenWindow] = {}

    def exists(self, address: WindowAddress) -> bool:
        return self._layout.has(address)

    def get(self, address: WindowAddress, *, wait: bool) -> OpenWindow | None:
        if address not in self._opened:
            window = self._layout.window(address)
            assert window is not None
            self._opened[address] = self._maker.make(window, self._epoch)
        return self._opened[address]


class WindowsInUse:
    """Windows in memory, read ahead; each counts with the first batch that is handed out of it, or `at_once`.

    So at the end of a window all that is counted belongs to the batches handed out, whatever was read ahead.
    """

    def __init__(
        self,
        reader: WindowReader,
        streams: Sequence[Stream],
        handler: BadRowHandler,
        stats: Stats,
        *,
        at_once: bool,
        counted: int = 0,
    ) -> None:
        self._reader, self._streams, self._handler, self._stats = reader, streams, handler, stats
        self._at_once, self._counted = at_once, counted
        """Windows before position `counted` of the only stream were counted by the run that this one goes on with."""
        self.first_needed: Callable[[int, int], int] = lambda stream, position: position
        """The first window of a stream that is still needed when one is opened."""
        self._open: dict[WindowAddress, OpenWindow] = {}
        self.uncounted: dict[WindowAddress, OpenWindow] = {}
        """Windows that are open, of which no batch was handed out yet."""
        self._seen: set[WindowAddress] = set()

    def exists(self, address: WindowAddress) -> bool:
        return self._reader.layout.has(address)

    def get(self, address: WindowAddress, *, wait: bool) -> OpenWindow | None:
        opened = self._open.get(address)
        if opened is not None:
            return opened
        if not wait and not self._reader.ready(address):
            return None
        started = perf_counter()
        stream, position = address
        if not self._reader.has(address):  # all batches before it were handed out, or nobody would wait
            first = self.first_needed(stream, position)
            self.release(stream, min([first, *(at for of, at in self.uncounted if of == stream)]))
        opened = self._open[address] = self._reader.get(address)
        self._stats.seconds_waiting += perf_counter() - started
        if address not in self._seen:
            self._seen.add(address)
            self._check(self._streams[stream], address, len(opened.batches))
            if self._at_once:
                self._count(address, opened)
            elif position >= self._counted:
                self.uncounted[address] = opened
            self._stats.bytes_in_flight = self._reader.bytes_in_flight
        return opened

    def close(self) -> None:
        """Let go of all windows."""
        self._open.clear()
        self.uncounted.clear()
        self._reader.close()

    def was_opened(self, address: WindowAddress) -> bool:
        """Whether the window is, or was, in memory."""
        return address in self._seen

    def release(self, stream: int, position: int) -> None:
        """Let go of the windows of a stream before a position."""
        if self._reader.release(stream, position):
            self._open = {one: of for one, of in self._open.items() if one[0] != stream or one[1] >= position}
        self._stats.bytes_in_flight = self._reader.bytes_in_flight

    def count_until(self, stream: int, stop: int) -> None:
        """Count the windows of a stream before a position."""
        for one in sorted(one for one in self.uncounted if one[0] == stream and one[1] < stop):
            self._count(one, self.uncounted.pop(one))

    @staticmethod
    def _check(stream: Stream, address: WindowAddress, batches: int) -> None:
        """OpError where a window has other batches than an index, or a state, has counted."""
        counted = stream.count_of(address[1])
        if not stream.crosses and counted not in (None, batches):
            raise OpError(
                f"Loader: window {address[1]} of stream {address[0]} has {batches} batches, and {counted} by the "
                "lengths index or the state: these are of other data, or damaged"
            )

    def _count(self, address: WindowAddress, opened: OpenWindow) -> None:
        """The rows of a window count, and its bad rows are kept."""
        stats, stream = self._stats, self._streams[address[0]]
        gives, dropped = True, opened.batches.dropped.begun
        if isinstance(stream, RowStream):
            gives, dropped = stream.gives_rows(address[1]), stream.dropped_of(address[1])
        for one in self._reader.slices(address):
            stats.rows_read += one.num_rows
            if gives:
                stats.filtered += one.filtered
                stats.skipped += one.filtered
            stats.seconds_reading += one.seconds_reading
            stats.seconds_preparing += one.seconds_preparing
            for rejected in one.rejected:
                self._handler.add(rejected)
        for rejected in opened.rejected:
            self._handler.add(rejected)
        stats.dropped += dropped
        stats.skipped += opened.batches.skipped
        bad = sum(rejected.count for rejected in opened.rejected)
        stats.rows_left += opened.rows.num_rows - bad - dropped - opened.batches.skipped
        stats.seconds_planning += opened.seconds_planning
        stats.bad_rows = self._handler.count
