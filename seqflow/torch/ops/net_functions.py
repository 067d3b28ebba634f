"""Nets as functions of tensors: their steps in order, each by torch's own functions or by one of our ops.

In gradients and nets, ops that torch has functions for run as these functions, so that compilers see them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqflow.net import Net
from seqflow.net.step import Step
from seqflow.net.syntax import Listed, LiteralOperand, Reference
from seqflow.torch.dtypes import torch_dtype
from seqflow.torch.ops.elementwise import program_of, run_program


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


def _concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    return torch.cat(list(tensors), axis)


def _expand_dims(x: Tensor, axis: int | Sequence[int]) -> Tensor:
    axes = [axis] if isinstance(axis, int) else axis
    for place in sorted(one % (x.ndim + len(axes)) for one in axes):
        x = x.unsqueeze(place)
    return x


COMPOSITES: Mapping[str, Callable[..., Any]] = {
    "broadcast_like": lambda x, like: x.expand(like.shape),
    "cast_like": lambda x, like: x.to(like.dtype),
    "concat": _concat,
    "expand_dims": _expand_dims,
    "flatten_rows": lambda x: x.flatten(0, 1),
    "one_like": lambda x: torch.ones_like(x),
    "reshape_like": lambda x, like: x.reshape(like.shape),
    "row_numbers": lambda like: torch.arange(like.shape[0], device=like.device),
    "scale_rows": lambda data, scale: data * scale.to(data.dtype).reshape(-1, *[1] * (data.ndim - 1)),
    "spread": _spread,
    "stop_gradient": lambda x: x.detach(),
    "sum_to": lambda x, like: x.sum_to_size(like.shape).to(like.dtype),
    "zeros_like": lambda like: torch.zeros_like(like),
}
"""Functions with the arguments and results of ops, by the names of the ops."""


Caller = Callable[[str], Callable[..., Any]]
Check = tuple[Sequence[str], Callable[..., None]]
"""Names of tensors, and a function of them that raises an error if they do not fit."""


def net_function(
    net: Net,
    op_of: Caller,
    totals: Mapping[str, str] | None = None,
    checks: Mapping[int, tuple[Sequence[Check], Sequence[Check]]] | None = None,
) -> Callable[..., tuple[Tensor, ...]]:
    """Return a function of the tensors of `net.inputs`, in this order, that returns those of `net.outputs()`.

    `op_of` returns the function of an op. `totals` names, for lengths, an input with as many rows as they add up to,
    so that the number of rows need not be read from the data. `checks` has what to call before and after steps, by
    their numbers.
    """
    # no text of the net is executed: the source consists of names made here, and of names of ops' arguments
    scope: dict[str, Any] = {}
    names: dict[str, str] = {}

    def local(name: str) -> str:
        return names.setdefault(name, f"t{len(names)}")

    lines = [f"def run({', '.join(local(name) for name in net.inputs)}):"]
    for name, value in net.constants.items():
        scope[local(name)] = torch.as_tensor(value)

    def check(found: Sequence[Check]) -> None:
        for taken, function in found:
            scope[f"check{len(lines)}"] = function
            lines.append(f"    check{len(lines)}({', '.join(map(local, taken))})")

    for number, step in enumerate(net.steps):
        before, after = (checks or {}).get(number, ((), ()))
        check(before)
        lines.append("    " + _line(number, step, local, scope, op_of, totals or {}))
        check(after)
    returned = net.outputs()
    lines.append(f"    return ({', '.join(local(name) for name in returned)},)")
    exec(compile("\n".join(lines), "<net>", "exec"), scope)
    made: Callable[..., tuple[Tensor, ...]] = scope["run"]
    return made


def _line(
    number: int,
    step: Step,
    local: Callable[[str], str],
    scope: dict[str, Any],
    op_of: Caller,
    totals: Mapping[str, str],
) -> str:
    """Return a step as a line of Python; its function and its literals are added to the scope."""
    function, literals = f"f{number}", 0
    if step.expression is not None:
        (listed,) = step.inputs.values()
        assert isinstance(listed, Listed)
        scope[function] = _expression(step.expression)
        return f"{local(step.results[0])} = {function}({', '.join(local(str(one)) for one in listed.items)})"

    def written(operand: Any) -> str:
        nonlocal literals
        match operand:
            case Listed(items=items):
                return f"[{', '.join(map(written, items))}]"
            case Reference(name=name):
                return local(name)
            case LiteralOperand(value=value):
                name = f"c{number}_{literals}"
                literals += 1
                array = np.asarray(value)
                scope[name] = partial(torch.tensor, array.tolist(), dtype=torch_dtype(array.dtype))
                return f"{name}()"
        raise AssertionError(operand)

    scope[function] = COMPOSITES.get(step.op.name) or op_of(step.op.name)
    # by position where none is left out before it: a call need not look for names then
    expected = [one.name for one in step.op.signature.input_arguments]
    leading = list(step.inputs) == expected[: len(step.inputs)] and len(step.inputs) == len(expected)
    arguments = [
        f"{'' if leading else name + '='}{written(operand)}" for name, operand in step.inputs.items()
    ]
    for one in step.op.attributes:
        value = step.attributes[one.name]
        if one.name == "out" or (not one.required and value is one.default):
            continue
        scope[f"a{number}_{one.name}"] = value
        arguments.append(f"{one.name}=a{number}_{one.name}")
    lengths = step.inputs.get("lengths")
    if step.op.takes_total and isinstance(lengths, Reference) and lengths.name in totals:
        arguments.append(f"total={local(totals[lengths.name])}.shape[0]")
    call = f"{function}({', '.join(arguments)})"
    if not step.results:
        return call
    names = [f"_{number}_{i}" if name == "_" else local(name) for i, name in enumerate(step.results)]
    if step.op.signature.gives_lists:
        scope["flat"] = _flat
        return f"{', '.join(names)}, = flat({call})"
    return f"{', '.join(names)}{',' if step.op.result is not None else ''} = {call}"


def _expression(expression: Any) -> Callable[..., Tensor]:
    program = program_of(expression)
    return lambda *operands: run_program(program, operands)


def _flat(result: Any) -> list[Tensor]:
    """Return the tensors of results that are lists, one after another."""
    found = result if isinstance(result, tuple) else (result,)
    return [tensor for one in found for tensor in (one if isinstance(one, (list, tuple)) else (one,))]
