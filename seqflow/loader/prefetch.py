"""Prefetch: run an iterator ahead in a thread, bounded in bytes."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator
from time import perf_counter
from typing import Any, Generic, TypeVar

T = TypeVar("T")
SECONDS_TO_END = 5
"""How long Python waits at its end for a thread that is in the middle of an item."""


class Prefetch(Generic[T]):
    """Runs an iterator in a thread of its own, at most `limit` bytes ahead of whoever iterates.

    An item counts from its creation until the consumer asks for the next one. One item is always let through, however
    large. An exception in the thread is raised in the consumer, after the items before it. Leaving the loop stops
    the thread, and so does the end of Python, for a loop that was never left.
    """

    def __init__(self, items: Iterator[T], size: Callable[[T], int], limit: int) -> None:
        self._items = items
        self._size = size
        self._limit = limit
        self._ready: deque[tuple[T, int]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._finished = False
        self._error: BaseException | None = None
        self.bytes_in_flight = 0
        self.seconds_waiting = 0.0

    def __iter__(self) -> Generator[T, None, None]:
        thread = threading.Thread(target=self._work, name="seqflow-prefetch", daemon=True)
        thread.start()
        _open[self] = thread
        try:
            while (entry := self._take()) is not None:
                item, size = entry
                del entry
                yield item
                del item
                with self._changed:
                    self.bytes_in_flight -= size
                    self._changed.notify_all()
        finally:
            self._close()
            thread.join()
        if self._error is not None:
            raise self._error

    def _close(self) -> None:
        """Let the thread end after its present item."""
        with self._changed:
            self._closed = True
            self._ready.clear()
            self._changed.notify_all()

    def _take(self) -> tuple[T, int] | None:
        started = perf_counter()
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._finished)
            self.seconds_waiting += perf_counter() - started
            return self._ready.popleft() if self._ready else None

    def _work(self) -> None:
        try:
            for item in self._items:
                if not self._put(item, self._size(item)):
                    break
                del item
        except BaseException as error:
            self._error = error
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()
            with self._changed:
                self._finished = True
                self._changed.notify_all()

    def _put(self, item: T, size: int) -> bool:
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or not self.bytes_in_flight or self.bytes_in_flight + size <= self._limit
            )
            if self._closed:
                return False
            self.bytes_in_flight += size
            self._ready.append((item, size))
            self._changed.notify_all()
            return True


_open: weakref.WeakKeyDictionary[Prefetch[Any], threading.Thread] = weakref.WeakKeyDictionary()
"""The thread of each loop that was begun."""


os.register_at_fork(after_in_child=_open.clear)  # a child has none of them


@atexit.register
def _close_all() -> None:
    """End all threads while they still can: Python stops those that run at its end wherever they are."""
    threads = dict(_open)
    for prefetch in threads:
        prefetch._close()
    for thread in threads.values():
        thread.join(SECONDS_TO_END)
