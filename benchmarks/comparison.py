"""A comparison: one piece of work, done by us and by peers, whose results agree, timed in turns.

A script of comparisons calls `main` with functions that yield `Row`s, which may prepare data. A peer must do the
whole work: what it needs beyond flat values and lengths is part of its time unless the row's name says otherwise.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np

from seqflow import kernels

Call = Callable[[], Any]
ENOUGH = 5.0
"""Seconds after which a contender is measured well enough."""


def optional(name: str) -> Any:
    """A module, or None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


torch = optional("torch")


@dataclass(frozen=True)
class Row:
    """One piece of work. `limits` are of the ratios to the peers they name; "best" is the fastest of all."""

    name: str
    ours: Call
    peers: dict[str, Call]
    limits: dict[str, float] = field(default_factory=dict)
    floors: dict[str, Call] = field(default_factory=dict)
    """What a machine has to do at least, such as a copy of the result: no peer, and its result is another."""
    why: str = ""
    """Why the best peer is faster, where it is."""
    agree: Callable[[Any, Any], None] | None = None
    """Raises AssertionError where the result of a peer is not ours; by default `agree` below."""
    clock: Callable[[], float] = time.perf_counter
    unit: str = "ms"
    rounds: int | None = None
    """At most so many, where one takes seconds."""
    timed: bool = False
    """Whether calls are fresh processes that return their own milliseconds."""


def agree(ours: Any, theirs: Any) -> None:
    """Each array of a peer is the array of ours in its place, but for rounding."""
    for mine, other in zip(arrays_of(ours), arrays_of(theirs), strict=False):
        if mine.dtype.kind == "f" or other.dtype.kind == "f":
            np.testing.assert_allclose(mine, other, rtol=2e-3, atol=2e-3)
        else:
            np.testing.assert_array_equal(mine, other)


def arrays_of(result: Any) -> list[Any]:
    """The arrays of a result: of NumPy, torch or Awkward, alone or several."""
    if isinstance(result, tuple):  # named ones of ours and of torch, too
        return [array for one in result for array in arrays_of(one)]
    if hasattr(result, "detach"):
        return [result.detach().to_dense().numpy()]
    return [np.asarray(result)]


class FailureError(Exception):
    """A contender, by its name, that fails, or gives another result than ours, and why."""

    def __init__(self, contender: str, reason: str) -> None:
        super().__init__(f"{contender}: {reason}")
        self.contender, self.reason = contender, reason


def reason_of(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


@contextmanager
def running(contender: str) -> Iterator[None]:
    """What fails in here is a FailureError of the contender."""
    try:
        yield
    except Exception as error:
        raise FailureError(contender, reason_of(error)) from error


def verify(row: Row) -> None:
    """All peers of a row give what we give; FailureError otherwise."""
    check = row.agree or agree
    with running("ours"):
        expected = row.ours()
    for name, peer in row.peers.items():
        with running(name):
            check(expected, peer())


def fastest(
    calls: dict[str, Call],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    *,
    timed: bool = False,
) -> dict[str, float]:
    """Milliseconds of each call: the best of all rounds, the calls taking turns.

    What takes less than 10 ms has more rounds, up to 30; what has taken `ENOUGH` seconds has no more.
    """
    best = dict.fromkeys(calls, float("inf"))
    taken = dict.fromkeys(calls, 0.0)
    if timed:
        for _ in range(rounds):
            for name, call in calls.items():
                with running(name):
                    best[name] = min(best[name], call())
        return best
    repeats, longest = {}, 0.0
    for name, call in calls.items():
        started = time.perf_counter()
        with running(name):
            call()
        seconds = time.perf_counter() - started
        repeats[name] = max(1, int(0.005 / seconds))
        longest = max(longest, seconds)
    for _ in range(max(rounds, min(30, int(0.3 / longest)))):
        for name, call in calls.items():
            if taken[name] > ENOUGH:
                continue
            with running(name):
                started = clock()
                for _ in range(repeats[name]):
                    call()
                seconds = clock() - started
            best[name] = min(best[name], seconds / repeats[name] * 1000)
            taken[name] += seconds
    return best


def measure(row: Row, rounds: int) -> dict[str, float]:
    """Milliseconds of ours, of each peer and of each floor, after their results were compared."""
    verify(row)
    calls = {"ours": row.ours, **row.peers, **row.floors}
    return fastest(calls, min(rounds, row.rounds or rounds), row.clock, timed=row.timed)


def measure_rest(row: Row, rounds: int) -> tuple[dict[str, float], dict[str, str]]:
    """What `measure` gives of the contenders that do not fail, and why the others do; nothing without ours."""
    failed: dict[str, str] = {}
    while "ours" not in failed:
        try:
            return measure(row, rounds), failed
        except FailureError as error:
            failed[error.contender] = error.reason
            peers, floors = (
                {name: call for name, call in calls.items() if name not in failed}
                for calls in (row.peers, row.floors)
            )
            row = replace(row, peers=peers, floors=floors)
    return {}, failed


def show(row: Row, times: dict[str, float]) -> None:
    """Print a line for each peer."""
    times = dict(times)
    ours = times.pop("ours")
    of_peers = [times[name] for name in row.peers if name in times]
    if "best" in row.limits and of_peers:
        times = {"best": min(of_peers)} | times
    if not times:
        print(f"{row.name:32}{ours:10.4f}")
    for peer, milliseconds in times.items():
        ratio, limit = ours / milliseconds, row.limits.get(peer)
        kept = "" if limit is None else f"{limit:6.2f} {'!' if ratio > limit else ''}"
        print(f"{row.name:32}{ours:10.4f}  {peer:28}{milliseconds:10.4f}{ratio:8.2f}{kept}", flush=True)


def on_threads(count: int, call: Call) -> Call:
    """The call with so many threads of ours."""

    def run() -> Any:
        before = kernels.num_threads()
        kernels.set_num_threads(count)
        try:
            return call()
        finally:
            kernels.set_num_threads(before)

    return run


def set_threads(count: int) -> None:
    """Of our kernels and of torch."""
    kernels.set_num_threads(count)
    if torch:
        torch.set_num_threads(count)


def main(families: Sequence[Callable[[], Iterator[Row]]]) -> None:
    """The command of a script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    set_threads(options.threads)
    print(f"{kernels.info()['kernels']} {kernels.info()['isa']}, threads: {options.threads}")
    print(f"{'':32}{'ms':>10}  {'peer':28}{'ms':>10}{'ratio':>8}{'limit':>6}")
    for family in families:
        for row in family():
            if not options.names or any(name in row.name for name in options.names):
                show(row, measure(row, options.rounds))
