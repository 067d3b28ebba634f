"""Workers: threads that run tasks, the urgent ones first."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from seqflow import kernels
from seqflow.errors import OpError

T = TypeVar("T")
SECONDS_TO_END = 5
"""How long Python waits at its end for tasks that have begun."""


class Workers:
    """Threads that run tasks: urgent ones first, else in the order they were given.

    Without threads a task runs when its result is asked for, in the thread that asks. Inside a task kernels run
    on one thread. Where the system refuses threads there are fewer, or none. Closing lets tasks that have begun
    finish, and drops the others; so does the end of Python.
    """

    def __init__(self, count: int) -> None:
        self._urgent: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._tasks: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._process = os.getpid()
        self._threads = self._started(count)
        self.count = len(self._threads)
        _open.add(self)

    def _started(self, count: int) -> list[threading.Thread]:
        """So many threads; fewer, or none, where the system refuses more."""
        threads: list[threading.Thread] = []
        for number in range(count):
            thread = threading.Thread(target=self._work, name=f"seqflow-loader-{number}", daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError):
                break
            threads.append(thread)
        return threads

    def submit(self, task: Callable[[], T], *, urgent: bool = False) -> Task[T]:
        """Run a task on one of the threads."""
        future: Future[T] = Future()
        if not self._threads:
            return Task(future, task)
        with self._changed:
            (self._urgent if urgent else self._tasks).append((future, task))
            self._changed.notify()
        return Task(future, None)

    def help_until(self, done: Callable[[], bool]) -> None:
        """Run tasks that no thread has begun, in the thread that asks, until there are none or it need not wait."""
        while not done():
            try:
                future, task = (self._urgent or self._tasks).popleft()
            except IndexError:  # another thread may have been faster
                return
            with kernels.single_thread():
                _run(future, task)

    def check_process(self) -> None:
        """OpError in a forked child, which has none of the threads."""
        if self._threads and os.getpid() != self._process:
            raise OpError(
                "Loader: this iteration began in another process, whose threads a forked child has not\n"
                "  begin a new one: iter(loader)"
            )

    def close(self) -> None:
        """Drop the tasks that have not begun, and wait for the others. A forked child has nothing to close."""
        if os.getpid() == self._process:
            self.stop()
            self.join(None)

    def stop(self) -> None:
        """Let the threads end after the tasks they are at."""
        with self._changed:
            self._closed = True
            self._urgent.clear()
            self._tasks.clear()
            self._changed.notify_all()

    def join(self, seconds: float | None) -> None:
        for thread in self._threads:
            thread.join(seconds)

    def _work(self) -> None:
        with kernels.single_thread():
            while (entry := self._next()) is not None:
                future, task = entry
                _run(future, task)
                del entry, future, task  # or an idle thread would keep the result

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._urgent or self._tasks)
            if self._closed:
                return None
            return (self._urgent or self._tasks).popleft()


@dataclass(frozen=True, slots=True, eq=False)
class Task(Generic[T]):
    """The result of a task, sooner or later."""

    future: Future[T]
    task: Callable[[], T] | None
    """What is still to be run, by whoever asks for the result; None where threads run it."""

    def done(self) -> bool:
        """Whether asking for the result will not wait for threads."""
        return self.task is not None or self.future.done()

    def result(self) -> T:
        """The result, or the exception of the task."""
        if self.task is not None and not self.future.done():
            with kernels.single_thread():
                _run(self.future, self.task)
        return self.future.result()


def _run(future: Future[T], task: Callable[[], T]) -> None:
    try:
        result = task()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


_open: weakref.WeakSet[Workers] = weakref.WeakSet()


os.register_at_fork(after_in_child=_open.clear)  # a child has none of their threads


@atexit.register
def _close_all() -> None:
    """End all threads while they still can: Python stops those that run at its end wherever they are."""
    workers = list(_open)
    for one in workers:
        one.stop()
    for one in workers:
        one.join(SECONDS_TO_END)
