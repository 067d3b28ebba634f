"""Second implementations of ops, in torch's own functions, for tensors on any device; torch differentiates them.

    from seqflow.torch.device import IMPLEMENTATIONS

    pooled = IMPLEMENTATIONS["lengths_sum"](x, lengths, empty=0)

Inputs are passed by position, attributes by name, as for the op itself. The result is a tensor, or a tuple of tensors
(and lists of tensors), on the device of the inputs and in its own memory. dtypes, shapes, values and errors are those
of the op on arrays. bfloat16 is computed in float32 and converted back.

Values are checked immediately on the CPU. On CUDA they are checked on the device, by an assertion that the host does
not wait for; on other devices the host waits. The host also waits if the size of a result depends on data:
docs/devices.md lists these ops. Sums of floats are computed in the dtype of the result. No op uses a function that
`torch.use_deterministic_algorithms(True)` refuses.
"""

from collections.abc import Mapping
from types import MappingProxyType

from seqflow.torch.device import (  # each registers its ops
    attention,
    by_ids,
    gathers,
    lengths,
    padding,
    planned,
    pooling,
    recurrent,
    routing,
    segment_ids,
    segments,
    within,
)
from seqflow.torch.device.registration import IMPLEMENTED, Implementation

IMPLEMENTATIONS: Mapping[str, Implementation] = MappingProxyType(IMPLEMENTED)
"""Implementations by the names of the ops."""

__all__ = ["IMPLEMENTATIONS", "Implementation"]
