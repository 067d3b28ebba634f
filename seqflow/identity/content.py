"""Digests of content: bytes, files and arrays; digests of large files are cached, so that each file is read once.

A digest is cached for a path together with the size, the time of the last change and the inode of the file, and is
valid while these do not change. The cache is optional: if its folder cannot be read or written, files are read each
time.
"""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from seqflow.json_schema import matches_schema

_DIGEST_BYTES = 16
"""128 bits: no two contents of one user collide by chance. No protection against an attacker who makes files."""
_PIECE = 16 << 20
"""Bytes of an array that are hashed at once, and copied if it is not contiguous."""

_LARGE = 64 << 20
"""Smallest file, in bytes, whose digest is cached."""
_SETTLED = 2.0
"""Seconds: a file may change again without a new time of change while the clock of its file system stands still."""
_FORM = {"file": str, "part": str, "state": [int], "digest": str}


def digest_of_bytes(content: Any) -> str:
    """Return 32 hexadecimal digits for bytes, or any object with their interface."""
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def digest_of_text(text: str) -> str:
    """Return the digest of a text, which may have lone surrogates."""
    return digest_of_bytes(text.encode("utf-8", "surrogatepass"))


def digest_of_file(path: str) -> str:
    """Return the digest of a file's bytes; digests of large files are cached."""

    def read() -> str:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)).hexdigest()

    return cached_digest(path, "file", os.path.getsize(path), read)


def content_of(value: Any) -> str:
    """Return a short text for the content of an array: dtype, shape and digest.

    A read-only map of a large file is read once; its digest is cached.
    """
    if callable(getattr(value, "to_str", None)):  # a Tokenizer of the package tokenizers
        return f"tokenizer {digest_of_text(value.to_str())}"
    array = np.asanyarray(value)
    kind = f"{array.dtype}{list(array.shape)}"
    if array.dtype.hasobject:
        return f"{kind} {digest_of_text(repr(array.tolist()))}"
    return f"{kind} {_digest_of_array(array)}"


def _digest_of_array(array: np.ndarray[Any, Any]) -> str:
    if not _is_mapped_file(array):
        return _digest_of_pieces(array)
    part = f"{array.offset} {array.dtype.str} {array.shape} {array.strides}"  # type: ignore[attr-defined]
    path = str(array.filename)  # type: ignore[attr-defined]
    return cached_digest(path, part, array.nbytes, lambda: _digest_of_pieces(array))


def _is_mapped_file(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array is a read-only memory map of a file that still has this content."""
    if not isinstance(array, np.memmap) or array.mode != "r" or array.filename is None:
        return False
    # a slice of a map has `filename` and `offset` of the whole map, so they identify only the map itself
    return not isinstance(array.base, np.memmap) and _holds(str(array.filename), array)


def _holds(path: str, array: np.ndarray[Any, Any]) -> bool:
    """Return whether the file at a path has the mapped content, by 16 samples: it may have been replaced since."""
    if not (array.flags.c_contiguous or array.flags.f_contiguous) or not array.nbytes:
        return False
    flat = np.asarray(array).reshape(-1, order="A").view(np.uint8)
    try:
        with open(path, "rb") as file:
            for start in np.linspace(0, max(0, len(flat) - 512), 16, dtype=np.int64).tolist():
                file.seek(array.offset + start)  # type: ignore[attr-defined]
                if file.read(512)[: len(flat)] != flat[start : start + 512].tobytes():
                    return False
    except OSError:
        return False
    return True


def _digest_of_pieces(array: np.ndarray[Any, Any]) -> str:
    """Return the digest of an array's bytes in C order."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for piece in _pieces(np.asarray(array)):
        digest.update(piece.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    return digest.hexdigest()


def _pieces(array: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the content of an array in C order, as contiguous pieces of limited size."""
    if not array.nbytes:
        return
    if array.flags.c_contiguous:
        array = array.reshape(-1)
    if array.nbytes <= _PIECE or not array.ndim:
        yield np.ascontiguousarray(array)
    elif len(array) == 1:
        yield from _pieces(array[0])
    else:
        rows = max(1, _PIECE * len(array) // array.nbytes)
        for start in range(0, len(array), rows):
            piece = array[start : start + rows]
            yield from _pieces(piece) if len(piece) == 1 else (np.ascontiguousarray(piece),)


def cached_digest(path: str, part: str, nbytes: int, read: Callable[[], str]) -> str:
    """Return the cached digest of `part` of a file; if there is none, `read` computes it. Small files are not
    cached.
    """
    if nbytes < _LARGE:
        return read()
    path = os.path.abspath(path)
    before = _file_state(path)
    name = hashlib.blake2b(f"{path} {part}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    place = cache_folder() / f"{name}.json"
    found = _load_digest(place)
    if found is not None and (found["file"], found["part"], found["state"]) == (path, part, before):
        return str(found["digest"])
    digest = read()
    if before is not None and before == _file_state(path) and time.time() - before[1] / 1e9 > _SETTLED:
        _save_digest(place, {"file": path, "part": part, "state": before, "digest": digest})
    return digest


def cache_folder(name: str = "digests") -> Path:
    """`seqflow/digests`, or another folder, in the folder that XDG_CACHE_HOME names, by default `~/.cache`."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    above = Path(named) if os.path.isabs(named) else Path(os.path.expanduser("~")) / ".cache"
    return above / "seqflow" / name


def _file_state(path: str) -> list[int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev]


def _load_digest(place: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if matches_schema(found, _FORM) else None


def _save_digest(place: Path, entry: dict[str, Any]) -> None:
    with suppress(OSError, ValueError):  # a digest that is not cached is computed again
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(entry, file)
            os.replace(temporary, place)
        except BaseException:
            os.unlink(temporary)
            raise
