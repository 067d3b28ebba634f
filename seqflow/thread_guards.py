"""Iterators for one thread at a time."""

from collections.abc import Callable, Generator, Iterator
from functools import wraps
from typing import Any

from seqflow.errors import OpError


class OneAtATime(Iterator[Any]):
    """The items of a generator; a thread that asks for an item while another one does gets an OpError.

    A lock around each item, with which the other thread would wait, took twelve times as long as an item alone.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Generator[Any, None, None]) -> None:
        self._items = items

    def __next__(self) -> Any:
        try:
            return next(self._items)
        except ValueError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
        # this ValueError means that the generator is already running
        raise OpError(
            "next: another thread takes a batch of this iterator, expected one thread at a time\n"
            "  give each thread a loader of its own, such as a rank, or hold a lock around next(batches)"
        )

    def close(self) -> None:
        """End the iteration."""
        self._items.close()


def one_at_a_time(method: Callable[..., Generator[Any, None, None]]) -> Callable[..., OneAtATime]:
    """Make a method return its generator as such an iterator."""
    return wraps(method)(lambda self: OneAtATime(method(self)))
