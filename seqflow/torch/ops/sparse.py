"""Sparse gradients of tables: pooled look-ups with `sparse=True` touch the rows that they read, and no others.

As with `torch.nn.EmbeddingBag(sparse=True)` the gradient of the table is a sparse tensor, which SparseAdam and SGD
take. It has no derivative of its own.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from seqflow.torch.ops.net_functions import Caller


def sparse_call(name: str, op_of: Caller) -> Callable[..., Tensor] | None:
    """The pooled look-up of this name with a sparse gradient; None where there is no such."""
    made = _MADE.get(name)
    if made is None:
        return None
    return lambda inputs, named: made(op_of, inputs, named)


def _sum(op_of: Caller, inputs: Any, named: Mapping[str, Any]) -> Tensor:
    table, indices, lengths = inputs
    return _pooled(op_of, table, None, indices, lengths, named)


def _mean(op_of: Caller, inputs: Any, named: Mapping[str, Any]) -> Tensor:
    table, indices, lengths = inputs
    ignored = named.get("ignore_index")
    used = torch.ones_like(indices) if ignored is None else (indices != ignored).to(torch.int64)
    counts = op_of("lengths_sum")(used, lengths).clamp_min(1).to(table.dtype)
    shares = op_of("expand")(1 / counts, lengths, total=indices.shape[0])
    return _pooled(op_of, table, shares, indices, lengths, named)


def _weighted(op_of: Caller, inputs: Any, named: Mapping[str, Any]) -> Tensor:
    table, weights, indices, lengths = inputs
    return _pooled(op_of, table, weights, indices, lengths, named)


def _positional(op_of: Caller, inputs: Any, named: Mapping[str, Any]) -> Tensor:
    table, weights, indices, lengths = inputs
    factors = op_of("gather")(weights, op_of("lengths_to_positions")(lengths))
    return _pooled(op_of, table, factors, indices, lengths, named)


_MADE: Mapping[str, Callable[[Caller, Any, Mapping[str, Any]], Tensor]] = {
    "sparse_lengths_sum": _sum,
    "sparse_lengths_mean": _mean,
    "sparse_lengths_weighted_sum": _weighted,
    "sparse_lengths_positional_weighted_sum": _positional,
}


def _pooled(
    op_of: Caller,
    table: Tensor,
    weights: Tensor | None,
    indices: Tensor,
    lengths: Tensor,
    named: Mapping[str, Any],
) -> Tensor:
    apply: Callable[..., Tensor] = _SparsePooled.apply
    return apply(op_of, table, weights, indices, lengths, dict(named))


class _SparsePooled(torch.autograd.Function):
    """A pooled sum, of weighted rows where there are weights."""

    @staticmethod
    def forward(
        ctx: Any,
        op_of: Caller,
        table: Tensor,
        weights: Tensor | None,
        indices: Tensor,
        lengths: Tensor,
        named: dict[str, Any],
    ) -> Tensor:
        ctx.op_of, ctx.ignored, ctx.is_weighted = op_of, named.get("ignore_index"), weights is not None
        ctx.shape = table.shape
        needs_table = weights is not None and ctx.needs_input_grad[2]
        ctx.save_for_backward(
            indices, lengths, *([] if weights is None else [weights]), *([table] * needs_table)
        )
        kind, factors = ("sum", []) if weights is None else ("weighted_sum", [weights.detach()])
        found: Tensor = op_of(f"sparse_lengths_{kind}")(table.detach(), *factors, indices, lengths, **named)
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, arriving: Tensor) -> Any:
        indices, lengths, *others = ctx.saved_tensors
        weights = others[0] if ctx.is_weighted else None
        rows = ctx.op_of("expand")(arriving.contiguous(), lengths, total=indices.shape[0])
        of_weights = None
        if weights is not None and ctx.needs_input_grad[2]:
            taken = ctx.op_of("gather")(others[1].detach(), indices, ignore_index=ctx.ignored)
            of_weights = (rows * taken).flatten(1).sum(1).to(weights.dtype)
        of_table = None
        if ctx.needs_input_grad[1]:
            values = rows if weights is None else rows * weights.reshape(-1, *[1] * (rows.ndim - 1))
            if ctx.ignored is not None:
                kept = indices != ctx.ignored
                indices, values = indices[kept], values[kept]
            of_table = torch.sparse_coo_tensor(
                indices.to(torch.int64)[None], values, ctx.shape, check_invariants=False
            )
        return None, of_table, of_weights, None, None, None
