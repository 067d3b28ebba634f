"""A run on many workers, simulated: its time, what workers and driver do meanwhile, what dies and dawdles costs.

    python benchmarks/simulate.py [--parts 8000] [--workers 1000] [--part-seconds 20] [--driver-ms 1]
                                  [--deaths-per-hour 0.1] [--stragglers 0.01] [--slow 10] [--scale]

The scheduling is that of `seqflow.workers.in_order` itself, on a clock of its own: what runs, what waits for an
earlier part, who is begun again or twice. Workers are simulated: a part takes a time drawn from a log-normal
distribution (`--spread`), a worker dies so often, some parts take `--slow` times as long. The driver needs
`--driver-ms` for each part that it sends and takes back. `--scale` prints the table of docs/scale.md.
"""

import argparse
import heapq
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from seqflow.workers import engine as scheduling
from seqflow.workers.engine import Ended, in_order


@dataclass
class Model:
    """What a run is made of; times in seconds."""

    parts: int
    workers: int
    part_seconds: float
    driver_seconds: float = 0.001
    start_seconds: float = 1.0
    """Until a worker that is started, or takes the place of one that died, is ready."""
    spread: float = 0.2
    """Standard deviation of the logarithm of a part's time."""
    deaths_per_hour: float = 0.0
    stragglers: float = 0.0
    """The share of parts that take `slow` times as long as they should."""
    slow: float = 10.0
    seed: int = 0


@dataclass
class Outcome:
    """What came of a run."""

    seconds: float
    busy: float
    """The share of the workers' time in which they made parts that counted."""
    driver: float
    """The share of the time in which the driver was busy."""
    deaths: int
    twice: int
    """Parts that were begun a second time since the first took so long."""


@dataclass
class SimulatedEngine:
    """Workers that only count time."""

    model: Model
    now: float = 0.0
    driver_busy: float = 0.0
    deaths: int = 0
    submitted: int = 0
    useful: dict[int, float] = field(default_factory=dict)
    """The time that each part took in the attempt that ended first."""

    def __post_init__(self) -> None:
        self.workers = self.model.workers
        self._draw = random.Random(self.model.seed)
        self._free = [self.model.start_seconds] * self.workers
        self._waiting: deque[int] = deque()
        self._events: list[tuple[float, int, int, float, bool]] = []
        self._count = 0

    def _spend(self, seconds: float) -> None:
        self.now += seconds
        self.driver_busy += seconds

    def submit(self, number: int, task: Any) -> None:
        self._spend(self.model.driver_seconds / 2)
        self.submitted += 1
        self._waiting.append(number)
        self._start()

    def _start(self) -> None:
        model = self.model
        while self._waiting and self._free:
            begin = max(self.now, heapq.heappop(self._free))
            seconds = model.part_seconds * self._draw.lognormvariate(-(model.spread**2) / 2, model.spread)
            if self._draw.random() < model.stragglers:
                seconds *= model.slow
            dies = self._draw.expovariate(model.deaths_per_hour / 3600) if model.deaths_per_hour else seconds
            number, self._count = self._waiting.popleft(), self._count + 1
            entry = (begin + min(seconds, dies), self._count, number, seconds, dies < seconds)
            heapq.heappush(self._events, entry)

    def forget(self, number: int) -> None:
        self._waiting = deque(one for one in self._waiting if one != number)

    def wait(self, seconds: float) -> list[Ended]:
        if not self._events or self._events[0][0] > self.now + seconds:
            self.now += seconds
            return []
        at, _, number, took, died = heapq.heappop(self._events)
        self.now = max(self.now, at)
        self._spend(self.model.driver_seconds / 2)
        heapq.heappush(self._free, at + (self.model.start_seconds if died else 0.0))
        self._start()
        if died:
            self.deaths += 1
            return [Ended(number, died="simulated")]
        self.useful.setdefault(number, took)
        return [Ended(number, number, seconds=took)]


def simulate(model: Model) -> Outcome:
    """The outcome of a run."""
    engine = SimulatedEngine(model)
    with mock.patch.object(scheduling, "monotonic", side_effect=lambda: engine.now):
        for number, result in in_order(engine, range(model.parts), str):
            assert number == result
    time = engine.now * model.workers
    return Outcome(
        engine.now,
        sum(engine.useful.values()) / time,
        engine.driver_busy / engine.now,
        engine.deaths,
        engine.submitted - engine.deaths - model.parts,
    )


def print_outcome(name: str, model: Model) -> None:
    found = simulate(model)
    ideal = model.parts * model.part_seconds / model.workers
    print(
        f"| {name} | {model.parts:,} | {model.workers:,} | {found.seconds:,.0f} s | {found.seconds / ideal:.2f} | "
        f"{found.busy:.0%} | {found.driver:.1%} | {found.deaths} | {found.twice} |"
    )


def print_scale() -> None:
    """4 TB (10^12 tokens of int32) that a worker reads, packs and writes at 25 MB a second."""
    print("| run | parts | workers | time | of ideal | workers busy | driver busy | deaths | begun twice |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    total, speed = 4_000_000, 25  # MB, MB a second
    for megabytes in (1024, 512, 128, 32):
        parts = total // megabytes
        print_outcome(f"parts of {megabytes} MB", Model(parts, 1000, megabytes / speed))
    for deaths in (0.1, 1.0):
        model = Model(total // 128, 1000, 128 / speed, deaths_per_hour=deaths)
        print_outcome(f"128 MB, a worker dies {deaths:g} times an hour", model)
    print_outcome("128 MB, 1 % ten times as slow", Model(total // 128, 1000, 128 / speed, stragglers=0.01))
    for workers in (100, 3000, 10_000):
        print_outcome(f"128 MB, {workers:,} workers", Model(total // 128, workers, 128 / speed))
    print_outcome("parts of 8 MB, 3,000 workers", Model(total // 8, 3000, 8 / speed))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--part-seconds", type=float, default=20.0)
    parser.add_argument("--driver-ms", type=float, default=1.0)
    parser.add_argument("--start-seconds", type=float, default=1.0)
    parser.add_argument("--spread", type=float, default=0.2)
    parser.add_argument("--deaths-per-hour", type=float, default=0.0)
    parser.add_argument("--stragglers", type=float, default=0.0)
    parser.add_argument("--slow", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", action="store_true")
    options = vars(parser.parse_args())
    if options.pop("scale"):
        print_scale()
        return
    options["driver_seconds"] = options.pop("driver_ms") / 1000
    print("| run | parts | workers | time | of ideal | workers busy | driver busy | deaths | begun twice |")
    print_outcome("this one", Model(**options))


if __name__ == "__main__":
    main()
