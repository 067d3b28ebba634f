"""Checks of options that are counts."""

from seqflow.errors import OpError


def at_least_one(plan: str, **counts: int | None) -> None:
    """OpError unless each count is an int, 1 or more, or left out."""
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise OpError(f"{plan}: {name} is {count!r}, expected an integer, 1 or more")
