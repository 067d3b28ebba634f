"""Restart points of compressed files: places where decompressing may begin, to read a later block at once.

They are found when a file is first read, and kept in the user's cache with its version. A file without places to
begin inside, such as one frame of zstd, has a copy there, in frames.
"""

import json
import os
import time
import uuid
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from seqflow.byte_sizes import format_bytes
from seqflow.errors import ProviderError
from seqflow.files.cache import Cache
from seqflow.files.place import Entry, Files, is_uri
from seqflow.providers.lines.decompressed import (
    compression_of,
    decompressed,
    decompressed_bytes,
    reading,
)
from seqflow.providers.lines.deflate import inflate, scan_gzip
from seqflow.providers.lines.frames import scan_zstd
from seqflow.providers.lines.stored import Place, Stored
from seqflow.record.record import Tensor

SMALL = 256 << 10
"""Stored bytes of files that are decompressed from the start each time."""
_SPACING = 1 << 20
"""Decompressed bytes from one restart point to the next one."""
_GAP = 16 << 20
"""Most decompressed bytes without a place to begin; a file with more of them is copied."""
_BLOCKS, _LEAST = 256, 8 << 10
"""A file with more blocks than this is copied if they have fewer bytes on average: each takes 0.1 ms to find."""
_COPIED = -2
"""Bit of a restart point in a copy."""
_FRAME = pa.Codec("zstd", 1)
_SETTLED = 2.0
"""Seconds: a file may change again without a new time of change while the clock of its file system stands still."""
_RUN = uuid.uuid4().hex
"""Marks entries that only this process may use, and those it forks: the file may have changed since."""
_FORM = "restarts 1"
_SLOW = "a block that comes before the last one read is decompressed from the start of the file"


class Restart(NamedTuple):
    """A place in a file where decompressing may begin, and what comes before it."""

    position: int
    """Number of decompressed bytes before it."""
    lines: int
    """Number of newlines before it."""
    quotes: int
    """1 if the number of quotes before it is odd."""
    offset: int
    bit: int
    start: int
    stop: int
    """Position in the entry of the cache of the window, or of the frame of a copy."""
    size: int
    """Decompressed bytes of window or frame."""


START = Restart(0, 0, 0, 0, -1, 0, 0, 0)
_ROW_BYTES = 8 * len(Restart._fields)


