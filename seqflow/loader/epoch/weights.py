"""Weights of the sources of a mix, which may change with the number of the batch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from heapq import heappop, heappush
from typing import Any

import numpy as np

from seqflow.arguments import is_number
from seqflow.errors import OpError, OpMemoryError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.kernels.error import KernelMemoryError
from seqflow.kernels.memory import check_memory

LARGEST = 2**31 - 1
"""Largest number of a batch: sums of shares up to it fit an int64."""
_UNIT_BITS = 32
"""Bits of a share: shares are integers, so that their sums are exact: a batch is about 2**32 units."""


@dataclass(frozen=True, init=False, slots=True)
class Schedule:
    """A weight that changes with the number of the batch: `sf.Schedule({0: 0.8, 10_000: 0.2})`.

    `points` has the weight from each of these batches on. With `linear=True` the weight goes from each point to the
    next in a straight line, and stays at the last one's. Batches are counted over all ranks, from the beginning of
    the epoch; the first key is 0. A weight of 0 omits the source.

    Raise OpError when a key is not an integer from 0 to 2**31 - 1, when 0 is missing, when a weight is negative
    or not finite, or when all weights are 0.

        >>> import seqflow as sf
        >>> sf.Schedule({0: 1.0, 100: 0.0}, linear=True).at(25)
        0.75
    """

    points: tuple[tuple[int, float], ...]
    """Numbers of batches in rising order, and the weight at each."""
    linear: bool
    """Whether the weight goes from each point to the next in a straight line."""

    def __init__(self, points: Mapping[int, float], *, linear: bool = False) -> None:
        if not isinstance(points, Mapping) or not points:
            raise OpTypeError.of(
                "Schedule.points",
                f"is {points!r}, expected a dict of weights by the number of the batch, such as "
                "{0: 0.8, 10_000: 0.2}",
            )
        found = {_number(key): _weight(key, weight) for key, weight in points.items()}
        if 0 not in found:
            raise OpError.of(
                "Schedule",
                f"the first batch with a weight is {min(found)}, expected 0\n  give the weight at 0, too",
            )
        if not any(found.values()):
            raise OpError.of("Schedule", "all weights are 0, expected one above 0\n  leave the source out")
        object.__setattr__(self, "points", tuple(sorted(found.items())))
        object.__setattr__(self, "linear", linear)

    def __repr__(self) -> str:
        linear = ", linear=True" if self.linear else ""
        return f"Schedule({dict(self.points)}{linear})"

    def at(self, number: int) -> float:
        """Return the weight of batch `number` of an epoch."""
        return float(_weights_at(self, np.array([_number(number)], np.int64))[0])

    def after(self, batch: int) -> "Weight":
        """Return the weight from a batch on, which becomes batch 0."""
        points = {0: self.at(batch), **{at - batch: one for at, one in self.points if at > batch}}
        return Schedule(points, linear=self.linear) if any(points.values()) else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the points and `linear` as JSON-compatible values."""
        return {"points": [[number, weight] for number, weight in self.points], "linear": self.linear}


Weight = float | Schedule


def _number(key: Any) -> int:
    if not isinstance(key, int | np.integer) or isinstance(key, bool) or not 0 <= key <= LARGEST:
        raise OpError.of(
            "Schedule", f"{key!r} is not the number of a batch, expected integers from 0 to {LARGEST}"
        )
    return int(key)


def _weight(key: Any, weight: Any) -> float:
    if not is_number(weight, (int, float, np.integer, np.floating)) or weight < 0:
        raise OpError.of(
            "Schedule", f"the weight from batch {key} on is {weight!r}, expected a number, 0 or more"
        )
    return float(weight)


def check_together(weights: Sequence[Weight]) -> None:
    """Raise OpError when the weights of all sources are 0 for some batch, or their sum is beyond float64."""
    most = [max(w for _, w in one.points) if isinstance(one, Schedule) else one for one in weights]
    if not math.isfinite(sum(most)):
        raise OpError(
            f"Mix: the sum of the weights is {sum(most)}, expected a finite number\n  divide all by one"
        )
    schedules = [weight for weight in weights if isinstance(weight, Schedule)]
    if not any(most):
        raise OpError("Mix: all weights are 0, expected one above 0")
    if any(weight for weight in weights if not isinstance(weight, Schedule)):
        return
    keys = {number for schedule in schedules for number, _ in schedule.points}
    numbers = np.array(sorted(keys | {number - 1 for number in keys if number}), np.int64)
    empty = numbers[sum(_weights_at(schedule, numbers) for schedule in schedules) == 0]
    if len(empty):
        raise OpError(
            f"Mix: all sources have a weight of 0 for batch {empty[0]}, expected at every batch one above 0"
        )


