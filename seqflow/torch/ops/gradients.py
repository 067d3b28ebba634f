"""Gradients of ops in torch: their derivatives run on tensors, and only the tensors they use are saved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from seqflow.errors import GradientError
from seqflow.net import Net
from seqflow.net.gradient import derivative
from seqflow.net.gradient.derivative import is_differentiable
from seqflow.registry import OpDef
from seqflow.signature.language import Sum
from seqflow.torch.dtypes import numpy_dtype
from seqflow.torch.ops.kernels import memory_kernel
from seqflow.torch.ops.net_functions import COMPOSITES, Caller, net_function
from seqflow.torch.ops.schemas import attributes_of

Place = int | tuple[int, int] | list[int]
"""Number of a tensor; number of a list and of the tensor in it; numbers of the tensors of a list."""
Pick = Callable[[Sequence[Any]], tuple[Any, ...]]


def _picker(places: Sequence[Place]) -> Pick:
    """Return a function that picks values by their places; None has the place -1 among gradients."""
    if len(places) > 1 and all(type(one) is int for one in places):
        return itemgetter(*places)
    return lambda values: tuple(
        [
            values[one]
            if isinstance(one, int)
            else [values[i] for i in one]
            if isinstance(one, list)
            else values[one[0]][one[1]]
            for one in places
        ]
    )


@dataclass(frozen=True, slots=True)
class Backward:
    """Derivative of one kind of call: with some attributes, and for the inputs that need a gradient."""

    run: Callable[..., tuple[Tensor, ...]]
    on_memory: Callable[[Sequence[Any]], Any]
    """The only gradient, on the memory of the arguments; NotImplemented for tensors that are not plain, and for
    derivatives of several ops.
    """
    saved: Pick
    """Picks the tensors to save of the outputs and the inputs."""
    takes: Pick
    """Picks the arguments of the saved tensors and the gradients of the outputs."""
    gives: Pick
    """Picks the gradient of each input, a list for a list, of the results and None."""


class Gradients:
    """Derivatives of all calls of an op, made at the first call of each kind."""

    def __init__(self, op: OpDef, op_of: Caller) -> None:
        self.op = op
        self.names = [one.name for one in op.signature.input_arguments]
        self.floats = [is_differentiable(op, name) for name in self.names]
        self._outputs = [one.field for one in op.signature.output_arguments]
        self._op_of = op_of
        self._known: dict[Any, Backward] = {}
        arguments = op.signature.input_arguments
        self._has_varying_inputs = bool(op.signature.listed) or any(one.optional for one in arguments)

    def backward(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], wanted: tuple[int, ...]
    ) -> Backward:
        """Return the derivative of a call by the inputs with the numbers `wanted`.

        If there is none, it raises GradientError when it runs: a call without a backward pass must not fail.
        """
        key: Any = wanted
        if attributes or self._has_varying_inputs:
            # torch passes attributes as lists, which are not hashable
            key = (
                tuple([(name, tuple(one) if type(one) is list else one) for name, one in attributes.items()]),
                wanted,
                tuple(
                    [
                        None if one is None else len(one) if type(one) in (list, tuple) else -1
                        for one in inputs
                    ]
                ),
            )
        made = self._known.get(key)
        if made is None:
            made = self._known[key] = self._made(dict(attributes), inputs, wanted)
        return made

    def save(
        self,
        ctx: Any,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        output: Any,
        needs: Sequence[Any],
    ) -> None:
        """Save the derivative of a call, and the tensors that it takes, in a context of autograd.

        `needs` is true for each input, and each tensor of a list, that needs a gradient.
        """
        wanted = [
            i
            for i, (need, may) in enumerate(zip(needs, self.floats, strict=False))
            if may and (any(need) if isinstance(need, (list, tuple)) else need)
        ]
        made = ctx.seqflow = self.backward(inputs, attributes, tuple(wanted))
        ctx.save_for_backward(*made.saved((*(output if type(output) is tuple else (output,)), *inputs)))

    def _made(self, given: dict[str, Any], inputs: Sequence[Any], numbers: Sequence[int]) -> Backward:
        wanted = [self.names[i] for i in numbers]
        lists = {
            name: len(one) if isinstance(one, (list, tuple)) else None
            for name, one in zip(self.names, inputs, strict=False)
            if one is not None
        }
        run, places, on_memory = self._function(given, lists, wanted)
        saved = [place for is_saved, place in places if is_saved]
        counted = iter(range(len(saved)))
        gives: list[Place] = []
        first = 0
        for name in self.names:
            count = lists.get(name)
            given_by = range(first, first + (count or 1)) if name in wanted else [-1] * (count or 1)
            first += len(given_by) if name in wanted else 0
            gives.append(given_by[0] if count is None else list(given_by))
        takes = [
            next(counted)
            if is_saved
            else len(saved) + place
            if isinstance(place, int)
            else (len(saved) + place[0], place[1])
            for is_saved, place in places
        ]
        return Backward(run, on_memory, _picker(saved), _picker(takes), _picker(gives))

    def _function(
        self, given: Mapping[str, Any], lists: Mapping[str, int | None], wanted: Sequence[str]
    ) -> tuple[Callable[..., Any], list[tuple[bool, Any]], Callable[..., Any]]:
        """Return the derivative, the places of its arguments, and the derivative on their memory."""
        if not wanted:
            return tuple, [], _declined
        try:
            net = derivative(self.op, self._attributes(given), lists, wanted)
        except GradientError as error:
            return partial(_refuse, str(error)), [], _declined
        run = net_function(net, self._op_of, _totals(self.op, net.inputs))
        return run, self._places(lists, net.inputs), _on_memory(net)

    def _attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes in the form that the op takes."""
        found = {}
        for one in attributes_of(self.op):
            value = given.get(one.name)
            if value is not None or one.required:
                found[one.name] = numpy_dtype(value) if one.kind == "dtype" else value
        return found

    def _places(self, lists: Mapping[str, int | None], taken: Sequence[str]) -> list[tuple[bool, Any]]:
        """Return whether each tensor that a derivative takes is saved, and its place among outputs and inputs, or
        among the gradients of the outputs.
        """
        known: dict[str, tuple[bool, Any]] = {}
        for number, name in enumerate(self.names, len(self._outputs)):
            known[name] = True, number
            known |= {f"{name}.{i}": (True, (number, i)) for i in range(lists.get(name) or 0)}
        for number, name in enumerate(self._outputs):
            for is_saved, prefix in ((True, "out"), (False, "d")):
                known[f"{prefix}.{name}"] = is_saved, number
                items = [one.rpartition(".")[2] for one in taken if one.startswith(f"{prefix}.{name}.")]
                known |= {
                    f"{prefix}.{name}.{i}": (is_saved, (number, int(i))) for i in items if i.isdecimal()
                }
        return [known[name] for name in taken]


