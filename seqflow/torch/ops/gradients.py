"""Gradients of ops in torch: their derivatives run on tensors, and only the tensors they use are saved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from seqflow.errors import GradientError
from seqflow.net import Net
from seqflow.net.gradient import derivative
from seqflow.net.gradient.derivative import is_differentiable
from seqflow.registry import OpDef
from seqflow.signature.language import Sum
from seqflow.torch.ops.dtypes import numpy_dtype
from seqflow.torch.ops.exchange import arrays_of
from seqflow.torch.ops.kernels import array_kernel
from seqflow.torch.ops.net_functions import COMPOSITES, Caller, net_function
from seqflow.torch.ops.schemas import attributes_of

Place = tuple[int, int | None]
"""Number of an input or an output; for a list also the number of the tensor in it."""
_INPUT, _OUTPUT, _ARRIVING = range(3)


@dataclass(frozen=True, slots=True)
class Backward:
    """Derivative of one kind of call: with some attributes, and for the inputs that need a gradient."""

    run: Callable[..., tuple[Tensor, ...]]
    takes: tuple[tuple[int, Place], ...]
    """Its arguments: the kind (input, output, gradient of an output) and the place of each."""
    saved: tuple[tuple[int, Place], ...]
    """Arguments that must be saved until then."""
    results: tuple[int | None, ...]
    """For each input of the call, the number of its first gradient; None if none is needed."""
    counts: tuple[int | None, ...]
    """For each input that is a list, the number of its tensors."""
    on_arrays: Callable[[Sequence[Any]], tuple[Tensor, ...] | None] | None
    """`run` on the memory of its arguments, for derivatives of one op; None for tensors that are not plain."""

    def save(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Tensor]:
        """Return the tensors to save."""
        sources = (inputs, outputs)
        return [
            sources[source][number] if item is None else sources[source][number][item]
            for source, (number, item) in self.saved
        ]

    def gradients(self, saved: Sequence[Tensor], arriving: Sequence[Any], eager: bool = False) -> list[Any]:
        """Return the gradient of each input, as a list for a list; `eager` if nothing traces them."""
        kept = iter(saved)
        arguments = [
            next(kept)
            if source != _ARRIVING
            else arriving[number]
            if item is None
            else arriving[number][item]
            for source, (number, item) in self.takes
        ]
        found = self.on_arrays(arguments) if eager and self.on_arrays is not None else None
        if found is None:
            found = self.run(*arguments)
        return [
            (None if count is None else [None] * count)
            if first is None
            else (found[first] if count is None else list(found[first : first + count]))
            for first, count in zip(self.results, self.counts, strict=True)
        ]


class Gradients:
    """Derivatives of all calls of an op, made at the first call of each kind."""

    def __init__(self, op: OpDef, op_of: Caller) -> None:
        self.op = op
        self.names = [one.name for one in op.signature.input_arguments]
        self.floats = [is_differentiable(op, name) for name in self.names]
        self._outputs = [one.field for one in op.signature.output_arguments]
        self._op_of = op_of
        self._known: dict[Any, Backward | None] = {}

    def backward(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], needs: Sequence[Any]
    ) -> Backward | None:
        """Return the derivative of a call; None if no gradient is needed. Raises GradientError if there is none.

        `needs` is true for each input, and each tensor of a list, that needs a gradient.
        """
        # torch passes attributes as lists, which are not hashable
        key = (
            tuple(
                [(name, tuple(value) if type(value) is list else value) for name, value in attributes.items()]
            ),
            tuple([any(one) if type(one) in (list, tuple) else one for one in needs]),
            tuple(
                [None if one is None else len(one) if type(one) in (list, tuple) else -1 for one in inputs]
            ),
        )
        try:
            return self._known[key]
        except KeyError:
            found = self._known[key] = self._made(dict(attributes), key[1], key[2])
            return found

    def _made(
        self, given: dict[str, Any], needs: Sequence[bool], counts: Sequence[int | None]
    ) -> Backward | None:
        wanted = [
            name for name, need, may in zip(self.names, needs, self.floats, strict=False) if need and may
        ]
        if not wanted:
            return None
        lists = {
            name: None if count == -1 else count
            for name, count in zip(self.names, counts, strict=False)
            if count is not None
        }
        net = derivative(self.op, self._attributes(given), lists, wanted)
        places = self._places(lists, net.inputs)
        results: list[int | None] = []
        number = 0
        for name in self.names:
            results.append(number if name in wanted else None)
            number += (lists[name] or 1) if name in wanted else 0
        return Backward(
            net_function(net, self._op_of, _totals(self.op, net.inputs)),
            tuple(places),
            tuple(one for one in places if one[0] != _ARRIVING),
            tuple(results),
            tuple(lists.get(name) for name in self.names),
            _on_arrays(net),
        )

    def _attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes in the form that the op takes."""
        found = {}
        for one in attributes_of(self.op):
            value = given.get(one.name)
            if value is not None or one.required:
                found[one.name] = numpy_dtype(value) if one.kind == "dtype" else value
        return found

    def _places(self, lists: Mapping[str, int | None], taken: Sequence[str]) -> list[tuple[int, Place]]:
        """Return the kind and the place of each tensor that a derivative takes, by its name."""
        known: dict[str, tuple[int, Place]] = {}
        for number, name in enumerate(self.names):
            known[name] = _INPUT, (number, None)
            known |= {f"{name}.{i}": (_INPUT, (number, i)) for i in range(lists.get(name) or 0)}
        for number, name in enumerate(self._outputs):
            for source, prefix in ((_OUTPUT, "out"), (_ARRIVING, "d")):
                known[f"{prefix}.{name}"] = source, (number, None)
                items = [one.rpartition(".")[2] for one in taken if one.startswith(f"{prefix}.{name}.")]
                known |= {f"{prefix}.{name}.{i}": (source, (number, int(i))) for i in items if i.isdecimal()}
        return [known[name] for name in taken]


