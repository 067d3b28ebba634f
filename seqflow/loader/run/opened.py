"""The windows that an iteration has in memory: opened for a batch, their ledgers closed with it, then let go of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import NamedTuple

from seqflow.errors import OpError
from seqflow.loader.epoch.table import Missing, Row, RowStream, Stream, Table
from seqflow.loader.order.windows import Layout, WindowAddress
from seqflow.loader.plans.dealing import Span
from seqflow.loader.plans.plan import WindowBatches
from seqflow.loader.plans.row_plans import Rows
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.ledger import Ledger, move
from seqflow.loader.run.reading import WindowReader
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.windows import OpenWindow, WindowMaker


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


AddLedger = Callable[[Ledger], None]
"""Adds the ledger of a window to the counts of a run; it is closed then."""


class WindowsInUse:
    """Windows in memory, read ahead; the ledger of each is closed with the first batch that is handed out of it.

    So at the end of a window all that is counted belongs to the batches handed out, whatever was read ahead. Where an
    iteration may end anywhere, ledgers are closed at once.
    """

    def __init__(
        self, reader: WindowReader, streams: Sequence[Stream], stats: Stats, add: AddLedger, *, at_once: bool
    ) -> None:
        self._reader, self._streams, self._stats = reader, streams, stats
        self._add, self._at_once = add, at_once
        self.closed_before = 0
        """Windows before this position of the only stream were counted by the run that this one goes on with."""
        self.first_needed: Callable[[int, int], int] = lambda stream, position: position
        """The first window of a stream that is still needed when one is opened."""
        self._open: dict[WindowAddress, OpenWindow] = {}
        self.unclosed: dict[WindowAddress, Ledger] = {}
        """The ledgers of windows of which no batch was handed out yet."""
        self._seen: set[WindowAddress] = set()

    def exists(self, address: WindowAddress) -> bool:
        """Whether there is such a window."""
        return self._reader.layout.has(address)

    def get(self, address: WindowAddress, *, wait: bool) -> OpenWindow | None:
        """The window, read and planned; None where that takes waiting."""
        opened = self._open.get(address)
        if opened is not None:
            return opened
        if not wait and not self._reader.ready(address):
            return None
        started = perf_counter()
        stream, position = address
        if not self._reader.has(address):  # all batches before it were handed out, or nobody would wait
            first = self.first_needed(stream, position)
            self.release(stream, min([first, *(at for of, at in self.unclosed if of == stream)]))
        opened = self._open[address] = self._reader.get(address)
        self._stats.seconds_waiting += perf_counter() - started
        if address not in self._seen:
            self._check(self._streams[stream], address, len(opened.batches))
            self._note(address, opened.ledger)
            self._stats.bytes_in_flight = self._reader.bytes_in_flight
        return opened

    def pass_over(self, stream: int, positions: Iterable[int]) -> None:
        """Note windows that no batch opens, from what is known of them without reading; else they are read."""
        for position in () if self._at_once else positions:
            if (address := (stream, position)) in self._seen:
                continue
            window = self._reader.layout.window(address)
            assert window is not None
            if self._streams[stream].crosses:
                assert window.num_rows is not None  # the stream was counted by them
                ledger: Ledger | None = Ledger.of_source(window.num_rows, window.filtered)
            else:
                ledger = self._reader.maker.known(window)
            if ledger is None:
                self.get(address, wait=True)
            else:
                self._note(address, ledger)

    def close(self) -> None:
        """Let go of all windows."""
        self._open.clear()
        self.unclosed.clear()
        self._reader.close()

    def release(self, stream: int, position: int) -> None:
        """Let go of the windows of a stream before a position."""
        if self._reader.release(stream, position):
            self._open = {one: of for one, of in self._open.items() if one[0] != stream or one[1] >= position}
        self._stats.bytes_in_flight = self._reader.bytes_in_flight

    def close_until(self, stream: int, stop: int) -> None:
        """Close the ledgers of the windows of a stream before a position."""
        for one in sorted(one for one in self.unclosed if one[0] == stream and one[1] < stop):
            self._add(self.unclosed.pop(one))

    @staticmethod
    def _check(stream: Stream, address: WindowAddress, batches: int) -> None:
        """OpError where a window has other batches than an index, or a state, has counted."""
        counted = stream.count_of(address[1])
        if not stream.crosses and counted not in (None, batches):
            raise OpError(
                f"Loader: window {address[1]} of stream {address[0]} has {batches} batches, and {counted} by the "
                "lengths index or the state: these are of other data, or damaged"
            )

    def _note(self, address: WindowAddress, ledger: Ledger) -> None:
        """Note the ledger of a window, the first time that it is seen."""
        self._seen.add(address)
        stream = self._streams[address[0]]
        if isinstance(
            stream, RowStream
        ):  # rows that its own plan would drop may be in a batch of two windows
            move(ledger, stream.dropped_of(address[1]) - ledger.dropped, "rows_left", "dropped")
        if self._at_once:
            self._add(ledger)
        elif address[1] >= self.closed_before:
            self.unclosed[address] = ledger


Windows = WindowsAgain | WindowsInUse
"""Windows by their addresses, read and planned."""


class PlannedBatches(NamedTuple):
    """Consecutive rows of a stream, as one window has planned them, or one that runs across windows."""

    row: Row
    """The first of them."""
    windows: tuple[OpenWindow, ...]
    """Those that their data rows come from."""
    span: Span

    @property
    def num_batches(self) -> int:
        return self.span.stop - self.span.start


class PlannedRows:
    """The rows of a table as their windows plan them; windows are opened when they are needed."""

    def __init__(self, table: Table, windows: Windows) -> None:
        self.table, self._windows = table, windows
        self._across = [Rows(one.n) if isinstance(one, RowStream) else None for one in table.streams]
        """For each stream the plan of batches that run across its windows."""
        self._inside: dict[int, tuple[OpenWindow, WindowBatches]] = {}
        """For each stream the batches inside a window, where its first rows belong to a batch of an earlier one."""

    def plan(self, window: Missing, *, wait: bool) -> bool:
        """Plan a window that the table misses; False where that takes waiting."""
        address = window.stream, window.position
        if not self._windows.exists(address):
            self.table.end(window)
            return True
        opened = self._windows.get(address, wait=wait)
        if opened is None:
            return False
        self.table.add(window, len(opened.batches))
        return True

    def batches_of(self, row: Row, *, wait: bool) -> tuple[tuple[OpenWindow, ...], WindowBatches, int] | None:
        """The windows of a row, planned batches, and which of them it is; None where that takes waiting."""
        if len(row.pieces) == 1:
            own = self._windows.get((row.stream, row.window), wait=wait)
            if own is None:
                return None
            opened: tuple[OpenWindow, ...] = (own,)
        else:
            opened = ()
            for position, *_ in row.pieces:
                window = self._windows.get((row.stream, position), wait=wait)
                if window is None:
                    return None
                opened = (*opened, window)
        across = self._across[row.stream]
        if across is None:
            return opened, opened[0].batches, row.inside
        return opened, *self._batches_across(across, row, opened)

    def planned(self, row: Row, stop: int, *, wait: bool) -> PlannedBatches | None:
        """A row, and those before place `stop` of its stream that the same window plans; None: that takes waiting."""
        found = self.batches_of(row, wait=wait)
        if found is None:
            return None
        opened, batches, at = found
        last = at + 1
        if not self.table.streams[row.stream].crosses:
            last = min(len(batches), at + stop - row.place)
        return PlannedBatches(row, opened, Span(batches, at, last))

    def _batches_across(
        self, plan: Rows, row: Row, opened: tuple[OpenWindow, ...]
    ) -> tuple[WindowBatches, int]:
        """Planned batches of `Rows` that run across windows, and which of them is the one of a row."""
        own, n = opened[0], plan.n
        _, start, stop = row.pieces[0]

        def batches_of(rows: WindowRows) -> WindowBatches:
            return plan.of_window(rows, own.lengths, 0, own.window.number)

        if stop - start == n:
            lead = start % n
            if not lead:
                return own.batches, start // n
            found = self._inside.get(row.stream)
            if found is None or found[0] is not own:
                full = (own.rows.num_rows - lead) // n
                found = self._inside[row.stream] = own, batches_of(own.rows.part(lead, lead + full * n))
            return found[1], start // n
        rows = own.rows.part(start, stop)
        for window, (_, first, end) in zip(opened[1:], row.pieces[1:], strict=True):
            rows = rows.joined(window.rows.part(first, end))
        return batches_of(rows), 0
