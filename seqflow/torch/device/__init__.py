"""Second implementations of ops, in torch's own functions: for tensors on any device, differentiable by torch.

    from seqflow.torch.device import IMPLEMENTATIONS

    pooled = IMPLEMENTATIONS["lengths_sum"](x, lengths, empty=0)

Inputs go by position, attributes by name, as the op itself takes them; the result is a tensor, or a tuple of
tensors (and lists of tensors), on the device of the inputs and in memory of its own. dtypes, shapes, values and
errors are those of the op on arrays. bfloat16 is computed in float32 and comes back.

What is checked of values is checked at once on the CPU. On CUDA it is checked on the device, by an assertion that the
host does not wait for; on other devices the host waits. Where the size of a result is not that of an input the
host waits too: docs/devices.md lists the ops, and for what. Sums of floats are made in the dtype of the result. No op
uses a function that `torch.use_deterministic_algorithms(True)` refuses.
"""

from collections.abc import Mapping
from types import MappingProxyType

from seqflow.torch.device import (  # each registers its ops
    gathers,
    lengths,
    padding,
    planned,
    pooling,
    recurrent,
    segment_ids,
    segments,
    within,
)
from seqflow.torch.device.registration import IMPLEMENTED, Implementation

IMPLEMENTATIONS: Mapping[str, Implementation] = MappingProxyType(IMPLEMENTED)
"""The implementations by the names of the ops."""

__all__ = ["IMPLEMENTATIONS", "Implementation"]
