"""Verdict: what the steps of an iteration wait for, by stage and rank, and what would change it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqflow.arguments import checked
from seqflow.byte_sizes import format_bytes
from seqflow.drawing.tables import html_table, text_table
from seqflow.errors import OpError
from seqflow.loader.run.simulation import Work, simulate
from seqflow.loader.run.timings import StageTimes, StepTimes, Timings

LEAST_STEPS = 20
"""Least number of steps for a verdict."""
LIMITS = {
    "store": "reading waits for the store",
    "decode": "decoding what is read",
    "prepare": "prepare",
    "function": "the Python function net, which runs in the consumer's thread",
    "lock": "Python's lock, which prepare holds: more threads do not help",
    "plan": "planning batches, which the consumer's thread finds and hands out",
    "make": "making batches",
    "net": "net",
    "memory": "memory, which ends reading ahead too early",
    "threads": "there are no threads that read ahead",
    "consumer": "the consumer: the loader is not the limit",
    "rank": "one rank, for which the others wait",
    "first window": "the first window, which is read before the first batch",
    "servers": "the servers: they give fewer batches than are taken",
}
"""Limits of a step by name, and what each says."""
_ADVICE = {
    "function": "write net as a net, which runs in the threads, or move its work into prepare",
    "lock": "write prepare as a net, or run it before training: seqflow run",
    "first window": "a smaller window, or an order without one exact shuffle",
    "rank": "look at the verdict of that rank",
    "servers": "begin more servers, or speed up the stage that stats().servers names as the slowest",
}
"""Advice for limits that no option of the loader changes."""
_SMALL, _LATE, _LOCKED, _FIRST, _GAIN, _OWN = 0.05, 0.6, 0.7, 0.25, 0.05, 0.5
"""Shares: of a step that does not count, of waiting for late windows, of a step for which a lock is held, of the time
of the first batch, of a gain that is named, and of a step that the loader's work in the consumer's thread takes."""
_THREADS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of an iteration that its verdict depends on."""

    threads: int
    memory: int
    python_prepare: bool = False
    streams: int = 1
    """Windows that batches are made from in turn."""
    rank: int = 0
    world_size: int = 1

    @property
    def cores(self) -> int:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Verdict:
    """Limit of the steps of an iteration, by name, with the work of each stage and what would change it.

    `limit` is one of "store", "decode", "prepare", "function", "lock", "plan", "make", "net", "memory", "threads",
    "consumer", "rank" and "first window"; None before 20 steps. `to_json()` has all times, in seconds.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = dict(facts)

    @property
    def limit(self) -> str | None:
        """Name of the limit; None before 20 steps."""
        limit: str | None = self._facts["limit"]
        return limit

    def to_json(self) -> dict[str, Any]:
        """Return all facts as JSON-compatible values: times in seconds, and the waiting of each of the last steps."""
        return dict(self._facts)

    def __repr__(self) -> str:
        return text_table(self.title, self.lines())

    def _repr_html_(self) -> str:
        return html_table(self.title, (), self.lines())

    @property
    def title(self) -> str:
        """The limit in a sentence."""
        facts = self._facts
        if self.limit is None:
            return f"No verdict: {facts['steps']} steps, expected at least {LEAST_STEPS}"
        return f"Verdict: {facts['waiting_share']:.0%} of a step waits; the limit is {LIMITS[self.limit]}"

    def lines(self) -> list[tuple[str, str]]:
        """Return the lines of the table, name and value."""
        return [*self._lines()]

    def _lines(self) -> Iterator[tuple[str, str]]:
        facts = self._facts
        if self.limit is None:
            return
        yield "limit", facts["limit"]
        parts = {name: facts["step"][name] for name in StepTimes._fields if facts["step"][name] >= 5e-5}
        yield "step", f"{_ms(facts['step_seconds'])}: " + ", ".join(f"{k} {_ms(v)}" for k, v in parts.items())
        yield "waiting", ", ".join(f"{name} {_ms(value)}" for name, value in facts["waiting"].items())
        if "ranks" in facts:
            for of in facts["ranks"]:
                yield (
                    f"rank {of['rank']}",
                    f"waits {_ms(of['wait_seconds'])} a step, own {_ms(of['own_seconds'])}",
                )
        else:
            yield "first batch", f"{_ms(facts['first_batch_seconds'])} after the beginning"
            work = {name: value for name, value in facts["work"].items() if value >= 5e-6}
            yield "work a step", ", ".join(f"{name} {_ms(value)}" for name, value in work.items()) or "none"
        if facts.get("core_share", 0) > 0.4:
            yield "cores", f"threads have no core for {facts['core_share']:.0%} of their time"
        for remedy in facts["remedies"]:
            yield "change", f"{_shown(remedy['change'])}: {_ms(remedy['step_seconds'])} a step, predicted"
        if self.limit in _ADVICE:
            yield "advice", _ADVICE[self.limit]
        yield "ceiling", f"{_ms(facts['ceiling_seconds'])} a step: {facts['ceiling']}"


def _shown(change: Mapping[str, Any]) -> str:
    """Return a change as text: options of the loader, or a stage without work."""
    if "without" in change:
        return f"{change['without']} that takes no time"
    options = {name: format_bytes(value) if name == "memory" else value for name, value in change.items()}
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"


def verdict_of(timings: Timings, settings: Settings, replayed: float | None = None) -> Verdict:
    """Return the verdict of the steps so far; `replayed` is the time of a step from memory, if it was measured."""
    if timings.num_steps < LEAST_STEPS:
        return Verdict({"limit": None, "steps": timings.num_steps, "rank": settings.rank})
    return Verdict(_Judged(timings, settings, replayed).facts())


class _Judged:
    """Facts of an iteration, and the limit that follows from them."""

    def __init__(self, timings: Timings, settings: Settings, replayed: float | None) -> None:
        self.timings, self.settings, self.replayed = timings, settings, replayed
        self.step = StepTimes(*(total / timings.num_steps for total in timings.sums))
        self.seconds = sum(self.step)
        self.wait = self.step.wait + self.step.helped
        """Seconds of a step that the consumer waits or helps."""
        self.batches = (timings.num_steps + 1) / max(1.0, timings.num_released + settings.streams)
        """Batches of a window."""
        self.work = self._work()
        self.room = max(1, settings.memory // max(1, timings.largest))

    def _of_batch(self, name: str) -> float:
        """Return how often a stage of this name is a part of the work of a batch, for each of its calls."""
        stage, stages = self.timings.stages[name], self.timings.stages
        if name in ("make", "net", "function"):
            return 1 / max(1, stage.calls)
        return 1 / max(1, stages["plan"].calls) / self.batches

    def _work(self) -> dict[str, float]:
        """Return the seconds of work of each stage for a step, in all threads."""
        found: dict[str, float] = {}
        for name, stage in self.timings.stages.items():
            seconds = stage.seconds * self._of_batch(name)
            if name == "read":
                waits = min(seconds, stage.waiting_seconds * self._of_batch(name))
                found |= {"store": waits, "decode": seconds - waits}
            elif name != "list":
                found[name] = seconds
        return found

    @property
    def limit(self) -> str:
        """Name of the limit."""
        step, timings, work = self.step, self.timings, self.work
        if step.function > max(self.wait, step.rest, 0.1 * self.seconds):
            return "function"
        if step.rest > max(self.wait, _OWN * self.seconds):
            return "plan"
        if self.wait < _SMALL * self.seconds:
            first = timings.first_batch or 0.0
            is_first = first > _FIRST * (first + self.seconds * timings.num_steps)
            return "first window" if is_first else "consumer"
        if not self.settings.threads:
            return "threads"
        late = sum(one.waited for one in timings.windows if one.is_late) / timings.num_steps
        if late > _LATE * self.wait and self.room <= self.settings.threads:
            return "memory"
        in_threads = {name: seconds for name, seconds in work.items() if name != "function"}
        if work["store"] + work["decode"] >= max(in_threads.values()):
            return "store" if work["store"] > _LATE * (work["store"] + work["decode"]) else "decode"
        most = max(in_threads, key=in_threads.__getitem__)
        return "lock" if most == "prepare" and self._locked() else most

    def _locked(self) -> float:
        """Return the seconds of a step for which a Python function `prepare` holds the lock, if it is the limit."""
        stage, of = self.timings.stages["prepare"], self._of_batch("prepare")
        computes = (stage.cpu_seconds + stage.delay_seconds) * of
        # a function that waits for a service gives the lock to other threads
        # with many threads, each waits while the others compute
        most = 1.5 * (self.settings.threads + 1) * (stage.cpu_seconds + stage.delay_seconds)
        is_busy = computes > _LOCKED * self.seconds and stage.waiting_seconds < most
        return computes if self.settings.python_prepare and is_busy else 0.0

    def predict(
        self, threads: int | None = None, room: int | None = None, without: str | None = None
    ) -> float:
        """Return the seconds of a step with other threads, with room for other windows, or without a stage."""
        threads = self.settings.threads if threads is None else threads
        work = {name: 0.0 if name == without else seconds for name, seconds in self.work.items()}
        opening = sum(work[name] for name in ("store", "decode", "prepare", "plan")) * self.batches
        windows = self.timings.windows
        tasks = round(sum(one.tasks for one in windows) / len(windows)) if windows else 1
        own = self.step.own + (0.0 if without == "function" else self.step.function) + self.step.rest
        given = Work(
            self.timings.num_released + self.settings.streams, self.batches, max(1, tasks), opening,
            work["make"] + work["net"], own,
        )  # fmt: skip
        found = simulate(given, threads, self.room if room is None else room)
        locked = self._locked() if work["prepare"] else 0.0
        return max(found, locked, self._cpu_seconds(work) / self.settings.cores)

    def _cpu_seconds(self, work: Mapping[str, float]) -> float:
        """Return the processor time of a step, of all threads; stages without work take none.

        Time without a core counts too: no gain is promised from threads that would wait for one.
        """
        stages, consumer = self.timings.stages, self.timings.consumer
        own = self.step.own * min(1.0, consumer.cpu_seconds / max(consumer.seconds, 1e-9))
        return own + sum(
            (stage.cpu_seconds + stage.delay_seconds) * self._of_batch(name)
            for name, stage in stages.items()
            if name != "list" and work["decode" if name == "read" else name]
        )

    def _changes(self, limit: str) -> Iterator[tuple[dict[str, Any], float]]:
        """Yield changes and the predicted seconds of a step, those that cost least first."""
        settings, largest = self.settings, self.timings.largest
        if limit in ("consumer", "first window"):
            return
        if limit == "memory":
            room = settings.threads + 3
            yield {"memory": room * largest}, self.predict(room=room)
        if limit not in ("function", "lock"):
            for threads in (one for one in _THREADS if one > settings.threads):
                yield {"threads": threads}, self.predict(threads)
                room = threads + 3
                if room * largest > settings.memory:
                    yield {"threads": threads, "memory": room * largest}, self.predict(threads, room)
        stage = "prepare" if limit == "lock" else limit
        if stage in self.work:
            yield {"without": stage}, self.predict(without=stage)

    def remedies(self, limit: str) -> list[dict[str, Any]]:
        """Return changes that are predicted to make a step shorter, each by more than those before it."""
        found, best, before = list[dict[str, Any]](), self.seconds, self.predict()
        for change, after in self._changes(limit):
            # the model may be wrong as a whole: what it gains is taken from the measured step
            seconds = max(self.step.own, self.seconds * after / max(before, 1e-9))
            if seconds < (1 - _GAIN) * best:
                best = seconds
                found.append({"change": change, "step_seconds": seconds})
        return found

    def facts(self) -> dict[str, Any]:
        """Return the facts of the verdict as JSON-compatible values."""
        timings, settings, limit = self.timings, self.settings, self.limit
        steps = [StepTimes(*one) for one in timings.steps]
        waits = np.array([one.wait + one.helped for one in steps])
        stages = timings.stages.values()
        core = sum(one.delay_seconds for one in stages) / max(1e-9, sum(one.seconds for one in stages))
        own = self.step.own
        return {
            "limit": limit,
            "rank": settings.rank,
            "world_size": settings.world_size,
            "steps": timings.num_steps,
            "threads": settings.threads,
            "memory": settings.memory,
            "step_seconds": self.seconds,
            "waiting_share": (self.seconds - own) / self.seconds,
            "step": self.step._asdict(),
            "waiting": {"p50": float(np.percentile(waits, 50)), "p99": float(np.percentile(waits, 99))},
            "first_batch_seconds": timings.first_batch,
            "work": self.work,
            "stages": {name: _json_of(stage) for name, stage in timings.stages.items()},
            "windows": {
                "opened": len(timings.windows), "bytes": timings.bytes, "largest": timings.largest,
                "late": sum(one.is_late and one.waited > 0 for one in timings.windows),
                "room": self.room,
            },
            "core_share": core,
            "predicted_now_seconds": self.predict(),
            "remedies": self.remedies(limit),
            "ceiling_seconds": own if self.replayed is None else self.replayed,
            "ceiling": "the consumer alone" if self.replayed is None else "the same batches from memory",
            "last_steps": {
                "first": timings.num_steps - len(steps),
                "wait": waits.tolist(),
                "own": [one.own for one in steps],
            },
        }  # fmt: skip


def _json_of(stage: StageTimes) -> dict[str, float]:
    names = ("calls", "seconds", "cpu_seconds", "delay_seconds", "waiting_seconds")
    return {name: getattr(stage, name) for name in names}


def _facts_of(rank: Any) -> Mapping[str, Any]:
    """Return the facts of a rank; raise OpError for anything else."""
    try:
        found = json.loads(rank) if isinstance(rank, str) else rank
    except ValueError:
        found = None
    needed = {"limit", "rank", "steps"}
    if isinstance(found, Mapping) and found.get("limit") is not None:
        needed |= {"last_steps"}
    if not isinstance(found, Mapping) or needed - found.keys():
        raise OpError("verdict: expected what verdict().to_json() gives on each rank")
    return found


@checked()
def verdict(ranks: Sequence[Mapping[str, Any] | str]) -> Verdict:
    """Return the verdict of several ranks, from what `loader.verdict().to_json()` gives on each.

    A step ends on all ranks when it ends on the last: waiting that delays training is the mean over steps of the
    largest waiting among the ranks, and a rank that waits for much longer than the others is the limit.

    Args:
        ranks: Facts of each rank, as mappings or JSON texts. Raise OpError unless each is of another rank, and has a
            verdict.
    """
    found = [*map(_facts_of, ranks)]
    if not found:
        raise OpError("verdict: ranks is empty, expected what verdict().to_json() gives on each rank")
    numbers = [one["rank"] for one in found]
    if len({*numbers}) < len(numbers):
        raise OpError(f"verdict: ranks are {numbers}, expected each once")
    if any(one["limit"] is None for one in found):
        return Verdict({**min(found, key=lambda one: int(one["steps"])), "limit": None})
    found = sorted(found, key=lambda one: int(one["rank"]))
    first = max(one["last_steps"]["first"] for one in found)
    stop = min(one["steps"] for one in found)
    spans = [slice(first - one["last_steps"]["first"], stop - one["last_steps"]["first"]) for one in found]
    waits, own = (
        np.array([one["last_steps"][name][span] for one, span in zip(found, spans, strict=True)])
        for name in ("wait", "own")
    )
    if not waits.size:
        raise OpError("verdict: the last steps of the ranks are not the same, expected JSON of one moment")
    exposed, step = float(waits.max(axis=0).mean()), float((waits + own).mean())
    means = waits.mean(axis=1)
    slow = int(means.argmax())
    others = np.delete(waits, slow, axis=0).max(axis=0, initial=0.0).mean()
    limit = found[slow]["limit"] if exposed >= _SMALL * step else "consumer"
    if len(found) > 1 and exposed >= _SMALL * step and others < 0.5 * exposed:
        limit = "rank"
    ceiling = max(0.0, step - exposed)
    remedies: list[dict[str, Any]] = []
    if limit == "rank":
        change = {"without": f"a loader of rank {found[slow]['rank']} ({found[slow]['limit']})"}
        remedies = [{"change": change, "step_seconds": step - exposed + float(others)}]
    worst = waits.max(axis=0)
    return Verdict(
        {
            "limit": limit,
            "rank": found[slow]["rank"],
            "steps": stop,
            "step_seconds": step,
            "waiting_share": exposed / step,
            "step": {**dict.fromkeys(StepTimes._fields, 0.0), "wait": exposed, "own": step - exposed},
            "waiting": {"p50": float(np.percentile(worst, 50)), "p99": float(np.percentile(worst, 99))},
            "ranks": [
                {"rank": one["rank"], "wait_seconds": float(wait), "own_seconds": float(owned)}
                for one, wait, owned in zip(found, means, own.mean(axis=1), strict=True)
            ],
            "remedies": remedies,
            "ceiling_seconds": ceiling,
            "ceiling": "no rank waits for its loader",
        }
    )
