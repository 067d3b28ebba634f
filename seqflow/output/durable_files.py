"""Files that survive a power failure: created new, synchronised, and renamed when they are complete.

The order is always the same: the content of a file is synchronised (fsync), then the file is renamed, then its folder
is synchronised. Without the first fsync, a crash may leave an empty file under the final name; without the second,
the name itself may be lost, since it is data of the folder.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from seqflow.errors import WriteError
from seqflow.output import unfinished

BUFFER_BYTES = 1 << 20
_CLOSED_BY_EXEC = getattr(os, "O_CLOEXEC", 0)  # Windows has none
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOSED_BY_EXEC


def create(path: Path) -> int:
    """Create a new file and return its descriptor. An existing link of this name is removed, not followed."""
    path.unlink(missing_ok=True)
    # O_EXCL fails if something else creates the name after `unlink`, so a link is never written through
    return os.open(path, _FLAGS, 0o666)


def write_new(path: Path, content: bytes) -> None:
    """Write a new file and synchronise it to the disk."""
    with os.fdopen(create(path), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


class NewFile:
    """A new file, open for writing, that counts and hashes the bytes written to it."""

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(create(path), "wb", BUFFER_BYTES)
        self._digest = hashlib.sha256()
        self.num_bytes = 0

    @property
    def checksum(self) -> str:
        """SHA-256 of the bytes written so far, in hexadecimal digits."""
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


def sync_file(path: Path) -> None:
    """Synchronise the content of a file to the disk."""
    _sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Synchronise the entries of a folder to the disk: files that were created, renamed or removed."""
    if hasattr(os, "O_DIRECTORY"):  # Windows cannot open a folder
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    with writing(path):
        opened = os.open(path, flags | _CLOSED_BY_EXEC)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def temporary_path(path: Path) -> Path:
    """Return the hidden path at which this process writes a file."""
    return path.with_name(f".{path.name}.tmp-{os.getpid()}")


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a small file atomically: after a crash it has its complete old content or its complete new content."""
    temporary = temporary_path(path)
    unfinished.add(temporary)
    try:
        with writing(path):
            write_new(temporary, content)
            temporary.replace(path)
            sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
        unfinished.discard(temporary)


def append_bytes(path: Path, content: bytes) -> None:
    """Append lines to a file and synchronise it to the disk: after a crash the last line may be torn.

    A torn line that an earlier crash has left is cut off first: joined with the next one it would damage the file.
    """
    with writing(path):
        opened = os.open(path, os.O_RDWR | _CLOSED_BY_EXEC | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(opened, "r+b") as file:
            file.truncate(file.seek(_end_of_lines(file)))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _end_of_lines(file: BinaryIO) -> int:
    """Return the position after the last line that has its end."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - BUFFER_BYTES)
        file.seek(start)
        if (found := file.read(end - start).rfind(b"\n")) >= 0:
            return start + found + 1
        end = start
    return 0


def remove_temporaries(folder: Path, name: str) -> None:
    """Remove temporary files of killed processes whose final names match a regular expression."""
    left = re.compile(rf"\.{name}\.tmp-\d+")
    for path in folder.iterdir():
        if left.fullmatch(path.name) and not (path.is_dir() and not path.is_symlink()):
            path.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Translate an OSError into a WriteError that names the file."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        found = WriteError(f"cannot write {str(path)!r}: {error.strerror or error}")
        found.errno = error.errno
        raise found from error
