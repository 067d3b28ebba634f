"""Open readers of files that no thread uses: opening one takes as long as reading a small row group."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from seqflow.files.local import LOCAL
from seqflow.fork_locks import ForkLock

_MOST = 4
"""Number of files that stay open."""


class IdleReaders:
    """The readers that were used last. Each is used by one thread at a time; another process opens its own."""

    def __init__(self) -> None:
        self.idle: list[tuple[Any, Any]] = []
        self._lock = ForkLock(self._forget)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return IdleReaders, ()

    def _forget(self) -> None:
        self.idle = []

    @contextmanager
    def reader(self, path: str, open_file: Callable[[str], Any]) -> Iterator[Any]:
        """Give a reader of a file as it is now; one that was written since is opened again."""
        version = path, LOCAL.entry(path)
        with self._lock:
            at = next((at for at, (known, _) in enumerate(self.idle) if known == version), None)
            reader = None if at is None else self.idle.pop(at)[1]
        reader = open_file(path) if reader is None else reader
        yield reader  # one that failed is not kept
        with self._lock:
            self.idle.append((version, reader))
            del self.idle[:-_MOST]
