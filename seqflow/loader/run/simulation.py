"""Time of a step with other threads or memory: the loader's policy in virtual time."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

_MOST_WINDOWS, _MOST_BATCHES, _IN_TASK = 64, 3000, 8
"""Bounds of one simulation, and the most batches that are made in one task."""


@dataclass(frozen=True, slots=True)
class Work:
    """Work of an iteration, in seconds without waiting for a core."""

    windows: int
    batches: float
    """Batches of a window."""
    tasks: int
    """Tasks that read a window."""
    opening: float
    """Seconds to read, prepare and plan a window."""
    making: float
    """Seconds to make a batch."""
    own: float
    """Seconds of the consumer's thread for each batch: its own work and a Python function."""


class _Task:
    """Work of one thread: when it was asked for, how long it takes, and its end once a thread has begun it."""

    __slots__ = ("asked", "end", "seconds")

    def __init__(self, asked: float, seconds: float) -> None:
        self.asked, self.seconds = asked, seconds
        self.end: float | None = None


class _Clock:
    """The threads and the iterating thread, whose time is `now`; urgent tasks are run first."""

    def __init__(self, threads: int) -> None:
        self.now, self._free = 0.0, [0.0] * threads
        self._urgent: deque[_Task] = deque()
        self._tasks: deque[_Task] = deque()

    def submit(self, seconds: float, *, urgent: bool = False) -> _Task:
        task = _Task(self.now, seconds)
        (self._urgent if urgent else self._tasks).append(task)
        return task

    def work(self, seconds: float) -> None:
        """Let time pass in which the iterating thread does not help."""
        self.now += seconds
        while self._free and (queue := self._urgent or self._tasks):
            thread = min(range(len(self._free)), key=self._free.__getitem__)
            if (start := max(self._free[thread], queue[0].asked)) > self.now:
                return
            task = queue.popleft()
            self._free[thread] = task.end = start + task.seconds

    def wait(self, tasks: list[_Task]) -> None:
        """Wait for tasks: run others that no thread has begun, then let time pass."""
        while True:
            self.work(0.0)
            if all(task.end is not None and task.end <= self.now for task in tasks):
                return
            if queue := self._urgent or self._tasks:
                task = queue.popleft()
                self.work(task.seconds)
                task.end = self.now
            else:
                self.work(max(task.end or 0.0 for task in tasks) - self.now)


def simulate(work: Work, threads: int, room: int) -> float:
    """Return the seconds of a step, from the first batch on, if memory has room for so many windows."""
    windows = max(1, min(work.windows, _MOST_WINDOWS))
    # batches of a large window are simulated several at a time
    of = max(1, round(work.batches))
    together = max(1, -(-windows * of // _MOST_BATCHES))
    count, scale = max(1, of // together), work.batches / max(1, of // together)
    clock, opened = _Clock(threads), dict[int, list[_Task]]()
    ahead: deque[tuple[_Task, list[int]]] = deque()
    released, following, total = 0, 0, windows * count

    def open_window(window: int) -> None:
        opened[window] = [clock.submit(work.opening / work.tasks) for _ in range(work.tasks)]

    def is_open(window: int) -> bool:
        return window in opened and all(
            one.end is not None and one.end <= clock.now for one in opened[window]
        )

    def fill() -> None:
        while (
            threads and len(opened) < windows and (len(opened) - released < room or len(opened) == released)
        ):
            open_window(len(opened))

    def make_ahead(is_needed: Callable[[], bool]) -> None:
        nonlocal following
        clock.work(0.0)
        fill()
        while len(ahead) <= threads and following < total:
            window = following // count
            if not is_open(window):
                if not is_needed():
                    return
                if window not in opened:
                    open_window(window)
                clock.wait(opened[window])
            batches = [following]
            most = 1 if following == 0 else max(1, _IN_TASK // together)
            while len(batches) < most and batches[-1] + 1 < total and is_open((batches[-1] + 1) // count):
                batches.append(batches[-1] + 1)
            following = batches[-1] + 1
            ahead.append((clock.submit(work.making * scale * len(batches), urgent=True), batches))

    first = None
    while following < total or ahead:
        make_ahead(lambda: not ahead)
        task, batches = ahead.popleft()
        clock.wait([task])
        for batch in batches:
            first = clock.now if first is None else first
            released = batch // count  # the windows before that of a batch are released when it is handed out
            clock.work(work.own * scale)
            make_ahead(lambda: False)
    steps = max(1.0, windows * work.batches - 1)
    return (clock.now - (first or 0.0) - work.own * scale) / steps
