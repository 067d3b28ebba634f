"""Windows: the blocks of a source, divided before anything is read, and the parts that a job writes together."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from seqflow.errors import JobError, OpError
from seqflow.kernels.arrays import Array
from seqflow.providers import Block
from seqflow.providers.block_columns import UNKNOWN_SIZE, BlockColumns, LazySequence
from seqflow.providers.formats.options import smaller_blocks


@dataclass(frozen=True, slots=True)
class BlockSlice:
    """Rows of a block that are read together: the whole block, or a slice of it."""

    block: Block
    number: int
    """Number of the block in the source, whatever the order."""
    start: int = 0
    stop: int | None = None
    """The slice has rows start … stop - 1 of the block; None is the whole block."""

    @property
    def num_rows(self) -> int | None:
        return self.block.num_rows if self.stop is None else self.stop - self.start

    @property
    def source_rows(self) -> int | None:
        """Rows of the source, including those that `where` omits."""
        if self.stop is not None:
            return self.stop - self.start
        return self.block.of_source.num_rows

    @property
    def nbytes(self) -> int:
        """Bytes in memory, as far as the source can tell; the sum over all slices is not less than the block's."""
        size = self.block.nbytes or 0
        if self.stop is None or not self.block.num_rows:
            return size
        return -(-size * (self.stop - self.start) // self.block.num_rows)

    @property
    def filtered(self) -> int:
        """Rows that `where` has omitted, if that is known; those of a block belong to its first slice."""
        return 0 if self.start else self.block.filtered or 0

    @property
    def key(self) -> tuple[int, int]:
        """Number of the block and the first row: no other slice of the source has the same."""
        return self.number, self.start


@dataclass(frozen=True, slots=True)
class Window:
    """Blocks that are ordered, planned and cut into batches together, independently of all others."""

    number: int
    """Its place in the order of the epoch."""
    slices: tuple[BlockSlice, ...]

    @property
    def num_rows(self) -> int | None:
        rows = [one.num_rows for one in self.slices]
        return None if None in rows else sum(rows)  # type: ignore[arg-type]

    @property
    def source_rows(self) -> int | None:
        """Rows of the source, including those that `where` omits; None if not known before reading."""
        rows = [one.source_rows for one in self.slices]
        return None if None in rows else sum(rows)  # type: ignore[arg-type]

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.slices)

    @property
    def filtered(self) -> int:
        """Rows that `where` has omitted, if that is known before reading."""
        return sum(one.filtered for one in self.slices)


_MOST_BYTES = 1 << 62
"""Largest number of bytes: the sum of two such numbers still fits an int64."""
_SLICES = 8
"""Number of slices of a window from a sliced block: each read is small, and need not be joined."""


