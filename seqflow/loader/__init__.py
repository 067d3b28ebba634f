"""Loaders: batches from a provider, planned on lengths, in an order that a seed decides."""

from seqflow.loader.bad_rows import BadRows
from seqflow.loader.batching import Rows
from seqflow.loader.buckets import Buckets
from seqflow.loader.loader import Loader
from seqflow.loader.mix import Mix
from seqflow.loader.order import Shuffle
from seqflow.loader.packing import Packed
from seqflow.loader.padding import Pad
from seqflow.loader.plans import BatchPlan
from seqflow.loader.stats import Stats
from seqflow.loader.token_budget import TokenBudget

__all__ = [
    "BadRows",
    "BatchPlan",
    "Buckets",
    "Loader",
    "Mix",
    "Packed",
    "Pad",
    "Rows",
    "Shuffle",
    "Stats",
    "TokenBudget",
]
