"""Footers that were read: the last ones are kept, as many as fit, since reading needs them again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from seqflow.providers.fork_locks import ForkLock

MOST_BYTES = 64 << 20
"""Bytes of the footers that are kept, about."""
_GROWTH = 8
"""What a footer takes in memory for each byte in the file, about."""


class FooterCache:
    """The footers of files, by path. Threads may share it; another process begins with an empty one."""

    def __init__(self) -> None:
        self._footers: OrderedDict[str, Any] = OrderedDict()
        self._bytes = 0
        self._lock = ForkLock()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return FooterCache, ()

    def get(self, path: str, read: Callable[[], Any]) -> Any:
        """Return the footer of a file, which is read where it is not kept."""
        with self._lock:
            found = self._footers.get(path)
            if found is not None:
                self._footers.move_to_end(path)
                return found
        found = read()
        self.keep(path, found)
        return found

    def keep(self, path: str, footer: Any) -> None:
        """Keep a footer, in the place of those that were not needed for the longest time."""
        with self._lock:
            if path not in self._footers:
                self._bytes += footer.serialized_size * _GROWTH
            self._footers[path] = footer
            while self._bytes > MOST_BYTES and len(self._footers) > 1:
                _, oldest = self._footers.popitem(last=False)
                self._bytes -= oldest.serialized_size * _GROWTH
