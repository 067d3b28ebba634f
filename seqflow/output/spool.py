"""Spool: a folder of this machine whose finished files a thread uploads to a store, one after another."""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from seqflow.errors import JobError
from seqflow.output.attempt_folders import new_name
from seqflow.output.lock import Lock

_PREFIX = "seqflow-spool-"
_MOST_WAITING = 4
"""Requests that wait for the thread; each may keep a file in the spool."""


class Spool:
    """A folder in the temporary folder, from `open` to `close`, and a thread for requests to a store.

    The thread makes its requests in the order in which they are given. After the first that fails it makes no more:
    the next call raises the error.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.gettempdir()) / f"{_PREFIX}{new_name()}"
        self._lock = Lock(self.folder.with_suffix(".lock"), self.folder)
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()
        self._error: BaseException | None = None
        self._is_told = False

    @property
    def has_failed(self) -> bool:
        return self._error is not None

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

    def close(self) -> None:
        """Make the waiting requests, and remove the folder."""
        if self._thread is not None:
            self._thread.shutdown()
        if self._lock.is_held:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._lock.release()
