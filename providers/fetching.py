"""Fetch the bytes of coming blocks from a store before they are read."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from seqflow.files.interface import Files, Range

T = TypeVar("T", bound=Hashable)
_MOST_ITEMS = 64
"""Items whose blocks are fetched ahead: those of small blocks do not fill the room that there is."""


class FetchAhead(Generic[T]):
    """Items in the order of their use; while one is used, the store fetches the blocks of the next ones.

    Each item must be told as `done`, so that what it did not read is forgotten.
    """

    def __init__(
        self, store: Files, items: Iterable[T], ranges_of: Callable[[T], Iterable[Iterable[Range]]]
    ) -> None:
        self._store, self._items, self._ranges_of = store, iter(items), ranges_of
        self._looked: deque[T] = deque()
        self._owners: dict[T, object] = {}

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        self.look()
        return self._looked.popleft() if self._looked else next(self._items)

    def look(self) -> None:
        """Plan to fetch the blocks of further items, as far as there is room."""
        while self._store.has_room and len(self._looked) < _MOST_ITEMS:
            for item in self._items:
                self._looked.append(item)
                self._plan(item)
                break
            else:
                return

    def begin(self, item: T) -> None:
        """Fetch the blocks of an item that is used now."""
        if item in self._looked:
            self._looked.remove(item)
        if item not in self._owners:  # also without room: its blocks wait for it in the order of their use
            self._plan(item)

    def done(self, item: T) -> None:
        """Forget what is left of an item."""
        if (owner := self._owners.pop(item, None)) is not None:
            self._store.drop(owner)

    def each(self) -> Iterator[T]:
        """Yield all items, each until the next one is asked for."""
        try:
            for item in self:
                yield item
                self.done(item)
        finally:
            self.close()

    def close(self) -> None:
        """Forget all items."""
        self._items = iter(())
        self._looked.clear()
        for item in list(self._owners):
            self.done(item)

    def _plan(self, item: T) -> None:
        owner = self._owners[item] = object()
        self._store.plan(chain.from_iterable(self._ranges_of(item)), owner)
