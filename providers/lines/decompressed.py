"""Decompressed bytes of a compressed file, read from its start."""

import bz2
import gzip
import os
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import IO, Any

import pyarrow as pa

from seqflow.files.interface import LOCAL, Files
from seqflow.files.uris import is_uri, without_query
from seqflow.providers.formats.suffixes import COMPRESSIONS
from seqflow.record.validation import kind_of_error

_CHUNK = 1 << 20
"""Number of bytes that are decompressed at once."""


def compression_of(path: str) -> str | None:
    """Return the compression of a file by its suffix; None for an uncompressed file."""
    return COMPRESSIONS.get(os.path.splitext(without_query(path))[1].lower())


def decompressed_bytes(path: str, store: Files = LOCAL) -> int:
    """Return the number of decompressed bytes, by reading the file once; raise ProviderError if it is damaged."""
    return sum(map(len, decompressed(path, store)))


def decompressed(path: str, store: Files = LOCAL) -> Generator[bytes, None, None]:
    """Yield the decompressed bytes in pieces of 1 MiB."""
    with closing(Decompressed(path, store)) as stream:
        while piece := stream.read(_CHUNK):
            yield piece


class Decompressed:
    """Decompressed bytes of a file, read from its start to its end."""

    def __init__(self, path: str, store: Files = LOCAL) -> None:
        self._path, self._position = path, 0
        self._open = partial(store.stream, path)
        with reading(path):
            if compression_of(path) == "bz2":
                self._file: Any = self._open()
                self._stream: Any = _Bzip2(self._file)
                return
            if is_uri(path):
                self._file = self._open()
                raw = pa.PythonFile(self._file, "r")
            else:
                # 7 % faster for zstd than reading through Python
                raw = self._file = pa.OSFile(path)
            self._stream = pa.CompressedInputStream(raw, compression_of(path))

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
                self._file = self._open()
                self._stream = gzip.GzipFile(fileobj=self._file)
                self._stream.seek(self._position)
                piece = self._stream.read(size)
        self._position += len(piece)
        return piece

    def close(self) -> None:
        self._stream.close()
        self._file.close()


class _Bzip2:
    """Streams of bzip2 one after another, of which some may be empty: Arrow takes these for damage."""

    def __init__(self, file: IO[bytes]) -> None:
        self.close, self._pieces, self._held = file.close, _pieces_of_bzip2(file), b""

    def read(self, size: int) -> bytes:
        while len(self._held) < size and (piece := next(self._pieces, None)) is not None:
            self._held += piece
        found, self._held = self._held[:size], self._held[size:]
        return found


def _pieces_of_bzip2(file: IO[bytes]) -> Iterator[bytes]:
    while rest := file.read(_CHUNK):
        while rest:
            stream = bz2.BZ2Decompressor()
            while not stream.eof:
                if stream.needs_input and not (rest := rest or file.read(_CHUNK)):
                    raise EOFError("it ends inside a stream of bzip2")
                yield stream.decompress(rest, _CHUNK)
                rest = b""
            rest = stream.unused_data


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise errors of pyarrow, gzip and the system for an unreadable file as ProviderError."""
    try:
        yield
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise kind_of_error(error)(f"{path} can't be read: {reason}") from error
