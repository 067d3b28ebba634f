"""Copies of compressed files in frames, to read a later block without decompressing what comes before it.

They are made of files that are not read in order, and kept in the user's cache with the version of the file.
"""

import errno
import json
import os
import time
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from seqflow.byte_sizes import format_bytes
from seqflow.errors import ProviderError
from seqflow.files.cache import Cache
from seqflow.files.interface import Entry, Files
from seqflow.files.uris import is_uri
from seqflow.providers.lines.decompressed import decompressed, decompressed_bytes
from seqflow.record.record import Tensor

SMALL = 256 << 10
"""Stored bytes of files that are decompressed from their start each time."""
_FRAME = pa.Codec("zstd", 1)
_SETTLED = 2.0
"""Seconds: a file may change again without a new time of change while the clock of its file system stands still."""
_RUN = uuid.uuid4().hex
"""Marks entries that only this process may use, and those it forks: the file may have changed since."""
_COPY, _SIZE = "copy 1", "size 1"
"""Forms of entries: the second one has no frames."""


class Frame(NamedTuple):
    """A frame of a copy, which holds up to 1 MiB of the decompressed bytes, and what comes before it."""

    position: int
    """Number of decompressed bytes before it."""
    lines: int
    """Number of newlines before it."""
    quotes: int
    """1 if the number of quotes before it is odd."""
    start: int
    """Position in the entry of the cache."""
    stop: int
    size: int
    """Decompressed bytes of the frame."""


START = Frame(0, 0, 0, 0, 0, 0)
_ROW_BYTES = 8 * len(Frame._fields)


@dataclass(frozen=True, slots=True)
class Copy:
    """Decompressed bytes of one version of a file, in frames; without frames, only their number is known."""

    path: str
    size: int
    """Number of decompressed bytes."""
    table: Tensor
    """int64: a Frame in each row."""
    content: pa.Buffer

    def before(self, position: int) -> Frame:
        """Return the frame that holds a position in the decompressed bytes."""
        return Frame(*self.table[int(np.searchsorted(self.table[:, 0], position, "right")) - 1].tolist())

    def pieces(self, first: Frame) -> Generator[bytes, None, None]:
        """Yield the decompressed bytes from a frame on."""
        for row in self.table[np.searchsorted(self.table[:, 0], first.position) :].tolist():
            frame = Frame(*row)
            part = self.content.slice(frame.start, frame.stop - frame.start)
            yield _FRAME.decompress(part, frame.size, asbytes=True)

    @property
    def note(self) -> str:
        """Sentence about the copy, for the run that makes it."""
        return f"{self.path} was not read in order, so a copy in frames is kept ({format_bytes(self.content.size)})"


def note_without_copy(path: str) -> str:
    """Return a sentence about a file of which no copy can be kept."""
    return (
        f"{path}: no copy is kept; a block that comes before the last one read is decompressed from the start "
        "of the file"
    )


def measure(path: str, store: Files) -> tuple[int, str]:
    """Return the number of decompressed bytes of a file, and a sentence if no copy of it can be kept.

    The number is kept with the version; then the file is not read.
    """
    if is_small(path, store):
        return decompressed_bytes(path, store), ""
    found = _load(path, store, _COPY) or _load(path, store, _SIZE) or _keep(path, store, _SIZE)
    if found is None:
        return decompressed_bytes(path, store), note_without_copy(path)
    return found.size, ""


def copy_of(path: str, store: Files, *, make: bool) -> Copy | None:
    """Return the copy of the present version of a file; if none is kept, it is made where `make` asks for it.

    None if the file has no identity or is damaged, if the cache has no room, or if another process has been making it
    for 10 seconds.
    """
    return _load(path, store, _COPY) or (_keep(path, store, _COPY) if make else None)


def _load(path: str, store: Files, form: str) -> Copy | None:
    found = _place(path, store, form)
    content = None if found is None else found[0].get(found[1])
    if content is None:
        return None
    *_, stop = np.frombuffer(content.slice(content.size - 8), "<i8").tolist()
    end = json.loads(bytes(content.slice(stop, content.size - 8 - stop)))
    version = _version(path, store)
    if end["version"] not in (version, version + _RUN):
        return None
    start = stop - end["rows"] * _ROW_BYTES
    table = np.frombuffer(content.slice(start, stop - start), "<i8").reshape(-1, len(Frame._fields))
    return Copy(path, end["size"], table, content.slice(0, start))


def _keep(path: str, store: Files, form: str) -> Copy | None:
    """Keep an entry of a file, a copy in one process while others wait; return it if it is there now."""
    if (found := _place(path, store, form)) is None:
        return None
    cache, place = found
    with suppress(OSError):
        os.unlink(place)  # of another version
    if form == _COPY and not cache.claim(place):
        cache.wait([place])
        return _load(path, store, form)
    try:
        cache.put_pieces(place, _entry(path, store, form, cache.max_bytes))
    except ProviderError:
        cache.release(place)
        return None  # a damaged file, of which the usual reader tells more
    return _load(path, store, form)


def _entry(path: str, store: Files, form: str, max_bytes: int) -> Iterator[bytes]:
    """Yield the parts of an entry: frames, their table, the version and size."""
    rows: list[Frame] = []
    version = _version(path, store)
    size = lines = quotes = stored = 0
    for piece in decompressed(path, store):
        if form == _COPY:
            frame = _FRAME.compress(piece, asbytes=True)
            rows.append(Frame(size, lines, quotes, stored, stored + len(frame), len(piece)))
            stored += len(frame)
            if stored > max_bytes:
                raise OSError(errno.EFBIG, f"a copy of {path} is larger than {format_bytes(max_bytes)}")
            yield frame
            lines, quotes = lines + piece.count(b"\n"), quotes ^ piece.count(b'"') & 1
        size += len(piece)
    if _version(path, store) != version:
        raise ProviderError(f"{path} has been rewritten while it was read")
    if not is_uri(path) and time.time() - os.stat(path).st_mtime < _SETTLED:
        version += _RUN
    table = np.array(rows, "<i8").tobytes()
    end = json.dumps({"version": version, "size": size, "rows": len(rows)})
    yield from (table, end.encode(), (stored + len(table)).to_bytes(8, "little"))


def is_small(path: str, store: Files) -> bool:
    """Return whether a file is always decompressed from its start."""
    entry = store.entry(path)
    return entry is None or entry.size < SMALL


def _version(path: str, store: Files) -> str:
    entry = store.entry(path)
    return "" if entry is None else f"{entry.size}-{entry.version}"


def _place(path: str, store: Files, form: str) -> tuple[Cache, str] | None:
    """Return the cache, and the path of the entry for a file in it: another version replaces it. None without any."""
    from seqflow.identity.content import cache_folder

    if (name := store.cached_as(path)) is None:
        return None
    cache = getattr(store, "cache", None) or cache_of_folder(str(cache_folder("copies")))
    return cache, cache.place(Entry(name, 0, form), 0, 0)


cache_of_folder = lru_cache(Cache)
