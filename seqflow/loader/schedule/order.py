"""The order of an epoch: how blocks and rows are shuffled, and what random numbers are drawn for."""

from __future__ import annotations

from dataclasses import dataclass

from seqflow.errors import OpError

BLOCKS, ROWS, BATCHES, PREPARE, NET = range(5)
"""What random numbers are drawn for, mixed into the keys so that no two purposes share numbers. Other values would be
another order: saved states would go on elsewhere."""


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Blocks in a random order each epoch, and rows in a random order inside each window.

    The order depends on `seed` and the epoch alone. A window that holds all rows is shuffled exactly.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed < 2**64:
            raise OpError(f"Shuffle: seed is {self.seed!r}, expected an integer from 0 to 2**64 - 1")
