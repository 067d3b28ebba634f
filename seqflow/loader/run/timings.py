"""Times of one iteration: of its stages in all threads, of the consumer's steps, and of the windows."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import perf_counter, thread_time
from typing import NamedTuple

STAGES = ("list", "read", "prepare", "plan", "make", "net", "function")
"""Stages in their order: `function` is a Python function `net`; `read` waits for the store and decodes."""
_KEPT = 4096
"""Steps and windows of which single times are kept, the last ones."""
_FIRST, _STEPS, _CALLS, _LONG = 4, 32, 32, 0.003
"""Clocks that cost up to 15 µs are read in the first steps and calls, then in one of so many, and in all calls of a
stage that takes so many seconds."""


def run_queue_delay() -> float:
    """Return the seconds for which this thread could run and had no core; 0 where the system does not tell it."""
    try:
        with open("/proc/thread-self/schedstat", "rb", buffering=0) as file:
            return int(file.read(64).split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


@dataclass(slots=True)
class StageTimes:
    """Times of the calls of one stage, in all threads."""

    calls: int = 0
    """Calls; of `make` and `net` batches."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Processor time of the threads that ran it."""
    sampled_seconds: float = 0.0
    """Part of the seconds in which the run queue was looked at."""
    sampled_delay: float = 0.0

    @property
    def delay_seconds(self) -> float:
        """Seconds for which its threads could run and had no core, estimated from samples."""
        return self.seconds * min(1.0, self.sampled_delay / max(self.sampled_seconds, 1e-9))

    @property
    def waiting_seconds(self) -> float:
        """Seconds in which its threads neither ran nor could run: they waited for a store, or for Python's lock."""
        return max(0.0, self.seconds - self.cpu_seconds - self.delay_seconds)


class Timer:
    """Context that adds the time inside it to a stage; that of a timer inside it counts there alone."""

    __slots__ = ("_cpu", "_delay", "_inside", "_outer", "_stage", "_start", "_times", "calls", "seconds")

    def __init__(self, times: Timings, stage: str, outer: Timer | None) -> None:
        self._times, self._stage, self._outer = times, times.stages[stage], outer
        self.calls, self.seconds = 1, 0.0
        """Number of calls that the time is of, and wall time at its end, all of it."""
        self._inside = 0.0, 0.0

    def __enter__(self) -> Timer:
        calls, seconds = self._stage.calls, self._stage.seconds
        is_sampled = calls < _FIRST or calls % _CALLS == 0 or seconds > _LONG * calls
        self._delay = run_queue_delay() if is_sampled else None
        self._start, self._cpu = perf_counter(), thread_time()
        return self

    def __exit__(self, *exception: object) -> None:
        cpu, self.seconds = thread_time() - self._cpu, perf_counter() - self._start
        delay = None if self._delay is None else run_queue_delay() - self._delay
        stage, own = self._stage, self.seconds - self._inside[0]
        with self._times.lock:
            stage.calls += self.calls
            stage.seconds += own
            stage.cpu_seconds += cpu - self._inside[1]
            if delay is not None:
                stage.sampled_seconds += self.seconds
                stage.sampled_delay += delay
        if self._outer is not None:
            before = self._outer._inside
            self._outer._inside = before[0] + self.seconds, before[1] + cpu


class StepTimes(NamedTuple):
    """Seconds of a step: from one batch to the next."""

    own: float
    """The consumer's own work."""
    wait: float
    """The consumer waited for threads of the loader."""
    helped: float
    """The consumer did work of the loader in place of its threads."""
    function: float
    """Python function `net`, which runs in the consumer's thread."""
    rest: float
    """All other work of the loader in the consumer's thread."""


class WindowTimes(NamedTuple):
    """Bytes and times of a window, in seconds since the beginning."""

    nbytes: int
    tasks: int
    """Number of tasks that read it."""
    asked: float
    ready: float
    needed: float
    waited: float
    """Seconds for which the consumer waited for it, and helped."""

    @property
    def is_late(self) -> bool:
        """Whether it was asked for too late: less than half of its reading was over when it was needed."""
        return self.needed - self.asked < 0.5 * (self.ready - self.asked)


