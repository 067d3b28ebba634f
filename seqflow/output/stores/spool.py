"""Spool: a folder of this machine for files of a store, and a thread that makes requests one after another."""

import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from seqflow.errors import JobError
from seqflow.files.interface import Entry
from seqflow.files.writing import LARGEST_PUT, StoreWriter
from seqflow.output.attempt_folders import new_name
from seqflow.output.committed_files import check_sizes, committed_path
from seqflow.output.lock import Lock
from seqflow.output.output_file import OutputFile
from seqflow.output.threads import in_threads

_PREFIX = "seqflow-spool-"
_MOST_WAITING = 4
"""Requests that wait for the thread; each may keep a file in the spool."""


class Spool:
    """A folder in the temporary folder, from `open` to `close`, and a thread for requests to a store.

    `place` returns the URI of a file, and `check` raises an error when another run has taken over. The
    thread makes its requests in the order in which they are given. After the first that fails it makes no more:
    the next call raises the error.
    """

    def __init__(
        self, store: StoreWriter, place: Callable[[OutputFile], str], check: Callable[[], None] = lambda: None
    ) -> None:
        self._store, self._place, self._check = store, place, check
        self.etags: dict[Path, str] = {}
        """Etags of uploaded files by their paths here."""
        self.folder = Path(tempfile.gettempdir()) / f"{_PREFIX}{new_name()}"
        self._lock = Lock(self.folder.with_suffix(".lock"), self.folder)
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()
        self._error: BaseException | None = None
        self._is_told = False

    def open(self) -> None:
        """Create the folder, and remove those of killed processes. Can be called again."""
        if self._lock.is_held:
            return
        for path in self.folder.parent.glob(f"{_PREFIX}*.lock"):
            lock = Lock(path, path.with_suffix(""))
            with suppress(JobError, OSError):  # its process is running, or it belongs to another user
                lock.acquire()
                shutil.rmtree(path.with_suffix(""), ignore_errors=True)
                lock.release()
        self._lock.acquire()
        self.folder.mkdir()

    def later(self, do: Callable[..., object], *arguments: Any) -> None:
        """Let the thread make a request; wait if many are waiting. Raise the error of an earlier one, once."""
        if self._error is not None:
            if self._is_told:
                return  # the run ends by that error, and nothing more can be recorded
            self.wait()
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="seqflow-upload")
        self._waiting.append(self._thread.submit(self._do, do, arguments))
        while len(self._waiting) > _MOST_WAITING:
            self._waiting.popleft().result()

    def wait(self) -> None:
        """Wait until all requests are made; raise the error of the first that failed."""
        while self._waiting:
            self._waiting.popleft().result()
        if self._error is not None:
            self._is_told = True
            raise self._error

    def _do(self, do: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        if self._error is None:
            try:
                do(*arguments)
            except BaseException as error:
                self._error = error

    def upload(self, file: OutputFile, local: Path) -> None:
        """Upload a finished file, which lies at `local`; replace an object that is not equal."""
        if file.nbytes > LARGEST_PUT:
            self._check()  # it would replace a part of a run that has taken over
        uri, sha256 = self._place(file), file.checksums.whole
        made = self._store.upload(uri, local, sha256)
        if made is None:
            self._check()
            made = self._store.upload(uri, local, sha256, replaces=True)
        self.etags[file.path] = "" if made is None else made.version

    def fetch(self, files: Sequence[OutputFile]) -> list[Path]:
        """Return the paths of committed files here, after fetching those of another process."""
        paths = [committed_path(file.path) for file in files]

        def fetch(file: OutputFile) -> None:
            if not (path := committed_path(file.path)).exists():
                self._store.fetch(self._place(file), path)

        in_threads(fetch, files)
        check_sizes(files, paths)
        return paths

    def damaged(self, files: Sequence[OutputFile], there: Iterable[Entry]) -> list[OutputFile]:
        """Return the files whose objects are not `there`, or do not have the size, and the etag or the checksum."""
        entries = {entry.path: entry for entry in there}

        def is_intact(file: OutputFile) -> bool:
            found = entries.get(self._place(file))
            if found is None or found.size != file.nbytes:
                return False
            # equal bytes that were uploaded again have another etag in some stores
            if file.version and found.version == file.version:
                return True
            now = self._store.find(found.path)
            return now is not None and now.sha256 == file.checksums.whole

        intact = in_threads(is_intact, files)
        return [file for file, is_one in zip(files, intact, strict=True) if not is_one]

    def close(self) -> None:
        """Make the waiting requests, and remove the folder."""
        if self._thread is not None:
            self._thread.shutdown()
        if self._lock.is_held:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._lock.release()
