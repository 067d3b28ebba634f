"""The specs of batches, from one without rows."""

from __future__ import annotations

from collections.abc import Mapping

from seqflow.loader.plans.pad import Pad
from seqflow.record import Record
from seqflow.shape import Dimension
from seqflow.signature import Described, OwnRows
from seqflow.tensor import TensorSpec


def specs_of(batch: Record, pads: Mapping[str, Pad]) -> dict[str, TensorSpec]:
    """Specs of batches that have the tensors of this one, with any number of rows; padded ones with any width."""
    rows = Dimension.symbol("batch")
    specs = {}
    for name, tensor in batch.items():
        parent = batch.parents[name]
        sizes = [Dimension(size) for size in tensor.shape[1:]]
        pad = pads.get(name.removesuffix(".mask"))
        if pad is not None and pad.max_length is None and sizes:
            sizes[0] = Dimension.axis_of(name.removesuffix(".mask"), 1)
        first = rows if parent is None else Dimension.sum_of(parent)
        specs[name] = TensorSpec(
            tensor.dtype, [first, *sizes], OwnRows("the record") if parent is None else Described(parent)
        )
    return specs
