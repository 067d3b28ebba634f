"""From a source of rows to batches of tensors."""

from seqflow.loader.bad_rows import BadRows
from seqflow.loader.batching import Rows, TokenBudget
from seqflow.loader.loader import Loader, Stats
from seqflow.loader.packing import Packed

__all__ = ["BadRows", "Loader", "Packed", "Rows", "Stats", "TokenBudget"]
