"""LoD propagation: how the lengths of Sequences pass through ops that know nothing of them."""

from seqflow.carrying.call import Lifted

__all__ = ["Lifted"]
