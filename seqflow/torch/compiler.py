"""Marks for torch's compiler, under names that are not public in torch: they are relied on here alone."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
B = TypeVar("B")


def mark_ragged(batch: B) -> B:
    """Tell torch.compile that the first size of each tensor differs from batch to batch; the batch is returned.

    What is compiled for one such batch then fits all others, those with sizes of 0 and 1 among them: torch would
    else make a program for the first sizes, one for any, and one more for each 0 and 1. `batch` is a tensor, or a
    mapping or a list of tensors; other values are left alone. A mark belongs to the tensor: what is made of it
    (`x.to("cuda")`) has to be marked anew. Without compilation a mark changes nothing.
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
    """Return a function whose result the compiler takes as it is, without tracing it.

    It is `assume_constant_result` of torch, which would import the compiler.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def never_traced(function: F) -> F:
    """Return a function that the compiler runs as it is, with all that it calls, when a program comes to it.

    torch 2.7 and later can be told. Earlier ones look into it, and leave alone what they do not know.
    """
    import torch

    compiler = torch._C._dynamo.eval_frame  # type: ignore[attr-defined, unused-ignore]
    if hasattr(compiler, "set_code_exec_strategy"):
        skip = compiler._FrameExecStrategy(compiler._FrameAction.SKIP, compiler._FrameAction.SKIP)
        compiler.set_code_exec_strategy(function.__code__, skip)
    return function
