"""Epoch state that worker processes share: the epoch that is set, and which workers have finished it."""

from __future__ import annotations

from seqflow.errors import OpError

_SET, _EPOCH, _BEGUN, _ENDED = range(4)
_MOST_WORKERS = 1021
"""Workers that may share the state: with the three cells before them 8 KiB, two pages of memory."""


class Passes:
    """The epoch that is set, and which workers have begun and finished it, in shared memory."""

    def __init__(self) -> None:
        import torch

        self._cells = torch.zeros(_ENDED + _MOST_WORKERS, dtype=torch.int64).share_memory_()
        self._cells[_ENDED:] = -1

    @property
    def times_set(self) -> int:
        """How often the epoch was set."""
        return int(self._cells[_SET])

    @property
    def epoch(self) -> int:
        """The epoch that was set last."""
        return int(self._cells[_EPOCH])

    @property
    def has_begun(self) -> bool:
        """Whether a worker has begun a pass since the epoch was set."""
        return bool(self._cells[_BEGUN])

    def set_epoch(self, epoch: int) -> None:
        self._cells[_EPOCH], self._cells[_BEGUN] = epoch, 0
        self._cells[_SET] += 1

    def begin(self) -> None:
        self._cells[_BEGUN] = 1

    def end(self, worker: int) -> None:
        """Remember that a worker has ended its pass over the epoch that is set."""
        self._cells[_ENDED + worker] = self._cells[_SET]

    def is_over(self, worker: int) -> bool:
        """Whether this worker, or one before it in its place, has ended a pass over the epoch that is set."""
        if worker >= _MOST_WORKERS:
            raise OpError(
                f"seqflow.torch.iterable: worker {worker}, expected at most {_MOST_WORKERS} workers"
            )
        return int(self._cells[_ENDED + worker]) == self.times_set
