"""Calls without torch's dispatcher, for plain tensors on the CPU that nothing traces or transforms.

The dispatcher takes longer than a small op. It finds our kernel, and looks for modes, transforms and tracers. If
there are none, the kernel is called directly, or by a function of autograd that saves tensors for the derivative.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, is_grad_enabled
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
from torch.compiler import is_dynamo_compiling
from torch.nn import Parameter

from seqflow.errors import SeqflowError
from seqflow.torch.ops.gradients import Backward, Gradients, gradients_of
from seqflow.torch.ops.kernels import memory_kernel

_PLAIN = (Tensor, Parameter)
Run = Callable[[tuple[Any, ...], dict[str, Any]], Any]


def is_eager() -> bool:
    """Return whether nothing compiles, traces or transforms the current call."""
    # is_dynamo_compiling first: compilers cannot trace the other calls
    return not (
        is_dynamo_compiling()
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
    on_memory, has_several = memory_kernel(gradients.op), gradients.op.result is not None

    def run(inputs: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        found = on_memory(inputs, attributes)
        if found is NotImplemented:
            if not _are_plain(inputs):
                return NotImplemented
            found = kernel(*inputs, **attributes)
        if is_grad_enabled():
            wanted: tuple[int, ...] = ()
            trained = []
            for i in floats:
                one = inputs[i]
                if one is not None and one.requires_grad:
                    wanted += (i,)
                    trained.append(one)
            if wanted:
                made = gradients.backward(inputs, attributes, wanted)
                saved = made.saved((*found, *inputs) if has_several else (found, *inputs))
                return _attach((made, saved, found), *trained)
        return found

    return run


def trained_call(plain: Run, trained: Run) -> Run:
    """Return an op of one output that runs as another one, whose first output it is, if a gradient is required."""

    def run(inputs: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        if is_grad_enabled() and getattr(inputs[0], "requires_grad", False):
            try:
                found = trained(inputs, attributes)
            except SeqflowError:  # `plain` raises it with its own name
                found = NotImplemented
            if found is not NotImplemented:
                return found[0]
        return plain(inputs, attributes)

    return run


class _Attached(torch.autograd.Function):
    """Results of a call that has run, attached to the graph of the inputs that need a gradient."""

    @staticmethod
    def forward(ctx: Any, call: tuple[Backward, Sequence[Tensor], Any], *wanted: Tensor) -> Any:
        ctx.seqflow, ctx.to_save, found = call
        return found

    @staticmethod
    def backward(ctx: Any, *arriving: Any) -> Any:
        made: Backward = ctx.seqflow
        # the gradient of a sum is one number for all elements: kernels would copy it themselves, but slower
        dense = [None if one is None else one.contiguous() for one in arriving]
        arguments = made.takes((*ctx.saved_tensors, *dense))
        if not is_grad_enabled() and is_eager():
            found = made.on_memory(arguments)
            if found is not NotImplemented:
                return None, found
        return None, *made.run(*arguments)


# not its own: that unwraps tensors of torch.func, which are not plain
_attach: Callable[..., Any] = super(torch.autograd.Function, _Attached).apply


def is_transformed() -> bool:
    """Return whether torch.func differentiates or maps the current call."""
    if is_dynamo_compiling():
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
            gradients.save(ctx, given, attributes, output, ctx.needs_input_grad[1:])

        @staticmethod
        def backward(ctx: Any, *arriving: Any) -> Any:
            return None, *gradients_of(ctx, arriving)

    apply: Callable[..., Any] = Transformed.apply
    return lambda inputs, attributes: apply(attributes, *inputs)
