"""Windows: the blocks of a source, divided before anything is read."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from seqflow.errors import OpError
from seqflow.providers import Block


@dataclass(frozen=True, slots=True)
class Part:
    """A block, or a slice of one."""

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
    def nbytes(self) -> int:
        """Bytes in memory, as far as the source can tell; those of all slices are no less than the block's."""
        size = self.block.nbytes or 0
        if self.stop is None or not self.block.num_rows:
            return size
        return -(-size * (self.stop - self.start) // self.block.num_rows)

    @property
    def place(self) -> tuple[int, int]:
        """The block and its first row: no other part of the source has the same."""
        return self.number, self.start


@dataclass(frozen=True, slots=True)
class Window:
    """Blocks that are ordered, planned and cut into batches together, and independently of all others."""

    number: int
    """Its place in the order of the epoch."""
    parts: tuple[Part, ...]

    @property
    def num_rows(self) -> int | None:
        rows = [part.num_rows for part in self.parts]
        return None if None in rows else sum(rows)  # type: ignore[arg-type]

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def in_order(self) -> Window:
        """With the parts in the order of the source."""
        return replace(self, parts=tuple(sorted(self.parts, key=lambda part: part.place)))


_SLICES = 8
"""A window of a block that is sliced has so many slices: what is read at once is small, and need not be joined."""


def parts_of(number: int, block: Block, window_bytes: int, *, sliced: bool) -> list[Part]:
    """The block in equal slices, `_SLICES` a window; whole where it fits into one or cannot be sliced."""
    size, rows = block.nbytes or 0, block.num_rows or 0
    if not sliced or size <= window_bytes or rows < 2:
        return [Part(block, number)]
    most = max(1, rows * window_bytes // (_SLICES * size))
    windows = -(-rows // (_SLICES * most))
    stops = [*range(0, rows, -(-rows // (_SLICES * windows))), rows]
    return [Part(block, number, start, stop) for start, stop in pairwise(stops)]


def cut_windows(parts: Iterable[Part], window_bytes: int) -> Iterator[Window]:
    """Consecutive parts, as many as fit into a window. A part that alone is larger is a window of its own.

    Slices of a block share no window with other blocks: those of one stream alone read it.
    """
    held: list[Part] = []
    size = number = 0
    for part in parts:
        if held and (size + part.nbytes > window_bytes or _apart(held[-1], part)):
            yield Window(number, tuple(held))
            held, size, number = [], 0, number + 1
        held.append(part)
        size += part.nbytes
    if held:
        yield Window(number, tuple(held))


def _apart(one: Part, other: Part) -> bool:
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
        sliced = next((part.number for part in window.parts if part.stop is not None), None)
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
