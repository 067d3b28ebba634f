"""Entries of files at one version, and the files of this machine: the interface that stores have, too."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

import pyarrow as pa


class Entry(NamedTuple):
    """A file or object at one version."""

    path: str
    size: int
    version: str
    """Etag of an object, or its time of change; for a local file modification time, inode and device."""


Range = tuple[str, int, int]
"""Path, first byte, and the byte after the last one."""


class Files:
    """Files of this machine, through the functions of the system; a store reads its objects by the same methods.

    Threads may share one; a pickle has no open connection. A store keeps the version of each object that was seen
    first: all reads are of that version.
    """

    @property
    def has_room(self) -> bool:
        """Whether more ranges may be planned."""
        return False

    @property
    def bytes_ahead(self) -> int:
        """Bytes that were fetched and not yet read, or are being fetched."""
        return 0

    @property
    def listed(self) -> Iterable[Entry]:
        """Objects of the folders of a store that were listed when a source was opened."""
        return ()

    def version(self, path: str) -> tuple[int, ...] | None:
        """Return size, modification time, inode and device of a file of this machine; None if it does not exist."""
        try:
            found = os.stat(path)
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev

    def entry(self, path: str) -> Entry | None:
        """Return a file at its version; None if it does not exist."""
        found = self.version(path)
        return None if found is None else Entry(path, found[0], "-".join(map(str, found[1:])))

    def look_up(self, paths: Iterable[str]) -> None:
        """Ask for the entries of many objects at one time; the system tells those of files one by one."""

    def pin(self, entry: Entry) -> None:
        """Let all reads of an object be of this version; a file that is written over is noticed by size and time."""

    def cached_as(self, path: str) -> str | None:
        """Return the name of a file in caches, which has the identity of its system; None if no cache may hold it.

        A system without an identity has one for this object and process alone. An object without a version is not
        cached: no one could tell that it has been replaced.
        """
        return os.path.abspath(path)

    def of(self, paths: Iterable[str]) -> "Files":
        """Return the same place for some of its files: a pickle of it has the versions of these alone."""
        return self

    def list(self, folder: str) -> Iterator[Entry]:
        """Yield all files below a folder, sorted by path."""
        paths = (os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names)
        return filter(None, map(self.entry, sorted(paths)))

    def listing(self, folder: str) -> Sequence[Entry]:
        """Return all files below a folder, sorted by path; a store gives them as when a source was opened."""
        return [*self.list(folder)]

    def read(self, path: str, start: int, stop: int) -> pa.Buffer:
        """Return the bytes `start` … `stop - 1` of a file, fewer where it ends; raise ProviderError."""
        with open(path, "rb", buffering=0) as file:
            file.seek(start)
            return pa.py_buffer(file.read(stop - start))

    def stream(self, path: str) -> IO[bytes]:
        """Open a file for reading front to back."""
        return open(path, "rb")

    def random(self, path: str, ranges: Iterable[tuple[int, int]] = ()) -> Any:
        """Open a file for pyarrow; if `ranges` are given, they are fetched together, and nothing else is read."""
        return path

    def plan(self, ranges: Iterable[Range], owner: object) -> None:
        """Fetch ranges of objects that will be read, in this order, while there is room for them."""

    def drop(self, owner: object) -> None:
        """Forget what an owner has planned and not read."""

    def local_copy(self, path: str) -> str:
        """Return the path of a file of this machine that has the same bytes."""
        return path

    def __reduce__(self) -> Any:
        return "LOCAL"


LOCAL = Files()
"""The files of this machine."""
