"""From a source of rows to batches of tensors."""

from seqflow.loader.bad_rows import BadRows
from seqflow.loader.batching import Rows, TokenBudget
from seqflow.loader.loader import Loader, Stats
from seqflow.loader.packing import Packed
from seqflow.loader.padding import Pad
from seqflow.loader.plans import BatchPlan

__all__ = ["BadRows", "BatchPlan", "Loader", "Packed", "Pad", "Rows", "Stats", "TokenBudget"]
