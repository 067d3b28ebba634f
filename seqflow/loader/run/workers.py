"""Prefetching: the bounds of reading and making ahead, and the threads that run the tasks, urgent ones first."""

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

from seqflow import kernels
from seqflow.byte_sizes import format_bytes, parse_bytes
from seqflow.errors import OpError
from seqflow.fork_locks import call_in_child
from seqflow.loader.run.timings import HelperTimes, run_queue_delay
from seqflow.output import MAX_THREADS


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Bounds of reading windows, and making batches, ahead of the consumer. It changes no batch.

        sf.Loader(path, prefetch=sf.Prefetch(threads=2, memory="1 GiB"))

    `threads` read and make batches; the default is one less than the cores, from 1 to 4, because the
    iterating thread helps while it waits; with 0 that thread does everything. `memory` bounds the bytes of
    windows read ahead and in use (default: three windows and one for each thread, at least four). With
    `reuse`, a batch is valid until the next one is requested, which may use its memory.

    Args:
        threads: Number of threads that read and make batches (default: one less than the cores, from 1 to 4);
            0: the iterating thread.
        memory: Bytes of windows read ahead and in use, a number or a text (default: three
            windows and one for each thread, at least four).
        reuse: Whether the next batch may use the memory of this one.

    Raise OpError when `threads` is not a number of threads, or `memory` is not a number of bytes.
    """

    threads: int = None  # type: ignore[assignment]
    memory: int | str | None = None
    reuse: bool = False

    def __post_init__(self) -> None:
        threads: object = self.threads
        if threads is None:
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            threads = max(1, min(4, cores - 1))
        if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads <= MAX_THREADS:
            raise OpError(f"Prefetch: threads is {threads!r}, expected an integer, 0 to {MAX_THREADS}")
        object.__setattr__(self, "threads", threads)
        if self.memory is not None:
            object.__setattr__(self, "memory", byte_count("Prefetch: memory", self.memory))

    def bytes_for(self, window: int, streams: int) -> int:
        """Return the bytes of windows of this size that may be in memory; raise OpError when one window does
        not fit.
        """
        if self.memory is None:
            # fewer than a window for each thread leave threads without work while reading waits for a store
            return window * max(4, self.threads + 3, streams + 2)
        assert isinstance(self.memory, int)  # since it was checked
        if window > self.memory:
            raise OpError(
                f"Loader: window is {format_bytes(window)}, expected no more than memory, "
                f"{format_bytes(self.memory)}"
            )
        return self.memory


def byte_count(what: str, size: int | str) -> int:
    """Return the bytes of a number or a text such as "64 MiB"."""
    try:
        return parse_bytes(size)
    except ValueError as error:
        raise OpError(f"{what}: {error}") from None


T = TypeVar("T")
SECONDS_TO_END = 5
"""Longest time for which Python waits at its end for tasks that have begun."""


class Workers:
    """Threads that run tasks: urgent ones first, otherwise in the order they were given.

    Without threads, tasks run in the thread that requests a result, when it does. Inside a task, kernels run on
    one thread. If the system refuses threads there are fewer, or none. Closing lets tasks that have begun
    finish, and drops the others; the end of Python does the same.
    """

    def __init__(self, count: int) -> None:
        self._urgent: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._tasks: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self.times = HelperTimes()
        """Times of the thread that requests results."""
        self._process = os.getpid()
        self._threads = self._started(count)
        self.count = len(self._threads)
        _open.add(self)

    def _started(self, count: int) -> list[threading.Thread]:
        """Return so many threads; fewer, or none, if the system refuses more."""
        threads: list[threading.Thread] = []
        for number in range(count):
            # daemon: an iteration that was never closed must not keep the process from ending
            thread = threading.Thread(target=self._work, name=f"seqflow-loader-{number}", daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError):
                break
            threads.append(thread)
        return threads

    def submit(self, task: Callable[[], T], *, urgent: bool = False) -> Future[T]:
        """Run a task on one of the threads; without threads it waits for `help_until`."""
        future: Future[T] = Future()
        # appending to a deque and taking from it are atomic; the lock only wakes a thread
        (self._urgent if urgent else self._tasks).append((future, task))
        if self._threads:
            with self._changed:
                self._changed.notify()
        return future

    def help_until(self, done: Callable[[], bool]) -> None:
        """Run tasks that no thread has begun, in the calling thread, until there are none or it need not wait."""
        while not done():
            try:
                future, task = (self._urgent or self._tasks).popleft()
            except IndexError:  # another thread may have been faster
                return
            started = perf_counter()
            with kernels.single_thread():
                _run(future, task)
            self.times.helped += perf_counter() - started

    def result(self, future: Future[T]) -> T:
        """Return the result of a task, or its exception."""
        self.help_until(future.done)
        return self.wait(future)

    def wait(self, future: Future[T]) -> T:
        """Return the result of a task that a thread runs, or its exception."""
        if future.done():
            return future.result()
        started, delay = perf_counter(), run_queue_delay()
        try:
            return future.result()
        finally:
            # without the time in which the result was there, and this thread had no core
            delay = run_queue_delay() - delay
            self.times.waited += max(0.0, perf_counter() - started - delay)

    def check_process(self) -> None:
        """Raise OpError in a forked child, which has none of the threads."""
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
        """Let the threads end after their current tasks."""
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
            while True:
                self._changed.wait_for(lambda: self._closed or self._urgent or self._tasks)
                if self._closed:
                    return None
                try:
                    return (self._urgent or self._tasks).popleft()
                except IndexError:  # the thread that asks for a result was faster
                    continue


def _run(future: Future[T], task: Callable[[], T]) -> None:
    try:
        result = task()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


_open: weakref.WeakSet[Workers] = weakref.WeakSet()


call_in_child(_open.clear)  # it has none of their threads


@atexit.register
def _close_all() -> None:
    """End all threads while they still can end: at its exit Python stops running threads at any point."""
    # stop all before joining any, so that all end during the first wait
    workers = list(_open)
    for one in workers:
        one.stop()
    for one in workers:
        one.join(SECONDS_TO_END)
