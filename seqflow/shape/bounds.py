"""Bounds of sizes and their arithmetic: (lowest, highest), where None is unbounded."""

from typing import Literal

LARGEST = 2**63 - 1
"""The largest size. Arithmetic on static sizes raises an error above it; bounds above it become unbounded."""

Bounds = tuple[int, int | None]


def smaller_bound(a: int | None, b: int | None) -> int | None:
    """The smaller of two upper bounds."""
    return b if a is None else a if b is None else min(a, b)


def larger_bound(a: int | None, b: int | None) -> int | None:
    """The larger of two upper bounds."""
    return None if a is None or b is None else max(a, b)


def scaled(k: int, bounds: Bounds) -> tuple[int | None, int | None]:
    """Return the bounds of `k·size`; they may be negative, and the lower one is None for a negative `k` and an
    unbounded size.
    """
    least, most = k * bounds[0], None if bounds[1] is None else k * bounds[1]
    return (least, most) if k > 0 else (most, least)


def times(a: Bounds, b: Bounds) -> Bounds:
    """The bounds of a product."""
    # 0 times an unbounded size is 0
    if a[1] == 0 or b[1] == 0:
        return 0, 0
    return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]


def over(a: Bounds, b: Bounds, kind: Literal["/", "//"]) -> Bounds:
    """Return the bounds of a quotient; for `/` the division is exact."""
    # a zero divisor is an error elsewhere, so the smallest divisor is 1
    high = None if a[1] is None else a[1] // max(b[0], 1)
    if b[1] is None:
        return int(kind == "/" and a[0] > 0), high
    return (-(-a[0] // b[1]) if kind == "/" else a[0] // b[1]), high


def chosen(a: Bounds, b: Bounds, kind: Literal["smaller", "larger"]) -> Bounds:
    """The bounds of the smaller or larger of two sizes."""
    if kind == "smaller":
        return min(a[0], b[0]), smaller_bound(a[1], b[1])
    return max(a[0], b[0]), larger_bound(a[1], b[1])
