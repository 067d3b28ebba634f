"""Gradients of ops in torch: their derivatives, run on tensors; only what they name is saved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from seqflow import registry
from seqflow.errors import GradientError
from seqflow.net.gradient import derivative
from seqflow.net.gradient.derivative import is_differentiable
from seqflow.registry import OpDef
from seqflow.signature.language import Sum
from seqflow.torch.ops.dtypes import numpy_dtype
from seqflow.torch.ops.net_functions import Caller, net_function
from seqflow.torch.ops.schemas import attributes_of


@dataclass(frozen=True, slots=True)
class Backward:
    """The derivative of one kind of call."""

    inputs: tuple[str, ...]
    """The tensors that it takes: inputs by name, `out.y`, `d.y`."""
    run: Callable[..., tuple[Tensor, ...]]


def register_gradients(op: OpDef, library: torch.library.Library, op_of: Caller) -> None:
    """Let torch's autograd know the derivative of an op."""
    names = [one.name for one in op.signature.input_arguments]
    floats = [is_differentiable(op, name) for name in names]
    outputs = [one.field for one in op.signature.output_arguments]

    def setup_context(
        ctx: Any, inputs: Sequence[Any], output: Any, keyword_only_inputs: Mapping[str, Any] = {}
    ) -> None:
        wanted = tuple(
            name
            for name, needs, may in zip(names, ctx.needs_input_grad, floats, strict=False)
            if may and (any(needs) if isinstance(needs, (list, tuple)) else needs)
        )
        ctx.seqflow_given = tuple(
            (name, len(value) if isinstance(value, (list, tuple)) else None)
            for name, value in zip(names, inputs, strict=False)
            if value is not None
        )
        ctx.seqflow_attributes = _frozen(op, keyword_only_inputs)
        ctx.seqflow_wanted = wanted
        ctx.seqflow_reason = None
        if not wanted:
            return
        try:
            backward = _backward(op.name, ctx.seqflow_attributes, ctx.seqflow_given, wanted, op_of)
        except GradientError as error:
            ctx.seqflow_reason = str(error)
            return
        results = output if isinstance(output, tuple) else (output,)
        known = _named("", dict(zip(names, inputs, strict=False))) | _named(
            "out.", dict(zip(outputs, results, strict=True))
        )
        ctx.save_for_backward(*(known[name] for name in backward.inputs if name in known))

    def backward(ctx: Any, *arriving: Any) -> tuple[Any, ...]:
        if ctx.seqflow_reason is not None:
            raise GradientError(ctx.seqflow_reason)
        if not ctx.seqflow_wanted:
            return (None,) * len(names)
        made = _backward(op.name, ctx.seqflow_attributes, ctx.seqflow_given, ctx.seqflow_wanted, op_of)
        saved = iter(ctx.saved_tensors)
        cotangents = _named("d.", dict(zip(outputs, arriving, strict=True)))
        found = iter(
            made.run(*(cotangents[name] if name in cotangents else next(saved) for name in made.inputs))
        )
        counts = dict(ctx.seqflow_given)
        gradients: list[Any] = []
        for name in names:
            count = counts.get(name)
            if name not in ctx.seqflow_wanted:
                gradients.append(None if count is None else [None] * count)
            else:
                gradients.append(next(found) if count is None else [next(found) for _ in range(count)])
        return tuple(gradients)

    torch.library.register_autograd(f"seqflow::{op.name}", backward, setup_context=setup_context, lib=library)


def _named(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors by the names that derivatives have for them."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, (list, tuple)):
            found |= {f"{prefix}{name}.{i}": one for i, one in enumerate(value)}
        else:
            found[prefix + name] = value
    return found


def _frozen(op: OpDef, given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The attributes of a call, to look its derivative up by."""
    found = {}
    for one in attributes_of(op):
        value = given.get(one.name)
        if value is None and not one.required:
            value = one.default
        elif one.kind == "dtype":
            value = numpy_dtype(value)
        found[one.name] = tuple(value) if isinstance(value, list) else value
    return tuple(found.items())


@lru_cache(maxsize=4096)
def _backward(
    name: str,
    attributes: tuple[tuple[str, Any], ...],
    given: tuple[tuple[str, int | None], ...],
    wanted: tuple[str, ...],
    op_of: Caller,
) -> Backward:
    op = registry.get(name)
    net = derivative(op, dict(attributes), dict(given), wanted)
    return Backward(net.inputs, net_function(net, op_of, _totals(op, net.inputs)))


def _totals(op: OpDef, inputs: Sequence[str]) -> dict[str, str]:
    """For lengths a tensor that has as many rows as they add up to, where the derivative takes one."""
    found: dict[str, str] = {}
    arguments = [(one.name, one) for one in op.signature.input_arguments]
    arguments += [(f"out.{one.field}", one) for one in op.signature.output_arguments]
    for name, argument in arguments:
        if (
            name in inputs
            and argument.dims
            and isinstance(argument.dims[0], Sum)
            and "'" not in argument.dims[0].of
        ):
            found.setdefault(argument.dims[0].of, name)
    return found
