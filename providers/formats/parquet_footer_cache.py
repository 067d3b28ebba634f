"""Cache of footers: as many as fit of those used last, since reading needs them again."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from seqflow.fork_locks import ForkLock

MOST_BYTES = 64 << 20
"""Approximate limit of the bytes of cached footers."""
_GROWTH = 8
"""Approximate bytes in memory for each byte of a footer in the file."""


class FooterCache:
    """Footers of files, by path. Threads may share it; another process starts with an empty one."""

    def __init__(self) -> None:
        self._footers: OrderedDict[str, Any] = OrderedDict()
        self._bytes = 0
        self._lock = ForkLock()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return FooterCache, ()

    def get(self, path: str, read: Callable[[], Any]) -> Any:
        """Return the footer of a file; `read` it if it is not cached."""
        found = self.find(path)
        if found is None:
            # without the lock: threads read different footers at once, and reading one twice does no harm
            found = read()
            self.keep(path, found)
        return found

    def find(self, path: str) -> Any:
        """Return the footer of a file; None if it is not cached."""
        with self._lock:
            found = self._footers.get(path)
            if found is not None:
                self._footers.move_to_end(path)
            return found

    def keep(self, path: str, footer: Any) -> None:
        """Keep a footer, and drop those that were not used for the longest time if there are too many."""
        with self._lock:
            if path not in self._footers:
                self._bytes += footer.serialized_size * _GROWTH
            self._footers[path] = footer
            # the newest stays even if it is larger than the limit: the caller is about to use it
            while self._bytes > MOST_BYTES and len(self._footers) > 1:
                _, oldest = self._footers.popitem(last=False)
                self._bytes -= oldest.serialized_size * _GROWTH
