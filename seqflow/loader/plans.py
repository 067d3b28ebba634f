"""The batch plans that a loader takes."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from seqflow.errors import OpTypeError
from seqflow.loader.batching import Rows, TokenBudget
from seqflow.loader.packing import Packed
from seqflow.record import Record


class BatchSize(NamedTuple):
    """What a batch holds, known before it is made."""

    rows: int
    """Rows of the batch: rows of the window, or packed rows."""
    tokens: int
    """Elements of the planned column in it."""
    cells: int
    """Elements when dense: of packed rows, or of rows padded to the longest."""


class WindowBatches(Protocol):
    """The batches of one window: planned on lengths at once, made one by one, in any order."""

    def __len__(self) -> int: ...

    def size(self, number: int) -> BatchSize: ...

    def make(self, number: int) -> Record: ...


BatchPlan = Rows | TokenBudget | Packed


def batch_plan(batch: BatchPlan | int) -> BatchPlan:
    """The plan itself, or `Rows(n)` for an integer n.

    >>> batch_plan(32)
    Rows(n=32, drop_last=False, lengths=None)
    """
    if isinstance(batch, BatchPlan):
        return batch
    if isinstance(batch, int) and not isinstance(batch, bool):
        return Rows(batch)
    raise OpTypeError(
        f"batch is {batch!r}, expected a number of rows, Rows(n), TokenBudget(max_tokens) or Packed(capacity)"
    )
