"""The order of an epoch: how rows are shuffled."""

from __future__ import annotations

from dataclasses import dataclass

from seqflow.errors import OpError


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Blocks in a random order each epoch, and rows in a random order inside each window.

    The order depends on `seed` and the epoch alone. A window that holds all rows is shuffled exactly.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed < 2**64:
            raise OpError(f"Shuffle: seed is {self.seed!r}, expected an integer from 0 to 2**64 - 1")
