"""Shape inference of nets: the dtype, shape and rows of every tensor, and the guards that need data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from seqflow.byte_sizes import format_bytes
from seqflow.errors import SeqflowError
from seqflow.net.rows import NetRows
from seqflow.net.step import compute, each, shown
from seqflow.net.syntax import Listed, LiteralOperand
from seqflow.printable import printable
from seqflow.registry.inference import CallOfSpecs, Inference, infer
from seqflow.shape import Comparison, DimensionLike, Equalities, Guard, PartialShape, SameLengths
from seqflow.shape.guards import Guards
from seqflow.shape.terms import Term, literal
from seqflow.signature.rows import Described, Positions, declare, publish
from seqflow.tensor import TensorSpec

if TYPE_CHECKING:
    from seqflow.net.net import Net
    from seqflow.net.step import Input, Step
from functools import cached_property

from seqflow.net.step import Step
from seqflow.shape import Dimension
from seqflow.signature.language import AtLeast


@dataclass(frozen=True, slots=True, repr=False)
class NetInference:
    """Specs of all tensors of a net, and the guards: equalities assumed without proof.

    Prints as the net's text, each statement with the specs of its results.
    """

    net: Net
    specs: Mapping[str, TensorSpec]
    guards: Guards
    by_step: tuple[tuple[Guard | SameLengths, ...], ...]
    """Guards of each step."""
    bounds: NetBounds
    rows: NetRows
    """Row spaces of the axes of each tensor."""

    @property
    def byte_bounds(self) -> Mapping[str, int | None]:
        """Upper bound of the bytes of each tensor; None without a bound."""
        return self.bounds.of_bytes

    @property
    def byte_bound(self) -> int | None:
        """Upper bound of the bytes of all tensors together, including dropped ones; None without a bound."""
        return self.bounds.total_bytes

    @property
    def longest(self) -> Mapping[str, int]:
        """Upper bounds of the elements of tensors that may be lengths, if known."""
        return self.bounds.longest

    def parents(self, names: Iterable[str]) -> dict[str, str | None]:
        """Map each tensor to the lengths, among these tensors, that describe its rows, or to None."""
        return self.rows.parents(tuple(names))

    def among(self, names: Sequence[str]) -> dict[str, TensorSpec]:
        """Return the specs of these tensors, with rows described by lengths among them where possible."""
        found = {}
        inside = self.rows.insides(names)
        for name, parent in self.rows.parents(names).items():
            spec = self.specs[name]
            axes = spec.axes if parent is None else (Described(parent), *spec.axes[1:])
            points = Positions(inside[name]) if name in inside else spec.points
            found[name] = TensorSpec(spec.dtype, spec.shape, axes=axes, points=points)
        return found

    def explain(self, name: str) -> str:
        """Explain which rows a tensor holds, and why.

        >>> specs = {"x": TensorSpec("int64", "{?}", Described("n")), "n": TensorSpec("int64", "{?}")}
        >>> print(Net("y = x * 2").infer(specs).explain("y"))
        y: axis 0 holds the rows that n describes
        """
        return self.rows.explain(name)

    def described(self, name: str) -> str:
        """Return the spec of a tensor and the bound of its bytes."""
        return f"{self.specs[name]} ≤ {format_bytes(self.byte_bounds[name])}"

    def _repr_html_(self) -> str:
        from seqflow.net.table import html

        notes = [f"guard: {guard}" for guard in self.guards]
        specs = {name: self.described(name) for name in self.specs}
        return html(self.net, specs, [*notes, f"all tensors ≤ {format_bytes(self.byte_bound)}"])

    def __repr__(self) -> str:
        lines = [f"# {name}: {self.described(name)}" for name in self.net.inputs]
        for step in self.net.steps:
            if step.is_part:
                continue
            results = ", ".join(f"{name} {self.described(name)}" for name in step.results if name != "_")
            lines.append(f"{step.statement}" + (f"    # {results}" if results else ""))
        if self.net.returned:
            lines.append(f"return {', '.join(self.net.returned)}")
        lines += [f"# guard: {guard}" for guard in self.guards]
        return printable("\n".join([*lines, f"# all tensors ≤ {format_bytes(self.byte_bound)}"]))


def infer_net(
    net: Net, specs: Mapping[str, TensorSpec], limits: Mapping[DimensionLike, int] | None = None
) -> NetInference:
    """Infer the steps in order; an error keeps its type and gets a note with the statement."""
    net.require(specs)
    inference = _Inference(net, specs)
    note_bounds(inference.specs, limits or {}, inference.equalities)
    return inference.run()


_LONGEST_LITERAL = 64
"""Most elements of known vectors that are compared: longer ones are data, not shapes or lengths written in a net."""


class _Inference:
    """State of the inference of one net: specs, values and equalities known so far."""

    def __init__(self, net: Net, specs: Mapping[str, TensorSpec]) -> None:
        self.net = net
        self.equalities = Equalities()
        self.terms = self.equalities.terms
        self.specs = {name: self.input(name, spec) for name, spec in specs.items()}
        self.sizes: dict[str, PartialShape] = {}
        """Known sizes in tensors that are vectors of sizes."""
        self.values: dict[str, Any] = {name: np.asarray(value) for name, value in net.constants.items()}
        for name, value in self.values.items():
            self.specs[name] = TensorSpec.of(value)
            self.set_literal(name, value)
        self.makers = {name: step for step in net.steps for name in step.results}

    def input(self, name: str, spec: TensorSpec) -> TensorSpec:
        """Return the spec of an input with its rows; undeclared rows become the first rows it is combined with."""
        spec = declare(_named(name, spec), self.terms)
        if not spec.axes and spec.shape.rank != 0:
            axes = (self.terms.make("variable", name),)  # united with the first rows that it is combined with
            spec = TensorSpec(spec.dtype, spec.shape, axes=axes, points=spec.points)
        self.equalities.set_value(
            name, self.terms.value(name), spec.dtype.kind in "iu" and spec.shape.rank == 1
        )
        self.equalities.specs.setdefault(self.terms.value(name), spec)
        if spec.shape.dimensions and spec.axes[0] is not None and spec.axes[0].is_rows:
            self.equalities.count_rows(spec.axes[0], spec.shape[0], f"{name} has the same rows")
        return spec

    def set_literal(self, tensor: str, value: Any) -> None:
        """Record a known value, so that tensors with equal values are known equal."""
        known = np.asarray(value)
        if known.dtype.kind in "iu" and known.ndim < 2 and known.size <= _LONGEST_LITERAL:
            term = self.terms.make("literal", literal(known.tolist()))
            self.equalities.set_value(tensor, term, known.ndim == 1)

    def run(self) -> NetInference:
        guards: Guards = []
        by_step: list[tuple[Guard | SameLengths, ...]] = []
        # results called `_` cannot be used, but need memory all the same
        dropped: dict[str, TensorSpec] = {}
        for number, step in enumerate(self.net.steps):
            results = step.names_at(number)
            inferred = self.step(step, results)
            self.sizes.update(inferred.sizes)
            for name, held in inferred.rows.items():
                self.hold(name, held)
            outputs = [
                self.with_equal_values(*pair, inferred.guards)
                for pair in zip(results, inferred.outputs, strict=True)
            ]
            for name, result, spec in zip(step.results, results, outputs, strict=True):
                (dropped if name == "_" else self.specs)[result] = _named(result, spec)
            # most steps leave the bounds of their inputs as they were: only their results are tightened
            for name in (*(step.uses if may_bound_inputs(step, inferred.guards) else ()), *results):
                tighten(name, self.specs.get(name) or dropped[name], self.equalities)
            origin = f"{step.op.name}, line {step.line}: "
            found = [guard._replace(origin=origin + guard.origin) for guard in inferred.guards]
            guards += found
            by_step.append(tuple(found))
        known = {
            name: publish(_resolved(spec, self.equalities), self.terms) for name, spec in self.specs.items()
        }
        bounds = NetBounds(known, dropped, self.equalities)
        rows = NetRows(self.net, self.terms, {**self.specs, **dropped})
        return NetInference(self.net, known, guards, tuple(by_step), bounds, rows)

    def step(self, step: Step, results: list[str]) -> Inference:
        """Infer one step, and again if its shape function requests values that can be computed now."""
        for operand in step.inputs.values():
            if isinstance(operand, LiteralOperand):
                self.set_literal(str(operand), operand.value)
        specs = {name: each(operand, self.spec) for name, operand in step.inputs.items()}
        names = {name: each(operand, str) for name, operand in step.inputs.items()}
        single = {name: one for name, one in step.inputs.items() if not isinstance(one, Listed)}
        values = {name: known for name, one in single.items() if (known := self.known(one)) is not None}
        try:
            for _ in range(2):  # without values, then with those that the shape function requested
                call = CallOfSpecs(step.op, specs, step.attributes, values, names, results)
                inferred = infer(call, self.equalities)
                asked = inferred.requested - set(values)
                folded = {name: each(step.inputs[name], self.fold_sizes) for name in asked}
                more = {name: value for name, value in folded.items() if _is_known(value)}
                if not more:
                    break
                values |= more
            return inferred
        except SeqflowError as error:
            step.name_in(error, {name: shown(spec) for name, spec in specs.items()})
            raise

    def with_equal_values(self, tensor: str, spec: TensorSpec, guards: Guards) -> TensorSpec:
        """Return the spec of a result; if another tensor has equal values, with the sizes and rows of that tensor."""
        value = self.terms.find(self.terms.values[tensor])
        known = self.equalities.specs.setdefault(value, spec)
        if known is spec or not known.shape.dimensions or not spec.shape.dimensions:
            return spec
        for mine, theirs in zip(spec.shape, known.shape, strict=False):
            if self.equalities.compare(mine, theirs) is not Comparison.EQUAL:
                origin = f"{tensor} has the values of {value.tensor}"
                # no op compares the two tensors when it runs
                guards.append(Guard(theirs, mine, origin, is_checked=False))
                self.equalities.equate(theirs, mine, origin)
        points = spec.points if known.points is None else known.points
        return TensorSpec(spec.dtype, spec.shape, axes=known.axes, points=points)

    def hold(self, name: str, rows: Term) -> None:
        """Set the rows of a tensor without declared rows, and of tensors with equal values."""
        spec = self.specs.get(name)
        if spec is None:  # a literal
            return
        spec = TensorSpec(spec.dtype, spec.shape, axes=(rows, *spec.axes[1:]), points=spec.points)
        self.specs[name] = self.equalities.specs[self.terms.find(self.terms.value(name))] = spec

    def spec(self, operand: Input) -> TensorSpec:
        if isinstance(operand, LiteralOperand):
            return TensorSpec.of(np.asarray(operand.value))
        return self.specs[str(operand)]

    def known(self, operand: Input) -> Any | None:
        """Return the value of a literal or a constant."""
        if isinstance(operand, LiteralOperand):
            return np.asarray(operand.value)
        return self.values.get(str(operand))

    def fold_sizes(self, operand: Input) -> Any | None:
        """Return the value of a tensor computed from constants, or its known sizes; None if neither is known."""
        value = self.known(operand)
        value = self.fold(operand) if value is None and not isinstance(operand, LiteralOperand) else value
        return self.sizes.get(str(operand)) if value is None else value

    def fold(self, operand: Input) -> Any | None:
        """Return the value of a tensor that is computed from constants only; None for others."""
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


def _named(name: str, spec: TensorSpec) -> TensorSpec:
    shape = spec.shape.named(name)
    if shape is spec.shape:
        return spec
    return TensorSpec(spec.dtype, shape, axes=spec.axes, points=spec.points)


def _is_known(value: Any) -> bool:
    return any(one is not None for one in value) if isinstance(value, list) else value is not None


def _resolved(spec: TensorSpec, equalities: Equalities) -> TensorSpec:
    if spec.shape.dimensions is None:
        return spec
    sizes = [equalities.resolve(size) for size in spec.shape.dimensions]
    if all(map(is_, sizes, spec.shape.dimensions)):
        return spec
    return TensorSpec(spec.dtype, PartialShape(sizes), axes=spec.axes, points=spec.points)


def note_bounds(
    specs: Mapping[str, TensorSpec], limits: Mapping[DimensionLike, int], equalities: Equalities
) -> None:
    """Record the bounds in the inputs' shapes, and the limits of other sizes, for all ops of a net."""
    for spec in specs.values():
        for size in spec.shape.dimensions or ():
            equalities.limit(size, size, "the input")
    for other, most in limits.items():
        equalities.limit(Dimension.of(other), most, "what is known of the inputs")
    for name, spec in specs.items():
        tighten(name, spec, equalities)