class _Sparse(Exception):
    """A file that has too few places to begin, or too many to look for."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """Restart points of one version of a file."""

    path: str
    store: Files
    size: int
    """Number of decompressed bytes."""
    table: Tensor
    """int64: a Restart in each row."""
    content: pa.Buffer
    """Windows, or the frames of a copy."""

    def before(self, position: int) -> Restart:
        """Return the last restart point at or before a position in the decompressed bytes."""
        return self._row(int(np.searchsorted(self.table[:, 0], position, "right")) - 1)

    def _row(self, row: int) -> Restart:
        return Restart(*self.table[row].tolist())

    def pieces(self, point: Restart) -> Generator[bytes, None, None]:
        """Yield the decompressed bytes from a restart point on."""
        if point.bit == _COPIED:
            rows = range(int(np.searchsorted(self.table[:, 0], point.position)), len(self.table))
            yield from map(self._content, map(self._row, rows))
            return
        start = point.offset
        if point.bit >= 0:
            with reading(self.path), closing(self.store.stream(self.path, start)) as file:
                stored = Stored(file, start)
                yield from inflate(stored, Place(start, point.bit, self._content(point)))
                start = stored.offset
        yield from decompressed(self.path, self.store, start)

    def _content(self, point: Restart) -> bytes:
        """Return the window of a block, or the decompressed bytes of a frame."""
        part = self.content.slice(point.start, point.stop - point.start)
        content: bytes = _FRAME.decompress(part, point.size, asbytes=True)
        return content

    @property
    def note(self) -> str:
        """Sentence about a copy; empty if there is none."""
        if self._row(0).bit != _COPIED:
            return ""
        size = format_bytes(self.content.size)
        return f"{self.path} can only be decompressed from its start, so a copy in frames is kept ({size})"


def measure(path: str, store: Files) -> tuple[int, str]:
    """Return the number of decompressed bytes of a file, and a sentence about its restart points if it is not usual.

    They are found and kept unless there are any for this version; then the file is not read.
    """
    entry = store.entry(path)
    if entry is None or entry.size < SMALL:
        return decompressed_bytes(path, store), ""
    found = restarts_of(path, store)
    if found is None and _keep(path, store):
        found = restarts_of(path, store)
    if found is None:
        return decompressed_bytes(path, store), f"{path}: no restart points are kept; {_SLOW}"
    return found.size, found.note


def restarts_of(path: str, store: Files) -> Restarts | None:
    """Return the restart points that are kept for the present version of a file."""
    found = _place(path, store)
    content = None if found is None else found[0].get(found[1])
    if content is None:
        return None
    *_, stop = np.frombuffer(content.slice(content.size - 8), "<i8").tolist()
    end = json.loads(bytes(content.slice(stop, content.size - 8 - stop)))
    version = _version(path, store)
    if end["version"] not in (version, version + _RUN):
        return None
    start = stop - end["rows"] * _ROW_BYTES
    table = np.frombuffer(content.slice(start, stop - start), "<i8").reshape(-1, len(Restart._fields))
    return Restarts(path, store, end["size"], table, content.slice(0, start))


def _keep(path: str, store: Files) -> bool:
    """Find and keep the restart points of a file, or a copy; return whether there are any now."""
    if (found := _place(path, store)) is None:
        return False
    cache, place = found
    for scan in (_places, _frames):
        try:
            return cache.put_pieces(place, _entry(path, store, scan(path, store), cache.max_bytes))
        except _Sparse:
            continue
        except ProviderError:
            break  # a damaged file, of which the usual reader tells more
    return False


def _entry(path: str, store: Files, found: Iterator[Place | bytes], max_bytes: int) -> Iterator[bytes]:
    """Yield what is kept of a file: windows or frames, the table of restart points, and the version.

    Raise _Sparse if there are too few places.
    """
    rows: list[Restart] = []
    version = _version(path, store)
    size = lines = quotes = stored = places = 0
    for piece in found:
        if isinstance(piece, Place):
            places += 1
            # a member or frame, which needs no window, is better than a block
            least = {_COPIED: 0, -1: _SPACING // 2}.get(piece.bit, _SPACING)
            if not rows or size - rows[-1].position >= least:
                window = _FRAME.compress(piece.window, asbytes=True)
                start, stored = stored, stored + len(window)
                rows.append(Restart(size, lines, quotes, *piece[:2], start, stored, len(piece.window)))
                yield window
        else:
            size, lines = size + len(piece), lines + piece.count(b"\n")
            quotes ^= piece.count(b'"') & 1
        if size - rows[-1].position > _GAP or size < (places - _BLOCKS) * _LEAST or stored > max_bytes:
            raise _Sparse
    if _version(path, store) != version:
        raise ProviderError(f"{path} has been rewritten while it was read")
    if not is_uri(path) and time.time() - os.stat(path).st_mtime < _SETTLED:
        version += _RUN
    table = np.array(rows, "<i8").tobytes()
    end = json.dumps({"version": version, "size": size, "rows": len(rows)})
    yield from (table, end.encode(), (stored + len(table)).to_bytes(8, "little"))


def _places(path: str, store: Files) -> Iterator[Place | bytes]:
    """Yield the places of a file, each before the decompressed bytes from there on."""
    scan = {"gzip": scan_gzip, "zstd": scan_zstd}.get(compression_of(path) or "")
    with reading(path), closing(store.stream(path)) as file:
        yield from scan(Stored(file)) if scan else chain([Place(0)], decompressed(path, store))


def _frames(path: str, store: Files) -> Iterator[Place | bytes]:
    """Yield the decompressed bytes of a file in pieces, each after a place in a copy."""
    for piece in decompressed(path, store):
        yield Place(0, _COPIED, piece)
        yield piece


def _version(path: str, store: Files) -> str:
    entry = store.entry(path)
    return "" if entry is None else f"{entry.size}-{entry.version}"


def _place(path: str, store: Files) -> tuple[Cache, str] | None:
    """Return the cache, and the path of the entry for a file in it: another version replaces it. None without any."""
    from seqflow.identity.content import cache_folder

    if (name := store.cached_as(path)) is None:
        return None
    cache = getattr(store, "cache", None) or _cache(str(cache_folder("restarts")))
    return cache, cache.place(Entry(name, 0, _FORM), 0, 0)


_cache = lru_cache(Cache)
