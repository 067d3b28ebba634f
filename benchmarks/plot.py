"""Lines over a logarithmic axis, as SVG that follows the mode, light or dark, of who looks at it."""

import math
from collections.abc import Iterator
from typing import Any

from seqflow.drawing.svg import DARK, LIGHT, Theme, picture, text

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _CHAR = 380, 220, 70, 40, 44, 8
_DASHES = ("", "7 4", "2 3", "10 3 2 3")
"""Lines are told apart by them, and by the names at their ends."""
_ADAPTIVE = Theme(
    "var(--ink)",
    "var(--line)",
    tuple(f"var(--fill-{number})" for number in range(len(LIGHT.fills))),
    "var(--empty)",
)
"""Colours that follow the reader's light or dark mode; the picture needs `_style()` among its parts."""


def plot(series: dict[str, Any]) -> str:
    """A picture of a series: sizes to the right, times upwards, a line for each contender."""
    points = series["points"]
    names = list(points[0]["times"])
    names += [name for point in points for name in point["times"] if name not in names]
    sizes = [point["size"] for point in points]
    times = [time for point in points for time in point["times"].values()]
    across, up = _axis(sizes, _WIDTH), _axis(times, _HEIGHT)
    width = _LEFT + _WIDTH + max(map(len, names)) * _CHAR + 24
    bottom = _TOP + _HEIGHT
    parts = [_style(), text(8, 20, series["name"], _ADAPTIVE.ink, "start", bold=True)]
    parts += [_line([(_LEFT, _TOP), (_LEFT, bottom), (_LEFT + _WIDTH, bottom)], "")]
    for size in sizes:
        parts.append(text(_LEFT + across(size), bottom + 18, _shown(size), _ADAPTIVE.ink))
    parts.append(text(_LEFT + _WIDTH / 2, bottom + 38, series["along"], _ADAPTIVE.ink))
    for tick in _ticks(min(times), max(times)):
        y = bottom - up(tick)
        parts += [text(_LEFT - 8, y + 4.5, _shown(tick), _ADAPTIVE.ink, "end")]
    parts.append(text(_LEFT - 8, _TOP - 6, series["unit"], _ADAPTIVE.ink, "start"))
    ends: list[tuple[float, str]] = []
    for number, name in enumerate(names):
        line = [
            (_LEFT + across(point["size"]), bottom - up(point["times"][name]))
            for point in points
            if name in point["times"]
        ]
        parts.append(_line(line, _DASHES[number % len(_DASHES)]))
        ends.append((line[-1][1], name))
    for y, name in _apart(sorted(ends)):
        parts.append(text(_LEFT + _WIDTH + 12, y + 4.5, name, _ADAPTIVE.ink, "start"))
    return picture(width, bottom + _BOTTOM, series["name"], described(series), parts)


def described(series: dict[str, Any]) -> str:
    """The figures of a series in words."""
    found = []
    for point in series["points"]:
        times = ", ".join(f"{name} {_shown(time)}" for name, time in point["times"].items())
        found.append(f"at {_shown(point['size'])} {series['along']}: {times}")
    return f"{series['unit']}; {'; '.join(found)}"


def _axis(values: list[float], length: float) -> Any:
    """From a value to its place: logarithmic, unless 0 is among them or they lie close together."""
    low, high = min(values), max(values)
    if low <= 0 or high / low < 4:
        return lambda value: length * (value - low) / ((high - low) or 1)
    return lambda value: length * math.log(value / low) / math.log(high / low)


def _ticks(low: float, high: float) -> list[float]:
    if high / low < 4:
        return [low, high]
    inner = [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    far = [tick for tick in inner if tick / low > 1.6 and high / tick > 1.6]
    return [low, *far, high]


def _apart(ends: list[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Names at least a line apart."""
    lowest = -math.inf
    for y, name in ends:
        lowest = max(y, lowest + 16)
        yield lowest, name


def _line(points: list[tuple[float, float]], dashes: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{path}" fill="none" stroke="{_ADAPTIVE.ink}" stroke-width="1.6"{dashed}/>'


def _shown(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1e6:g}M"
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def _style() -> str:
    """Return the colours of `_ADAPTIVE`, in light and in dark mode."""
    return f"<style>svg{{{_variables(LIGHT)}}}@media(prefers-color-scheme:dark){{svg{{{_variables(DARK)}}}}}</style>"


def _variables(theme: Theme) -> str:
    fills = ";".join(f"--fill-{number}:{fill}" for number, fill in enumerate(theme.fills))
    return f"--ink:{theme.ink};--line:{theme.line};{fills};--empty:{theme.empty}"
