"""Ops that torch has functions for: these run in gradients and nets, so that compilers see them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def _cast_like(x: Tensor, like: Tensor) -> Tensor:
    return x.to(like.dtype)


def _sum_to(x: Tensor, like: Tensor) -> Tensor:
    return x.sum_to_size(like.shape).to(like.dtype)


def _spread(
    x: Tensor,
    like: Tensor,
    axes: int | Sequence[int] | None = None,
    keepdims: bool = False,
    mean: bool = False,
) -> Tensor:
    given = range(like.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    reduced = sorted(axis % like.ndim for axis in given)
    for axis in () if keepdims else reduced:
        x = x.unsqueeze(axis)
    if mean:
        count: Any = 1
        for axis in reduced:
            count = count * like.shape[axis]
        x = x / torch.sym_max(count, 1)
    return x.expand(like.shape)


def _row_numbers(like: Tensor) -> Tensor:
    return torch.arange(like.shape[0], device=like.device)


def _scale_rows(data: Tensor, scale: Tensor) -> Tensor:
    return data * scale.to(data.dtype).reshape(-1, *[1] * (data.ndim - 1))


def _concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    return torch.cat(list(tensors), axis)


def _expand_dims(x: Tensor, axis: int | Sequence[int]) -> Tensor:
    axes = [axis] if isinstance(axis, int) else axis
    for place in sorted(one % (x.ndim + len(axes)) for one in axes):
        x = x.unsqueeze(place)
    return x


COMPOSITES: Mapping[str, Callable[..., Any]] = {
    "broadcast_like": lambda x, like: x.expand(like.shape),
    "cast_like": _cast_like,
    "concat": _concat,
    "expand_dims": _expand_dims,
    "flatten_rows": lambda x: x.flatten(0, 1),
    "one_like": lambda x: torch.ones_like(x),
    "reshape_like": lambda x, like: x.reshape(like.shape),
    "row_numbers": _row_numbers,
    "scale_rows": _scale_rows,
    "spread": _spread,
    "stop_gradient": lambda x: x.detach(),
    "sum_to": _sum_to,
    "zeros_like": lambda like: torch.zeros_like(like),
}
"""By the names of ops; they take and give what these do."""
