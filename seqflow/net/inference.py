"""Inference over a net: dtype, shape and rows of every tensor, and the checks that need data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from seqflow.byte_sizes import format_bytes
from seqflow.errors import SeqflowError
from seqflow.net.bounds import (
    byte_bounds,
    longest_lengths,
    may_bound_inputs,
    note_bounds,
    tighten,
    total_bytes,
)
from seqflow.net.step import compute, each, shown
from seqflow.net.syntax import Constant, Listed
from seqflow.shape import DimensionLike, Equalities, Guard, PartialShape
from seqflow.signature import OwnRows
from seqflow.tensor import TensorSpec

if TYPE_CHECKING:
    from seqflow.net.graph import Net
    from seqflow.net.step import Input, Step
    from seqflow.registry.inference import Inference


@dataclass(frozen=True, slots=True)
class NetInference:
    """The specs of all tensors of a net, and the sizes that were taken to be equal without proof.

    Prints as the net's text with the specs of each statement's results beside it.
    """

    net: Net
    specs: Mapping[str, TensorSpec]
    guards: list[Guard]
    by_step: tuple[tuple[Guard, ...], ...]
    """The guards of each step."""
    byte_bounds: Mapping[str, int | None]
    """The most bytes each tensor can have; None where there is no bound."""
    byte_bound: int | None
    """The most bytes all tensors can have together, those thrown away with them; None where there is no bound."""
    longest: Mapping[str, int]
    """What the lengths in a tensor are known not to exceed."""

    def described(self, name: str) -> str:
        """The spec of a tensor, and the most bytes it can have."""
        return f"{self.specs[name]} ≤ {format_bytes(self.byte_bounds[name])}"

    def _repr_html_(self) -> str:
        from seqflow.net.drawing import html

        notes = [f"guard: {guard}" for guard in self.guards]
        specs = {name: self.described(name) for name in self.specs}
        return html(self.net, specs, [*notes, f"all tensors ≤ {format_bytes(self.byte_bound)}"])

    def __str__(self) -> str:
        lines = [f"# {name}: {self.described(name)}" for name in self.net.inputs]
        for step in self.net.steps:
            if step.is_part:
                continue
            results = ", ".join(f"{name} {self.described(name)}" for name in step.results if name != "_")
            lines.append(f"{step.statement}" + (f"    # {results}" if results else ""))
        if self.net.returned:
            lines.append(f"return {', '.join(self.net.returned)}")
        lines += [f"# guard: {guard}" for guard in self.guards]
        return "\n".join([*lines, f"# all tensors ≤ {format_bytes(self.byte_bound)}"])


def infer_net(
    net: Net, specs: Mapping[str, TensorSpec], limits: Mapping[DimensionLike, int] | None = None
) -> NetInference:
    """Go through the steps in order; an error keeps its type and gains a note with the statement."""
    net.require(specs)
    inference = _Inference(net, specs)
    note_bounds(inference.specs, limits or {}, inference.equalities)
    return inference.run()


class _Inference:
    """The state of inference over the steps of one net."""

    def __init__(self, net: Net, specs: Mapping[str, TensorSpec]) -> None:
        self.net = net
        self.equalities = Equalities()
        self.specs = {name: _named(name, spec) for name, spec in specs.items()}
        self.values: dict[str, Any] = {name: np.asarray(value) for name, value in net.constants.items()}
        for name, value in self.values.items():
            self.specs[name] = TensorSpec.of(value, OwnRows(f"the constant {name}"))
        self.makers = {name: step for step in net.steps for name in step.results}

    def run(self) -> NetInference:
        guards: list[Guard] = []
        by_step: list[tuple[Guard, ...]] = []
        dropped: dict[str, TensorSpec] = {}
        for number, step in enumerate(self.net.steps):
            results = [f"_{number}.{i}" if name == "_" else name for i, name in enumerate(step.results)]
            inferred = self.step(step, results)
            for name, result, spec in zip(step.results, results, inferred.outputs, strict=True):
                (dropped if name == "_" else self.specs)[result] = _named(result, spec)
            for name in (*(step.uses if may_bound_inputs(step, inferred.guards) else ()), *results):
                tighten(name, self.specs.get(name) or dropped[name], self.equalities)
            origin = f"{step.op.name}, line {step.line}: "
            found = [guard._replace(origin=origin + guard.origin) for guard in inferred.guards]
            guards += found
            by_step.append(tuple(found))
        known = {name: _resolved(spec, self.equalities) for name, spec in self.specs.items()}
        bounds = byte_bounds(known, self.equalities)
        total = total_bytes([*bounds.values(), *byte_bounds(dropped, self.equalities).values()])
        longest = longest_lengths(known, self.equalities)
        return NetInference(self.net, known, guards, tuple(by_step), bounds, total, longest)

    def step(self, step: Step, results: list[str]) -> Inference:
        """Infer one step; where its shape function wants values that can be computed now, once more with them."""
        specs = {name: each(operand, self.spec) for name, operand in step.inputs.items()}
        names = {name: each(operand, partial(_name, name)) for name, operand in step.inputs.items()}
        single = {name: one for name, one in step.inputs.items() if not isinstance(one, Listed)}
        values = {name: known for name, one in single.items() if (known := self.known(one)) is not None}
        try:
            for _ in range(2):
                inferred = step.op.infer(
                    specs, step.attributes, values=values, names=names, results=results,
                    equalities=self.equalities,
                )  # fmt: skip
                folded = {name: self.fold(step.inputs[name]) for name in inferred.requested - set(values)}
                more = {name: value for name, value in folded.items() if value is not None}
                if not more:
                    break
                values |= more
            return inferred
        except SeqflowError as error:
            error.add_note(step.note({name: shown(spec) for name, spec in specs.items()}))
            raise

    def spec(self, operand: Input) -> TensorSpec:
        if isinstance(operand, Constant):
            return TensorSpec.of(np.asarray(operand.value))
        return self.specs[str(operand)]

    def known(self, operand: Input) -> Any | None:
        """The value of a literal or a constant."""
        return np.asarray(operand.value) if isinstance(operand, Constant) else self.values.get(str(operand))

    def fold(self, operand: Input) -> Any | None:
        """The value of a tensor that is computed from constants alone; None for all others."""
        wanted = [str(operand)]
        while wanted:
            name = wanted[-1]
            maker = self.makers.get(name)
            if name in self.values or maker is None:
                wanted.pop()
                continue
            missing = [use for use in maker.uses if use not in self.values]
            if any(use not in self.makers for use in missing):
                return None
            if missing:
                wanted += missing
                continue
            values = compute(maker, self.values)
            self.values.update(zip(maker.results, values, strict=True))
        return self.values.get(str(operand))


def _name(argument: str, operand: Input) -> str:
    """What the tensor is called; a literal has no name of its own."""
    return f"_.{argument}" if isinstance(operand, Constant) else str(operand)


def _named(name: str, spec: TensorSpec) -> TensorSpec:
    return TensorSpec(spec.dtype, spec.shape.named(name), spec.rows)


def _resolved(spec: TensorSpec, equalities: Equalities) -> TensorSpec:
    if spec.shape.dimensions is None:
        return spec
    sizes = [equalities.resolve(size) for size in spec.shape.dimensions]
    rows = spec.rows if spec.rows is None else equalities.rows(spec.rows)
    return TensorSpec(spec.dtype, PartialShape(sizes), rows)
