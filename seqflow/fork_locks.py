"""Locks that a forked child finds free: the threads that held them do not exist there."""

import os
import weakref
from collections.abc import Callable
from threading import Lock
from typing import Any


class ForkLock:
    """A lock that a forked child finds free; `forked` is called there first, to drop a half-done change."""

    def __init__(self, forked: Callable[[], None] | None = None) -> None:
        self._lock = Lock()
        self._forked = None if forked is None else weakref.WeakMethod(forked)
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def _renew(self) -> None:
        self._lock = Lock()
        forked = None if self._forked is None else self._forked()
        if forked is not None:
            forked()


_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock._renew()


def call_in_child(function: Callable[[], object]) -> None:
    """Call a function in each forked child from now on; Windows has none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


call_in_child(_renew_all)
