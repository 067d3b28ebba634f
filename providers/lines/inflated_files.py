"""Compressed files of lines, decompressed in blocks of whole lines, also in another order."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from seqflow.errors import ProviderError
from seqflow.files.interface import LOCAL, Files
from seqflow.fork_locks import ForkLock
from seqflow.printable import printable_line
from seqflow.providers.lines.copies import START, Copy, copy_of, is_small, measure, note_without_copy
from seqflow.providers.lines.decompressed import decompressed
from seqflow.providers.lines.quotes import newline_finder
from seqflow.record.buffers import INT32_MAX

_log = logging.getLogger("seqflow")
_MOST_AHEAD = 8
"""Blocks that are kept if another thread asks for a later block first."""
_MOST_OPEN = 4
"""Largest number of files that are kept open."""


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
    continues where the last one ended; another one is read from a copy of the file in frames, or by decompressing the
    file from its start if there is none.
    """

    path: str
    batch_bytes: int
    store: Files = LOCAL
    quoted: bool = False
    """Whether newlines inside quotes do not end a line."""
    copy: Callable[[int], Copy | None] = lambda index: None
    """Return the copy to read a block from, if there is one."""
    lock: Any = field(default_factory=Lock)
    _pieces: Generator[bytes, None, None] | None = None
    _rest: bytes = b""
    """Decompressed bytes of later blocks, from the start of a line."""
    _start: int = 0
    """Position of `_rest` in the decompressed bytes."""
    _lines: int = 0
    """Number of lines before `_rest`."""
    _next: int = 0
    _total: int = 0
    """Position in the decompressed bytes of the next piece."""
    _ahead: OrderedDict[int, LineBlock] = field(default_factory=OrderedDict)

    def block(self, index: int, size: int | None) -> LineBlock:
        """Return block `index`; raise ProviderError for a file that is cut off or damaged, and for a line of 2 GiB.

        Raise it, too, if the file has more or fewer bytes than `size`, which was found before.
        """
        with self.lock:
            if (found := self._ahead.pop(index, None)) is not None:
                return found
            try:
                if self._pieces is None or not self._next <= index <= self._next + _MOST_AHEAD:
                    self._begin(index)
                while True:
                    found = self._following()
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
        if self._pieces is not None:
            self._pieces.close()
        self._pieces, self._rest = None, b""
        self._ahead.clear()

    def _begin(self, index: int) -> None:
        """Go to a block: to the frame before it in a copy, unless the next block is nearer."""
        copy = self.copy(index)
        # the byte before the block tells whether a line begins there
        frame = copy.before(index * self.batch_bytes - 1) if copy else START
        if self._pieces is not None and self._next <= index and frame.position <= self._total:
            return
        self.close()
        self._start, self._lines, self._total = frame.position, frame.lines, frame.position
        self._next = index if frame.position else 0
        self._pieces = copy.pieces(frame) if copy else decompressed(self.path, self.store)
        if frame.position:
            self._lines_before(index * self.batch_bytes, frame.quotes)  # of earlier blocks

    def _following(self) -> LineBlock:
        """Return the next block; it is empty if a line spans all of it, or if the file has ended."""
        found = self._lines_before((self._next + 1) * self.batch_bytes)
        self._next += 1
        return found

    def _lines_before(self, stop: int, quotes: int = 0) -> LineBlock:
        """Return the lines that start before a position; `quotes` is 1 if `_rest` begins inside quotes."""
        stop -= self._start  # position in `_rest`
        if stop <= 0:
            return LineBlock(b"", self._start, self._lines)
        pieces, size, shown = [self._rest], len(self._rest), newline_finder(self.quoted, quotes)
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
        assert self._pieces is not None
        chunk = next(self._pieces, b"")
        self._total += len(chunk)
        return chunk


class InflatedFiles:
    """Compressed files of a source that are being read. Threads may share it; another process starts an empty one."""

    def __init__(self, store: Files = LOCAL) -> None:
        self._store = store
        self._files: OrderedDict[str, InflatedFile] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._notes: dict[str, str] = {}
        self._begun: set[str] = set()
        self._tried: set[str] = set()
        """Files of which this process has made a copy, or failed to."""
        self._lock = ForkLock(self._forget)

    def __reduce__(self) -> tuple[type, tuple[Files]]:
        return InflatedFiles, (self._store,)

    def _forget(self) -> None:
        self._files = OrderedDict()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about files with a copy, and those of which none can be kept, as far as they have been read."""
        return tuple(filter(None, list(self._notes.values())))

    def size(self, path: str) -> int:
        """Return the number of decompressed bytes of a file; count them once."""
        if path not in self._sizes:
            self._sizes[path], note = measure(path, self._store)
            self._note(path, note)
        return self._sizes[path]

    def _note(self, path: str, note: str) -> None:
        if note and note != self._notes.get(path):
            _log.info(printable_line(note))
        self._notes[path] = note

    def _copy(self, path: str, index: int) -> Copy | None:
        """Return the copy of a file for reading from a block on; make it, once, if the file is not read in order.

        Threads that read in order may ask for one of the first blocks before block 0.
        """
        is_in_order = index == 0 or (index <= _MOST_AHEAD and path not in self._begun)
        self._begun.add(path)
        if index == 0 or is_small(path, self._store):
            return None
        copy = copy_of(path, self._store, make=False)
        if copy is None and not is_in_order and path not in self._tried:
            self._tried.add(path)
            copy = copy_of(path, self._store, make=True)
            self._note(path, copy.note if copy else note_without_copy(path))
        return copy

    def block(self, path: str, index: int, batch_bytes: int, quoted: bool = False) -> LineBlock:
        """Return a block of a file."""
        with self._lock:
            file = self._files.pop(path, None) or InflatedFile(
                path, batch_bytes, self._store, quoted, partial(self._copy, path)
            )
            self._files[path] = file
            old = [self._files.popitem(last=False)[1] for _ in range(len(self._files) - _MOST_OPEN)]
        # after the lock of all files is released: a thread may read a block of this one for a long time
        for one in old:
            with one.lock:
                one.close()
        return file.block(index, self._sizes.get(path))
