"""Ops on jax's arrays, for functions that jax does not have: `seqflow.jax.ops.truncate(x, n, max_length=8,
total=20)`.

    from seqflow.jax import ops as J

    pooled = jax.jit(lambda x, n: J.lengths_logsumexp(x, n))(x, n)
    jax.grad(lambda x: J.lengths_logsumexp(x, n).sum())(x)

They are the ops of `seqflow.ops`, with their names, arguments and errors, called on the host from jax's programs,
with first derivatives by the formulas of the ops. A call costs about 0.1 ms, and copies of its arrays: a function of
jax (`jax.ops.segment_sum`) is faster. Outside `jax.jit`, each call is traced again, which takes about 20 ms.

jax needs the sizes of results before there are data. Most follow from the inputs; if lengths decide, `total=` gives
their sum. dtypes are those of the op, in 32 bits unless jax has 64 enabled.
"""

from typing import Any

from seqflow import registry
from seqflow.errors import OpError
from seqflow.jax.calls import call_of, why_not

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'seqflow.jax.ops' has no attribute {name!r}")
    try:
        return call_of(name)
    except OpError as error:
        raise AttributeError(str(error)) from None


def __dir__() -> list[str]:
    return [name for name in registry.names() if why_not(registry.get(name)) is None]
