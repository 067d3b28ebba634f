"""Ops on tensors that train, compile and export: `seqflow.torch.ops.lengths_sum(x, n)`.

    from seqflow.torch import ops as T

    pooled = T.lengths_sum(torch.softmax(x, -1), lengths)     # also torch.ops.seqflow.lengths_sum
    pooled.sum().backward()

They are the ops of `seqflow.ops`, with the same names, arguments, dtypes and errors, on torch's tensors. On the CPU
they run our kernels on the memory of the tensors. An op is registered with torch at its first use;
`register_all()` registers all, which is necessary to load an exported program. Elementwise ops and expressions are
torch's own functions, so that compilers fuse them. See docs/torch.md.
"""

from typing import Any

from seqflow import registry
from seqflow.errors import OpError
from seqflow.torch.ops.registration import call_of, register_all
from seqflow.torch.ops.schemas import why_not

__all__ = ["register_all"]


def __getattr__(name: str) -> Any:
    try:
        found = globals()[name] = call_of(name)
    except OpError as error:
        raise AttributeError(str(error)) from None
    return found


def __dir__() -> list[str]:
    return sorted(
        [
            *__all__,
            *(op.name for op in map(registry.get, registry.names()) if op.expression or why_not(op) is None),
        ]
    )
