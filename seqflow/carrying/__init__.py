"""LoD propagation: how the lengths of Sequences pass through ops that know nothing of them."""

from seqflow.carrying.call import Carrier, Lifted

__all__ = ["Carrier", "Lifted"]
