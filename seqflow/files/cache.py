"""Cache of ranges of objects in a folder of this machine, which several processes may share.

An entry is a file with the bytes and their CRC-32, named by system, path, version, size and range: a replaced object
is a miss. It is written under another name and renamed, so it is there as a whole or not at all. A copy of a whole
object is a file with nothing but its bytes; their CRC-32 is an entry.
"""

import hashlib
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from seqflow.files.interface import Entry
from seqflow.logs import log

DEFAULT_BYTES = 16 << 30
_COPIES = "copies"
_CHECK_BYTES, _EVICT_SECONDS, _KEPT_SHARE = 4, 5.0, 0.9
_IN_USE = 60.0
"""Seconds for which a copy stays after it was asked for: its reader is about to open it."""
_intact: dict[str, tuple[int, ...]] = {}
"""Size, time and inode of the copies that this process has checked, by path."""
_CLAIM_SECONDS = 10.0
"""Age from which the claim of another process does not count any more: it was killed, or is very slow."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Ranges of objects in a folder, of at most `max_bytes` in all, except while they are written."""

    folder: str
    max_bytes: int = DEFAULT_BYTES
    _state: dict[str, Any] = field(default_factory=lambda: {"checked": set()}, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Cache, (self.folder, self.max_bytes)

    def place(self, entry: Entry, start: int, stop: int) -> str:
        """Return the path of the entry for a range of an object."""
        text = "\0".join(map(str, (*entry, start, stop)))
        name = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return os.path.join(self.folder, name[:2], name)

    def get(self, place: str) -> pa.Buffer | None:
        """Return an entry, mapped into memory; None if there is none, or it is damaged."""
        try:
            with pa.memory_map(place) as file:
                stored = file.read_buffer()
        except (OSError, pa.ArrowInvalid):
            return None
        size = stored.size - _CHECK_BYTES
        if size < 0 or (place not in self._state["checked"] and not _is_intact(stored, size)):
            with suppress(OSError):
                os.unlink(place)
            return None
        self._state["checked"].add(place)
        with suppress(OSError):
            os.utime(place)
        return stored.slice(0, size)

    def put(self, place: str, content: Any) -> None:
        """Store an entry, and release its claim; where that fails, say so once and go on without."""
        self.put_pieces(place, (content,))

    def put_pieces(self, place: str, pieces: Iterable[Any]) -> bool:
        """Store an entry, whose pieces may be made meanwhile, as `put` does; return whether it is there now."""
        is_there = False
        try:
            _write(place, pieces)
            is_there = True
        except OSError as error:
            if not self._state.get("warned"):
                self._state["warned"] = True
                log.warning(
                    "the cache %s cannot be written: %s; going on without", self.folder, error.strerror
                )
        self.release(place)
        self._evict()
        return is_there

    def copy(self, name: str, size: int, pieces: Callable[[], Iterable[Any]]) -> str:
        """Return the path of a copy of this size, made of pieces unless there is an intact one; raise OSError."""
        path = os.path.join(self.folder, _COPIES, name)
        check = self.place(Entry(name, size, "CRC-32"), 0, size)
        if not self._has_copy(path, check, size):
            crc = _write(path, pieces(), is_copy=True)
            _intact[path] = _state(path)
            self.put(check, crc.to_bytes(_CHECK_BYTES, "little"))
        return path

    def _has_copy(self, path: str, check: str, size: int) -> bool:
        try:
            state = _state(path)
            if _intact.get(path) != state:
                with pa.memory_map(path) as file:
                    crc = zlib.crc32(file.read_buffer())
                if self.get(check) != pa.py_buffer(crc.to_bytes(_CHECK_BYTES, "little")):
                    return False
                _intact[path] = state
            os.utime(path, ns=(time.time_ns(), state[1]))
        except (OSError, pa.ArrowInvalid):
            return False
        return state[0] == size

    def claim(self, place: str) -> bool:
        """Return whether this process is to fetch a range; false if another one is about to."""
        claim = f"{place}.claim"
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            with suppress(OSError):
                # the clock may have been set back since the claim was made
                if 0 <= time.time() - os.stat(claim).st_mtime <= _CLAIM_SECONDS:
                    return False
                os.utime(claim)  # so that not all who wait take it over
            return True
        except OSError:
            return True  # a folder that cannot be written: each process fetches for itself
        # since it was looked for, another process may have stored it and released its claim
        if os.path.exists(place):
            self.release(place)
            return False
        return True

    def release(self, place: str) -> None:
        """Release the claim of a range."""
        with suppress(OSError):
            os.unlink(f"{place}.claim")

    def wait(self, places: Sequence[str]) -> None:
        """Wait until other processes have stored or given up these ranges, for 10 seconds at most."""
        end = time.monotonic() + _CLAIM_SECONDS
        while time.monotonic() < end and any(os.path.exists(f"{place}.claim") for place in places):
            time.sleep(0.005)

    def _evict(self) -> None:
        """Remove the entries that were used longest ago if they are too many; one process does it at a time."""
        now = time.monotonic()
        if now - self._state.get("evicted", -_EVICT_SECONDS) < _EVICT_SECONDS:
            return
        self._state["evicted"] = now
        with suppress(OSError, ImportError):
            import fcntl

            with open(os.path.join(self.folder, ".lock"), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found = sorted(_entries(self.folder))
                total = sum(size for _, size, _ in found)
                if total > self.max_bytes:
                    for _, size, path in found:
                        os.unlink(path)
                        total -= size
                        if total <= self.max_bytes * _KEPT_SHARE:
                            break


def _write(path: str, pieces: Iterable[Any], *, is_copy: bool = False) -> int:
    """Write pieces to a file that is there as a whole or not at all, followed by their CRC-32 unless it is a copy."""
    temporary, crc = f"{path}.{os.getpid()}-{threading.get_ident()}", 0
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(temporary, "wb") as file:
            for piece in pieces:
                file.write(piece)
                crc = zlib.crc32(piece, crc)
            if is_copy:  # nothing in it tells that a crash has cut it
                file.flush()
                os.fsync(file.fileno())
            else:
                file.write(crc.to_bytes(_CHECK_BYTES, "little"))
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return crc


def _state(path: str) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino


def _is_intact(stored: pa.Buffer, size: int) -> bool:
    return bytes(stored.slice(size)) == zlib.crc32(stored.slice(0, size)).to_bytes(_CHECK_BYTES, "little")


def _entries(folder: str) -> list[tuple[float, int, str]]:
    """Return time of the last use, bytes and path of each entry."""
    found = []
    for inner in os.scandir(folder):
        for one in os.scandir(inner) if inner.is_dir() else ():
            with suppress(OSError):
                state = one.stat()
                if inner.name != _COPIES or state.st_atime < time.time() - _IN_USE:
                    found.append((state.st_atime, state.st_size, one.path))
    return found
