"""Checks of the numbers that batch plans are given."""

from __future__ import annotations

from seqflow.errors import OpError


def at_least_one(plan: str, **counts: int | None) -> None:
    """OpError unless each count is an int, 1 or more, or left out."""
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise OpError(f"{plan}: {name} is {count!r}, expected an integer, 1 or more")


def check_lengths_between(plan: str, min_length: int | None, max_length: int | None) -> None:
    """OpError for filters that no row passes."""
    at_least_one(plan, min_length=min_length, max_length=max_length)
    if min_length is not None and max_length is not None and min_length > max_length:
        raise OpError(f"{plan}: min_length is {min_length}, expected at most max_length = {max_length}")