def register_gradients(op: OpDef, library: torch.library.Library, gradients: Gradients) -> None:
    """Register the derivative of an op with torch's autograd."""

    def setup_context(
        ctx: Any, inputs: Sequence[Any], output: Any, keyword_only_inputs: Mapping[str, Any] = {}
    ) -> None:
        gradients.save(ctx, inputs, keyword_only_inputs, output, ctx.needs_input_grad)

    def backward(ctx: Any, *arriving: Any) -> tuple[Any, ...]:
        return tuple(gradients_of(ctx, arriving))

    torch.library.register_autograd(f"seqflow::{op.name}", backward, setup_context=setup_context, lib=library)


def gradients_of(ctx: Any, arriving: Sequence[Any]) -> Sequence[Any]:
    """Return the gradient of each input of a call; raise GradientError with the reason if it has no derivative."""
    made: Backward = ctx.seqflow
    return made.gives((*made.run(*made.takes((*ctx.saved_tensors, *arriving))), None))


def _refuse(reason: str) -> None:
    raise GradientError(reason)


def _declined(arguments: Sequence[Any]) -> Any:
    return NotImplemented


def _on_memory(net: Net) -> Callable[[Sequence[Any]], Any]:
    """Return a net of one op, and a cast of its result, as a function of the memory of its inputs."""
    step, *rest = net.steps
    results = [str(cast.inputs.get("x")) for cast in rest if cast.op.name == "cast_like"]
    if len(rest) > 1 or len(results) != len(rest) or len(net.outputs()) != 1:
        return _declined
    if step.expression is not None or step.op.name in COMPOSITES or step.op.result is not None:
        return _declined
    names = [getattr(one, "name", None) for one in step.inputs.values()]
    if not set(names) <= set(net.inputs) or results not in ([], [step.results[0]]):
        return _declined
    places = {name: net.inputs.index(str(one)) for name, one in zip(step.inputs, names, strict=True)}
    # the place of None is -1
    order = _picker([places.get(one.name, -1) for one in step.op.signature.input_arguments])
    like = net.inputs.index(str(rest[0].inputs["like"])) if rest else None
    attributes = {name: value for name, value in step.attributes.items() if name != "out"}
    kernel = memory_kernel(step.op)

    def run(arguments: Sequence[Any]) -> Any:
        found = kernel(tuple(order((*arguments, None))), attributes)
        if found is NotImplemented:
            return found
        if like is not None and found.dtype is not arguments[like].dtype:
            found = found.to(arguments[like].dtype)
        return found

    return run


def _totals(op: OpDef, inputs: Sequence[str]) -> dict[str, str]:
    """Return, for lengths, the name of a tensor with as many rows as they add up to, if the derivative takes one."""
    found: dict[str, str] = {}
    arguments = [(one.name, one) for one in op.signature.input_arguments]
    arguments += [(f"out.{one.field}", one) for one in op.signature.output_arguments]
    for name, argument in arguments:
        first = argument.dims[0] if argument.dims else None
        if name in inputs and isinstance(first, Sum) and not first.of.endswith("'"):
            found.setdefault(first.of, name)
    return found
