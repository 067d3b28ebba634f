"""Compressed files of lines, decompressed from the front to the back, in blocks of whole lines."""

from __future__ import annotations

import gzip
import os
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.fork_locks import ForkLock
from seqflow.providers.formats.suffixes import COMPRESSIONS
from seqflow.providers.lines.quotes import newline_finder
from seqflow.record.buffers import INT32_MAX
from seqflow.record.validation import kind_of_error

_CHUNK = 1 << 20
"""Number of bytes that are decompressed at once."""
_MOST_AHEAD = 8
"""Blocks that are kept if another thread asks for a later block first."""
_MOST_OPEN = 4
"""Largest number of files that are kept open."""


def compression_of(path: str) -> str | None:
    """Return the compression of a file by its suffix; None for an uncompressed file."""
    return COMPRESSIONS.get(os.path.splitext(path)[1].lower())


def decompressed_bytes(path: str) -> int:
    """Return the number of decompressed bytes, by reading the file once; raise ProviderError if it is damaged."""
    size = 0
    with closing(Decompressed(path)) as stream:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
    return size


class Decompressed:
    """Decompressed bytes of a file, read from its start to its end."""

    def __init__(self, path: str) -> None:
        self._path, self._position = path, 0
        with reading(path):
            self._stream: Any = pa.input_stream(path, compression=compression_of(path))

    def read(self, size: int) -> bytes:
        """Return the next bytes, fewer than `size` only at the end; raise ProviderError if the file is damaged."""
        with reading(self._path):
            try:
                piece = bytes(self._stream.read(size))
            except (OSError, pa.ArrowException):
                # Zeros after the last member of gzip are padding, as tapes and sectors need it. Arrow takes
                # them for another member; Python's reader skips them, but takes 1.3 times as long.
                if compression_of(self._path) != "gzip" or isinstance(self._stream, gzip.GzipFile):
                    raise
                self.close()
                self._stream = gzip.open(self._path)  # noqa: SIM115  # close() does
                self._stream.seek(self._position)
                piece = self._stream.read(size)
        self._position += len(piece)
        return piece

    def close(self) -> None:
        self._stream.close()


class LineBlock(NamedTuple):
    """The lines that start in a block of bytes, each with its newline."""

    content: bytes
    start: int
    """Position of the first line in the file's decompressed bytes."""
    lines_before: int
    """Number of lines before the first one."""


@dataclass(slots=True)
class InflatedFile:
    """One compressed file, read in blocks of `batch_bytes` decompressed bytes.

    Block i holds the lines that start in its range of bytes, as if the file were not compressed. The next block
    continues where the last one ended; for an earlier one, the file is decompressed from its start again.
    """

    path: str
    batch_bytes: int
    quoted: bool = False
    """Whether newlines inside quotes do not end a line."""
    lock: Any = field(default_factory=Lock)
    _stream: Any = None
    _rest: bytes = b""
    """Decompressed bytes of later blocks, from the start of a line."""
    _start: int = 0
    """Position of `_rest` in the decompressed bytes."""
    _lines: int = 0
    """Number of lines before `_rest`."""
    _next: int = 0
    _total: int = 0
    """Number of bytes decompressed so far."""
    _ahead: OrderedDict[int, LineBlock] = field(default_factory=OrderedDict)

    def block(self, index: int, size: int | None) -> LineBlock:
        """Return block `index`; raise ProviderError for a file that is cut off or damaged, and for a line of 2 GiB.

        Raise it, too, if the file has more or fewer bytes than `size`, which was found before.
        """
        with self.lock:
            if (found := self._ahead.pop(index, None)) is not None:
                return found
            if self._stream is None or index < self._next:
                self._begin()
            try:
                while True:
                    found = self._following()
                    self._next += 1
                    if self._next > index:
                        self._check_end(size)
                        return found
                    # threads ask for neighbouring blocks in any order: the one in between is wanted soon
                    self._ahead[self._next - 1] = found
                    if len(self._ahead) > _MOST_AHEAD:
                        self._ahead.popitem(last=False)
            except BaseException:
                self.close()
                raise

    def _check_end(self, size: int | None) -> None:
        """Raise ProviderError if the last block was read and the file does not end there."""
        if size is None or self._next * self.batch_bytes < size:
            return
        if self._rest or self._read() or self._total != size:
            raise ProviderError(
                f"{self.path} has not {size} decompressed bytes, as it had when its blocks were listed\n"
                "it has been rewritten since; open it again"
            )

    def close(self) -> None:
        """Close the file, and drop the blocks that were read ahead."""
        if self._stream is not None:
            self._stream.close()
        self._stream, self._rest = None, b""
        self._ahead.clear()

    def _begin(self) -> None:
        self.close()
        self._stream = Decompressed(self.path)
        self._start = self._lines = self._next = self._total = 0

    def _following(self) -> LineBlock:
        """Return the next block; it is empty if a line spans all of it, or if the file has ended."""
        stop = (self._next + 1) * self.batch_bytes - self._start  # position in `_rest`
        if stop <= 0:
            return LineBlock(b"", self._start, self._lines)
        pieces, size, shown = [self._rest], len(self._rest), newline_finder(self.quoted)
        end = shown(self._rest).find(b"\n", stop - 1)
        while end < 0 and (chunk := self._read()):
            at = shown(chunk).find(b"\n", max(0, stop - 1 - size))
            pieces.append(chunk)
            if at >= 0:
                end = size + at
            size += len(chunk)
            if end < 0 and size - stop > INT32_MAX:
                raise ProviderError(
                    f"{self.path}: a line has more than {INT32_MAX} bytes\nsplit the line, or leave out the file"
                )
        content = b"".join(pieces)
        self._rest = content[end + 1 :] if end >= 0 else b""
        content = content[: end + 1] if end >= 0 else content
        if content and not content.endswith(b"\n"):
            content += b"\n"
        found = LineBlock(content, self._start, self._lines)
        self._start += len(content)
        self._lines += content.count(b"\n")
        return found

    def _read(self) -> bytes:
        chunk: bytes = self._stream.read(_CHUNK)
        self._total += len(chunk)
        return chunk


class InflatedFiles:
    """Compressed files of a source that are being read. Threads may share it; another process starts an empty one."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, InflatedFile] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._lock = ForkLock(self._forget)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return InflatedFiles, ()

    def _forget(self) -> None:
        self._files = OrderedDict()

    def size(self, path: str, stored: int) -> int:
        """Return the number of decompressed bytes of a file of `stored` bytes; count them once.

        The number of a large file is kept for later runs, as digests of large files are.
        """
        if path not in self._sizes:
            from seqflow.identity.content import cached_digest

            found = cached_digest(path, "decompressed bytes", stored, lambda: str(decompressed_bytes(path)))
            self._sizes[path] = int(found) if found.isdecimal() else decompressed_bytes(path)
        return self._sizes[path]

    def block(self, path: str, index: int, batch_bytes: int, quoted: bool = False) -> LineBlock:
        """Return a block of a file."""
        with self._lock:
            file = self._files.pop(path, None) or InflatedFile(path, batch_bytes, quoted)
            self._files[path] = file
            old = [self._files.popitem(last=False)[1] for _ in range(len(self._files) - _MOST_OPEN)]
        # after the lock of all files is released: a thread may read a block of this one for a long time
        for one in old:
            with one.lock:
                one.close()
        return file.block(index, self._sizes.get(path))


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise errors of pyarrow, gzip and the system for an unreadable file as ProviderError."""
    try:
        yield
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise kind_of_error(error)(f"{path} can't be read: {reason}") from error
