"""Binding a signature to specs: shapes, dtypes and row spaces of the outputs, before there is any data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpTypeError, ShapeError
from seqflow.shape import Comparison, Dimension, Equalities, Guard, PartialShape
from seqflow.signature.arrays import allowed_kinds, expected_dtype
from seqflow.signature.language import (
    Anything,
    Argument,
    Arithmetic,
    AtLeast,
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
)
from seqflow.signature.rows import Described, RowSpace, bind_rows
from seqflow.tensor import TensorSpec


def bind_specs(
    signature: Signature,
    specs: Mapping[str, TensorSpec],
    *,
    attributes: Mapping[str, Any],
    names: Mapping[str, str],
    results: Sequence[str],
    equalities: Equalities,
) -> tuple[list[TensorSpec], list[Guard]]:
    """The outputs' specs, and the sizes that were taken to be equal without proof.

    `specs` holds those of the inputs that are given, by the signature's names; `names` the tensors they are, and
    `results` the tensors the outputs will be: lengths are told apart by these. Raises OpTypeError, ShapeError,
    and LodError where values meet lengths that describe other rows; then `equalities` has not changed.
    """
    with equalities.staged():
        binder = _Binder(attributes, names, equalities)
        given = [a for a in signature.input_arguments if a.name in specs]
        for argument in sorted(given, key=_plain_dimensions_first):
            binder.input(argument, specs[argument.name])
        spaces: dict[str, Any] = {names[name]: s.rows for name, s in specs.items() if s.rows is not None}
        tensors = {argument.name: names.get(argument.name) for argument in signature.input_arguments}
        rows = bind_rows(signature, tensors, results, spaces, "an op")
        binder.names.update(zip((a.name for a in signature.output_arguments), results, strict=True))
        outputs = [
            TensorSpec(output_dtype(signature, argument, specs), binder.shape(argument, result), space)
            for argument, result, space in zip(signature.output_arguments, results, rows, strict=True)
        ]
    return outputs, binder.guards


def output_dtype(signature: Signature, argument: Argument, specs: Mapping[str, TensorSpec]) -> np.dtype[Any]:
    """The dtype an output has for inputs of these dtypes."""
    word, of = argument.dtype.word, argument.dtype.of
    if word == "any":
        first = next(a.name for a in signature.input_arguments if a.name in specs)
        return specs[first].dtype
    if word in ("sum_of", "mean_of"):
        rule = kernels.sum_dtype if word == "sum_of" else kernels.mean_dtype
        return np.result_type(*(rule(specs[name].dtype) for name in of if name in specs))
    return np.dtype(np.int64 if word == "int" else word)


def _plain_dimensions_first(argument: Argument) -> int:
    return sum(not isinstance(dim, (Name, Rest, Anything)) for dim in argument.dims)


class _Binder:
    """What is known of one call while its inputs are gone through."""

    def __init__(
        self, attributes: Mapping[str, Any], names: Mapping[str, str], equalities: Equalities
    ) -> None:
        self.attributes = attributes
        self.names = dict(names)
        self.equalities = equalities
        self.guards: list[Guard] = []
        self.sizes: dict[str, Dimension] = {}
        self.rests: dict[Rest, tuple[Dimension, ...]] = {}
        self.rows: dict[str, tuple[RowSpace, str]] = {}
        self.places: dict[object, str] = {}

    def input(self, argument: Argument, spec: TensorSpec) -> None:
        kinds = allowed_kinds(argument)
        fits = spec.dtype == argument.dtype.word if kinds is None else spec.dtype.kind in kinds
        if not fits:
            raise OpTypeError(f"{argument.name} is {spec.dtype}, expected {expected_dtype(argument)}")
        self.row_space(argument, spec)
        if spec.shape.dimensions is None:
            return
        rank = len(spec.shape.dimensions)
        if rank != argument.rank and not (rank > argument.rank and argument.rest is not None):
            wanted = f"{argument.rank} or more" if argument.rest is not None else str(argument.rank)
            raise ShapeError(
                f"{argument.name} has shape {spec.shape}, expected {wanted} dimensions ({argument})"
            )
        for place, dim, sizes in _aligned(argument, spec.shape.dimensions):
            self.dimension(place, dim, sizes)

    def dimension(self, place: str, dim: Dim, sizes: tuple[Dimension, ...]) -> None:
        match dim:
            case Anything():
                pass
            case Rest():
                self.rest(place, dim, sizes)
            case AtLeast(name=name, bound=bound):
                self.named(name, sizes[0], place)
                least = self.size(bound)
                if least is not None and sizes[0].max_length is not None:
                    if sizes[0].max_length < least.min_length:
                        raise ShapeError(f"{place} is {sizes[0]}, expected {bound} = {least} or more")
                    self.equalities.limit(least, sizes[0], place)
            case Name(name=name) if name not in self.attributes:
                self.named(name, sizes[0], place)
            case _:
                assert not isinstance(dim, Fresh)
                expected = self.size(dim)
                if expected is not None:
                    self.merge(expected, sizes[0], str(dim), place, isinstance(dim, Sum))

    def named(self, name: str, size: Dimension, place: str) -> None:
        if name in self.sizes:
            self.sizes[name] = self.merge(self.sizes[name], size, self.places[name], place)
        else:
            self.sizes[name], self.places[name] = size, place

    def rest(self, place: str, dim: Rest, sizes: tuple[Dimension, ...]) -> None:
        if dim not in self.rests:
            self.rests[dim], self.places[dim] = sizes, place
            return
        known = self.rests[dim]
        if len(known) != len(sizes):
            raise ShapeError(
                f"{place} is {PartialShape(sizes)}, expected {PartialShape(known)} as in {self.places[dim]}"
            )
        self.rests[dim] = tuple(
            self.merge(one, other, self.places[dim], place) for one, other in zip(known, sizes, strict=True)
        )

    def merge(
        self, known: Dimension, size: Dimension, known_place: str, place: str, of_lengths: bool = False
    ) -> Dimension:
        """One size for both: proved, refused, or assumed and recorded as a guard."""
        answer = self.equalities.compare(known, size)
        if answer is Comparison.EQUAL:
            return known
        if answer is Comparison.UNEQUAL:
            why = "".join(f"\n  {line}" for line in self.equalities.explain(known, size))
            kind = LodError if of_lengths else ShapeError
            raise kind(f"{place} is {size}, but {known_place} is {known}{why}")
        origin = f"{known_place} and {place}"
        self.guards.append(Guard(known, size, origin))
        return self.equalities.equate(known, size, origin)

    def row_space(self, argument: Argument, spec: TensorSpec) -> None:
        """LodError where two row spaces that are known and different meet."""
        rows, dim = spec.rows, argument.dims[0] if argument.dims else None
        if rows is None:
            return
        if isinstance(dim, Sum) and isinstance(rows, Described) and dim.of in self.names:
            expected = Described(self.names[dim.of])
            if self.equalities.rows(rows) != self.equalities.rows(expected):
                raise LodError(
                    f"{argument.name} has the rows that {rows.by} describes, but {dim.of} is {expected.by}: "
                    "values of one column, lengths of another"
                )
        elif isinstance(dim, (Name, AtLeast)):
            known, owner = self.rows.setdefault(dim.name, (rows, argument.name))  # type: ignore[arg-type]
            if self.equalities.rows(known) != self.equalities.rows(rows):
                raise LodError(
                    f"{argument.name} has the rows of {_origin(rows)}, but {owner} those of {_origin(known)}"
                )

    def size(self, size: Size) -> Dimension | None:
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
            case Arithmetic(operator=operator, left=left, right=right):
                one, other = self.size(left), self.size(right)
                if one is None or other is None:
                    return None
                return one + other if operator == "+" else one - other if operator == "-" else one * other

    def shape(self, argument: Argument, result: str) -> PartialShape:
        """The shape of an output. A name that no input binds is a new size, the same in all outputs."""
        sizes: list[Dimension] = []
        for axis, dim in enumerate(argument.dims):
            if isinstance(dim, Rest):
                if dim not in self.rests:
                    return PartialShape.dynamic()
                sizes += self.rests[dim]
                continue
            wanted = dim.size if isinstance(dim, Fresh) else dim
            size = None if isinstance(wanted, (Anything, AtLeast)) else self.size(wanted)
            if size is None:
                size = Dimension.symbol(f"{result}.shape[{axis}]")
                if isinstance(wanted, Name):
                    self.sizes[wanted.name] = size
            sizes.append(self.equalities.resolve(size))
        return PartialShape(sizes)


def _aligned(
    argument: Argument, sizes: tuple[Dimension, ...]
) -> Iterator[tuple[str, Dim, tuple[Dimension, ...]]]:
    """Each dimension of the signature with its place and its sizes (several for `*d` only)."""
    extra = len(sizes) - len(argument.dims)
    for i, dim in enumerate(argument.dims):
        rest = argument.rest
        start = i if rest is None or i <= rest else i + extra
        stop = start + (extra + 1 if i == rest else 1)
        yield f"{argument.name}.shape[{start}]", dim, sizes[start:stop]


def _origin(rows: object) -> str:
    return f"the lengths {rows.by}" if isinstance(rows, Described) else getattr(rows, "origin", str(rows))
