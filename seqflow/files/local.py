"""Files of this machine."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

import pyarrow as pa

from seqflow.files.place import Entry, Range


class LocalFiles:
    """Files of this machine, through the functions of the system."""

    def version(self, path: str) -> tuple[int, ...] | None:
        """Return size, modification time, inode and device of a file; None if it does not exist."""
        try:
            found = os.stat(path)
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev

    def entry(self, path: str) -> Entry | None:
        found = self.version(path)
        return None if found is None else Entry(path, found[0], "-".join(map(str, found[1:])))

    def look_up(self, paths: Iterable[str]) -> None:
        """Do nothing: the system tells them one by one."""

    def pin(self, entry: Entry) -> None:
        """Do nothing: what is written over a local file is noticed by its size and time."""

    def cached_as(self, path: str) -> str | None:
        return os.path.abspath(path)

    def of(self, paths: Iterable[str]) -> "LocalFiles":
        return self

    def list(self, folder: str) -> Iterator[Entry]:
        paths = (os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names)
        return filter(None, map(self.entry, sorted(paths)))

    def listing(self, folder: str) -> Sequence[Entry]:
        return list(self.list(folder))

    listed: Iterable[Entry] = ()

    def read(self, path: str, start: int, stop: int) -> pa.Buffer:
        with open(path, "rb", buffering=0) as file:
            file.seek(start)
            return pa.py_buffer(file.read(stop - start))

    def stream(self, path: str) -> IO[bytes]:
        return open(path, "rb")

    def random(self, path: str, ranges: Iterable[tuple[int, int]] = ()) -> Any:
        return path

    def plan(self, ranges: Iterable[Range], owner: object) -> None:
        """Do nothing: the system reads ahead."""

    def drop(self, owner: object) -> None:
        """Do nothing: nothing is planned."""

    has_room, bytes_ahead = False, 0

    def local_copy(self, path: str) -> str:
        return path

    def __reduce__(self) -> str:
        return "LOCAL"


LOCAL = LocalFiles()
