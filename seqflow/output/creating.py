"""Create the files that an output is written to: new ones, never what a link leads to; with a checksum."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

BUFFER_BYTES = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def create(path: Path) -> int:
    """A descriptor of a new file. A file or a link that has the name loses it; what a link leads to stays."""
    path.unlink(missing_ok=True)
    return os.open(path, _FLAGS, 0o666)


def write_new(path: Path, content: bytes) -> None:
    """Write a new file, which is on the disk then."""
    with os.fdopen(create(path), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


class NewFile:
    """A new file, open for writing, that counts and hashes what is written to it."""

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(create(path), "wb", BUFFER_BYTES)
        self._digest = hashlib.sha256()
        self.num_bytes = 0

    @property
    def checksum(self) -> str:
        """SHA-256 of what is written so far, in hexadecimal digits."""
        return self._digest.hexdigest()

    def write(self, data: Any) -> int:
        self._digest.update(data)
        size = self._file.write(data)
        self.num_bytes += size
        return size

    def tell(self) -> int:
        return self.num_bytes

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    @property
    def closed(self) -> bool:
        return self._file.closed
