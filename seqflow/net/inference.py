"""What a net comes to before there is data: dtype, shape and rows of every tensor, and what stays to be checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seqflow.errors import NetError, SeqflowError, nearest
from seqflow.net.parser import Constant, Operand
from seqflow.shape import Equalities, Guard, PartialShape
from seqflow.signature import Rows
from seqflow.tensor import TensorSpec

if TYPE_CHECKING:
    from seqflow.net.graph import Net, Step
    from seqflow.registry import Inference


@dataclass(frozen=True, slots=True)
class NetInference:
    """The specs of all tensors of a net, and the sizes that were taken to be equal without proof.

    Prints as the net's text with the specs of each statement's results beside it.
    """

    net: Net
    specs: Mapping[str, TensorSpec]
    guards: list[Guard]

    @property
    def byte_bound(self) -> int | None:
        """The most bytes all tensors of the net can have together; None where there is no bound."""
        total = 0
        for spec in self.specs.values():
            if spec.byte_bound is None:
                return None
            total += spec.byte_bound
        return total

    def __str__(self) -> str:
        lines = [f"# {name}: {self.specs[name]}" for name in self.net.inputs]
        for step in self.net.steps:
            results = ", ".join(f"{name} {self.specs[name]}" for name in step.results if name != "_")
            lines.append(f"{step.statement}" + (f"    # {results}" if results else ""))
        if self.net.returned:
            lines.append(f"return {', '.join(self.net.returned)}")
        return "\n".join(lines + [f"# guard: {guard}" for guard in self.guards])


def infer_net(net: Net, specs: Mapping[str, TensorSpec]) -> NetInference:
    """Go through the steps in order; an error keeps its type and gains a note with the statement."""
    known = {name: _named(name, spec) for name, spec in specs.items()}
    for name, value in net.constants.items():
        known[name] = TensorSpec.of(np.asarray(value), Rows(f"the constant {name}"))
    equalities = Equalities()
    guards: list[Guard] = []
    for number, step in enumerate(net.steps):
        results = [f"_{number}.{i}" if name == "_" else name for i, name in enumerate(step.results)]
        inferred = _infer_step(step, known, results, equalities)
        known.update(zip(results, inferred.outputs, strict=True))
        line = step.statement.place.line
        guards += [
            guard._replace(origin=f"{step.op.name}, line {line}: {guard.origin}") for guard in inferred.guards
        ]
    shown = {name: _resolved(spec, equalities) for name, spec in known.items() if not name.startswith("_")}
    return NetInference(net, shown, guards)


def _infer_step(
    step: Step, known: Mapping[str, TensorSpec], results: list[str], equalities: Equalities
) -> Inference:
    specs = {name: _spec(operand, known) for name, operand in step.inputs.items()}
    names = {name: _name(name, operand) for name, operand in step.inputs.items()}
    try:
        return step.op.infer(specs, step.attributes, names=names, results=results, equalities=equalities)
    except SeqflowError as error:
        error.add_note(step.note({name: str(spec) for name, spec in specs.items()}))
        raise


def _spec(operand: Operand, known: Mapping[str, TensorSpec]) -> TensorSpec:
    if isinstance(operand, Constant):
        return TensorSpec.of(np.asarray(operand.value))
    if operand.name not in known:
        raise NetError(
            f"net: nothing assigns {operand.name!r} and no spec was given for it{nearest(operand.name, known)}\n"
            f"  given are {', '.join(known)}"
        )
    return known[operand.name]


def _name(argument: str, operand: Operand) -> str:
    """What the tensor is called; a literal has no name of its own."""
    return f"_.{argument}" if isinstance(operand, Constant) else operand.name


def _named(name: str, spec: TensorSpec) -> TensorSpec:
    return TensorSpec(spec.dtype, spec.shape.named(name), spec.rows)


def _resolved(spec: TensorSpec, equalities: Equalities) -> TensorSpec:
    if spec.shape.dimensions is None:
        return spec
    sizes = [equalities.resolve(size) for size in spec.shape.dimensions]
    return TensorSpec(spec.dtype, PartialShape(sizes), spec.rows)
