"""From named tensors to Arrow."""

from seqflow.record.to_arrow.columns import to_arrow

__all__ = ["to_arrow"]
