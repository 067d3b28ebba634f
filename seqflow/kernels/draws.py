"""Keys of the rows that random ops draw for, so that a row draws the same wherever it stands."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from seqflow.kernels.arrays import Array

Reseed = Callable[[int], int]
"""Returns the seed of a random op in a run, made from its own."""

_KEYS: ContextVar[Array | None] = ContextVar("keys of the sequences of a random op", default=None)


@dataclass(frozen=True, slots=True)
class RowDraws:
    """Draws of a run by row: a function of the seed, the epoch and the row, not of the batch."""

    by_batch: Reseed
    """Seed for ops whose sequences do not come from rows of the record, as far as inference knows."""
    by_row: Reseed
    """Seed for all others; it is the same for all batches of an epoch."""
    keys: Array
    """uint64: a number for each row of the record, such as one made from its place in the source."""


@contextmanager
def drawing(keys: Array | None) -> Iterator[None]:
    """Let the random op that is called draw for sequences with these keys, instead of numbering them."""
    token = _KEYS.set(keys)
    try:
        yield
    finally:
        _KEYS.reset(token)


def drawn_keys() -> Array | None:
    """Return the keys of the sequences of the op that is running; None if they are numbered from 0."""
    return _KEYS.get()
