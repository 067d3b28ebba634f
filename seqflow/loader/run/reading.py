"""The windows of a run: read ahead in bounded memory, opened for a batch, counted with it, then released."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import groupby
from time import perf_counter

from seqflow.errors import OpError
from seqflow.files.interface import Range
from seqflow.loader.epoch.table import BatchEntry, Missing, RowStream, SingleRows, Table
from seqflow.loader.order.recipe import Recipe
from seqflow.loader.order.windows import BlockSlice, Window, WindowAddress
from seqflow.loader.plans.balanced_pools import Span
from seqflow.loader.plans.plan import WindowBatches
from seqflow.loader.plans.row_plans import Rows
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.iterator import EpochPlan, RunOptions
from seqflow.loader.run.ledger import Ledger, add_columns, count_bad, move
from seqflow.loader.run.windows import OpenWindow, PreparedSlice, WindowMaker, read_tasks
from seqflow.loader.run.workers import Workers
from seqflow.progress import Stage, stage
from seqflow.providers.bad_files import BadFile
from seqflow.providers.fetching import FetchAhead


class WindowOpening:
    """A window on its way into memory: the workers read its slices, and the last one to finish plans the batches."""

    def __init__(self, window: Window, maker: WindowMaker, epoch: int, workers: Workers) -> None:
        self.window = window
        self._maker, self._epoch, self._workers = maker, epoch, workers
        self._found: list[PreparedSlice | BaseException | None] = [None] * len(window.slices)
        self.stage = Stage("blocks", len(window.slices), after="planning")
        self._lock = threading.Lock()
        self._future: Future[OpenWindow] = Future()
        self._tasks = [workers.submit(partial(self._read, part)) for part in read_tasks(window.slices)]
        self.asked = self.ready = perf_counter()
        """Times at which it was asked for, and was in memory."""
        self.num_tasks, self._num_done = len(self._tasks), 0
        """Number of tasks, from the first on, known to be done: a window may have thousands."""
        self.estimate = 0

    def done(self) -> bool:
        """Return whether asking for the result will not wait for threads."""
        tasks = self._tasks
        while self._num_done < len(tasks) and tasks[self._num_done].done():
            self._num_done += 1
        return self._num_done >= len(tasks)

    def result(self) -> OpenWindow:
        """Return the window, or raise the error of its first slice that failed."""
        self._workers.help_until(self.done)
        for task in self._tasks:
            self._workers.wait(task)
        self._tasks = []  # those that ran here refer to this window, which would wait for the garbage collector
        return self._future.result()

    def _read(self, part: range) -> None:
        """Read small blocks, or slices of a large block, which continue where the last one ended."""
        results = self._maker.read_all(self.window.slices[part.start : part.stop], self._epoch)
        for at, found in zip(part, results, strict=True):
            self._found[at] = found  # also an error: the window raises it when all its slices are counted
            with self._lock:
                self.stage.done += 1
                # under the lock: exactly one thread sees the last slice, and plans the window
                last = self.stage.done == len(self._found)
            if last:
                self._open()

    def _open(self) -> None:
        try:
            slices: list[PreparedSlice] = []
            for found in self._found:
                if isinstance(found, BaseException):
                    raise found
                assert found is not None  # all were read
                slices.append(found)
            opened = self._maker.open(self.window, slices, self._epoch)
            self.ready = perf_counter()
            self._future.set_result(opened)
        except BaseException as error:
            self._found = []
            self._future.set_exception(error)


class WindowReader:
    """The windows that are in memory, or on their way there; the next ones are read ahead.

    A window counts against the memory from its request to its release: first by the source's estimate, scaled
    by the growth of earlier windows, then by its tensors. The window that is needed next is always read, even
    above the limit.

    The ledger of a window is closed with the first batch of it that is handed out. Therefore all counts at the
    end of a window belong to the batches handed out, no matter how much was read ahead. A run that may end
    anywhere closes ledgers at once.
    """

    def __init__(
        self, plan: EpochPlan, maker: WindowMaker, run_options: RunOptions, upcoming: Iterator[WindowAddress]
    ) -> None:
        self._plan, self.maker, self._run_options = plan, maker, run_options
        recipe = maker.recipe
        self._upcoming = FetchAhead(recipe.source.store, upcoming, self._ranges_of)
        self.first_needed: Callable[[int, int], int] = lambda stream, position: position
        """Returns the first window of a stream that is still needed when one is opened."""
        self._next: tuple[WindowAddress, Window | None] | None = None
        """The next window to read ahead, and None in its place at the end of windows that are found one by one."""
        self._growth = 1.0 if maker.recipe.prepare is None else None
        """Bytes of a prepared window for each byte of the source's estimate; not known before the first window."""
        self._openings: dict[WindowAddress, WindowOpening] = {}
        self._open: dict[WindowAddress, OpenWindow] = {}
        """Windows that were requested and are not released yet."""
        self._passed: dict[int, int] = {}
        """First position of each stream that may still be read ahead."""
        self._oldest: dict[int, int] = {}
        """First position of each stream that is in memory: most batches release nothing, and need no search."""
        self._bytes = 0
        """Bytes of windows in memory, and on their way there."""
        self.unclosed: dict[WindowAddress, Ledger] = {}
        """Ledgers of windows of which no batch was handed out yet."""
        self._seen: set[WindowAddress] = set()

    def fill(self) -> None:
        """Begin to read as many next windows as memory allows. Without threads nothing is read ahead."""
        self._upcoming.look()
        if not self._run_options.workers.count:
            return
        while (following := self._peek()) is not None:
            address, window = following
            if window is None:  # the end of windows that are found one by one
                self._upcoming.close()
                self._next = None
                return
            # until the first window has shown how much `prepare` adds, only one is opened
            size = self._bytes + self._estimate(window) + self.maker.recipe.source.store.bytes_ahead
            is_full = self._growth is None or size > self.maker.recipe.memory
            # without open windows one is opened whatever its size, or a large one would never come
            if (self._openings and is_full) or self._waits(window):
                return
            self._next = None
            if address not in self._openings and address[1] >= self._passed.get(address[0], 0):
                self._begin(address, window)

    def exists(self, address: WindowAddress) -> bool:
        """Return whether the window exists."""
        return self._plan.layout.has(address)

    def get(self, address: WindowAddress, *, wait: bool) -> OpenWindow | None:
        """Return the window, read and planned; None if that requires waiting."""
        opened = self._open.get(address)
        if opened is not None:
            return opened
        opening = self._openings.get(address)
        if not wait and (opening is None or not opening.done()):
            return None
        started = perf_counter()
        stats = self._run_options.stats
        if opening is None:  # all batches before it were handed out, or `wait` would be false
            opening = self._begin_now(*address)
        opening.stage.name = self._plan.layout.name_of(address)
        with stage(opening.stage):
            opened = self._open[address] = opening.result()
        self._upcoming.done(address)
        size = opened.rows.nbytes
        self._bytes += size - opening.estimate
        if opening.window.nbytes:
            # the largest growth, not the mean: windows above the mean would exceed the memory
            self._growth = max(self._growth or 0.0, size / opening.window.nbytes)
        opening.estimate = size
        # a window that was released may be opened again; it counts once
        if address not in self._seen:
            stats.timings.add_window(size, opening.num_tasks, opening.asked, opening.ready, started)
            self._check(address, len(opened.batches))
            self._note(address, opened.ledger)
            stats.bytes_in_flight = self._bytes
        return opened

    def pass_over(self, stream: int, positions: Iterable[int]) -> None:
        """Count windows that no batch opens, by what is known of them without reading; otherwise read them."""
        for position in () if self._run_options.at_once else positions:
            if (address := (stream, position)) in self._seen:
                continue
            window = self._plan.layout.window(address)
            assert window is not None
            if self._plan.table.streams[stream].crosses:
                assert window.num_rows is not None  # the stream was counted by them
                ledger: Ledger | None = Ledger.of_source(window.num_rows, window.filtered)
            else:
                ledger = self.maker.known(window, self._plan.start.epoch)
            if ledger is None:
                self.get(address, wait=True)
            else:
                self._note(address, ledger)

    def release(self, stream: int, position: int) -> None:
        """Release the windows of a stream before a position."""
        self._passed[stream] = max(position, self._passed.get(stream, 0))
        if self._oldest.get(stream, position) < position:
            for address in [one for one in self._openings if one[0] == stream and one[1] < position]:
                self._bytes -= self._openings.pop(address).estimate
                if self._open.pop(address, None) is not None:
                    self._run_options.stats.timings.num_released += 1
            self._oldest[stream] = min((at for of, at in self._openings if of == stream), default=position)
        self._run_options.stats.bytes_in_flight = self._bytes

    def close_until(self, stream: int, stop: int) -> None:
        """Close the ledgers of the windows of a stream before a position."""
        for one in sorted(one for one in self.unclosed if one[0] == stream and one[1] < stop):
            self._add(self.unclosed.pop(one))

    def close(self) -> None:
        """Release all windows, and their source."""
        self._open.clear()
        self.unclosed.clear()
        self._openings.clear()
        self._upcoming.close()
        self._plan.layout.close()

    def _waits(self, window: Window) -> bool:
        """Return whether slices just before those of the window are still being read, so that another thread
        could not go on.
        """
        first = window.slices[0]
        return first.start > 0 and any(
            opening.window.slices[-1].number == first.number and not opening.done()
            for opening in self._openings.values()
        )

    def _peek(self) -> tuple[WindowAddress, Window | None] | None:
        if self._next is None and (address := next(self._upcoming, None)) is not None:
            self._next = address, self._plan.layout.window(address)
        return self._next

    def _estimate(self, window: Window) -> int:
        return int(window.nbytes * (self._growth or 1.0))

    def _begin_now(self, stream: int, position: int) -> WindowOpening:
        """Begin to read a window that was not read ahead, in place of windows that are not needed any more."""
        first = self.first_needed(stream, position)
        # windows whose ledgers are open were read ahead, and no batch of them was handed out yet
        self.release(stream, min([first, *(at for of, at in self.unclosed if of == stream)]))
        window = self._plan.layout.window((stream, position))
        assert window is not None
        return self._begin((stream, position), window)

    def _ranges_of(self, address: WindowAddress) -> Iterator[Iterable[Range]]:
        """Return the ranges of the blocks that a window reads whole, and does not keep from an earlier epoch."""
        window = self._plan.layout.window(address)
        kept = {} if self.maker.kept is None else self.maker.kept.slices
        slices = () if window is None else window.slices
        return _ranges_of_whole(self.maker.recipe, (one for one in slices if one.key not in kept))

    def _begin(self, address: WindowAddress, window: Window) -> WindowOpening:
        self._upcoming.begin(address)
        opening = WindowOpening(window, self.maker, self._plan.start.epoch, self._run_options.workers)
        opening.estimate = self._estimate(window)
        self._bytes += opening.estimate
        self._openings[address] = opening
        stream, position = address
        self._oldest[stream] = min(position, self._oldest.get(stream, position))
        return opening

    def _check(self, address: WindowAddress, batches: int) -> None:
        """Raise OpError when a window's batches differ from the count of an index or a state."""
        stream = self._plan.table.streams[address[0]]
        counted = stream.count_of(address[1])
        if not stream.crosses and counted not in (None, batches):
            raise OpError(
                f"Loader: window {address[1]} of stream {address[0]} has {batches} batches, and {counted} by the "
                "lengths index or the state: these are of other data, or damaged"
            )

    def _note(self, address: WindowAddress, ledger: Ledger) -> None:
        """Record the ledger of a window, the first time that it is seen."""
        self._seen.add(address)
        stream = self._plan.table.streams[address[0]]
        if isinstance(stream, RowStream):
            # rows that its own plan would drop may be in a batch of two windows
            move(ledger, stream.dropped_of(address[1]) - ledger.dropped, "rows_left", "dropped")
        if self._run_options.at_once:
            self._add(ledger)
        elif address[1] >= self._plan.closed_before:
            self.unclosed[address] = ledger

    def _add(self, ledger: Ledger) -> None:
        """Add the ledger of a window to the counts, and keep its bad rows."""
        add_columns(self._run_options.stats, ledger)
        for rejected in ledger.rejected:
            count_bad(self._run_options.stats, rejected)
            self._run_options.handlers[0].add(rejected)
        if ledger.damaged:
            self.add_damage(ledger.damaged)

    def add_damage(self, found: Sequence[BadFile]) -> None:
        """Count damaged files or blocks."""
        source, stats = self.maker.recipe.source, self._run_options.stats
        self._run_options.handlers[0].add_damage(found, source.bad_files, stats, source.schema)


