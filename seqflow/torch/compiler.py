"""Marks for torch's compiler that use private names of torch; no other module uses them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
B = TypeVar("B")


def mark_ragged(batch: B) -> B:
    """Tell torch.compile that the first size of each tensor differs from batch to batch, and return the batch.

    A program compiled for one such batch then fits all others, also with sizes of 0 and 1. Without marks
    torch makes a program for the first sizes, one for all sizes, and one more for each 0 and 1. A mark
    belongs to the tensor: a tensor made from it (`x.to("cuda")`) must be marked again. Without compilation a
    mark changes nothing.

    Args:
        batch: Tensor, or a mapping or a list of tensors; other values are ignored.
    """
    import torch

    values: Iterable[Any] = batch.values() if isinstance(batch, Mapping) else (batch,)
    values = batch if isinstance(batch, (list, tuple)) else values
    for value in values:
        if isinstance(value, torch.Tensor) and value.ndim:
            _mark(value)
    return batch


def _mark(tensor: Any) -> None:
    from torch._dynamo.decorators import mark_unbacked

    mark_unbacked(tensor, 0)


def constant_when_traced(function: F) -> F:
    """Return the function, marked so that the compiler takes its result as a constant, without tracing it."""
    # what torch.compiler.assume_constant_result does, which would import the compiler
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def known_sizes(tensor: Any) -> tuple[int | None, ...]:
    """Return the sizes below 2 that the compiler knows, None for others: a program is not bound to a size by this."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true as is_known

    return tuple([1 if is_known(size == 1) else 0 if is_known(size == 0) else None for size in tensor.shape])


def never_left_out(op: Any) -> None:
    """Mark an op that only checks, so that the compiler does not leave it out because nothing uses its result."""
    from torch.fx.node import has_side_effect

    has_side_effect(op)


def never_traced(function: F) -> F:
    """Return the function, marked so that the compiler runs it as it is, with all that it calls.

    It has an effect in torch 2.7 and later. Earlier versions trace the function as far as they can.
    """
    import torch

    compiler = torch._C._dynamo.eval_frame  # type: ignore[attr-defined, unused-ignore]
    if hasattr(compiler, "set_code_exec_strategy"):
        skip = compiler._FrameExecStrategy(compiler._FrameAction.SKIP, compiler._FrameAction.SKIP)
        compiler.set_code_exec_strategy(function.__code__, skip)
    return function
