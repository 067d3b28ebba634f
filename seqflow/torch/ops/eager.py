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

from seqflow.torch.ops.exchange import arrays_of
from seqflow.torch.ops.gradients import Backward, Gradients, gradients_of, keep, keep_for
from seqflow.torch.ops.kernels import array_kernel

_PLAIN = (Tensor, Parameter)
Run = Callable[[tuple[Any, ...], dict[str, Any]], Any]


def is_eager() -> bool:
    """Return whether nothing compiles, traces or transforms the current call."""
    # is_compiling first: compilers cannot trace the other calls
    return not (
        torch.compiler.is_compiling()
        or _len_torch_dispatch_stack()
        or _len_torch_function_stack()
        or peek_interpreter_stack() is not None
        or _get_tracing_state() is not None
    )


def _are_plain(inputs: Sequence[Any]) -> bool:
    """Return whether these are tensors of the CPU, or None."""
    return all(
        one is None or (type(one) in _PLAIN and one.is_cpu and not is_legacy_batchedtensor(one))
        for one in inputs
    )


def eager_call(gradients: Gradients, kernel: Callable[..., Any]) -> Run:
    """Return the op on plain tensors; for others it returns NotImplemented."""
    floats = [i for i, may in enumerate(gradients.floats) if may]
    on_arrays = array_kernel(gradients.op)
    has_optional = any(one.optional for one in gradients.op.signature.input_arguments)
    known: dict[tuple[bool, ...], Backward] = {}
    """Derivatives of calls with all inputs and no attributes, by the inputs that need a gradient."""

    class Eager(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, call: tuple[Any, dict[str, Any]], *inputs: Any) -> Any:
            arrays, attributes = call
            given = dict(attributes) if attributes else attributes
            output = kernel(*inputs, **given) if arrays is None else on_arrays(arrays, given)
            needs = ctx.needs_input_grad
            made = None if attributes or has_optional else known.get(needs)
            if made is not None:
                keep_for(ctx, made, inputs, output)
                return output
            keep(ctx, gradients, inputs, attributes, output, needs[1:])
            if ctx.seqflow is not None and not attributes and not has_optional:
                known[needs] = ctx.seqflow
            return output

        @staticmethod
        def backward(ctx: Any, *arriving: Any) -> Any:
            # the gradient of a sum is one number for all elements: kernels would copy it themselves, but slower
            dense = [None if one is None else one.contiguous() for one in arriving]
            return None, *gradients_of(ctx, dense, not torch.is_grad_enabled() and is_eager())

    # not its own: that unwraps tensors of torch.func, which are not plain
    apply: Callable[..., Any] = super(torch.autograd.Function, Eager).apply

    def run(inputs: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        arrays = arrays_of(inputs)
        if arrays is None and not _are_plain(inputs):
            return NotImplemented
        if torch.is_grad_enabled():
            for i in floats:
                one = inputs[i]
                if one is not None and one.requires_grad:
                    return apply((arrays, attributes), *inputs)
        return kernel(*inputs, **attributes) if arrays is None else on_arrays(arrays, attributes)

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
