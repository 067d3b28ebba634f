"""Engine and its settings: runs tasks in other processes; `in_order` has their results in order, whatever dies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import Any, Generic, Literal, Protocol, TypeVar

from seqflow.errors import JobError


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Who runs the parts of a job: it changes nothing of its output."""

    kind: Literal["local", "ray"] = "local"
    """Processes of this machine, or tasks of a Ray cluster."""
    workers: int | None = None
    """Processes that run parts at once: of this machine, or tasks of Ray. None is no process but this one, with
    threads; with Ray as many as its cluster has CPUs for."""
    address: str | None = None
    """Ray's cluster: "host:6379" or "ray://host:10001"; "auto" joins the one that runs here, "local" starts one. None
    takes RAY_ADDRESS, and else starts one."""
    cpus: int = 1
    """CPUs of each worker; it has as many threads."""
    memory: int | str | None = None
    """Bytes that Ray keeps free for each worker; None asks for none."""

    @property
    def has_workers(self) -> bool:
        """Whether other processes run the parts."""
        return self.kind == "ray" or self.workers is not None


MOST_ATTEMPTS = 6
"""How often a task is started that its worker does not survive."""
_AHEAD = 4
"""Results that wait for an earlier one, at most, as a multiple of the tasks that run at once."""
_SLOW, SLOW_SECONDS = 4.0, 10.0
"""A task that runs longer than so many times the median, and so many seconds, is started a second time."""
SHARE = 20
"""One of so many workers may be at such a second time while there are other tasks."""
POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A task that has ended: with a result, an error of its own, or with its worker."""

    number: int
    result: Any = None
    error: BaseException | None = None
    died: str = ""
    """What became of the worker, where it did not survive the task."""
    seconds: float = 0.0
    """For which it ran."""


class Engine(Protocol):
    """Workers, each a process with the function of the run. Closing it ends them all."""

    workers: int
    """How many tasks run at once."""

    def submit(self, number: int, task: Any) -> None:
        """Have a task run; the same may be submitted again."""
        ...

    def forget(self, number: int) -> None:
        """Do not begin a task that has not begun: its result is there."""
        ...

    def wait(self, seconds: float) -> list[Ended]:
        """The tasks that have ended since; waits for one, up to some seconds."""
        ...


T = TypeVar("T")


@dataclass(slots=True)
class _Running(Generic[T]):
    task: T
    started: float
    attempts: int = 1
    twice: bool = False
    """Whether a second one was started because this one is slow."""


@dataclass(slots=True)
class _Tasks(Generic[T]):
    """The tasks of one run: those that run, those that have ended too early, and the next in order."""

    engine: Engine
    tasks: Iterator[T]
    name: Callable[[T], str]
    running: dict[int, _Running[T]] = field(default_factory=dict)
    ended: dict[int, tuple[T, Ended]] = field(default_factory=dict)
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=99))
    submitted: int = 0
    looked: float = 0.0
    """When slow tasks were looked for."""
    is_failing: bool = False
    """Whether an error waits for its turn: nothing new is begun then."""

    def submit(self) -> None:
        """Begin tasks, as many as should be on the way."""
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
        """Wait until something has ended; tasks whose worker has died are begun again."""
        for one in self.engine.wait(POLL_SECONDS):
            running = self.running.get(one.number)
            if running is None:  # the other of two has ended before
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
        """Begin a task again whose worker has died; an error where that happens each time."""
        if running.twice:  # the other one goes on
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
            "  a worker that needs more memory than there is ends so: give it more, or lower part_bytes and window"
        )
        self.ended[one.number] = running.task, Ended(one.number, error=error)
        self.is_failing = True

    def _repeat_slow(self) -> None:
        """Start slow tasks a second time: a few at any time, and as many as workers have nothing else to do."""
        now = monotonic()
        if not self.seconds or now < self.looked + POLL_SECONDS:
            return
        self.looked = now
        twice = sum(one.twice for one in self.running.values())
        workers = self.engine.workers
        most = max(workers - len(self.running), workers // SHARE) - twice
        usual = median(self.seconds)
        # it has waited for a worker first, for about as long as one task runs
        since = now - usual - max(SLOW_SECONDS, _SLOW * usual)
        slow = (
            (one.started, of) for of, one in self.running.items() if one.started < since and not one.twice
        )
        for _, number in sorted(slow)[: max(0, most)]:
            self.running[number].twice = True
            self.engine.submit(number, self.running[number].task)


def in_order(engine: Engine, tasks: Iterable[T], name: Callable[[T], str]) -> Iterator[tuple[T, Any]]:
    """Each task and its result, in the order of the tasks; `name` names a task in errors.

    A task that raises ends the run when its turn has come, with its own error; one whose worker dies is begun again,
    `MOST_ATTEMPTS` times in all. What runs, and what waits for an earlier one, is bounded.
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
