"""Windows: the blocks of a source, divided before anything is read."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import overload

import numpy as np

from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.providers import Block
from seqflow.providers.block_columns import UNKNOWN_SIZE, BlockColumns
from seqflow.providers.filter.filtered_blocks import FilteredBlock


@dataclass(frozen=True, slots=True)
class BlockSlice:
    """Rows of a block that are read at once: the whole block, or a slice of it."""

    block: Block
    number: int
    """The number of the block in the source, whatever the order."""
    start: int = 0
    stop: int | None = None
    """The slice is rows start … stop - 1 of the block; None: it is the whole block."""
    drawn: int | None = None
    """The number for which `prepare` draws random numbers, where new files have changed that of the block."""

    @property
    def num_rows(self) -> int | None:
        return self.block.num_rows if self.stop is None else self.stop - self.start

    @property
    def source_rows(self) -> int | None:
        """Rows of the source, those that `where` leaves out with them."""
        if self.stop is not None:
            return self.stop - self.start
        block = self.block.inner if isinstance(self.block, FilteredBlock) else self.block
        return block.num_rows

    @property
    def nbytes(self) -> int:
        """Bytes in memory, as far as the source can tell; those of all slices are no less than the block's."""
        size = self.block.nbytes or 0
        if self.stop is None or not self.block.num_rows:
            return size
        return -(-size * (self.stop - self.start) // self.block.num_rows)

    @property
    def filtered(self) -> int:
        """Rows that `where` has left out, where that is known; those of a block are of its first slice."""
        known = self.block.left_out if isinstance(self.block, FilteredBlock) and self.start == 0 else None
        return known or 0

    @property
    def key(self) -> tuple[int, int]:
        """The number of the block and the first row: no other slice of the source has the same."""
        return self.number, self.start

    @property
    def random_key(self) -> tuple[int, int]:
        """The numbers that decide the random numbers of `prepare`."""
        return self.number if self.drawn is None else self.drawn, self.start


@dataclass(frozen=True, slots=True)
class Window:
    """Blocks that are ordered, planned and cut into batches together, and independently of all others."""

    number: int
    """Its place in the order of the epoch."""
    slices: tuple[BlockSlice, ...]

    @property
    def num_rows(self) -> int | None:
        rows = [one.num_rows for one in self.slices]
        return None if None in rows else sum(rows)  # type: ignore[arg-type]

    @property
    def source_rows(self) -> int | None:
        """Rows of the source, those that `where` leaves out with them; None where nobody knows before reading."""
        rows = [one.source_rows for one in self.slices]
        return None if None in rows else sum(rows)  # type: ignore[arg-type]

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.slices)

    @property
    def filtered(self) -> int:
        """Rows that `where` has left out, where that is known before reading."""
        return sum(one.filtered for one in self.slices)


_MOST_BYTES = 1 << 62
"""Sums of two such numbers still fit an int64."""
_SLICES = 8
"""A window of a block that is sliced has so many slices: what is read at once is small, and need not be joined."""


