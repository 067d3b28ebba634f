"""Where the batches of an Arrow file lie, from its footer and messages: pyarrow does not tell it."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from seqflow.errors import DamagedFileError
from seqflow.files.ahead import SMALL_FILE, Span
from seqflow.files.interface import Entry, Files

MAGIC = b"ARROW1"
_HEAD, _TAIL, _TAIL_BYTES, _BLOCK = 8, 10, 64 << 10, 24
"""Bytes before the schema, after the footer, of the file that are read first, and of an entry of the footer."""
_DICTIONARIES, _BATCHES = 2, 3
"""Fields of the footer."""
_HEADER, _LENGTH, _COMPRESSION = 2, 0, 3
"""Field of a message, and fields of a record batch in it."""
_COMPRESSED = 3
"""Estimate of the bytes in memory for each stored byte of a compressed batch: only its buffers tell it."""


_Block = tuple[int, int, int]
"""Offset of a message, bytes of its metadata, and bytes of its body."""


class StoredArrow(NamedTuple):
    """An Arrow file in a store: messages of its schema and dictionaries, and its batches."""

    head: tuple[pa.Buffer, ...]
    spans: tuple[Span, ...]
    """Bytes of the message of each batch."""
    rows: tuple[int, ...]
    nbytes: tuple[int, ...]
    """About the bytes of each batch in memory."""

    def reader(
        self, batch: pa.Buffer, options: pa.ipc.IpcReadOptions | None = None
    ) -> pa.RecordBatchStreamReader:
        """Return a stream of the schema, the dictionaries and this batch."""
        return pa.ipc.open_stream(pa.PythonFile(_Pieces([*self.head, batch]), mode="r"), options=options)


class _Pieces:
    """Buffers, one after another, as a file; what is read from one of them is not copied."""

    closed = False

    def __init__(self, pieces: list[pa.Buffer]) -> None:
        self._pieces, self._at = pieces, 0

    def read(self, size: int) -> pa.Buffer:
        found: list[pa.Buffer] = []
        while self._pieces and size > 0:
            piece = self._pieces[0]
            found.append(piece.slice(self._at, min(size, piece.size - self._at)))
            self._at += found[-1].size
            size -= found[-1].size
            if self._at == piece.size:
                self._pieces, self._at = self._pieces[1:], 0
        return found[0] if len(found) == 1 else pa.py_buffer(b"".join(found))

    def close(self) -> None:
        self.closed = True


class _Table:
    """A table of a flat buffer; a place outside the buffer is damage."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._fields = at - self._number("<i", at)

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        return cls(data, struct.unpack_from("<I", data)[0])

    def _number(self, form: str, at: int) -> int:
        if not 0 <= at <= len(self._data) - struct.calcsize(form):
            raise ValueError("a place outside of it")
        return int(struct.unpack_from(form, self._data, at)[0])

    def place(self, field: int) -> int | None:
        """Return where a field lies; None if it is not set."""
        size = self._number("<H", self._fields)
        offset = self._number("<H", self._fields + 4 + 2 * field) if 4 + 2 * field < size else 0
        return self._at + offset if offset else None

    def table(self, field: int) -> "_Table":
        at = self.place(field)
        if at is None:
            raise ValueError("a part is missing")
        return _Table(self._data, at + self._number("<I", at))

    def integer(self, field: int) -> int:
        at = self.place(field)
        return 0 if at is None else self._number("<q", at)

    def blocks(self, field: int) -> list[_Block]:
        """Return offset, bytes of metadata and bytes of the body of each entry of a list of blocks."""
        if (at := self.place(field)) is None:
            return []
        start = at + self._number("<I", at) + 4
        count = self._number("<I", start - 4)
        if count * _BLOCK > len(self._data) - start:
            raise ValueError("a list that is too long")
        return [struct.unpack_from("<qi4xq", self._data, start + _BLOCK * one) for one in range(count)]


def tail_of(entry: Entry) -> int:
    """Return the first byte of the part of a store's file that is read when it is opened."""
    return 0 if entry.size <= SMALL_FILE else entry.size - _TAIL_BYTES


def read_stored(store: Files, entry: Entry) -> StoredArrow | None:
    """Return where the batches of a file lie; None for a stream. Raise DamagedFileError for a damaged file."""
    path, size = entry.path, entry.size
    read = _Reader(store, entry)
    tail = read.tail
    if not tail.endswith(MAGIC):
        if bytes(read(0, len(MAGIC))) == MAGIC:
            raise DamagedFileError(
                f"{path} is not an Arrow IPC file, or damaged: it has no footer at its end"
            )
        return None
    try:
        stated = int.from_bytes(tail[-_TAIL : -len(MAGIC)], "little")
        if stated + _TAIL > len(tail):
            tail = bytes(read(max(0, size - _TAIL - stated), size))
        footer = _Table.root(tail[max(0, len(tail) - _TAIL - stated) : -_TAIL])
        blocks = {field: footer.blocks(field) for field in (_DICTIONARIES, _BATCHES)}
        for at, metadata, body in (one for found in blocks.values() for one in found):
            if not 0 < at <= at + metadata <= at + metadata + body <= size or metadata < 8 or body < 0:
                raise ValueError("a batch outside the file")
        return _stored(read, blocks[_DICTIONARIES], blocks[_BATCHES], size - _TAIL - stated)
    except (ValueError, struct.error) as error:
        raise DamagedFileError(f"{path} has a damaged footer: {error}") from None


class _Reader:
    """Reads a file in a store; its end is fetched at once, and a small file with it."""

    def __init__(self, store: Files, entry: Entry) -> None:
        self._store, self._path, self._start = store, entry.path, tail_of(entry)
        self._held = store.read(entry.path, self._start, entry.size)

    @property
    def tail(self) -> bytes:
        return bytes(self._held)

    def __call__(self, start: int, stop: int) -> pa.Buffer:
        if start >= self._start:
            return self._held[start - self._start : stop - self._start]
        return self._store.read(self._path, start, stop)

    def each(self, spans: Sequence[Span]) -> list[pa.Buffer]:
        """Return the bytes of several ranges, fetched together."""
        owner = object()
        self._store.plan(((self._path, *span) for span in spans if span[0] < self._start), owner)
        try:
            return [self(*span) for span in spans]
        finally:
            self._store.drop(owner)


def _stored(
    read: _Reader, dictionaries: Sequence[_Block], batches: Sequence[_Block], end: int
) -> StoredArrow:
    first = min((at for at, *_ in (*dictionaries, *batches)), default=end)
    heads = [(_HEAD, first), *((at, at + metadata + body) for at, metadata, body in dictionaries)]
    spans = [(at, at + metadata) for at, metadata, _ in batches]
    pieces = read.each([*heads, *spans])
    head, messages = tuple(pieces[: len(heads)]), pieces[len(heads) :]
    found = [_Table.root(bytes(one)[8:]).table(_HEADER) for one in messages]
    bodies = [body for *_, body in batches]
    growth = [1 if one.place(_COMPRESSION) is None else _COMPRESSED for one in found]
    rows = tuple(one.integer(_LENGTH) for one in found)
    if min(rows, default=0) < 0:
        raise ValueError(f"a batch of {min(rows)} rows")
    return StoredArrow(
        head,
        tuple((at, at + metadata + body) for at, metadata, body in batches),
        rows,
        tuple(body * times for body, times in zip(bodies, growth, strict=True)),
    )
