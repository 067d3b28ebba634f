"""Objects of stores as open files: for pyarrow, which reads here and there, and front to back."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.files.ahead import Span, split_spans

if TYPE_CHECKING:
    from seqflow.files.store import StoreFiles

_BLOCK, _MOST_BLOCKS = 4 << 20, 8
"""Bytes that are read at once where nothing tells what will be read, and how many such blocks are kept."""


class RangeFile:
    """An object as a file for pyarrow: ranges that are fetched together, or blocks as they are asked for."""

    closed = False

    def __init__(self, files: StoreFiles, path: str, size: int, spans: Iterable[Span]) -> None:
        self._files, self._path, self._size = files, path, size
        self._spans, self._position = split_spans(spans), 0
        self._blocks: dict[int, pa.Buffer] = {}
        self._owner = object()
        if self._spans:
            self._held = list(files.pieces(path, self._spans))
        self._starts = [start for start, _ in self._spans]

    def read(self, count: int = -1) -> pa.Buffer:
        start = self._position
        stop = self._size if count < 0 else min(start + count, self._size)
        self._position = max(start, stop)
        if stop <= start:
            return pa.py_buffer(b"")
        return self._of_spans(start, stop) if self._spans else self._of_blocks(start, stop)

    def _of_spans(self, start: int, stop: int) -> pa.Buffer:
        at = bisect_right(self._starts, start) - 1
        pieces = []
        position = start
        while at < len(self._spans) and position < stop:
            first, last = self._spans[max(at, 0)]
            if not first <= position < last:
                break
            end = min(stop, last)
            pieces.append(self._held[at].slice(position - first, end - position))
            position, at = end, at + 1
        if position < stop:
            raise ProviderError(
                f"{self._path}, bytes {start} … {stop - 1}: not among the ranges of its footer"
            )
        return pieces[0] if len(pieces) == 1 else pa.py_buffer(b"".join(pieces))

    def _of_blocks(self, start: int, stop: int) -> pa.Buffer:
        first, last = start // _BLOCK, (stop - 1) // _BLOCK
        pieces = [self._block(number) for number in range(first, last + 1)]
        offset = start - first * _BLOCK
        if len(pieces) == 1:
            return pieces[0].slice(offset, stop - start)
        return pa.py_buffer(memoryview(b"".join(pieces))[offset : offset + stop - start])

    def _block(self, number: int) -> pa.Buffer:
        found = self._blocks.pop(number, None)
        if found is None:
            span = (number * _BLOCK, min((number + 1) * _BLOCK, self._size))
            found = self._files.read(self._path, *span)
            following = (span[1], min(span[1] + _BLOCK, self._size))
            # readers of columns go on after what they have read
            goes_on = number - 1 in self._blocks and following[0] < following[1]
            if goes_on and not self._files.ahead.has(self._path, *following):
                self._files.ahead.plan([(self._path, *following)], self._owner)
        self._blocks[number] = found
        while len(self._blocks) > _MOST_BLOCKS:
            del self._blocks[next(iter(self._blocks))]
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self.closed = True
        self._blocks.clear()
        self._files.ahead.drop(self._owner)

    def __del__(self) -> None:  # pyarrow closes only what it has opened
        self.close()


class _Stream(io.RawIOBase):
    """An object from a position to its end; the next pieces are under way while one is read."""

    def __init__(self, files: StoreFiles, path: str, start: int, size: int) -> None:
        self._files, self._path, self._size = files, path, size
        self._position = self._planned = start
        self._piece, self._start, self._owner = pa.py_buffer(b""), start, object()

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if self._position >= self._start + self._piece.size:
            if self._position >= self._size:
                return 0
            self._plan()
            self._start, stop = self._position, min(self._position + _BLOCK, self._size)
            self._piece = self._files.read(self._path, self._start, stop)
        part = self._piece.slice(self._position - self._start, None)[: len(target)]
        target[: part.size] = memoryview(part).cast("B")
        self._position += part.size
        return int(part.size)

    def _plan(self) -> None:
        """Plan the next piece and two after it."""
        end = min(self._position + 3 * _BLOCK, self._size)
        while self._planned < end:
            stop = min(self._planned + _BLOCK, self._size)
            self._files.ahead.plan([(self._path, self._planned, stop)], self._owner)
            self._planned = stop

    def close(self) -> None:
        if not self.closed:
            self._files.ahead.drop(self._owner)
        super().close()


def open_stream(files: StoreFiles, path: str, start: int, size: int) -> IO[bytes]:
    """Return an object as a file that is read front to back."""
    return io.BufferedReader(_Stream(files, path, start, size), 1 << 20)
