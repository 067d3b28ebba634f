"""What a net comes to before there is data: dtype, shape and rows of every tensor, and what stays to be checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seqflow.errors import NetError, SeqflowError, nearest
from seqflow.net.bounds import byte_bounds, longest_lengths, note_bounds, tighten, total_bytes
from seqflow.net.parser import Constant, Operand
from seqflow.shape import DimensionLike, Equalities, Guard, PartialShape
from seqflow.signature import Rows
from seqflow.tensor import TensorSpec, bytes_text

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
    byte_bounds: Mapping[str, int | None]
    """The most bytes each tensor can have; None where there is no bound."""
    byte_bound: int | None
    """The most bytes all tensors can have together, those thrown away with them; None where there is no bound."""
    longest: Mapping[str, int]
    """What the lengths in a tensor are known not to exceed."""

    def described(self, name: str) -> str:
        """The spec of a tensor, and the most bytes it can have."""
        return f"{self.specs[name]} ≤ {bytes_text(self.byte_bounds[name])}"

    def _repr_html_(self) -> str:
        from seqflow.net.drawing import html

        notes = [f"guard: {guard}" for guard in self.guards]
        specs = {name: self.described(name) for name in self.specs}
        return html(self.net, specs, [*notes, f"all tensors ≤ {bytes_text(self.byte_bound)}"])

    def __str__(self) -> str:
        lines = [f"# {name}: {self.described(name)}" for name in self.net.inputs]
        for step in self.net.steps:
            results = ", ".join(f"{name} {self.described(name)}" for name in step.results if name != "_")
            lines.append(f"{step.statement}" + (f"    # {results}" if results else ""))
        if self.net.returned:
            lines.append(f"return {', '.join(self.net.returned)}")
        lines += [f"# guard: {guard}" for guard in self.guards]
        return "\n".join([*lines, f"# all tensors ≤ {bytes_text(self.byte_bound)}"])


def infer_net(
    net: Net, specs: Mapping[str, TensorSpec], limits: Mapping[DimensionLike, int] | None = None
) -> NetInference:
    """Go through the steps in order; an error keeps its type and gains a note with the statement."""
    known = {name: _named(name, spec) for name, spec in specs.items()}
    for name, value in net.constants.items():
        known[name] = TensorSpec.of(np.asarray(value), Rows(f"the constant {name}"))
    equalities = Equalities()
    note_bounds(known, limits or {}, equalities)
    guards: list[Guard] = []
    for number, step in enumerate(net.steps):
        results = [f"_{number}.{i}" if name == "_" else name for i, name in enumerate(step.results)]
        inferred = _infer_step(step, known, results, equalities)
        known.update(zip(results, inferred.outputs, strict=True))
        for name in (*step.uses, *results):
            tighten(name, known[name], equalities)
        line = step.statement.place.line
        guards += [
            guard._replace(origin=f"{step.op.name}, line {line}: {guard.origin}") for guard in inferred.guards
        ]
    shown = {name: _resolved(spec, equalities) for name, spec in known.items() if not name.startswith("_")}
    bounds = byte_bounds(known, equalities)
    total = total_bytes(bounds.values())
    return NetInference(
        net,
        shown,
        guards,
        {name: bounds[name] for name in shown},
        total,
        longest_lengths(shown, equalities),
    )


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