def slices_of(number: int, block: Block, window_bytes: int, *, sliced: bool) -> list[BlockSlice]:
    """Return the block in equal slices, `_SLICES` for each window; whole if it fits into one or cannot be sliced."""
    size, rows = block.nbytes or 0, block.num_rows or 0
    if not sliced or size <= window_bytes or rows < 2:
        return [BlockSlice(block, number)]
    most = max(1, rows * window_bytes // (_SLICES * size))
    windows = -(-rows // (_SLICES * most))
    # equal slices, only the last may be shorter
    stops = [*range(0, rows, -(-rows // (_SLICES * windows))), rows]
    return [BlockSlice(block, number, start, stop) for start, stop in pairwise(stops)]


@dataclass(frozen=True, slots=True, eq=False)
class Slices(LazySequence[BlockSlice]):
    """All blocks of a source in columns, in its order, the large ones in slices."""

    blocks: BlockColumns
    numbers: Array
    """int64: the block of each slice."""
    starts: Array
    """int64: the first row of each slice in its block."""
    stops: Array
    """int64: the row after the last; -1 for a whole block."""

    @staticmethod
    def of(blocks: BlockColumns, window_bytes: int, *, sliced: bool) -> Slices:
        """Return the blocks, sliced as `slices_of` does."""
        is_large = (blocks.nbytes > window_bytes) & (blocks.rows >= 2)
        if not sliced or not is_large.any():
            start, stop = (
                np.broadcast_to(np.int64(one), len(blocks)) for one in (0, -1)
            )  # which take no memory
            return Slices(blocks, np.arange(len(blocks)), start, stop)
        numbers, starts, stops = [], [], []
        large = np.flatnonzero(is_large).tolist()
        done = 0
        for number in [*large, len(blocks)]:
            whole = np.arange(done, number)
            numbers.append(whole)
            starts.append(np.zeros(len(whole), np.int64))
            stops.append(np.full(len(whole), -1))
            if number < len(blocks):
                parts = slices_of(number, blocks[number], window_bytes, sliced=True)
                numbers.append(np.full(len(parts), number))
                starts.append(np.array([one.start for one in parts]))
                stops.append(np.array([-1 if one.stop is None else one.stop for one in parts]))
            done = number + 1
        return Slices(
            blocks, *(np.concatenate(column).astype(np.int64) for column in (numbers, starts, stops))
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def item(self, at: int) -> BlockSlice:
        number, stop = int(self.numbers[at]), int(self.stops[at])
        return BlockSlice(self.blocks[number], number, int(self.starts[at]), None if stop < 0 else stop)

    @property
    def rows(self) -> Array:
        """int64: the rows of each, or `UNKNOWN_SIZE`."""
        of_blocks: Array = self.blocks.rows[self.numbers]
        return np.where(self.stops < 0, of_blocks, self.stops - self.starts)

    @property
    def nbytes(self) -> Array:
        """int64: the planned bytes of each."""
        sizes: Array = np.maximum(self.blocks.nbytes, 0)[self.numbers]
        for at in np.flatnonzero(self.is_slice).tolist():
            sizes[at] = self[at].nbytes
        return sizes

    @property
    def is_slice(self) -> Array:
        """bool: whether each is a part of a block."""
        return np.asarray(self.stops >= 0)


NO_SLICES = Slices.of(BlockColumns.of(()), 0, sliced=False)
"""Slices of a stream, before its blocks come."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows(LazySequence[Window]):
    """The windows of an epoch in columns; a window is made when it is requested."""

    slices: Slices
    order: Array | None
    """int64: the order of the slices; None is that of the source."""
    starts: Array
    """int64[windows + 1]: the first slice of each window, in that order, and the end of the last."""
    numbers: Array
    """int64: the numbers of these windows."""

    @staticmethod
    def cut(slices: Slices, order: Array | None, window_bytes: int) -> Windows:
        """Return windows of consecutive slices, as many as fit; a slice that is larger is a window of its own.

        Slices of a block share no window with other blocks, so that only one stream reads the block.
        """
        nbytes = slices.nbytes if order is None else slices.nbytes[order]
        window_bytes = min(window_bytes, _MOST_BYTES)
        if nbytes.sum(dtype=np.float64) > _MOST_BYTES:  # damaged footers say anything
            nbytes = nbytes.astype(object)
        ends = np.cumsum(nbytes)
        begins = ends - nbytes
        # the end of a window that would begin at each slice; the loop below follows them from slice 0
        following = np.searchsorted(ends, begins + window_bytes, side="right")
        # at least one slice: one that is larger than a window is a window of its own
        following = np.maximum(following, np.arange(1, len(ends) + 1))
        is_slice = slices.is_slice
        if is_slice.any():  # only where rows are in the order of the source
            apart = (slices.numbers[1:] != slices.numbers[:-1]) & (is_slice[1:] | is_slice[:-1])
            stops = np.append(np.flatnonzero(apart) + 1, len(ends))
            following = np.minimum(
                following, stops[np.searchsorted(stops, np.arange(len(ends)), side="right")]
            )
        starts, at, behind = [0], 0, following.tolist()
        while at < len(behind):
            at = behind[at]
            starts.append(at)
        starts = starts if len(ends) else [0]
        return Windows(slices, order, np.array(starts, np.int64), np.arange(len(starts) - 1))

    def __len__(self) -> int:
        return len(self.numbers)

    def item(self, at: int) -> Window:
        number = int(self.numbers[at])
        start, stop = int(self.starts[number]), int(self.starts[number + 1])
        places: Iterable[int] = range(start, stop)
        if self.order is not None:  # read in the order of the source: rows are permuted inside the window
            places = np.sort(self.order[start:stop]).tolist()
        return Window(number, tuple(self.slices[place] for place in places))

    def _sums(self, values: Array) -> Array:
        if not len(self.starts) - 1:
            return np.zeros(0, np.int64)
        values = values if self.order is None else values[self.order]
        sums: Array = np.add.reduceat(values, self.starts[:-1], dtype=np.int64)
        return np.asarray(sums[self.numbers])

    @property
    def nbytes(self) -> Array:
        """int64: the planned bytes of each window."""
        return self._sums(self.slices.nbytes)

    @property
    def rows(self) -> Array | None:
        """int64: the rows of each window; None if those of some are not known before reading."""
        rows = self.slices.rows
        return None if (rows == UNKNOWN_SIZE).any() else self._sums(rows)

    @property
    def source_rows(self) -> Array | None:
        """int64: the source rows of each window, including those that `where` omits; None if some are not known."""
        rows = self.slices.rows
        if self.slices.blocks.others:
            rows = np.array(
                [-1 if (known := one.source_rows) is None else known for one in self.slices], np.int64
            )
        return None if (rows == UNKNOWN_SIZE).any() else self._sums(rows)

    def some(self, numbers: Sequence[int]) -> Windows:
        """Return some of all windows, by their numbers."""
        return replace(self, numbers=np.array(numbers, np.int64))


def cut_windows(slices: Iterable[BlockSlice], window_bytes: int) -> Generator[Window, None, None]:
    """Yield the windows of slices that come one by one, cut as `Windows.cut` cuts them."""
    held: list[BlockSlice] = []
    size = number = 0
    for one in slices:
        if held and (size + one.nbytes > window_bytes or _apart(held[-1], one)):
            yield Window(number, tuple(held))
            held, size, number = [], 0, number + 1
        held.append(one)
        size += one.nbytes
    if held:
        yield Window(number, tuple(held))


def _apart(one: BlockSlice, other: BlockSlice) -> bool:
    return one.number != other.number and (one.stop is not None or other.stop is not None)


def assign_windows(windows: Windows, streams: int, kind: str) -> list[Windows]:
    """Return the windows of each stream, in order: each window is assigned to the stream with the fewest bytes
    so far.

    All slices of a block are assigned to one stream, so that no other reads the block. Raise OpError when
    a stream gets none; its advice is for sources of this kind.
    """
    if streams == 1:
        return [windows]
    if len(windows) < streams:
        raise OpError(
            f"Loader: streams = {streams} needs as many windows, but the data are {len(windows)}\n"
            "  lower streams or window"
        )
    of_streams: list[list[int]] = [[] for _ in range(streams)]
    loads = [(0, stream) for stream in range(streams)]
    of_block: dict[int, int] = {}
    sliced_blocks = _sliced_blocks(windows)
    for number, nbytes in enumerate(windows.nbytes.tolist()):
        sliced = sliced_blocks.get(number)
        if sliced in of_block:
            stream = of_block[sliced]
            loads = [(load + nbytes * (at == stream), at) for load, at in loads]
            heapq.heapify(loads)
        else:
            load, stream = heapq.heappop(loads)
            # at least 1: windows of unknown size would all go to one stream
            heapq.heappush(loads, (load + max(1, nbytes), stream))
            if sliced is not None:
                of_block[sliced] = stream
        of_streams[stream].append(number)
    if (empty := next((stream for stream, of in enumerate(of_streams) if not of), None)) is not None:
        raise OpError(
            f"Loader: stream {empty} of {streams} gets no window: the slices of a block stay together",
            advice=f"lower streams, or {smaller_blocks(kind)}",
        )
    return [windows.some(numbers) for numbers in of_streams]


def _sliced_blocks(windows: Windows) -> dict[int, int]:
    """Return, for each window with slices of a block, the number of that block."""
    slices = windows.slices
    firsts = windows.starts[:-1]
    is_sliced = slices.is_slice[firsts]
    return dict(
        zip(np.flatnonzero(is_sliced).tolist(), slices.numbers[firsts[is_sliced]].tolist(), strict=True)
    )


WindowAddress = tuple[int, int]
"""A stream, and the position of a window in it."""
_KEPT = 64
"""Number of windows kept for each stream after they are made: nearby windows are requested several times."""


class StreamWindows:
    """The windows of each stream: listed before anything is read, or found one by one as a source gives them.

    `found` gives the windows of the only stream from the first one on; windows that were found are kept for a while.
    """

    def __init__(
        self,
        listed: Sequence[Sequence[Window]] = (),
        found: Generator[Window, None, None] | None = None,
    ) -> None:
        self.listed, self._rest = listed, found
        self.num_found = 0
        """Number of windows found, if they are not listed."""
        self.on_found: Callable[[Window], None] | None = None
        """Called with each window that is found."""
        self._made: OrderedDict[WindowAddress, Window] = OrderedDict()

    @property
    def counts(self) -> list[int | None]:
        """Number of windows of each stream; None if they are found when they are requested."""
        return [None] if self._rest is not None else [len(windows) for windows in self.listed]

    @property
    def num_streams(self) -> int:
        return len(self.counts)

    @property
    def columns(self) -> Windows | None:
        """Windows of the only stream in columns; None if they are not columns."""
        return self.listed[0] if self.listed and isinstance(self.listed[0], Windows) else None

    def window(self, address: WindowAddress) -> Window | None:
        """Return the window at a position of a stream; None after the last one."""
        made = self._made.get(address)
        if made is None:
            made = self._listed(*address) if self._rest is None else self._found(address[1])
        return made

    def has(self, address: WindowAddress) -> bool:
        """Return whether the window exists."""
        stream, position = address
        count = self.counts[stream]
        if count is not None:
            return position < count
        return position < self.num_found or self.window(address) is not None

    def release(self, position: int) -> None:
        """Release found windows before a position, which hold their rows."""
        if self._rest is not None:
            for address in [one for one in self._made if one[1] < position]:
                del self._made[address]

    def close(self) -> None:
        """Release the windows, and the source in which they are found."""
        self._made.clear()
        if self._rest is not None:
            self._rest.close()

    def _listed(self, stream: int, position: int) -> Window | None:
        windows = self.listed[stream]
        return self._kept((stream, position), windows[position]) if position < len(windows) else None

    def _found(self, position: int) -> Window | None:
        found = None
        while self.num_found <= position:
            window = None if self._rest is None else next(self._rest, None)
            if window is None:
                return None
            # of windows that are passed over no rows are kept
            found = window if self.num_found < position else self._kept((0, position), window)
            self.num_found += 1
            if self.on_found is not None:
                self.on_found(window)
        return found

    def _kept(self, address: WindowAddress, window: Window) -> Window:
        self._made[address] = window
        if len(self._made) > _KEPT * self.num_streams:
            self._made.popitem(last=False)
        return window

    @property
    def has_one_window(self) -> bool:
        """Whether one window holds everything."""
        return self.num_streams == 1 and self.window((0, 1)) is None

    def name_of(self, address: WindowAddress) -> str:
        """Return the name of a window for progress displays: its number, and the number of windows if it is known."""
        stream, position = address
        counts = self.counts
        number = f"window {position * len(counts) + stream + 1:,}"
        known = [one for one in counts if one is not None]
        return f"{number} of {sum(known):,}" if len(known) == len(counts) else number


class Parts:
    """Ends of parts: each after the window at which its planned bytes, or rows of the source, are reached.

    They depend on the plan alone, never on the batches that result. They are found with the windows. Without a
    number of bytes there is one part, which does not end.
    """

    def __init__(self, nbytes: int | None, rows: int | None = None) -> None:
        self._most_bytes, self._most_rows = nbytes, rows
        self._ends: list[int] = []
        """For each part whose end is known, the position after its last window."""
        self._windows = self._bytes = self._rows = 0
        """Number of windows so far; bytes and rows of those after the last end."""

    @classmethod
    def of_one(cls, windows: int) -> Parts:
        """Return a single part with so many windows."""
        parts = cls(None)
        parts._ends = [windows]
        return parts

    def of(self, layout: StreamWindows) -> None:
        """Return the parts of the only stream: of all its windows if they are in columns, else found with the
        windows.

        Raise OpError when rows are counted and the rows of a window are not known.
        """
        if self._most_bytes is None:
            return
        windows = layout.columns
        if windows is None:
            layout.on_found = self.add
            return
        rows = self._rows_of(windows)
        for nbytes, count in zip(windows.nbytes.tolist(), rows, strict=True):
            self._add(nbytes, count)

    def add(self, window: Window) -> None:
        """Add the next window; raise OpError when rows are counted and its rows are not known."""
        self._add(window.nbytes, 0 if self._most_rows is None else _source_rows(window))

    def _add(self, nbytes: int, rows: int) -> None:
        self._windows += 1
        self._bytes += nbytes
        self._rows += rows
        assert self._most_bytes is not None
        if self._bytes >= self._most_bytes or (self._most_rows is not None and self._rows >= self._most_rows):
            self._ends.append(self._windows)
            self._bytes = self._rows = 0

    def _rows_of(self, windows: Windows) -> list[int]:
        """Return the rows of each window, including those that a filter omits; 0 if they are not counted."""
        if self._most_rows is None:
            return [0] * len(windows)
        rows = windows.source_rows
        # the first window that does not know its rows is named
        return [_source_rows(window) for window in windows] if rows is None else rows.tolist()

    def start(self, part: int) -> int:
        """Return the position of the first window of a part; all windows before it must be known."""
        if part > len(self._ends):
            raise JobError(
                f"output: a record of it names part {part}, which the plan does not have: it is damaged\n"
                "  --overwrite begins again"
            )
        return self._ends[part - 1] if part else 0

    def stop(self, part: int) -> int | None:
        """Return the position after the last window of a part; None if it is not known yet, or the last part
        has no end.
        """
        return self._ends[part] if part < len(self._ends) else None


def _source_rows(window: Window) -> int:
    """Return the rows of a window, including those that a filter omits."""
    rows = window.source_rows
    if rows is None:
        raise rows_not_counted(window.slices[0].block.origin)
    return rows


def rows_not_counted(origin: str) -> JobError:
    """Return the error of parts that are cut by rows of a source whose rows are not known."""
    return JobError(
        f"output: rows_per_file cuts by rows of the source, but those of {origin} are not known before it is read, "
        "or may be damaged\n"
        "  use part_bytes; or sort the output, whose files are then cut at exactly so many rows"
    )
