"""The batch plans that a loader takes."""

from __future__ import annotations

from seqflow.errors import OpTypeError
from seqflow.loader.batching import Rows, TokenBudget
from seqflow.loader.packing import Packed
from seqflow.loader.window_batches import BatchSize, WindowBatches

__all__ = ["BatchPlan", "BatchSize", "WindowBatches", "batch_plan"]


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
