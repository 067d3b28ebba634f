"""The batch plans that a loader takes."""

from __future__ import annotations

from seqflow.errors import OpTypeError
from seqflow.loader.plans.batches import RowBatches
from seqflow.loader.plans.buckets import Buckets
from seqflow.loader.plans.packed import Packed, PackedBatches
from seqflow.loader.plans.rows import Rows
from seqflow.loader.plans.token_budget import TokenBudget

BatchPlan = Rows | TokenBudget | Buckets | Packed
WindowBatches = RowBatches | PackedBatches


def batch_plan(batch: BatchPlan | int) -> BatchPlan:
    """The plan itself, or `Rows(n)` for an integer n.

    >>> batch_plan(32) == Rows(32)
    True
    """
    if isinstance(batch, BatchPlan):
        return batch
    if isinstance(batch, int) and not isinstance(batch, bool):
        return Rows(batch)
    raise OpTypeError(
        f"batch is {batch!r}, expected a number of rows, Rows(n), TokenBudget(max_tokens), "
        "Buckets(boundaries, plan) or Packed(capacity)"
    )
