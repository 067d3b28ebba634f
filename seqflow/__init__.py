"""seqflow: variable-length data as flat values and explicit lengths.

A variable-length sequence is a flat `values` tensor plus a separate `lengths` tensor; more levels are more
lengths tensors. Every op takes the lengths as an input; no op guesses them.
"""

from seqflow import ops, providers, registry
from seqflow.errors import (
    ExpressionError,
    JobError,
    LodError,
    NetError,
    OpError,
    ProviderError,
    SeqflowError,
    ShapeError,
)
from seqflow.kernels import info, set_num_threads
from seqflow.loader import BadRows, Loader, Packed, Rows, TokenBudget
from seqflow.lod import LoD
from seqflow.net import Net
from seqflow.providers import open
from seqflow.record import from_arrow, to_arrow
from seqflow.registry import op

__version__ = "0.1.0"

__all__ = [
    "BadRows",
    "ExpressionError",
    "JobError",
    "LoD",
    "LodError",
    "Loader",
    "Net",
    "NetError",
    "OpError",
    "Packed",
    "ProviderError",
    "Rows",
    "SeqflowError",
    "ShapeError",
    "TokenBudget",
    "from_arrow",
    "info",
    "op",
    "open",
    "ops",
    "providers",
    "registry",
    "set_num_threads",
    "to_arrow",
]
