"""Bytes of a compressed file as they are stored, and the places where decompressing may begin."""

from typing import IO, NamedTuple

_READ = 256 << 10


class Place(NamedTuple):
    """Place in a compressed file where decompressing may begin."""

    offset: int
    """Position of its first byte in the stored file."""
    bit: int = -1
    """First bit in this byte of a block of gzip; -1 for members, streams and frames, which need no window."""
    window: bytes = b""
    """Decompressed bytes before a block, which it may refer to."""


class Stored:
    """Bytes of a file as they are stored, read from `offset` to the end."""

    def __init__(self, file: IO[bytes], offset: int = 0) -> None:
        self.file, self.offset = file, offset
        self._held, self._at = b"", 0

    def take(self, size: int) -> bytes:
        """Return the next bytes; fewer at the end of the file."""
        while self._at + size > len(self._held) and (more := self.file.read(_READ)):
            self._held, self._at = self._held[self._at :] + more, 0
        piece = self._held[self._at : self._at + size]
        self._at += len(piece)
        self.offset += len(piece)
        return piece

    def put_back(self, size: int) -> None:
        """Give some of the bytes that were taken last once more."""
        self._at -= size
        self.offset -= size