class HelperTimes:
    """Seconds in which the iterating thread waited for other threads, and in which it ran tasks in their place."""

    __slots__ = ("helped", "waited")

    def __init__(self) -> None:
        self.helped = self.waited = 0.0


@dataclass(slots=True, eq=False)
class Timings:
    """Times of one iteration; threads add those of stages, the iterating thread all others."""

    stages: dict[str, StageTimes] = field(default_factory=lambda: {name: StageTimes() for name in STAGES})
    steps: deque[tuple[float, ...]] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """The fields of `StepTimes` of each."""
    windows: deque[WindowTimes] = field(default_factory=lambda: deque(maxlen=_KEPT))
    num_steps: int = 0
    """Batches after the first."""
    sums: list[float] = field(default_factory=lambda: [0.0] * len(StepTimes._fields))
    """Sums of all steps, in the order of `StepTimes`."""
    first_batch: float | None = None
    """Seconds from the beginning to the first batch."""
    num_released: int = 0
    """Windows that no further batch needs."""
    bytes: int = 0
    """Bytes of the windows that were opened."""
    largest: int = 0
    """Bytes of the largest of them."""
    consumer: StageTimes = field(default_factory=StageTimes)
    """Own work of the consumer; only of sampled steps."""
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    helper: HelperTimes = field(default_factory=HelperTimes)
    started: float = 0.0
    each: float = inf
    """Seconds between two calls of `report`, and at the end."""
    report: Callable[[], None] | None = None
    _due: float = inf
    _at: float = 0.0
    """Time at which the last batch was handed out, or the next one requested."""
    _own: float = 0.0
    _before: tuple[float, float, float] = (0.0, 0.0, 0.0)
    _sampled: float | None = None
    """Processor time of the consumer when the last batch was handed out, if this step is sampled."""

    def begin(self, helper: HelperTimes) -> None:
        """Begin an iteration, whose iterating thread waits and helps as `helper` counts."""
        self.helper, self.started = helper, perf_counter()
        self._at, self._due = self.started, self.started + self.each
        self._before = helper.waited, helper.helped, self.stages["function"].seconds

    def time(self, stage: str, outer: Timer | None = None) -> Timer:
        """Return a context whose time is that of a call of the stage, and not of `outer`."""
        return Timer(self, stage, outer)

    def handed_out(self) -> None:
        """Note that a batch is ready for the consumer."""
        # written out: this runs for each batch, of which some take less than 0.1 ms
        now, helper = perf_counter(), self.helper
        before, inside = self._before, (helper.waited, helper.helped, self.stages["function"].seconds)
        self._before = inside
        if self.first_batch is None:
            self.first_batch = now - self.started
        else:
            wait, helped, function = inside[0] - before[0], inside[1] - before[1], inside[2] - before[2]
            own, rest = self._own, max(0.0, now - self._at - wait - helped - function)
            self.steps.append((own, wait, helped, function, rest))
            self.num_steps += 1
            sums = self.sums
            sums[0] += own
            sums[1] += wait
            sums[2] += helped
            sums[3] += function
            sums[4] += rest
        is_sampled = self.num_steps < _FIRST or self.num_steps % _STEPS == 0
        self._sampled = thread_time() if is_sampled else None
        if now > self._due and self.report is not None:
            self._due = now + self.each
            self.report()
        self._at = perf_counter()

    def requested(self) -> None:
        """Note that the consumer requests the next batch."""
        now = perf_counter()
        self._own, self._at = now - self._at, now
        if self._sampled is not None:
            self.consumer.calls += 1
            self.consumer.seconds += self._own
            self.consumer.cpu_seconds += thread_time() - self._sampled

    def add_window(self, nbytes: int, tasks: int, asked: float, ready: float, needed: float) -> None:
        """Add a window that was opened, by its bytes and times of `perf_counter`."""
        since, waited = self.started, perf_counter() - needed
        self.windows.append(WindowTimes(nbytes, tasks, asked - since, ready - since, needed - since, waited))
        self.bytes += nbytes
        self.largest = max(self.largest, nbytes)