def tighten(name: str, spec: TensorSpec, equalities: Equalities) -> None:
    """Bound the sum of a lengths tensor by its size times the longest, and the longest by the sum."""
    if spec.dtype.kind not in "iu" or spec.shape.dimensions is None or len(spec.shape.dimensions) != 1:
        return
    total, longest = Dimension.sum_of(name), Dimension.max_of(name)
    equalities.limit(total, spec.shape[0] * equalities.resolve(longest), "their number times the longest")
    equalities.limit(longest, total, "the sum of all")


def may_bound_inputs(step: Step, guards: Sequence[object]) -> bool:
    """Return whether a step can give its inputs bounds that were not known before."""
    arguments = step.op.signature.input_arguments
    return (
        bool(guards)
        or not step.results
        or any(isinstance(dim, AtLeast) for argument in arguments for dim in argument.dims)
    )


@dataclass(frozen=True)
class NetBounds:
    """Upper bounds for the tensors of a net, computed lazily: `seqflow check` needs them, a run does not."""

    specs: Mapping[str, TensorSpec]
    dropped: Mapping[str, TensorSpec]
    equalities: Equalities

    @cached_property
    def longest(self) -> dict[str, int]:
        """Upper bounds of the elements of vectors of integers, if known."""
        found = {}
        for name, spec in self.specs.items():
            if spec.dtype.kind in "iu" and spec.shape.rank == 1:
                most = self.equalities.resolve(Dimension.max_of(name)).max_length
                if most is not None:
                    found[name] = most
        return found

    @cached_property
    def of_bytes(self) -> dict[str, int | None]:
        """Upper bound of the bytes of each tensor; None without a bound."""
        return {name: self._most_bytes(spec) for name, spec in self.specs.items()}

    @cached_property
    def total_bytes(self) -> int | None:
        """Upper bound of the bytes of all tensors together, including dropped ones; None without a bound."""
        total = 0
        for bound in (*self.of_bytes.values(), *map(self._most_bytes, self.dropped.values())):
            if bound is None:
                return None
            total += bound
        return total

    def _most_bytes(self, spec: TensorSpec) -> int | None:
        most = self.equalities.resolve(spec.shape.num_elements).max_length
        width = spec.dtype.itemsize or None  # None: texts of unknown width
        return None if most is None or width is None else most * width
