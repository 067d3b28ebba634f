"""Binding a signature to specs: shapes, dtypes and row spaces of the outputs, before there is any data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpError, OpTypeError, ShapeError
from seqflow.shape import Comparison, Dimension, Equalities, Guard, PartialShape
from seqflow.shape.guards import Guards
from seqflow.shape.terms import Term
from seqflow.signature.alike import TEXT, check_alike
from seqflow.signature.arrays import expected_dtype
from seqflow.signature.claims import Claims
from seqflow.signature.language import (
    GIVEN_DTYPE,
    OPERATORS,
    POINTING,
    Anything,
    Argument,
    Arithmetic,
    AtLeast,
    Count,
    Dim,
    Fresh,
    Given,
    Literal,
    Max,
    Name,
    Rest,
    Signature,
    Size,
    Sum,
    Value,
    count_of,
    evaluate,
    parts,
)
from seqflow.signature.limits import note_limits, scope_of
from seqflow.signature.rows import NamedOutput
from seqflow.signature.spaces import BoundInput, Facts, Spaces
from seqflow.tensor import TensorSpec

Specs = Mapping[str, TensorSpec | Sequence[TensorSpec]]
Names = Mapping[str, str | Sequence[str]]


def bind_specs(
    op: str,
    signature: Signature,
    claims: Claims,
    specs: Specs,
    *,
    attributes: Mapping[str, Any],
    names: Names,
    results: Sequence[NamedOutput],
    facts: Facts,
    equalities: Equalities,
) -> tuple[list[TensorSpec], Guards]:
    """The outputs' specs, and what was taken to be equal without proof.

    `specs` maps the signature's names to the specs of the given inputs and `names` to the tensors passed; `results`
    are the outputs and their tensors, whose values `equalities` knows. `facts` say what new
    rows are made from. Where the op takes or gives a list, there is a list. Raises OpTypeError, ShapeError, and
    LodError where values meet lengths that describe other rows; the caller takes back what `equalities` learned.
    """
    single = {name: tensor for name, tensor in names.items() if type(tensor) is str and name in specs}
    inputs = _inputs(signature, specs, names, single)
    guards: Guards = []
    spaces = Spaces(op, signature, claims, attributes, equalities, guards, facts)
    binder = _Binder(attributes, equalities, spaces, guards)
    for one in sorted(inputs, key=_computed):
        binder.input(one)
    if signature.solved:
        for one in inputs:
            binder.solve(one)
    if signature.pointing:
        spaces.check_pointing(inputs)
    if (spaces.named or spaces.rests) and equalities.all_declared:
        spaces.refuse_plain(inputs)
    if signature.alike:
        check_alike(signature, {name: _dtypes_given(spec) for name, spec in specs.items()})
    for output in results if claims.describes else ():
        spaces.describe(output.argument.field, output.tensor)
    outputs: list[TensorSpec] = []
    for output in results:
        binder.names = {**single, **output.tensors}
        shape = binder.shape(output.argument, output.tensor)
        rank = None if shape.dimensions is None else len(shape.dimensions)
        axes = spaces.output(output.argument, rank, binder.names)
        dtype = output_dtype(signature, output.argument, specs, attributes)
        points = output.argument.dtype.points
        target = None if points is None else spaces.target(output.argument, points, binder.names)
        counted = binder.counted(shape, axes, output.tensor)
        outputs.append(TensorSpec(dtype, counted, axes=axes, points=target))
    if signature.is_bounded:
        scope = scope_of(specs, names, binder.sizes, attributes, claims.look_up, equalities)
        note_limits(op, signature, results, outputs, scope, binder.sizes, equalities)
    return outputs, guards


def _computed(one: BoundInput) -> int:
    return one.argument.computed


def _inputs(signature: Signature, specs: Specs, names: Names, single: Mapping[str, str]) -> list[BoundInput]:
    """The given inputs, those in lists one by one; `single` maps the inputs that are not lists to their tensors."""
    found: list[BoundInput] = []
    for item in signature.inputs:
        if isinstance(item, Argument):
            spec = specs.get(item.name)
            if isinstance(spec, TensorSpec):
                found.append(BoundInput(item, spec, item.name, single[item.name], single))
            continue
        columns = [(a, _listed(specs, a.name), list(names[a.name])) for a in item.arguments]
        counts = {a.name: len(column) for a, column, _ in columns}
        if len(set(counts.values())) != 1 or 0 in counts.values():
            lists = ", ".join(f"{name} has {count}" for name, count in counts.items())
            raise OpError(f"{lists}, expected lists of one or more, all equally long")
        for i in range(len(columns[0][1])):
            own = dict(single) | {a.name: tensors[i] for a, _, tensors in columns}
            found += [
                BoundInput(a, given[i], f"{a.name}[{i}]", tensors[i], own) for a, given, tensors in columns
            ]
    return found


def output_dtype(
    signature: Signature, argument: Argument, specs: Specs, attributes: Mapping[str, Any]
) -> np.dtype[Any]:
    """The dtype an output has for inputs of these dtypes."""
    word, of = argument.dtype.word, argument.dtype.of
    if word == "any":
        for first in signature.input_arguments:
            if first.name in specs:
                dtype = _dtypes(specs, first.name)[0]
                return _widest_text(signature, first.name, specs) if dtype.kind in TEXT else dtype
    if word in ("sum_of", "mean_of"):
        rule = kernels.sum_dtype if word == "sum_of" else kernels.mean_dtype
        found = [rule(dtype) for name in of if name in specs for dtype in _dtypes(specs, name)]
        return found[0] if len(found) == 1 else np.result_type(*found)
    if word == GIVEN_DTYPE:
        given: np.dtype[Any] = np.dtype(attributes[word])
        return given
    return np.dtype(np.int64 if word == "int" or word in POINTING else word)


def _widest_text(signature: Signature, name: str, specs: Specs) -> np.dtype[Any]:
    """The dtype of an input of texts and of those that are like it."""
    alike = [one for one, of in signature.alike if of == name and one in specs]
    return np.result_type(*(dtype for one in [name, *alike] for dtype in _dtypes(specs, one)))


def _dtypes(specs: Specs, name: str) -> list[np.dtype[Any]]:
    return [spec.dtype for spec in _listed(specs, name)]


def _dtypes_given(spec: TensorSpec | Sequence[TensorSpec]) -> np.dtype[Any] | list[np.dtype[Any]]:
    return spec.dtype if isinstance(spec, TensorSpec) else [one.dtype for one in spec]


def _listed(specs: Specs, name: str) -> list[TensorSpec]:
    given = specs[name]
    return [given] if isinstance(given, TensorSpec) else list(given)


class _Binder:
    """The sizes, row spaces and guards found so far while the inputs of one call are bound."""

    def __init__(
        self, attributes: Mapping[str, Any], equalities: Equalities, spaces: Spaces, guards: Guards
    ) -> None:
        self.attributes = attributes
        self.names: Mapping[str, str] = {}
        """The tensors whose sums sizes may use, by the signature's names."""
        self.equalities = equalities
        self.spaces = spaces
        self.guards = guards
        self.sizes: dict[str, Dimension] = {}
        self.rests: dict[str, tuple[Dimension, ...]] = {}
        self.places: dict[str, _Place] = {}
        self.rest_places: dict[str, _Place] = {}

    def input(self, one: BoundInput) -> None:
        argument, spec, label, _, self.names = one
        kinds = argument.kinds
        fits = spec.dtype == argument.dtype.word if kinds is None else spec.dtype.kind in kinds
        if not fits:
            raise OpTypeError(f"{label} is {spec.dtype}, expected {expected_dtype(argument)}")
        if spec.shape.dimensions is None:
            if spec.axes:
                self.spaces.input(argument, spec.axes, None, label, self.names)
            return
        rank = len(spec.shape.dimensions)
        if rank != argument.rank and not (rank > argument.rank and argument.rest is not None):
            wanted = f"{argument.rank} or more" if argument.rest is not None else str(argument.rank)
            raise ShapeError(f"{label} has shape {spec.shape}, expected {wanted} dimensions ({argument})")
        if spec.axes:
            self.spaces.input(argument, spec.axes, rank, label, self.names)
        dimensions, rest = spec.shape.dimensions, argument.rest
        extra = rank - len(argument.dims)
        for i, dim in enumerate(argument.dims):
            axis = i if rest is None or i <= rest else i + extra
            if isinstance(dim, Rest):
                self.rest((label, axis), dim.name, dimensions[axis : axis + extra + 1])
            elif isinstance(dim, Name) and dim.name not in self.attributes:
                self.named(dim.name, dimensions[axis], (label, axis))
            else:
                self.dimension((label, axis), dim, dimensions[axis])

    def dimension(self, place: _Place, dim: Dim, size: Dimension) -> None:
        match dim:
            case Anything():
                pass
            case AtLeast(name=name, bound=bound):
                self.named(name, size, place)
                least = self.size(bound)
                if least is not None and size.max_length is not None:
                    if size.max_length < least.min_length:
                        raise ShapeError(f"{_words(place)} is {size}, expected {bound} = {least} or more")
                    self.equalities.limit(least, size, _words(place))
            case _:
                assert not isinstance(dim, (Fresh, Rest))
                expected = self.size(dim)
                if expected is not None:
                    self.merge(expected, size, dim, place)

    def named(self, name: str, size: Dimension, place: _Place) -> None:
        if name in self.sizes:
            self.sizes[name] = self.merge(self.sizes[name], size, self.places[name], place)
        else:
            self.sizes[name], self.places[name] = size, place

    def solve(self, one: BoundInput) -> None:
        """The one unknown name of a size, as in `B+1`."""
        for axis, dim in enumerate(one.argument.dims if one.argument.rest is None else ()):
            names = {part.name for part in parts(dim) if isinstance(part, Name)} - set(self.attributes)
            unknown = names - set(self.sizes)
            if len(unknown) != 1 or not isinstance(dim, Arithmetic) or one.spec.shape.dimensions is None:
                continue
            (name,) = unknown
            at_0, at_1 = (evaluate(dim, {**self.attributes, name: n}) for n in (0, 1))
            if at_0 is not None and at_1 is not None and at_1 > at_0:
                place = one.label, axis
                rows = one.spec.shape.dimensions[axis] - at_0
                self.sizes[name], self.places[name] = rows.divide_exactly(at_1 - at_0), place

    def rest(self, place: _Place, name: str, sizes: tuple[Dimension, ...]) -> None:
        if name == "_":
            return
        if name not in self.rests:
            self.rests[name], self.rest_places[name] = sizes, place
            return
        known = self.rests[name]
        if len(known) != len(sizes):
            raise ShapeError(
                f"{_words(place)} is {PartialShape(sizes)}, expected {PartialShape(known)}"
                f" as in {_words(self.rest_places[name])}"
            )
        self.rests[name] = tuple(
            self.merge(one, other, self.rest_places[name], place)
            for one, other in zip(known, sizes, strict=True)
        )

    def merge(
        self, known: Dimension, size: Dimension, known_place: _Place | Size, place: _Place
    ) -> Dimension:
        """One size for both: proved, refused, or assumed and recorded as a guard."""
        if known is size and known.is_named:
            return known
        answer = self.equalities.compare(known, size)
        if answer is Comparison.EQUAL:
            return known
        if answer is Comparison.UNEQUAL:
            why = "".join(f"\n  {line}" for line in self.equalities.explain(known, size))
            kind = LodError if isinstance(known_place, Sum) else ShapeError
            raise kind(f"{_words(place)} is {size}, but {_words(known_place)} is {known}{why}")
        origin = f"{_words(known_place)} and {_words(place)}"
        self.guards.append(Guard(known, size, origin))
        return self.equalities.equate(known, size, origin)

    def size(self, size: Value) -> Dimension | None:
        """The value of a size; None where something it needs is not known."""
        match size:
            case Literal(value=value):
                return Dimension(value)
            case Name(name=name) if name in self.attributes:
                value = self.attributes[name]
                return None if value is None else Dimension(value)
            case Name(name=name):
                return self.sizes.get(name)
            case Sum(of=of):
                return self.equalities.resolve(Dimension.sum_of(self.names[of])) if of in self.names else None
            case Max(of=of):
                return self.equalities.resolve(Dimension.max_of(self.names[of])) if of in self.names else None
            case Given(attribute=attribute, otherwise=otherwise):
                given = self.attributes.get(attribute)
                return self.size(otherwise) if given is None else Dimension(given)
            case Count(of=of):
                return Dimension(count_of(self.attributes[of]))
            case Arithmetic(operator=operator, left=left, right=right):
                one, other = self.size(left), self.size(right)
                return None if one is None or other is None else OPERATORS[operator](one, other)
        return None

    def shape(self, argument: Argument, result: str) -> PartialShape:
        """The shape of an output. A name that no input binds is a new size, the same in all outputs."""
        sizes: list[Dimension] = []
        for axis, dim in enumerate(argument.dims):
            if isinstance(dim, Rest):
                if dim.name not in self.rests:
                    return PartialShape.dynamic()
                sizes += self.rests[dim.name]
                continue
            wanted = dim.size if isinstance(dim, Fresh) else dim
            size = None if isinstance(wanted, (Anything, AtLeast)) else self.size(wanted)
            if size is None:
                size = Dimension.axis_of(result, axis)
                name = wanted.otherwise if isinstance(wanted, Given) else wanted
                if isinstance(name, Name):
                    self.sizes[name.name] = size
            sizes.append(self.equalities.resolve(size) if size.terms else size)
        return PartialShape(sizes)

    def counted(self, shape: PartialShape, axes: Sequence[Term | None], result: str) -> PartialShape:
        """The shape, its number of rows that of all tensors with the same rows."""
        if not axes or axes[0] is None or not shape.dimensions or not axes[0].is_rows:
            return shape
        known = shape.dimensions[0]
        count = self.equalities.count_rows(axes[0], known, f"{result} has the same rows")
        return shape if count is known else PartialShape([count, *shape.dimensions[1:]])


_Place = tuple[str, int]
"""An input and one of its axes, for messages."""


def _words(place: _Place | Size) -> str:
    return f"{place[0]}.shape[{place[1]}]" if isinstance(place, tuple) else str(place)