def _weights_at(weight: Weight, numbers: Array) -> Array:
    """float64[N]: the weight of each of some batches."""
    if not isinstance(weight, Schedule):
        return np.full(len(numbers), weight, np.float64)
    keys, values = np.array([number for number, _ in weight.points]), np.array([w for _, w in weight.points])
    at = np.searchsorted(keys, numbers, side="right") - 1
    if not weight.linear:
        return np.asarray(values[at])
    following = np.minimum(at + 1, len(keys) - 1)
    done = (numbers - keys[at]) / np.maximum(keys[following] - keys[at], 1)
    return np.asarray(values[at] + (values[following] - values[at]) * done)


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Share of each source in each batch, as integers; batches of one piece have the same shares."""

    unit: int
    """Sum of the shares of a batch, a multiple of 2m - 2 for m sources."""
    starts: Array
    """int64[P]: the first batch of each piece; the last one has no end."""
    of_batch: Array
    """int64[P, m]: the share of each source in a batch of each piece."""
    before: Array
    """int64[P, m]: the shares of all batches before each piece."""

    @property
    def last_change(self) -> int:
        """Batch from which on the shares stay constant."""
        return int(self.starts[-1])

    def end(self, member: int) -> int | None:
        """Return the batch from which on a source has no share; None if it keeps a share."""
        at = int(np.flatnonzero(self.of_batch[:, member]).max(initial=-1))
        return None if at == len(self.starts) - 1 else int(self.starts[at + 1])

    def until(self, member: int, batch: int) -> int:
        """Return the sum of the shares of a source in all batches before one."""
        at = np.searchsorted(self.starts, batch, side="right") - 1
        return int(self.before[at, member] + (batch - self.starts[at]) * self.of_batch[at, member])

    def reached(self, member: int, targets: Array, never: int) -> Array:
        """int64[N]: the number of batches until the sum of a source's shares reaches each target above 0."""
        at = np.searchsorted(self.before[:, member], targets, side="left") - 1
        share = self.of_batch[at, member]
        more = targets - self.before[at, member]
        found = self.starts[at] + -(-more // np.maximum(share, 1))
        return np.asarray(np.where(share > 0, found, never))


def shares_of(weights: Sequence[Weight]) -> Shares:
    """Return the shares that follow from weights."""
    step = max(2 * len(weights) - 2, 1)
    unit = step << (_UNIT_BITS - step.bit_length())
    starts = _starts(weights)
    each = [_weights_at(weight, starts) for weight in weights]
    total = reduce(np.add, each)
    shares = np.stack([np.floor(one / total * unit).astype(np.int64) for one in each], axis=1)
    rows = np.arange(len(starts))
    shares[rows, np.argmax(shares, axis=1)] += unit - shares.sum(axis=1)
    before = np.zeros_like(shares)
    np.cumsum(shares[:-1] * np.diff(starts)[:, None], axis=0, out=before[1:])
    return Shares(unit, starts, shares, before)


def _starts(weights: Sequence[Weight]) -> Array:
    """Return the batches at which the weights change: each point of steps, and each batch of a ramp."""
    found = [np.zeros(1, np.int64)]
    for weight in weights:
        if not isinstance(weight, Schedule):
            continue
        numbers = [number for number, _ in weight.points]
        if weight.linear:
            try:
                check_memory((4 * len(weights), numbers[-1]), np.dtype(np.int64))
            except KernelMemoryError as error:
                raise OpMemoryError(f"Mix: a linear schedule of {numbers[-1]} batches: {error}") from None
            found.append(np.arange(numbers[-1] + 1, dtype=np.int64))
        else:
            found.append(np.array(numbers, np.int64))
    return np.unique(np.concatenate(found))


_NEVER = 2**40
"""After all possible batches."""
_OWED = 64
"""A source that has no share any more is owed less than one batch: it comes while no other may, within this
many batches times m; or not at all."""


def settled(shares: Shares) -> int:
    """Return the batch from which on only sources that have a share come."""
    return shares.last_change + _OWED * int(shares.of_batch.shape[1])


def assigned(shares: Shares, count: int, order: Array) -> Array:
    """int64[count]: the source of each of the first batches; `order` int64[m] decides between equals.

    Batch j of a source may come once the sum of its shares has reached j + 1/(2m - 2) batches, and should come
    before the sum reaches j + 1 - 1/(2m - 2). Of the batches that may come, the one with the earliest due time
    comes.
    """
    sources = len(order)
    # with one source, 2m - 2 would be 0
    if sources == 1:
        return np.zeros(count, np.int64)
    released, due = _times(shares, count, order)
    found = np.empty(count, np.int64)
    waiting: list[int] = []
    at, last = 0, settled(shares)
    for number in range(count):
        while at < len(released) and released[at] <= number + 1:
            heappush(waiting, due[at])
            at += 1
        # no batch may come yet, except from sources without a share: the next one comes early
        if not waiting or (number >= last and waiting[0] >= _NEVER * sources):
            heappush(waiting, due[at])
            at += 1
        found[number] = heappop(waiting)
    # due times are multiples of m plus the place of the source
    return np.asarray(np.argsort(order, kind="stable")[found % sources])


def _times(shares: Shares, count: int, order: Array) -> tuple[list[int], list[int]]:
    """Return the earliest time of each batch of a source, in order, and its due time, times m, plus the
    source's place.
    """
    sources = len(order)
    margin = shares.unit // (2 * sources - 2)
    may, should = [], []
    for member in range(sources):
        of_source = shares.until(member, count) // shares.unit
        batches = np.arange(of_source + 1 + sources) * shares.unit  # some may come early
        may.append(shares.reached(member, batches + margin, _NEVER))
        due = shares.reached(member, batches + shares.unit - margin, _NEVER)
        should.append(due * sources + order[member])
    released = np.concatenate(may)
    by_release = np.argsort(released, kind="stable")
    return released[by_release].tolist(), np.concatenate(should)[by_release].tolist()
