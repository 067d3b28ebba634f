"""A cache of the digests of large files, in the user's cache folder, so that each is read only once.

A digest is kept for a path together with the size, the time of the last change and the inode of the file, and is
good as long as these are what they were. Nothing depends on the folder: where it cannot be read or written, files are
read each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from seqflow.json_form import has_form

_LARGE = 64 << 20
"""Bytes from which on the digest of a file is kept."""
_SETTLED = 2.0
"""Seconds: a file may change again without another time of change while the clock of its file system stands still."""
_FORM = {"file": str, "part": str, "state": [int], "digest": str}


def kept_digest(path: str, part: str, nbytes: int, read: Callable[[], str]) -> str:
    """The cached digest of `part` of a file; where there is none, `read` computes it. Small files are not cached."""
    if nbytes < _LARGE:
        return read()
    path = os.path.abspath(path)
    before = _state(path)
    name = hashlib.blake2b(f"{path} {part}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    place = cache_folder() / f"{name}.json"
    found = _load(place)
    if found is not None and (found["file"], found["part"], found["state"]) == (path, part, before):
        return str(found["digest"])
    digest = read()
    if before is not None and before == _state(path) and time.time() - before[1] / 1e9 > _SETTLED:
        _save(place, {"file": path, "part": part, "state": before, "digest": digest})
    return digest


def cache_folder() -> Path:
    """`seqflow/digests` in the folder that XDG_CACHE_HOME names, by default `~/.cache`."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    above = Path(named) if os.path.isabs(named) else Path(os.path.expanduser("~")) / ".cache"
    return above / "seqflow" / "digests"


def _state(path: str) -> list[int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev]


def _load(place: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if has_form(found, _FORM) else None


def _save(place: Path, entry: dict[str, Any]) -> None:
    with suppress(OSError, ValueError):  # a digest that is not kept is made again
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(entry, file)
            os.replace(temporary, place)
        except BaseException:
            os.unlink(temporary)
            raise
