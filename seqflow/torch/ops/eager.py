"""Calls without torch's dispatcher, for plain tensors on the CPU that nothing traces or transforms.

The dispatcher takes longer than a small op. It finds our kernel, and looks for modes, transforms and tracers. If
there are none, the kernel is called directly, or by a function of autograd that saves tensors for the derivative.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import (
    _get_tracing_state,
    _len_torch_dispatch_stack,
    _len_torch_function_stack,
)
from torch._C._functorch import (  # type: ignore[import-not-found, unused-ignore]
    TransformType,
    is_legacy_batchedtensor,
    peek_interpreter_stack,
)
from torch.nn import Parameter

from seqflow.torch.ops.gradients import Gradients, gradients_of, keep

_PLAIN = (Tensor, Parameter)
Run = Callable[[Sequence[Any], Mapping[str, Any]], Any]


def is_plain(inputs: Sequence[Any]) -> bool:
    """Return whether these are tensors of the CPU, or None, that nothing traces or transforms."""
    if torch.compiler.is_compiling():  # first: compilers cannot trace the calls below
        return False
    for one in inputs:
        if one is not None and (type(one) not in _PLAIN or not one.is_cpu or is_legacy_batchedtensor(one)):
            return False
    return not (
        _len_torch_dispatch_stack()
        or _len_torch_function_stack()
        or peek_interpreter_stack() is not None
        or _get_tracing_state() is not None
    )


def eager_call(gradients: Gradients, kernel: Callable[..., Any]) -> Run:
    """Return the op on plain tensors."""
    floats = [i for i, may in enumerate(gradients.floats) if may]

    class Eager(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, attributes: Mapping[str, Any], *inputs: Any) -> Any:
            output = kernel(*inputs, **attributes)
            keep(ctx, gradients, inputs, attributes, output, ctx.needs_input_grad[1:])
            return output

        @staticmethod
        def backward(ctx: Any, *arriving: Any) -> Any:
            return None, *gradients_of(ctx, arriving)

    apply: Callable[..., Any] = Eager.apply

    def run(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        if torch.is_grad_enabled():
            for i in floats:
                one = inputs[i]
                if one is not None and one.requires_grad:
                    return apply(attributes, *inputs)
        return kernel(*inputs, **attributes)

    return run


def is_transformed() -> bool:
    """Return whether torch.func differentiates or maps the current call."""
    if torch.compiler.is_compiling():
        return False
    innermost = peek_interpreter_stack()
    return innermost is not None and innermost.key() in (TransformType.Grad, TransformType.Vmap)


def transformed_call(gradients: Gradients, overload: Callable[..., Any]) -> Run:
    """Return the op for calls inside torch.func.grad, vjp, jacrev or vmap, which require `setup_context`."""

    class Transformed(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(attributes: Mapping[str, Any], *inputs: Any) -> Any:
            return overload(*inputs, **attributes)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            attributes, *given = inputs
            keep(ctx, gradients, given, attributes, output, ctx.needs_input_grad[1:])

        @staticmethod
        def backward(ctx: Any, *arriving: Any) -> Any:
            return None, *gradients_of(ctx, arriving)

    apply: Callable[..., Any] = Transformed.apply
    return lambda inputs, attributes: apply(attributes, *inputs)
