"""Loaders: batches from a provider, planned on lengths, in an order that a seed decides."""

from seqflow.arguments import check_public
from seqflow.loader.epoch.ranks import Ranks
from seqflow.loader.epoch.weights import Schedule
from seqflow.loader.loader import Loader
from seqflow.loader.mix import Mix
from seqflow.loader.order.recipe import Shuffle
from seqflow.loader.plans.along import Along
from seqflow.loader.plans.balance import Balance
from seqflow.loader.plans.packed import Packed
from seqflow.loader.plans.plan import BatchPlan, Layout, permutation
from seqflow.loader.plans.row_plans import Buckets, Rows, TokenBudget
from seqflow.loader.plans.window_rows import Pad
from seqflow.loader.replay import Replay
from seqflow.loader.run.ledger import BadRows, Stats
from seqflow.loader.run.workers import Prefetch
from seqflow.loader.verdicts import Verdict, verdict

__all__ = [
    "Along",
    "BadRows",
    "Balance",
    "BatchPlan",
    "Buckets",
    "Layout",
    "Loader",
    "Mix",
    "Packed",
    "Pad",
    "Prefetch",
    "Ranks",
    "Replay",
    "Rows",
    "Schedule",
    "Shuffle",
    "Stats",
    "TokenBudget",
    "Verdict",
    "permutation",
    "verdict",
]

check_public(globals())
