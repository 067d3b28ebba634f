"""Rows written more than once: each for its whole segment, each with its neighbours."""

# mypy: disable-error-code="no-any-return"

from typing import Any

from seqflow.kernels import choice
from seqflow.kernels.arrays import Array


def expand(data: Array, lengths: Array, *, out: Array | None = None) -> Array:
    """Each row as many times as its length says: data[B, *d], lengths[B] -> rows[sum(lengths), *d]."""
    return choice.chosen.expand(data, lengths, out=out)


def windows(data: Array, lengths: Array, before: int, after: int, value: Any = 0) -> Array:
    """Each row with those around it in its segment: data[sum(lengths), *d] -> [sum(lengths), before+1+after, *d].

    Places outside the segment hold `value`.
    """
    return choice.chosen.windows(data, lengths, before, after, value)
