"""Reading windows ahead, bounded in bytes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from itertools import groupby

from seqflow.loader.order.windows import BlockSlice, Layout, Window, WindowAddress
from seqflow.loader.run.windows import OpenWindow, PreparedSlice, WindowMaker
from seqflow.loader.run.workers import Workers
from seqflow.progress import Stage, stage

NumberedSlice = tuple[int, BlockSlice]
"""A slice of a block, and its place in the window."""
_SMALL_BLOCK, _MOST_TOGETHER = 128 << 10, 16 << 20
"""Bytes from which on a block is read by itself, and those of small blocks that are read one after another."""


class WindowOpening:
    """A window on its way into memory: its slices are read by the workers, the last to end plans the batches."""

    def __init__(self, window: Window, maker: WindowMaker, epoch: int, workers: Workers) -> None:
        self.window = window
        self._maker, self._epoch, self._workers = maker, epoch, workers
        self._found: list[PreparedSlice | BaseException | None] = [None] * len(window.slices)
        self.stage = Stage("blocks", len(window.slices), after="planning")
        self._lock = threading.Lock()
        self._future: Future[OpenWindow] = Future()
        self._tasks = [workers.submit(partial(self._read_all, slices)) for slices in _read_together(window)]
        self._num_done = 0
        """How many tasks, from the first on, are known to be done: a window may have thousands."""
        self.estimate = 0

    def done(self) -> bool:
        """Whether asking for the result will not wait for threads."""
        tasks = self._tasks
        while self._num_done < len(tasks) and tasks[self._num_done].done():
            self._num_done += 1
        return self._num_done >= len(tasks)

    def result(self) -> OpenWindow:
        """The window, or the error of its first slice that has one."""
        self._workers.help_until(self.done)
        for task in self._tasks:
            task.result()
        self._tasks = []  # those that ran here refer to this window, which would wait for the garbage collector
        return self._future.result()

    def _read_all(self, slices: list[NumberedSlice]) -> None:
        """Read small blocks, or slices of a large one, which go on where the last one ended."""
        for at, one in slices:
            self._read(at, one)

    def _read(self, at: int, one: BlockSlice) -> None:
        try:
            self._found[at] = self._maker.read(one, self._epoch)
        except BaseException as error:
            self._found[at] = error
        with self._lock:
            self.stage.done += 1
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
            self._future.set_result(self._maker.open(self.window, slices, self._epoch))
        except BaseException as error:
            self._found = []
            self._future.set_exception(error)


def _read_together(window: Window) -> Iterator[list[NumberedSlice]]:
    """The slices that one task reads: those of a block, and of small blocks several.

    What is small takes Python's lock for most of its time: two threads that take turns at it need twice as long.
    """
    together: list[NumberedSlice] = []
    size = 0
    for _, slices in groupby(enumerate(window.slices), key=lambda entry: entry[1].number):
        block = list(slices)
        is_known = block[0][1].block.nbytes is not None
        nbytes = sum(one.nbytes for _, one in block) if is_known else _SMALL_BLOCK
        if together and (nbytes >= _SMALL_BLOCK or size + nbytes > _MOST_TOGETHER):
            yield together
            together, size = [], 0
        together += block
        size += nbytes
        if nbytes >= _SMALL_BLOCK:
            yield together
            together, size = [], 0
    if together:
        yield together


class WindowReader:
    """The windows that are in memory, or on their way there; those that come next are read ahead.

    A window counts from when it is asked for until it is released: first by the source's estimate, times what
    earlier windows took of theirs, then by its tensors. The window that is needed next is always let through.
    """

    def __init__(
        self,
        maker: WindowMaker,
        epoch: int,
        workers: Workers,
        layout: Layout,
        upcoming: Iterator[WindowAddress],
    ) -> None:
        self.maker, self._epoch, self._workers = maker, epoch, workers
        self.layout, self._upcoming, self._limit = layout, upcoming, maker.recipe.memory
        self._next: WindowAddress | None = None
        self._growth = 1.0 if maker.recipe.prepare is None else None
        """Bytes of a prepared window for each that the source estimates; not known before the first."""
        self._openings: dict[WindowAddress, WindowOpening] = {}
        self._passed: dict[int, int] = {}
        """The first position of each stream that may still be read ahead."""
        self._oldest: dict[int, int] = {}
        """The first position of each stream that is in memory: most batches release nothing, and look no further."""
        self._opened: set[WindowAddress] = set()
        self.bytes_in_flight = 0

    def fill(self) -> None:
        """Begin to read the next windows, as many as memory allows. Without threads nothing is read ahead."""
        if not self._workers.count:
            return
        while (address := self._peek()) is not None:
            window = self.layout.window(address)
            if window is None:  # the end of windows that are found one by one
                self._upcoming = iter(())
                self._next = None
                return
            if self._openings and (
                self._growth is None or self.bytes_in_flight + self._estimate(window) > self._limit
            ):
                return
            if self._waits(window):
                return
            self._next = None
            if address not in self._openings and address[1] >= self._passed.get(address[0], 0):
                self._begin(address, window)

    def has(self, address: WindowAddress) -> bool:
        """Whether the window is in memory, or on its way there."""
        return address in self._openings

    def ready(self, address: WindowAddress) -> bool:
        """Whether asking for the window will not wait for threads."""
        return address in self._openings and self._openings[address].done()

    def get(self, address: WindowAddress) -> OpenWindow:
        """The window of an address; waits for it."""
        if address not in self._openings:
            window = self.layout.window(address)
            assert window is not None
            self._begin(address, window)
        opening = self._openings[address]
        opening.stage.name = self.layout.name_of(address)
        with stage(opening.stage):
            opened = opening.result()
        if address not in self._opened:
            self._opened.add(address)
            size = opened.rows.nbytes
            self.bytes_in_flight += size - opening.estimate
            if opening.window.nbytes:
                self._growth = max(self._growth or 0.0, size / opening.window.nbytes)
            opening.estimate = size
        return opened

    def release(self, stream: int, position: int) -> bool:
        """Let go of the windows of a stream before a position; whether there were any."""
        self._passed[stream] = max(position, self._passed.get(stream, 0))
        if self._oldest.get(stream, position) >= position:
            return False
        for address in [one for one in self._openings if one[0] == stream and one[1] < position]:
            self.bytes_in_flight -= self._openings.pop(address).estimate
            self._opened.discard(address)
        self._oldest[stream] = min((at for of, at in self._openings if of == stream), default=position)
        return True

    def close(self) -> None:
        """Let go of all windows, and of their source."""
        self._openings.clear()
        self.layout.close()

    def _waits(self, window: Window) -> bool:
        """Whether slices just before those of the window are still being read: no other thread could go on there."""
        first = window.slices[0]
        return first.start > 0 and any(
            opening.window.slices[-1].number == first.number and not opening.done()
            for opening in self._openings.values()
        )

    def _peek(self) -> WindowAddress | None:
        if self._next is None:
            self._next = next(self._upcoming, None)
        return self._next

    def _estimate(self, window: Window) -> int:
        return int(window.nbytes * (self._growth or 1.0))

    def _begin(self, address: WindowAddress, window: Window) -> None:
        opening = WindowOpening(window, self.maker, self._epoch, self._workers)
        opening.estimate = self._estimate(window)
        self.bytes_in_flight += opening.estimate
        self._openings[address] = opening
        stream, position = address
        self._oldest[stream] = min(position, self._oldest.get(stream, position))
