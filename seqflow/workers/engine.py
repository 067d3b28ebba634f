"""Engine and its settings: runs tasks in other processes; `in_order` yields the results in order, even if workers
die.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import Any, Generic, Literal, Protocol, TypeVar

from seqflow.arguments import ByteSize, Count
from seqflow.errors import JobError


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Settings of the workers that make the parts of a job; they do not change its output."""

    kind: Literal["local", "ray"] = "local"
    """Processes of this machine, or tasks of a Ray cluster."""
    workers: Count | None = None
    """Number of processes that make parts at once, of this machine or as tasks of Ray. None: this process alone, with
    threads; with Ray as many as its cluster has CPUs for."""
    address: str | None = None
    """Ray's cluster: "host:6379" or "ray://host:10001"; "auto" joins the one on this machine, "local" starts one.
    None uses RAY_ADDRESS if it is set, otherwise it starts one."""
    cpus: Count = 1
    """Number of CPUs, and of threads, of each worker."""
    memory: ByteSize | None = None
    """Bytes that Ray reserves for each worker; None reserves none."""

    @property
    def has_workers(self) -> bool:
        """Whether other processes make the parts."""
        return self.kind == "ray" or self.workers is not None


MOST_ATTEMPTS = 6
"""Number of times a task is started whose worker dies; then the run fails."""
_AHEAD = 4
"""Most results that wait for an earlier one, as a multiple of the tasks that run at once."""
_SLOW, SLOW_SECONDS = 4.0, 10.0
"""A task that has run this many times the median and this many seconds is started a second time."""
SHARE = 20
"""One in this many workers may run a second copy of a slow task while other tasks wait."""
POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A task that has ended: it returned a result, it raised an error, or its worker died."""

    number: int
    result: Any = None
    error: BaseException | None = None
    died: str = ""
    """How the worker died; empty if it survived the task."""
    seconds: float = 0.0
    """Running time of the task."""


class Engine(Protocol):
    """Workers, each a process with the function of the run. Closing the engine ends them all."""

    workers: int
    """Number of tasks that run at once."""

    def submit(self, number: int, task: Any) -> None:
        """Run a task in a worker; the same task may be submitted again."""
        ...

    def forget(self, number: int) -> None:
        """Do not start a task that still waits: its result has arrived."""
        ...

    def wait(self, seconds: float) -> list[Ended]:
        """Return the tasks that have ended since the last call; wait for one, at most `seconds`."""
        ...


T = TypeVar("T")


@dataclass(slots=True)
class _Running(Generic[T]):
    task: T
    started: float
    attempts: int = 1
    twice: bool = False
    """Whether a second copy was started because this one is slow."""


@dataclass(slots=True)
class _Tasks(Generic[T]):
    """The tasks of one run: running ones, ended ones that wait for their turn, and the iterator of new ones."""

    engine: Engine
    tasks: Iterator[T]
    name: Callable[[T], str]
    running: dict[int, _Running[T]] = field(default_factory=dict)
    ended: dict[int, tuple[T, Ended]] = field(default_factory=dict)
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=99))
    submitted: int = 0
    looked: float = 0.0
    """Time of the last search for slow tasks."""
    is_failing: bool = False
    """Whether an error waits for its turn; no new task is started then."""

    def submit(self) -> None:
        """Start as many tasks as should be running or waiting."""
        # more than there are workers: a worker that ends a task finds the next one waiting
        on_the_way = 2 * self.engine.workers + 1
        while (
            not self.is_failing
            and len(self.running) < on_the_way
            and len(self.running) + len(self.ended) < _AHEAD * on_the_way
        ):
            try:
                task = next(self.tasks)
            except StopIteration:
                break
            self.running[self.submitted] = _Running(task, monotonic())
            self.engine.submit(self.submitted, task)
            self.submitted += 1

    def wait(self) -> None:
        """Wait until a task has ended; start tasks whose worker has died again."""
        for one in self.engine.wait(POLL_SECONDS):
            running = self.running.get(one.number)
            if running is None:  # the other copy of a slow task has ended first
                continue
            if one.died:
                self._again(one, running)
                continue
            if running.twice:
                self.engine.forget(one.number)
            del self.running[one.number]
            self.seconds.append(one.seconds)
            self.ended[one.number] = running.task, one
            self.is_failing = self.is_failing or one.error is not None
        self._repeat_slow()

    def _again(self, one: Ended, running: _Running[T]) -> None:
        """Start a task again whose worker has died; record an error after `MOST_ATTEMPTS`."""
        if running.twice:  # the other copy is still running
            running.twice = False
            return
        if running.attempts < MOST_ATTEMPTS:
            running.attempts += 1
            running.started = monotonic()
            self.engine.submit(one.number, running.task)
            return
        del self.running[one.number]
        error = JobError(
            f"engine: {self.name(running.task)}: its worker has died {MOST_ATTEMPTS} times: {one.died}\n"
            "  a worker that runs out of memory dies like this: give it more, or lower part_bytes and window"
        )
        self.ended[one.number] = running.task, Ended(one.number, error=error)
        self.is_failing = True

    def _repeat_slow(self) -> None:
        """Start slow tasks a second time: on idle workers, and always on a few."""
        now = monotonic()
        if not self.seconds or now < self.looked + POLL_SECONDS:
            return
        self.looked = now
        twice = sum(one.twice for one in self.running.values())
        workers = self.engine.workers
        most = max(workers - len(self.running), workers // SHARE) - twice
        usual = median(self.seconds)
        # `started` is the time of submission: the task has waited for a worker about as long as one task runs
        since = now - usual - max(SLOW_SECONDS, _SLOW * usual)
        slow = (
            (one.started, of) for of, one in self.running.items() if one.started < since and not one.twice
        )
        for _, number in sorted(slow)[: max(0, most)]:
            self.running[number].twice = True
            self.engine.submit(number, self.running[number].task)


def in_order(engine: Engine, tasks: Iterable[T], name: Callable[[T], str]) -> Iterator[tuple[T, Any]]:
    """Yield each task and its result, in the order of the tasks; `name` names a task in errors.

    If a task raises an error, the run ends with it when the task has its turn: the error is the same for any number
    of workers. A task whose worker dies is started again, at most `MOST_ATTEMPTS` times in all. The number of running
    tasks and of waiting results is bounded.
    """
    all_of = _Tasks(engine, iter(tasks), name)
    turn = 0
    while True:
        all_of.submit()
        while turn not in all_of.ended:
            if turn not in all_of.running:
                return
            all_of.wait()
            all_of.submit()
        task, ended = all_of.ended.pop(turn)
        if ended.error is not None:
            raise ended.error
        turn += 1
        yield task, ended.result
