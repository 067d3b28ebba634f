"""Ops of both directions, made from ops of one direction: their signature, gradient and body follow from these."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.registry import OpDef, get, op
from seqflow.signature.language import Argument, Arithmetic, FixedSize

Body = Callable[..., tuple[Any, ...]]


class _DirectedTensor(NamedTuple):
    """Tensor of the op of both directions."""

    name: str
    number: int
    """Number among the tensors of the op of one direction."""
    direction: int | None
    """0 or 1 for the forward or the reverse direction; None for both."""
    is_state: bool
    """Whether it has the states of both directions next to each other, along the last axis."""
    argument: Argument
    """Tensor of the op of one direction."""

    def __str__(self) -> str:
        *dims, last = self.argument.dims
        if self.is_state:
            last = Arithmetic("*", FixedSize(2), last)  # type: ignore[arg-type]  # it is H, or an attribute or H
        return str(replace(self.argument, name=self.name, dims=(*dims, last)))


def both_directions(
    one: Callable[..., Any], *, without: Sequence[str] = (), **facts: Any
) -> Callable[[Callable[[], None]], Callable[..., tuple[Array, ...]]]:
    """Declare the op that runs `one` in both directions; the decorated function has its name and documentation.

    Each direction has its own weights, `w_ih` and `w_ih_reverse`. States are those of the forward direction, then
    those of the reverse one, along the last axis. `without` are attributes that the new op does not take, `facts` the
    rest of its declaration. The gradient is by default the op with its name and `_backward`.
    """
    single = get(one.__name__)
    inputs, outputs = _tensors(single.signature.input_arguments), _tensors(single.signature.output_arguments)
    attributes = [each.name for each in single.attributes if each.name not in ("reverse", *without)]
    signature = " -> ".join(", ".join(map(str, tensors)) for tensors in (inputs, outputs))

    def declare(function: Callable[[], None]) -> Callable[..., tuple[Array, ...]]:
        body = run_both(single, single.function, np.concatenate)
        for attribute in ("__name__", "__module__", "__doc__"):
            setattr(body, attribute, getattr(function, attribute))
        known = inspect.signature(single.function).parameters
        parameters = [known[each.argument.name].replace(name=each.name) for each in inputs]
        parameters += [known[name] for name in attributes]
        body.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        body.__annotations__ = {each.name: each.annotation for each in parameters}
        grad = _gradient(function.__name__, inputs, attributes, outputs)
        return op(signature, **{"grad": grad, **facts})(body)

    return declare


def run_both(one: OpDef, body: Body, concatenate: Callable[..., Any]) -> Body:
    """Return the body of the op of both directions, made from a body of `one` for arrays or for tensors."""
    inputs, outputs = _tensors(one.signature.input_arguments), _tensors(one.signature.output_arguments)
    taken = [
        [(place, each.is_state) for place, each in enumerate(inputs) if each.direction in (None, k)]
        for k in (0, 1)
    ]

    def run(*given: Any, **attributes: Any) -> tuple[Any, ...]:
        found = []
        for k in (0, 1):
            own = [_half(given[place], k) if is_state else given[place] for place, is_state in taken[k]]
            found.append(body(*own, **{**one.defaults, **attributes, "reverse": k == 1}))
        results = []
        for each in outputs:
            pair = found[0][each.number], found[1][each.number]
            if each.direction is not None:
                results.append(pair[each.direction])
            else:  # both directions read x: its gradients are added
                results.append(concatenate(pair, 1) if each.is_state else pair[0] + pair[1])
        return tuple(results)

    return run


def _half(states: Any, direction: int) -> Any:
    """Return the states of one direction; None stays None."""
    if states is None:
        return None
    hidden = states.shape[1] // 2
    return states[:, hidden:] if direction else states[:, :hidden]


def _tensors(arguments: Sequence[Argument]) -> list[_DirectedTensor]:
    """Return the tensors of both directions: forward weights, reverse weights, forward biases, reverse biases."""
    found = []
    for kind, group in groupby(enumerate(arguments), lambda entry: _kind(entry[1])):
        entries = list(group)
        for direction in (0, 1) if kind in ("weight", "bias") else (None,):
            suffix = "_reverse" if direction else ""
            found += [
                _DirectedTensor(one.name + suffix, number, direction, kind == "state", one)
                for number, one in entries
            ]
    return found


def _kind(argument: Argument) -> str:
    """Return the kind of a tensor: the rows of weights and biases are gates; states have H columns."""
    if "H" in str(argument.dims[0]):
        return "weight" if len(argument.dims) == 2 else "bias"
    return "state" if str(argument.dims[-1]).endswith("H") else "input"


def _gradient(
    name: str,
    inputs: Sequence[_DirectedTensor],
    attributes: Sequence[str],
    outputs: Sequence[_DirectedTensor],
) -> dict[str, str]:
    """Return the call of the op of gradients that gives those of all inputs; the second input are the lengths."""
    named = [each.name for each in inputs if each.argument.optional] + list(attributes)
    x, lengths, *required = (each.name for each in inputs if not each.argument.optional)
    arriving = [f"out.{outputs[0].name}", *(f"d.{each.name}" for each in outputs)]
    given = [x, *arriving, lengths, *required, *(f"{each}={each}" for each in named)]
    keys = ", ".join(each.name for each in inputs if each.name != lengths)
    return {keys: f"{name}_backward({', '.join(given)})"}
