"""Sparse gradients of tables: with `sparse=True` the gradient of a pooled look-up has only the rows that were read.

As with `torch.nn.EmbeddingBag(sparse=True)`, the gradient of the table is a sparse tensor, which SparseAdam and SGD
take. It has no derivative of its own. Each look-up is a second op of torch, `torch.ops.seqflow.NAME.sparse`:
compilers trace the derivative of a registered op below Python, where they know sparse tensors.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from seqflow.registry import OpDef
from seqflow.torch.ops.fakes import fake_kernel
from seqflow.torch.ops.net_functions import Caller
from seqflow.torch.ops.schemas import schema_of

Calls = Mapping[str, Callable[..., Any]]
"""Ops that the gradients use, by name."""
_USED = ("boolean_mask", "expand", "gather", "lengths_sum", "lengths_to_positions", "unique")


def sparse_call(
    op: OpDef, pool: Callable[..., Tensor], library: torch.library.Library, op_of: Caller
) -> Callable[..., Tensor] | None:
    """Register a pooled look-up with a sparse gradient, and return it; None for an op without one."""
    factor = op.sparse_factor
    if factor is None:
        return None
    name = f"{op.name}.sparse"
    calls = {used: op_of(used) for used in _USED}

    def setup_context(
        ctx: Any, inputs: Sequence[Tensor], output: Any, keyword_only_inputs: Mapping[str, Any]
    ) -> None:
        ctx.ignored = keyword_only_inputs.get("ignore_index")
        ctx.shape, ctx.dtype = inputs[0].shape, inputs[0].dtype
        ctx.needs_weights = len(inputs) == 4 and ctx.needs_input_grad[1]
        # not the table, unless weights need it: an optimizer may step before the backward pass
        ctx.save_for_backward(*inputs[1:], *inputs[: int(ctx.needs_weights)])

    def backward(ctx: Any, arriving: Tensor) -> Any:
        count = len(ctx.needs_input_grad)
        *weights, indices, lengths = ctx.saved_tensors[: count - 1]
        rows = calls["expand"](arriving.contiguous(), lengths, total=indices.shape[0])
        found: list[Tensor | None] = [None] * count
        if ctx.needs_input_grad[0]:
            factors = _FACTORS[factor](calls, weights, indices, lengths, ctx.ignored)
            found[0] = _of_table(calls, rows, factors, indices, ctx.shape, ctx.dtype, ctx.ignored)
        if ctx.needs_weights:
            taken = calls["gather"](ctx.saved_tensors[-1].detach(), indices, ignore_index=ctx.ignored)
            each = (rows * taken).flatten(1).sum(1) if rows.ndim > 1 else rows * taken
            found[1] = _of_weights(calls, factor, each, weights[0], lengths)
        return tuple(found)

    library.define(schema_of(op).replace(op.name, name, 1), tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(name, pool, "CompositeExplicitAutograd")
    torch.library.register_fake(f"seqflow::{name}", fake_kernel(op), lib=library)
    torch.library.register_autograd(
        f"seqflow::{name}",
        torch.autograd.function.once_differentiable(backward),
        setup_context=setup_context,
        lib=library,
    )
    overload: Callable[..., Tensor] = getattr(torch.ops.seqflow, op.name).sparse
    return overload


def _of_table(
    calls: Calls,
    rows: Tensor,
    factors: Tensor | None,
    indices: Tensor,
    shape: torch.Size,
    dtype: torch.dtype,
    ignored: int | None,
) -> Tensor:
    values = rows if factors is None else rows * factors.to(rows.dtype).reshape(-1, *[1] * (rows.ndim - 1))
    if ignored is not None:
        indices, kept = calls["boolean_mask"](indices, indices != ignored)
        values = values.index_select(0, kept)
    if dtype not in (torch.float32, torch.float64):
        # rows of one index are summed in float32, and cast once
        indices, places, _ = calls["unique"](indices)
        sums = values.new_zeros((indices.shape[0], *shape[1:]), dtype=torch.float32)
        values = sums.index_add(0, places, values.float())
    return torch.sparse_coo_tensor(
        indices.to(torch.int64)[None], values.to(dtype), shape, check_invariants=False
    )


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
