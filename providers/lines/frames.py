"""Starts of the frames in a file of zstd, found by the sizes of its blocks while it is decompressed."""

from collections.abc import Iterator

import pyarrow as pa

from seqflow.providers.lines.stored import Place, Stored

_LEAST = 16 << 10
"""Stored bytes of frames that are decompressed together: a decompressor takes as long to make as for these."""
_CHUNK = 1 << 20
_MAGIC, _SKIPPED = 0xFD2FB528, 0x184D2A50


def scan_zstd(file: Stored) -> Iterator[Place | bytes]:
    """Yield the starts of frames in a file of zstd, each before the decompressed bytes from there on.

    Raise pyarrow's errors for a damaged file.
    """
    while file.take(1):
        file.put_back(1)
        yield Place(file.offset)
        with pa.CompressedInputStream(pa.PythonFile(_Frames(file), "r"), "zstd") as stream:
            while piece := stream.read(_CHUNK):
                yield piece


class _Frames:
    """File object that ends at the end of a frame, as soon as it has given 16 KiB."""

    closed = False

    def __init__(self, file: Stored) -> None:
        self._file, self._stop = file, file.offset + _LEAST
        self._left = self._after = 0
        self._is_inside = False

    def read(self, size: int) -> bytes:
        """Return the next bytes, fewer at the end of a block."""
        if not self._left and (self._is_inside or self._file.offset < self._stop):
            self._left = self._block() if self._is_inside else self._header()
        piece = self._file.take(min(size, self._left))
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        self.closed = True

    def _peek(self, size: int) -> bytes:
        found = self._file.take(size)
        self._file.put_back(len(found))
        return found

    def _header(self) -> int:
        """Return the size of the header of a frame, or of a whole frame that is skipped."""
        head = self._peek(8)
        magic = int.from_bytes(head[:4], "little")
        if magic & ~15 == _SKIPPED:
            return 8 + int.from_bytes(head[4:], "little")
        if magic != _MAGIC or len(head) < 5:
            return 1 << 62  # damage, which the decompressor tells
        flags = head[4]
        is_single = flags >> 5 & 1
        self._is_inside, self._after = True, flags & 4  # bytes of the checksum
        return 6 - is_single + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]

    def _block(self) -> int:
        """Return the size of a block with its header, and with the checksum that follows the last one."""
        head = int.from_bytes(self._peek(3), "little")
        is_last, is_repeated = head & 1, head >> 1 & 3 == 1
        self._is_inside = not is_last
        return 3 + (1 if is_repeated else head >> 3) + self._after * is_last
