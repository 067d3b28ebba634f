"""QuarantineCopy: a quarantine file in a store, of which this machine has the pieces that it writes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from seqflow.files.store import StoreFiles
from seqflow.files.uris import join
from seqflow.files.writing import StoreWriter
from seqflow.output.committed_files import committed_path
from seqflow.output.output_file import OutputFile, checksum_of
from seqflow.output.overwriting import normal
from seqflow.output.stores.spool import Spool


class QuarantineCopy:
    """Objects of a quarantine file: the file, and until the end of a job its pieces under a hidden prefix next to it.

    No lock keeps other runs from writing the file: the last one that ends has it.
    """

    def __init__(self, uri: str, options: Mapping[str, Any] | None) -> None:
        self._uri, self._files = normal(uri), StoreFiles(options)
        above, _, name = self._uri.rpartition("/")
        self._hidden = f"{above}/.{name}"
        self._store = StoreWriter(self._files)
        self._spool = Spool(self._store, self._place)
        self.path = self._spool.folder / name

    def _place(self, file: OutputFile) -> str:
        return self._uri if file.path == self.path else join(self._hidden, file.path.name)

    @property
    def exists(self) -> bool:
        """Whether there is a file of this or an earlier run."""
        return self._store.find(self._uri) is not None

    def opened(self) -> pa.NativeFile:
        """Open the file of an earlier run."""
        return self._files.random(self._uri)

    def pieces(self) -> Iterator[pa.NativeFile]:
        """Open the pieces of this or an earlier run, one after another."""
        return (self._files.random(entry.path) for entry in self._store.list(self._hidden))

    def open(self) -> None:
        """Make the folder for pieces."""
        self._spool.open()

    def keep(self, piece: OutputFile) -> None:
        """Upload a committed piece."""
        self._spool.upload(piece, committed_path(piece.path))

    def fetch_former(self) -> None:
        """Fetch the file of earlier runs."""
        self.open()
        if self.exists:
            self._store.fetch(self._uri, self.path)

    def fetch(self, pieces: Sequence[OutputFile]) -> None:
        """Fetch pieces that another process has written."""
        self.open()
        self._spool.fetch(pieces)

    def damaged(self, pieces: Sequence[OutputFile]) -> list[OutputFile]:
        return self._spool.damaged(pieces, self._store.list(self._hidden))

    def is_at(self, joined: Mapping[str, Any]) -> bool:
        """Return whether the file is the one of a noted entry."""
        found = self._store.find(self._uri)
        return found is not None and (found.size, found.sha256) == (joined["bytes"], joined.get("sha256"))

    def publish(self) -> None:
        """Upload the file as it is here, or remove the one of an earlier run if there is none."""
        if self.path.exists():
            self._store.upload(self._uri, self.path, checksum_of(self.path), replaces=True)
        else:
            self._store.delete([self._uri])

    def remove_pieces(self) -> None:
        """Remove the pieces, which the file has; a run that was killed may have left them."""
        self._store.delete(entry.path for entry in self._store.list(self._hidden))

    def close(self) -> None:
        self._spool.close()
