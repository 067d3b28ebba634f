"""Conversion to and from PyTorch: batches, datasets for its DataLoader, and attention masks.

    for batch in loader.to("torch"): ...         # tensors that share the memory of the batch
    dataset = seqflow.torch.iterable(loader)     # for DataLoader(dataset, batch_size=None)
    pooled = seqflow.torch.ops.lengths_sum(x, n)    # the ops on tensors, with gradients
    model = seqflow.torch.module(net, parameters={"w": w})

PyTorch itself is imported by the functions that make tensors, when they are called.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seqflow.arguments import check_public
from seqflow.torch.attention import (
    block_diagonal_mask,
    cu_seqlens,
    cu_seqlens_padded,
    flex_block_mask,
    position_ids,
)
from seqflow.torch.collation import collate
from seqflow.torch.compiler import mark_ragged
from seqflow.torch.datasets import data_loader, iterable
from seqflow.torch.sequences import from_nested, from_packed_sequence, to_nested, to_packed_sequence
from seqflow.torch.tensors import from_tensors, to_tensors

if TYPE_CHECKING:
    from seqflow.torch import ops
    from seqflow.torch.net_module import module

__all__ = [
    "block_diagonal_mask",
    "collate",
    "cu_seqlens",
    "cu_seqlens_padded",
    "data_loader",
    "flex_block_mask",
    "from_nested",
    "from_packed_sequence",
    "from_tensors",
    "iterable",
    "mark_ragged",
    "module",
    "ops",
    "position_ids",
    "to_nested",
    "to_packed_sequence",
    "to_tensors",
]

check_public(globals())


def __getattr__(name: str) -> Any:
    """Return `ops` or `module`, which need torch and are imported at their first use."""
    if name == "ops":
        return import_module("seqflow.torch.ops")
    if name == "module":
        return import_module("seqflow.torch.net_module").module
    advice = "" if name.startswith("_") else "\n  ops on tensors are in seqflow.torch.ops"
    raise AttributeError(f"module 'seqflow.torch' has no attribute {name!r}{advice}")
