"""LoD propagation: how the lengths of Sequences pass through ops that do not know them."""

from seqflow.lod_propagation.call import Lifted

__all__ = ["Lifted"]
