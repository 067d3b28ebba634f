"""Sparse gradients of tables: with `sparse=True` the gradient of a pooled look-up has only the rows that were read.

As with `torch.nn.EmbeddingBag(sparse=True)`, the gradient of the table is a sparse tensor, which SparseAdam and SGD
take. It has no derivative of its own, and compilers break the graph at it, since they cannot make sparse tensors.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from seqflow.registry import OpDef
from seqflow.torch.ops.net_functions import Caller

Calls = Mapping[str, Callable[..., Any]]
"""Ops that the gradients use, by name."""
_USED = ("expand", "gather", "lengths_sum", "lengths_to_positions")


def sparse_call(op: OpDef, op_of: Caller) -> Callable[..., Tensor] | None:
    """Return a pooled look-up with a sparse gradient; None for an op without one.

    The function takes the look-up itself, its inputs and its attributes.
    """
    factor = op.sparse_factor
    if factor is None:
        return None
    calls = {used: op_of(used) for used in _USED}
    apply: Callable[..., Tensor] = _SparsePooled.apply
    return lambda pool, inputs, named: apply(pool, calls, factor, dict(named), *inputs)


class _SparsePooled(torch.autograd.Function):
    """Pooled look-up; its inputs are the table, optional weights, indices and lengths."""

    @staticmethod
    def forward(
        ctx: Any,
        pool: Callable[..., Tensor],
        calls: Calls,
        factor: str,
        named: dict[str, Any],
        *inputs: Tensor,
    ) -> Tensor:
        ctx.calls, ctx.factor, ctx.ignored = calls, factor, named.get("ignore_index")
        ctx.shape, ctx.dtype = inputs[0].shape, inputs[0].dtype
        ctx.needs_weights = len(inputs) == 4 and ctx.needs_input_grad[5]
        ctx.save_for_backward(*inputs[1:], *inputs[: int(ctx.needs_weights)])
        return pool(*[one.detach() for one in inputs], **named)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, arriving: Tensor) -> Any:
        count = len(ctx.needs_input_grad) - 5
        *weights, indices, lengths = ctx.saved_tensors[:count]
        rows = ctx.calls["expand"](arriving.contiguous(), lengths, total=indices.shape[0])
        found: list[Tensor | None] = [None] * (count + 1)
        if ctx.needs_input_grad[4]:
            factors = _FACTORS[ctx.factor](ctx.calls, weights, indices, lengths, ctx.ignored)
            found[0] = _of_table(rows, factors, indices, ctx.shape, ctx.dtype, ctx.ignored)
        if ctx.needs_weights:
            taken = ctx.calls["gather"](ctx.saved_tensors[-1].detach(), indices, ignore_index=ctx.ignored)
            each = (rows * taken).flatten(1).sum(1) if rows.ndim > 1 else rows * taken
            found[1] = _of_weights(ctx.calls, ctx.factor, each, weights[0], lengths)
        return None, None, None, None, *found


def _of_table(
    rows: Tensor,
    factors: Tensor | None,
    indices: Tensor,
    shape: torch.Size,
    dtype: torch.dtype,
    ignored: int | None,
) -> Tensor:
    values = rows if factors is None else rows * factors.to(rows.dtype).reshape(-1, *[1] * (rows.ndim - 1))
    if ignored is not None:
        kept = indices != ignored
        indices, values = indices[kept], values[kept]
    wide = values.to(torch.promote_types(dtype, torch.float32))
    found = torch.sparse_coo_tensor(indices.to(torch.int64)[None], wide, shape, check_invariants=False)
    # coalesced before the cast, so that rows of one index are summed in float32
    return found if wide.dtype is dtype else found.coalesce().to(dtype)


def _of_weights(calls: Calls, factor: str, each: Tensor, weights: Tensor, lengths: Tensor) -> Tensor:
    """Return the gradient of weights from the gradients of each look-up; for weights by position their sum."""
    if factor == "weights":
        return each.to(weights.dtype)
    places = calls["lengths_to_positions"](lengths).long()
    sums = torch.zeros_like(weights, dtype=torch.float64).index_add(0, places, each.double())
    return sums.to(weights.dtype)


def _shares(
    calls: Calls, weights: Sequence[Tensor], indices: Tensor, lengths: Tensor, ignored: int | None
) -> Tensor:
    used = torch.ones_like(indices) if ignored is None else indices != ignored
    counts = calls["lengths_sum"](used.to(torch.int64), lengths).clamp_min(1).to(torch.float64)
    shares: Tensor = calls["expand"](1 / counts, lengths, total=indices.shape[0])
    return shares


def _by_position(
    calls: Calls, weights: Sequence[Tensor], indices: Tensor, lengths: Tensor, ignored: int | None
) -> Tensor:
    found: Tensor = calls["gather"](weights[0].detach(), calls["lengths_to_positions"](lengths))
    return found


_FACTORS: Mapping[str, Callable[..., Tensor | None]] = {
    "one": lambda *_: None,
    "shares": _shares,
    "weights": lambda calls, weights, *_: weights[0].detach(),
    "weights by position": _by_position,
}
"""Factors of the rows of the table, by the `sparse_factor` of look-ups."""
