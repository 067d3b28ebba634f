"""Open readers of files that no thread uses: opening one takes as long as reading a small row group."""

from collections.abc import Callable
from typing import Any

from seqflow.files.interface import LOCAL
from seqflow.fork_locks import ForkLock

_MOST = 4
"""Number of files that stay open."""


class IdleReaders:
    """The readers that were used last. Each is used by one thread at a time; another process opens its own."""

    def __init__(self) -> None:
        self.idle: dict[Any, list[Any]] = {}
        self._lock = ForkLock(self._forget)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return IdleReaders, ()

    def _forget(self) -> None:
        self.idle = {}

    def reader(self, path: str, open_file: Callable[[str], Any]) -> "_InUse":
        """Give a reader of a file as it is now; one that was written since is opened again."""
        version = path, LOCAL.version(path)
        try:  # without the lock, since taking one out is one step: this is a part of the time of a small row group
            reader = self.idle[version].pop()
        except LookupError:
            reader = open_file(path)
        return _InUse(self, version, reader)

    def keep(self, version: Any, reader: Any) -> None:
        """Keep a reader that is not in use any more."""
        readers = self.idle.get(version)
        if readers is None:
            with self._lock:
                readers = self.idle.setdefault(version, [])
                for oldest in list(self.idle)[:-_MOST]:
                    del self.idle[oldest]
        readers.append(reader)


class _InUse:
    """Context of the use of a reader; a generator takes twice as long. A reader that failed is not kept."""

    def __init__(self, *of: Any) -> None:
        self._readers, self._version, self._reader = of

    def __enter__(self) -> Any:
        return self._reader

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._readers.keep(self._version, self._reader)