Planned = tuple[tuple[OpenWindow, ...], WindowBatches, int]
"""The windows that rows of a row of the table come from, planned batches, and the number of the row among them."""


class PlannedRows:
    """The rows of a table as their windows plan them; windows are opened when they are needed."""

    def __init__(self, table: Table, windows: WindowReader) -> None:
        self.table, self._windows = table, windows
        self._inside: dict[int, tuple[OpenWindow, WindowBatches]] = {}
        """For each stream, the batches inside a window whose first rows belong to a batch of an earlier window."""

    def plan(self, window: Missing, *, wait: bool) -> bool:
        """Plan a window that the table needs; return False if that requires waiting."""
        address = window.stream, window.position
        if not self._windows.exists(address):
            self.table.end(window)
            return True
        opened = self._windows.get(address, wait=wait)
        if opened is None:
            return False
        self.table.add(window, len(opened.batches))
        return True

    def batches_of(self, row: BatchEntry, *, wait: bool) -> Planned | None:
        """Return the windows of a row, planned batches, and its number among them; None if that requires waiting."""
        opened: tuple[OpenWindow, ...] = ()
        for piece in row.pieces:
            window = self._windows.get((row.stream, piece[0]), wait=wait)
            if window is None:
                return None
            opened += (window,)
        stream = self.table.streams[row.stream]
        if not stream.crosses:
            return opened, opened[0].batches, row.inside
        assert isinstance(stream, RowStream)
        return self._batches_across(None if isinstance(stream, SingleRows) else stream.n, row, opened)

    def planned(
        self, row: BatchEntry, stop: int, *, wait: bool
    ) -> tuple[tuple[OpenWindow, ...], Span] | None:
        """Return windows and batches of a row, and of the rows before place `stop` of its stream that the same
        window plans.

        Return None if that requires waiting.
        """
        found = self.batches_of(row, wait=wait)
        if found is None:
            return None
        opened, batches, at = found
        last = at + 1
        if not self.table.streams[row.stream].crosses:
            last = min(len(batches), at + stop - row.place)
        return opened, Span(batches, at, last)

    def _batches_across(self, n: int | None, row: BatchEntry, opened: tuple[OpenWindow, ...]) -> Planned:
        """Return planned batches of n rows that run across windows; without n, one batch of any number."""
        own = opened[0]
        _, start, stop = row.pieces[0]

        def batches_of(rows: WindowRows) -> WindowBatches:
            # Rows draws no random numbers, so any key gives the same batches
            return Rows(n or rows.num_rows).of_window(rows, own.lengths, 0, own.window.number)

        if n is not None and stop - start == n:
            lead = start % n
            if not lead:
                return opened, own.batches, start // n
            found = self._inside.get(row.stream)
            if found is None or found[0] is not own:
                full = (own.rows.num_rows - lead) // n
                found = self._inside[row.stream] = own, batches_of(own.rows.part(lead, lead + full * n))
            return opened, found[1], start // n
        rows = own.rows.part(start, stop)
        for window, (_, first, end) in zip(opened[1:], row.pieces[1:], strict=True):
            rows = rows.joined(window.rows.part(first, end))
        return opened, batches_of(rows), 0


