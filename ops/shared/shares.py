"""Attributes that are shares of a whole."""

from seqflow.errors import OpError


def share(name: str, value: float) -> float:
    """Return a share; raise OpError unless it is from 0 to 1."""
    if not 0 <= value <= 1:
        raise OpError(f"{name} is {value}, expected 0 to 1")
    return value