def register_gradients(op: OpDef, library: torch.library.Library, gradients: Gradients) -> None:
    """Register the derivative of an op with torch's autograd."""

    def setup_context(
        ctx: Any, inputs: Sequence[Any], output: Any, keyword_only_inputs: Mapping[str, Any] = {}
    ) -> None:
        keep(ctx, gradients, inputs, keyword_only_inputs, output, ctx.needs_input_grad)

    def backward(ctx: Any, *arriving: Any) -> tuple[Any, ...]:
        return tuple(gradients_of(ctx, arriving))

    torch.library.register_autograd(f"seqflow::{op.name}", backward, setup_context=setup_context, lib=library)


def keep(
    ctx: Any,
    gradients: Gradients,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    output: Any,
    needs: Sequence[Any],
) -> None:
    """Save the tensors that the derivative of a call needs."""
    # the reason is raised by the backward pass: a call without one must not fail
    ctx.seqflow = ctx.seqflow_reason = None
    try:
        made = gradients.backward(inputs, attributes, needs)
    except GradientError as error:
        ctx.seqflow_reason = str(error)
        return
    if made is None:
        ctx.seqflow_none = [[None] * len(one) if isinstance(one, (list, tuple)) else None for one in inputs]
    else:
        keep_for(ctx, made, inputs, output)


def keep_for(ctx: Any, made: Backward, inputs: Sequence[Any], output: Any) -> None:
    """Save the tensors that a derivative takes, and the derivative."""
    ctx.seqflow = made
    ctx.save_for_backward(*made.save(inputs, output if isinstance(output, tuple) else (output,)))


def gradients_of(ctx: Any, arriving: Sequence[Any], eager: bool = False) -> list[Any]:
    """Return the gradients of the inputs of a call; raise GradientError with the reason if it has no derivative."""
    made: Backward | None = ctx.seqflow
    if made is not None:
        return made.gradients(ctx.saved_tensors, arriving, eager)
    if ctx.seqflow_reason is not None:
        raise GradientError(ctx.seqflow_reason)
    return list(ctx.seqflow_none)


def _on_arrays(net: Net) -> Callable[[Sequence[Any]], tuple[Tensor, ...] | None] | None:
    """Return a net of one op, and a cast of its result, as a function of the memory of its inputs; else None."""
    step, *rest = net.steps
    results = [str(cast.inputs.get("x")) for cast in rest if cast.op.name == "cast_like"]
    if len(rest) > 1 or len(results) != len(rest) or len(net.outputs()) != 1:
        return None
    if step.expression is not None or step.op.name in COMPOSITES or step.op.result is not None:
        return None
    names = [getattr(one, "name", None) for one in step.inputs.values()]
    if not set(names) <= set(net.inputs) or results not in ([], [step.results[0]]):
        return None
    places = {name: net.inputs.index(str(one)) for name, one in zip(step.inputs, names, strict=True)}
    order = [places.get(one.name) for one in step.op.signature.input_arguments]
    like = net.inputs.index(str(rest[0].inputs["like"])) if rest else None
    attributes = {name: value for name, value in step.attributes.items() if name != "out"}
    kernel = array_kernel(step.op)

    def run(arguments: Sequence[Any]) -> tuple[Tensor, ...] | None:
        arrays = arrays_of(tuple([None if place is None else arguments[place] for place in order]))
        if arrays is None:
            return None
        found = kernel(arrays, dict(attributes))
        if like is not None and found.dtype is not arguments[like].dtype:
            found = found.to(arguments[like].dtype)
        return (found,)

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
