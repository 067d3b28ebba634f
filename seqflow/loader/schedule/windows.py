"""Windows: the blocks of a source, divided before anything is read."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from seqflow.errors import OpError
from seqflow.providers import Block
from seqflow.providers.filtered_blocks import FilteredBlock


@dataclass(frozen=True, slots=True)
class BlockSlice:
    """Rows of a block that are read at once: the whole block, or a slice of it."""

    block: Block
    number: int
    """The number of the block in the source, whatever the order."""
    start: int = 0
    stop: int | None = None
    """The slice is rows start … stop - 1 of the block; None: it is the whole block."""

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

    def in_order(self) -> Window:
        """With the slices in the order of the source."""
        return replace(self, slices=tuple(sorted(self.slices, key=lambda one: one.key)))


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


def cut_windows(slices: Iterable[BlockSlice], window_bytes: int) -> Iterator[Window]:
    """Consecutive slices, as many as fit into a window. One that alone is larger is a window of its own.

    Slices of a block share no window with other blocks: those of one stream alone read it.
    """
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


def deal_windows(windows: Sequence[Window], streams: int) -> list[list[Window]]:
    """The windows of each stream, in order: each goes to the stream with the fewest bytes so far.

    All slices of a block go to one stream, so that no other reads the block.
    """
    if streams == 1:
        return [list(windows)]
    if len(windows) < streams:
        raise OpError(
            f"Loader: streams = {streams} needs as many windows, but the data are {len(windows)}\n"
            "  lower streams or window"
        )
    dealt: list[list[Window]] = [[] for _ in range(streams)]
    loads = [(0, stream) for stream in range(streams)]
    of_block: dict[int, int] = {}
    for window in windows:
        sliced = next((one.number for one in window.slices if one.stop is not None), None)
        if sliced in of_block:
            stream = of_block[sliced]
            loads = [(load + window.nbytes * (at == stream), at) for load, at in loads]
            heapq.heapify(loads)
        else:
            load, stream = heapq.heappop(loads)
            heapq.heappush(loads, (load + max(1, window.nbytes), stream))
            if sliced is not None:
                of_block[sliced] = stream
        dealt[stream].append(window)
    if (empty := next((stream for stream, of in enumerate(dealt) if not of), None)) is not None:
        raise OpError(
            f"Loader: stream {empty} of {streams} gets no window: the slices of a block stay together\n"
            "  lower streams, or write files with smaller row groups"
        )
    return dealt
