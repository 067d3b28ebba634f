"""StoreAttempts: objects in which workers leave files for a driver with whom they share only a store."""

from dataclasses import dataclass, replace
from pathlib import Path

from seqflow.files.uris import join
from seqflow.files.writing import LARGEST_PUT, StoreWriter
from seqflow.output.output_file import OutputFile
from seqflow.output.stores.progress_log import ProgressLog
from seqflow.output.stores.spool import Spool


@dataclass(frozen=True, slots=True)
class StoreAttempts:
    """The prefix of an output, for the workers of one run. A part gets its final name, other files hidden ones.

    A worker cannot know how many files earlier parts have, so the name may turn out to be that of another part. Then,
    and when another object has the name already, the driver moves the file. Nothing is replaced here.
    """

    root: str
    folder: str
    """Name of the prefix for hidden files, below the root."""
    store: StoreWriter
    log: ProgressLog
    """Log of the run: workers check that no other run has taken over."""

    def open_spool(self) -> Spool:
        """Make a folder of this machine for files that are not uploaded yet."""
        spool = Spool(self.store, lambda file: join(self.root, file.stored))
        spool.open()
        return spool

    def send(self, file: OutputFile, name: str | None = None) -> OutputFile:
        """Upload a finished file, under this name or a hidden one, and remove it here; return it with the name."""
        hidden = f"{self.folder}/{file.path.name}"
        stored = hidden if name is None or self._is_taken(file, name) else name
        made = self.store.upload(join(self.root, stored), file.path, file.checksums.whole)
        if made is None:
            stored = hidden
            made = self.store.upload(join(self.root, stored), file.path, file.checksums.whole)
        file.path.unlink()
        return replace(file, stored=stored, version="" if made is None else made.version)

    def _is_taken(self, file: OutputFile, name: str) -> bool:
        """Whether an upload, which the store would not refuse, might replace what is not an equal file."""
        uri = join(self.root, name)
        if self.store.refuses and file.nbytes <= LARGEST_PUT:
            return False
        there = self.store.find(uri)
        is_other = there is not None and there.sha256 != file.checksums.whole
        return is_other or not self.log.is_last()

    def fetch(self, file: OutputFile, folder: Path) -> OutputFile:
        """Fetch a hidden file into a folder of this machine."""
        path = folder / Path(file.stored).name
        self.store.fetch(join(self.root, file.stored), path)
        return replace(file, path=path, stored="")