def slices_of(number: int, block: Block, window_bytes: int, *, sliced: bool) -> list[BlockSlice]:
    """The block in equal slices, `_SLICES` a window; whole where it fits into one or cannot be sliced."""
    size, rows = block.nbytes or 0, block.num_rows or 0
    if not sliced or size <= window_bytes or rows < 2:
        return [BlockSlice(block, number)]
    most = max(1, rows * window_bytes // (_SLICES * size))
    windows = -(-rows // (_SLICES * most))
    stops = [*range(0, rows, -(-rows // (_SLICES * windows))), rows]
    return [BlockSlice(block, number, start, stop) for start, stop in pairwise(stops)]


@dataclass(frozen=True, slots=True, eq=False)
class Slices(Sequence[BlockSlice]):
    """All blocks of a source in columns, in its order, the large ones in slices."""

    blocks: BlockColumns
    numbers: Array | None = None
    """int64: the block of each slice; None where all blocks are whole."""
    starts: Array | None = None
    """int64: the first row of each slice."""
    stops: Array | None = None
    """int64: the row behind the last; -1 for a whole block."""
    drawn: Array | None = None
    """int64: `BlockSlice.drawn` of each; None where that is the number of the block."""

    @staticmethod
    def of(blocks: BlockColumns, window_bytes: int, *, sliced: bool) -> Slices:
        """The blocks, sliced as `slices_of` does."""
        is_large = (blocks.nbytes > window_bytes) & (blocks.rows >= 2)
        if not sliced or not is_large.any():
            return Slices(blocks)
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
        return len(self.blocks) if self.numbers is None else len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> BlockSlice: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[BlockSlice]: ...

    def __getitem__(self, at: int | slice) -> BlockSlice | Sequence[BlockSlice]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        if self.numbers is None or self.starts is None or self.stops is None:
            return BlockSlice(self.blocks[at], int(at))
        number, stop = int(self.numbers[at]), int(self.stops[at])
        drawn = None if self.drawn is None else int(self.drawn[at])
        return BlockSlice(
            self.blocks[number], number, int(self.starts[at]), None if stop < 0 else stop, drawn
        )

    def __iter__(self) -> Iterator[BlockSlice]:
        return (self[at] for at in range(len(self)))

    @property
    def rows(self) -> Array:
        """int64: the rows of each, or `UNKNOWN_SIZE`."""
        if self.numbers is None or self.starts is None or self.stops is None:
            return self.blocks.rows
        of_blocks: Array = self.blocks.rows[self.numbers]
        return np.where(self.stops < 0, of_blocks, self.stops - self.starts)

    @property
    def nbytes(self) -> Array:
        """int64: the planned bytes of each."""
        sizes: Array = np.maximum(self.blocks.nbytes, 0)
        if self.numbers is None:
            return sizes
        sizes = sizes[self.numbers]
        for at in np.flatnonzero(self.is_slice).tolist():
            sizes[at] = self[at].nbytes
        return sizes

    @property
    def is_slice(self) -> Array:
        """bool: whether each is a part of a block."""
        return np.zeros(len(self), bool) if self.stops is None else self.stops >= 0

    @property
    def block_numbers(self) -> Array:
        """int64: the block of each."""
        return np.arange(len(self.blocks)) if self.numbers is None else self.numbers

    @property
    def first_rows(self) -> Array:
        """int64: the first row of each in its block."""
        return np.zeros(len(self), np.int64) if self.starts is None else self.starts

    def taken(self, places: Array) -> Slices:
        """Some of them, in any order."""
        stops = np.full(len(self), -1) if self.stops is None else self.stops
        drawn = None if self.drawn is None else self.drawn[places]
        return Slices(
            self.blocks, self.block_numbers[places], self.first_rows[places], stops[places], drawn
        )  # fmt: skip

    def joined(self, other: Slices) -> Slices:
        """These and others of the same blocks; all have `numbers` and `drawn`."""
        pairs = zip(self._columns(), other._columns(), strict=True)
        return Slices(self.blocks, *(np.concatenate(pair).astype(np.int64) for pair in pairs))

    def _columns(self) -> tuple[Array, ...]:
        assert self.numbers is not None
        assert self.starts is not None
        assert self.stops is not None
        return self.numbers, self.starts, self.stops, self.numbers if self.drawn is None else self.drawn


NO_SLICES = Slices(BlockColumns.of(()))
"""Those of a stream, before its blocks come."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows(Sequence[Window]):
    """The windows of an epoch in columns; each is made when it is asked for."""

    slices: Slices
    order: Array | None
    """int64: the order of the slices; None for that of the source."""
    starts: Array
    """int64[windows + 1]: the first slice of each window, in that order, and the end of the last."""
    numbers: Array | None = None
    """int64: which of these windows they are; None for all."""

    @staticmethod
    def cut(slices: Slices, order: Array | None, window_bytes: int) -> Windows:
        """Windows of consecutive slices, as many as fit; one that alone is larger is a window of its own.

        Slices of a block share no window with other blocks: those of one stream alone read it.
        """
        nbytes = slices.nbytes if order is None else slices.nbytes[order]
        window_bytes = min(window_bytes, _MOST_BYTES)
        if nbytes.sum(dtype=np.float64) > _MOST_BYTES:  # damaged footers say anything
            nbytes = nbytes.astype(object)
        ends = np.cumsum(nbytes)
        begins = ends - nbytes
        following = np.searchsorted(ends, begins + window_bytes, side="right")
        following = np.maximum(following, np.arange(1, len(ends) + 1))
        if slices.numbers is not None:  # only where rows are in the order of the source
            is_slice = slices.is_slice
            apart = (slices.numbers[1:] != slices.numbers[:-1]) & (is_slice[1:] | is_slice[:-1])
            stops = np.append(np.flatnonzero(apart) + 1, len(ends))
            following = np.minimum(
                following, stops[np.searchsorted(stops, np.arange(len(ends)), side="right")]
            )
        starts, at, behind = [0], 0, following.tolist()
        while at < len(behind):
            at = behind[at]
            starts.append(at)
        return Windows(slices, order, np.array(starts if len(ends) else [0], np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1 if self.numbers is None else len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> Window: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Window]: ...

    def __getitem__(self, at: int | slice) -> Window | Sequence[Window]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        number = int(range(len(self))[at] if self.numbers is None else self.numbers[at])
        start, stop = int(self.starts[number]), int(self.starts[number + 1])
        places: Iterable[int] = range(start, stop)
        if self.order is not None:  # read in the order of the source: rows are permuted inside the window
            places = np.sort(self.order[start:stop]).tolist()
        return Window(number, tuple(self.slices[place] for place in places))

    def __iter__(self) -> Iterator[Window]:
        return (self[at] for at in range(len(self)))

    def _sums(self, values: Array) -> Array:
        if not len(self.starts) - 1:
            return np.zeros(0, np.int64)
        values = values if self.order is None else values[self.order]
        sums: Array = np.add.reduceat(values, self.starts[:-1], dtype=np.int64)
        return sums if self.numbers is None else sums[self.numbers]

    @property
    def nbytes(self) -> Array:
        """int64: the planned bytes of each window."""
        return self._sums(self.slices.nbytes)

    @property
    def rows(self) -> Array | None:
        """int64: the rows of each window; None where those of some are not known before reading."""
        rows = self.slices.rows
        return None if (rows == UNKNOWN_SIZE).any() else self._sums(rows)

    @property
    def source_rows(self) -> Array | None:
        """int64: the rows of each window, those that `where` leaves out with them; None where some are not known."""
        rows = self.slices.rows
        if self.slices.blocks.others:
            rows = np.array(
                [-1 if (known := one.source_rows) is None else known for one in self.slices], np.int64
            )
        return None if (rows == UNKNOWN_SIZE).any() else self._sums(rows)

    def some(self, numbers: Sequence[int]) -> Windows:
        """Some of all windows, by their numbers."""
        return replace(self, numbers=np.array(numbers, np.int64))


def cut_windows(slices: Iterable[BlockSlice], window_bytes: int) -> Iterator[Window]:
    """The windows of slices that come one by one, as `Windows.cut` cuts them."""
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


def deal_windows(windows: Windows, streams: int, *, all_needed: bool = True) -> list[Windows]:
    """The windows of each stream, in order: each goes to the stream with the fewest bytes so far.

    All slices of a block go to one stream, so that no other reads the block. OpError where a stream gets none,
    unless they are not `all_needed`.
    """
    if streams == 1:
        return [windows]
    if all_needed and len(windows) < streams:
        raise OpError(
            f"Loader: streams = {streams} needs as many windows, but the data are {len(windows)}\n"
            "  lower streams or window"
        )
    dealt: list[list[int]] = [[] for _ in range(streams)]
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
            heapq.heappush(loads, (load + max(1, nbytes), stream))
            if sliced is not None:
                of_block[sliced] = stream
        dealt[stream].append(number)
    if (
        all_needed
        and (empty := next((stream for stream, of in enumerate(dealt) if not of), None)) is not None
    ):
        raise OpError(
            f"Loader: stream {empty} of {streams} gets no window: the slices of a block stay together\n"
            "  lower streams, or write files with smaller row groups"
        )
    return [windows.some(numbers) for numbers in dealt]


def _sliced_blocks(windows: Windows) -> dict[int, int]:
    """The block of each window that has slices of one."""
    slices = windows.slices
    if slices.numbers is None:
        return {}
    firsts = windows.starts[:-1]
    is_sliced = slices.is_slice[firsts]
    return dict(
        zip(np.flatnonzero(is_sliced).tolist(), slices.numbers[firsts[is_sliced]].tolist(), strict=True)
    )


WindowAddress = tuple[int, int]
"""A stream, and the position of a window in it."""
_KEPT = 64
"""Windows that are kept for each stream when they were made: each is asked for several times, while it is near."""


class Layout:
    """The windows of each stream: listed before anything is read, or found one by one as a source gives them.

    `found` gives the windows of the only stream from the first one on; those that were found are kept for a while.
    """

    def __init__(
        self,
        listed: Sequence[Sequence[Window]] = (),
        found: Callable[[], Generator[Window, None, None]] | None = None,
    ) -> None:
        self.listed, self._find = listed, found
        self._rest = None if found is None else found()
        self.num_found = 0
        """How many windows were found, where they are not listed."""
        self.on_found: Callable[[Window], None] | None = None
        """Called with each window that is found."""
        self._made: OrderedDict[WindowAddress, Window] = OrderedDict()

    def again(self) -> Layout:
        """The same windows, from the first one on."""
        return Layout(self.listed, self._find)

    @property
    def counts(self) -> list[int | None]:
        """The number of windows of each stream; None where they are found while they are asked for."""
        return [None] if self._find is not None else [len(windows) for windows in self.listed]

    @property
    def num_streams(self) -> int:
        return len(self.counts)

    @property
    def columns(self) -> Windows | None:
        """The windows of the only stream in columns; None where they are no columns."""
        return self.listed[0] if self.listed and isinstance(self.listed[0], Windows) else None

    def window(self, address: WindowAddress) -> Window | None:
        """The window at a position of a stream; None after the last one."""
        made = self._made.get(address)
        if made is None:
            made = self._listed(*address) if self._find is None else self._found(address[1])
        return made

    def has(self, address: WindowAddress) -> bool:
        """Whether there is such a window."""
        stream, position = address
        count = self.counts[stream]
        if count is not None:
            return position < count
        return position < self.num_found or self.window(address) is not None

    def release(self, position: int) -> None:
        """Let go of found windows before a position, which have their rows with them."""
        if self._find is not None:
            for address in [one for one in self._made if one[1] < position]:
                del self._made[address]

    def close(self) -> None:
        """Let go of the windows, and of the source that they are found in."""
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
        """Which window of how many it is, where that is known, for those who watch."""
        stream, position = address
        counts = self.counts
        number = f"window {position * len(counts) + stream + 1:,}"
        known = [one for one in counts if one is not None]
        return f"{number} of {sum(known):,}" if len(known) == len(counts) else number