def read_slices(maker: WindowMaker, slices: Sequence[BlockSlice], threads: int) -> None:
    """Yield slices, read and prepared, which `maker` measures, block after block, as many at one time as memory
    allows.
    """
    workers, blocks = Workers(threads), fetched_ahead(maker.recipe, slices)

    def read(of_block: tuple[BlockSlice, ...]) -> None:
        for one in of_block:
            maker.read(one, 0)
        blocks.done(of_block)

    try:
        largest = max((one.nbytes for one in slices), default=1)
        # so many tasks fit into memory even if each reads a slice as large as the largest
        ahead = max(1, maker.recipe.memory // max(1, largest))
        tasks: deque[Future[None]] = deque()
        with stage(Stage("blocks", len({one.number for one in slices}))) as here:
            # a task for each block: the slices of a block continue where the last one ended
            for of_block in blocks:
                tasks.append(workers.submit(partial(read, of_block)))
                while len(tasks) >= ahead:
                    workers.result(tasks.popleft())
                    here.done += 1
            while tasks:
                workers.result(tasks.popleft())
                here.done += 1
    finally:
        workers.close()
        blocks.close()


def fetched_ahead(recipe: Recipe, slices: Sequence[BlockSlice]) -> FetchAhead[tuple[BlockSlice, ...]]:
    """Return the slices of each block; a store fetches the next blocks while one is read."""
    of_blocks = (tuple(found) for _, found in groupby(slices, key=lambda one: one.number))
    return FetchAhead(recipe.source.store, of_blocks, partial(_ranges_of_whole, recipe))


def _ranges_of_whole(recipe: Recipe, slices: Iterable[BlockSlice]) -> Iterator[Iterable[Range]]:
    """Yield the ranges of files that reading the blocks among some slices that are read whole reads."""
    return (recipe.source.ranges(one.block, recipe.columns) for one in slices if one.stop is None)
