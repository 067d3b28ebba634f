"""Loaders: batches from a provider, planned on lengths, in an order that a seed decides."""

from seqflow.loader.bad_rows import BadRows
from seqflow.loader.batching import Rows, TokenBudget
from seqflow.loader.loader import Loader
from seqflow.loader.order import Shuffle
from seqflow.loader.packing import Packed
from seqflow.loader.padding import Pad
from seqflow.loader.plans import BatchPlan
from seqflow.loader.stats import Stats

__all__ = ["BadRows", "BatchPlan", "Loader", "Packed", "Pad", "Rows", "Shuffle", "Stats", "TokenBudget"]
