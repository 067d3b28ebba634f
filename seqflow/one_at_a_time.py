"""Iterators that several threads may share."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import wraps
from threading import RLock
from typing import TypeVar

Item = TypeVar("Item")
Generated = Generator[Item, None, None]


class OneAtATime(Iterator[Item]):
    """An iterator that several threads may share: each item goes to one of them, the others wait for theirs."""

    def __init__(self, items: Generated[Item]) -> None:
        self._items = items
        self._lock = RLock()
        """Not a Lock: a generator that asks itself for its next item should fail, not wait for itself."""

    def __next__(self) -> Item:
        with self._lock:
            return next(self._items)

    def close(self) -> None:
        """End the iteration, once no thread waits for an item."""
        with self._lock:
            self._items.close()


def one_at_a_time(method: Callable[..., Generated[Item]]) -> Callable[..., OneAtATime[Item]]:
    """Let several threads share each iterator that a method makes."""

    @wraps(method)
    def shared(self: object) -> OneAtATime[Item]:
        return OneAtATime(method(self))

    return shared
