"""Where the boxes of a graph stand: in layers from top to bottom, with few crossings and short edges.

After Sugiyama, Tagawa and Toda (1981): layers by the longest path, an edge that passes a layer gets a place of its
own in it, places are ordered by the mean of their neighbours, and coordinates are least squares in that order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_SWEEPS = 8


@dataclass(slots=True, eq=False)
class Place:
    """A box in its layer, or where edges pass through it."""

    layer: int
    width: float
    height: float = 0.0
    box: int | None = None
    """The number of the box; None where edges pass."""
    above: list[Place] = field(default_factory=list)
    below: list[Place] = field(default_factory=list)
    x: float = 0.0
    """Its middle."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of all boxes, and the way of each edge through the layers."""

    boxes: list[Place]
    ways: Mapping[tuple[str, int], list[Place]]
    """By tensor and the box that takes it: from the box that makes it down to that box."""
    tops: list[float]
    """Where each layer begins."""
    heights: list[float]
    width: float
    height: float


def arrange(
    sizes: Sequence[tuple[float, float]],
    makers: Mapping[str, int],
    takers: Sequence[Sequence[str]],
    gap: tuple[float, float],
) -> Layout:
    """Place boxes of these widths and heights, given in topological order.

    `makers` says which box makes a tensor, `takers` which tensors each box takes; `gap` is the least distance
    between boxes of a layer, and between layers.
    """
    layers = _layers(makers, takers)
    boxes = [
        Place(layer, width, height, i)
        for i, ((width, height), layer) in enumerate(zip(sizes, layers, strict=True))
    ]
    rows: list[list[Place]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for place in boxes:
        rows[place.layer].append(place)
    ways = _route(boxes, rows, makers, takers)
    _order(rows)
    _straighten(rows, gap[0])
    tops, heights = _stack(rows, gap[1])
    left = min((place.x - place.width / 2 for row in rows for place in row), default=0.0)
    for row in rows:
        for place in row:
            place.x -= left
    right = max((place.x + place.width / 2 for row in rows for place in row), default=0.0)
    return Layout(boxes, ways, tops, heights, right, tops[-1] + heights[-1] if rows else 0.0)


def _layers(makers: Mapping[str, int], takers: Sequence[Sequence[str]]) -> list[int]:
    layers: list[int] = []
    for takes in takers:
        layers.append(1 + max((layers[makers[name]] for name in takes), default=-1))
    return layers


def _route(
    boxes: list[Place], rows: list[list[Place]], makers: Mapping[str, int], takers: Sequence[Sequence[str]]
) -> dict[tuple[str, int], list[Place]]:
    """The way of each edge; the edges of one tensor share theirs as long as they can."""
    ways = {}
    chains: dict[str, list[Place]] = {}
    for taker, takes in enumerate(takers):
        for name in dict.fromkeys(takes):
            chain = chains.setdefault(name, [boxes[makers[name]]])
            target = boxes[taker]
            while chain[0].layer + len(chain) < target.layer:
                passing = Place(chain[0].layer + len(chain), 8.0)
                rows[passing.layer].append(passing)
                _join(chain[-1], passing)
                chain.append(passing)
            way = chain[: target.layer - chain[0].layer]
            _join(way[-1], target)
            ways[name, taker] = [*way, target]
    return ways


def _join(upper: Place, lower: Place) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def _order(rows: list[list[Place]]) -> None:
    """Sort each layer by where its neighbours stand, downwards and upwards in turn."""
    for row in rows:
        _number(row)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows[1:] if downwards else rows[-2::-1]:
            row.sort(key=lambda place: _mean(place.above if downwards else place.below, place.x))
            _number(row)


def _number(row: list[Place]) -> None:
    for i, place in enumerate(row):
        place.x = (i + 0.5) / len(row)


def _mean(places: list[Place], otherwise: float) -> float:
    return sum(place.x for place in places) / len(places) if places else otherwise


def _straighten(rows: list[list[Place]], gap: float) -> None:
    """Move each place to the middle of its neighbours, as far as the order and the widths allow."""
    for row in rows:
        at = 0.0
        for place in row:
            place.x = at + place.width / 2
            at += place.width + gap
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = [_mean(place.above + place.below, place.x) for place in row]
            weights = [1.0 if place.box is not None else 4.0 for place in row]
            for place, x in zip(row, _apart(row, wanted, weights, gap), strict=True):
                place.x = x


def _apart(row: list[Place], wanted: list[float], weights: list[float], gap: float) -> list[float]:
    """The positions nearest to the ideal ones that keep order and distance: pooling of adjacent violators."""
    shifts = [0.0]
    for left, right in pairwise(row):
        shifts.append(shifts[-1] + (left.width + right.width) / 2 + gap)
    pools: list[tuple[float, float, int]] = []
    for want, shift, weight in zip(wanted, shifts, weights, strict=True):
        mean, total, count = want - shift, weight, 1
        while pools and pools[-1][0] > mean:
            before, more, others = pools.pop()
            mean = (mean * total + before * more) / (total + more)
            total, count = total + more, count + others
        pools.append((mean, total, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + shift for mean, shift in zip(means, shifts, strict=True)]


def _stack(rows: list[list[Place]], gap: float) -> tuple[list[float], list[float]]:
    heights = [max(place.height for place in row) for row in rows]
    tops, at = [], 0.0
    for height in heights:
        tops.append(at)
        at += height + gap
    return tops, heights
