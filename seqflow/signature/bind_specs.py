"""Binding a signature to specs: infers shapes, dtypes and row spaces of the outputs without data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpError, OpTypeError, ShapeError
from seqflow.shape import Comparison, Dimension, Equalities, Guard, PartialShape
from seqflow.shape.guards import Guards
from seqflow.shape.terms import Term
from seqflow.signature import language
from seqflow.signature.advice import instead_of_form
from seqflow.signature.bind_arrays import NOT_A_SCALAR, expected_dtype
from seqflow.signature.bind_rows import BoundInput, Facts, RowSpaces
from seqflow.signature.language import GIVEN_DTYPE, LIKE, POINTING, Argument, Signature
from seqflow.signature.limits import Scope, note_limits
from seqflow.signature.op_properties import Claims
from seqflow.signature.rows import NamedOutput
from seqflow.signature.shared_dtypes import TEXT, check_alike
from seqflow.tensor import TensorSpec

Specs = Mapping[str, TensorSpec | Sequence[TensorSpec]]
Names = Mapping[str, str | Sequence[str]]


class SpecReader:
    """Functions that infer shapes by a signature, made once for each op."""

    def __init__(self, signature: Signature, claims: Claims, attributes: Collection[str]) -> None:
        self.signature = signature
        self.claims = claims
        self.checks = {
            argument.name: [
                (axis.key, axis.first, *read)
                for axis in argument.axes
                for read in read_axis(axis.dim, attributes)
            ]
            for argument in signature.input_arguments
        }
        self.shapes = {
            argument.name: OutputShape(argument.dims, attributes) for argument in signature.output_arguments
        }


def bind_specs(
    op: str,
    reader: SpecReader,
    specs: Specs,
    *,
    attributes: Mapping[str, Any],
    names: Names,
    results: Sequence[NamedOutput],
    facts: Facts,
    equalities: Equalities,
) -> tuple[list[TensorSpec], Guards]:
    """Return the outputs' specs, and the equalities that were assumed without proof.

    `specs` maps the signature's names to the specs of the given inputs, and `names` to their tensors. `results` are
    the outputs and their tensors; their values are in `equalities`. New rows are made from `facts`. A list input has
    lists in `specs` and `names`. Raises OpTypeError, ShapeError, and LodError when values are combined with lengths
    of other rows; the caller then undoes the changes of `equalities`.
    """
    signature = reader.signature
    single = {name: tensor for name, tensor in names.items() if type(tensor) is str and name in specs}
    inputs = _inputs(signature, specs, names, single)
    guards: Guards = []
    sizes = KnownSizes(attributes, equalities, guards)
    spaces = RowSpaces(op, signature, reader.claims, attributes, equalities, guards, facts)
    later: list[tuple[CheckSize, Any, AxisLabel, Mapping[str, str]]] = []
    for argument, spec, label, _, tensors in inputs:
        dimensions = spec.shape.dimensions
        rank = None if dimensions is None else len(dimensions)
        if spec.axes:
            spaces.input(argument, spec.axes, rank, label, tensors)
        if dimensions is not None and rank is not None:
            for key, first, at_once, check in reader.checks[argument.name]:
                place = label, first if first >= 0 else first + rank
                if at_once:
                    check(sizes, dimensions[key], place)
                else:  # its size may use the name of an input that comes later
                    later.append((check, dimensions[key], place, tensors))
    while later:  # repeat: a name that was solved may make another size known
        unknown = [one for one in later if sizes.is_unknown(*one)]
        if len(unknown) == len(later):
            break
        later = unknown
    sizes.binds_all = True
    for check, found, place, tensors in later:
        sizes.is_unknown(check, found, place, tensors)
    if signature.pointing:
        spaces.check_pointing(inputs)
    if (spaces.named or spaces.rests) and equalities.all_declared:
        spaces.refuse_plain(inputs)
    if signature.alike:
        check_alike(signature, {name: _dtypes_given(spec) for name, spec in specs.items()})
    if reader.claims.describes:
        for output in results:
            spaces.describe(output.argument.field, output.tensor)
    outputs = _outputs(reader, specs, single, results, sizes, spaces)
    if signature.is_bounded:
        scope = Scope(specs, names, sizes.known, attributes, equalities, reader.claims.look_up)
        note_limits(op, signature, results, outputs, scope)
    return outputs, guards


def _checked(one: BoundInput) -> BoundInput:
    """Return the input after checking its dtype and rank: such errors come before those of rows and sizes."""
    argument, spec, label, _, _ = one
    kinds, shape = argument.kinds, spec.shape
    fits = spec.dtype == argument.dtype.word if kinds is None else spec.dtype.kind in kinds
    rank = None if shape.dimensions is None else len(shape.dimensions)
    advice = instead_of_form(spec.dtype, rank) if argument.is_lengths else ""
    if not fits:
        raise OpTypeError(f"{label} is {spec.dtype}, expected {expected_dtype(argument)}", advice=advice)
    more = 0 if rank is None else rank - argument.rank
    if more and (more < 0 or argument.rest is None):
        wanted = f"{argument.rank} or more" if argument.rest is not None else str(argument.rank)
        raise ShapeError(
            f"{label} has shape {shape}, expected {wanted} dimensions ({argument})",
            advice=NOT_A_SCALAR if wanted == "0" else advice,
        )
    return one


def _outputs(
    reader: SpecReader,
    specs: Specs,
    single: Mapping[str, str],
    results: Sequence[NamedOutput],
    sizes: KnownSizes,
    spaces: RowSpaces,
) -> list[TensorSpec]:
    found: list[TensorSpec] = []
    tensors: Mapping[str, str] = {}
    before: Mapping[str, str] | None = None
    for argument, _, tensor, own in results:
        if own is not before:
            before, tensors = own, {**single, **own}
        sizes.tensors = tensors
        shape = reader.shapes[argument.name].of(sizes, tensor)
        rank = None if shape.dimensions is None else len(shape.dimensions)
        axes = spaces.output(argument, rank, tensors)
        dtype = output_dtype(reader.signature, argument, specs, sizes.attributes)
        points = argument.dtype.points
        target = None if points is None else spaces.target(argument, points, tensors)
        found.append(TensorSpec(dtype, _counted(shape, axes, tensor, sizes), axes=axes, points=target))
    return found


def _counted(
    shape: PartialShape, axes: Sequence[Term | None], result: str, sizes: KnownSizes
) -> PartialShape:
    """Return the shape with the number of rows that all tensors with the same rows share."""
    if not axes or axes[0] is None or not shape.dimensions or not axes[0].is_rows:
        return shape
    known = shape.dimensions[0]
    count = sizes.equalities.count_rows(axes[0], known, f"{result} has the same rows")
    return shape if count is known else PartialShape([count, *shape.dimensions[1:]])


def _inputs(signature: Signature, specs: Specs, names: Names, single: Mapping[str, str]) -> list[BoundInput]:
    """Return the given inputs, lists one tensor at a time; `single` maps other inputs to their tensors."""
    found: list[BoundInput] = []
    for item in signature.inputs:
        if isinstance(item, Argument):
            spec = specs.get(item.name)
            if isinstance(spec, TensorSpec):
                found.append(_checked(BoundInput(item, spec, item.name, single[item.name], single)))
            continue
        columns = [(a, _listed(specs, a.name), list(names[a.name])) for a in item.arguments]
        counts = {a.name: len(column) for a, column, _ in columns}
        if len(set(counts.values())) != 1 or 0 in counts.values():
            lists = ", ".join(f"{name} has {count}" for name, count in counts.items())
            raise OpError(f"{lists}, expected lists of one or more, all equally long")
        for i in range(len(columns[0][1])):
            own = dict(single) | {a.name: tensors[i] for a, _, tensors in columns}
            found += [
                _checked(BoundInput(a, given[i], f"{a.name}[{i}]", tensors[i], own))
                for a, given, tensors in columns
            ]
    return found


def output_dtype(
    signature: Signature, argument: Argument, specs: Specs, attributes: Mapping[str, Any]
) -> np.dtype[Any]:
    """Return the dtype of an output for inputs of these specs."""
    word, of = argument.dtype.word, argument.dtype.of
    if word == "any":
        for first in signature.input_arguments:
            if first.name in specs:
                given = specs[first.name]
                dtype = given.dtype if isinstance(given, TensorSpec) else given[0].dtype
                return _widest_text(signature, first.name, specs) if dtype.kind in TEXT else dtype
    if word == LIKE:
        return _dtypes(specs, of[0])[0]
    if word in ("sum_of", "mean_of"):
        rule = kernels.sum_dtype if word == "sum_of" else kernels.mean_dtype
        found = [rule(dtype) for name in of if name in specs for dtype in _dtypes(specs, name)]
        return found[0] if len(found) == 1 else np.result_type(*found)
    if word == GIVEN_DTYPE:
        asked: np.dtype[Any] = np.dtype(attributes[word])
        return asked
    return np.dtype(np.int64 if word == "int" or word in POINTING else word)


def _widest_text(signature: Signature, name: str, specs: Specs) -> np.dtype[Any]:
    """Return the widest dtype of an input of texts and the inputs that are like it."""
    alike = [one for one, of in signature.alike if of == name and one in specs]
    return np.result_type(*(dtype for one in [name, *alike] for dtype in _dtypes(specs, one)))


def _dtypes(specs: Specs, name: str) -> list[np.dtype[Any]]:
    return [spec.dtype for spec in _listed(specs, name)]


def _dtypes_given(spec: TensorSpec | Sequence[TensorSpec]) -> np.dtype[Any] | list[np.dtype[Any]]:
    return spec.dtype if isinstance(spec, TensorSpec) else [one.dtype for one in spec]


def _listed(specs: Specs, name: str) -> list[TensorSpec]:
    given = specs[name]
    return [given] if isinstance(given, TensorSpec) else list(given)


AxisLabel = tuple[str, int]
"""Input and number of an axis, for messages."""


class KnownSizes:
    """Sizes of the dimension variables of one call, collected while its inputs are bound."""

    __slots__ = (
        "attributes", "axes", "binds_all", "equalities", "guards", "known", "rest_axes", "rests", "tensors",
    )  # fmt: skip

    def __init__(self, attributes: Mapping[str, Any], equalities: Equalities, guards: Guards) -> None:
        self.attributes = attributes
        self.equalities = equalities
        self.guards = guards
        self.tensors: Mapping[str, str] = {}
        """Tensors whose sums sizes may use, by their names in the signature."""
        self.known: dict[str, Dimension] = {}
        """Sizes by name; also sizes such as `G*R` that inputs have, by their text."""
        self.binds_all = False
        """Whether a size that cannot be computed is bound like a name: the same text is the same size."""
        self.axes: dict[str, AxisLabel] = {}
        """First axis of each name."""
        self.rests: dict[str, tuple[Dimension, ...]] = {}
        self.rest_axes: dict[str, AxisLabel] = {}

    def name(self, name: str, size: Dimension, axis: AxisLabel) -> None:
        known = self.known.get(name)
        if known is None:
            self.known[name], self.axes[name] = size, axis
        else:
            self.known[name] = self.merge(known, size, self.axes[name], axis)

    def rest(self, name: str, sizes: tuple[Dimension, ...], axis: AxisLabel) -> None:
        known = self.rests.get(name)
        if known is None:
            self.rests[name], self.rest_axes[name] = sizes, axis
            return
        first = self.rest_axes[name]
        if len(known) != len(sizes):
            raise ShapeError(
                f"{words(axis)} is {PartialShape(sizes)}, expected {PartialShape(known)} as in {words(first)}"
            )
        self.rests[name] = tuple([self.merge(*pair, first, axis) for pair in zip(known, sizes, strict=True)])

    def at_least(
        self, least: Dimension | None, bound: language.Value, size: Dimension, axis: AxisLabel
    ) -> None:
        if least is not None and size.max_length is not None:
            if size.max_length < least.min_length:
                raise ShapeError(f"{words(axis)} is {size}, expected {bound} = {least} or more")
            self.equalities.limit(least, size, words(axis))

    def merge(
        self, known: Dimension, size: Dimension, known_axis: AxisLabel | language.Value, axis: AxisLabel
    ) -> Dimension:
        """Return one size for both if they are proved equal, or assumed so by a guard; raise if they cannot be."""
        if known.terms is not None and known.terms == size.terms and known.constant == size.constant:
            return known  # the usual case
        answer = self.equalities.compare(known, size)
        if answer is Comparison.EQUAL:
            return known
        if answer is Comparison.UNEQUAL:
            why = "".join(f"\n  {line}" for line in self.equalities.explain(known, size))
            kind = LodError if isinstance(known_axis, language.Sum) else ShapeError
            raise kind(f"{words(axis)} is {size}, but {words(known_axis)} is {known}{why}")
        origin = f"{words(known_axis)} and {words(axis)}"
        self.guards.append(Guard(known, size, origin))
        return self.equalities.equate(known, size, origin)

    def is_unknown(self, check: CheckSize, found: Any, axis: AxisLabel, tensors: Mapping[str, str]) -> bool:
        """Compare a size if it can be computed; return whether it cannot be computed yet."""
        self.tensors = tensors
        return check(self, found, axis) is False

    def solve(self, dim: language.Dim, size: Dimension, axis: AxisLabel) -> bool:
        """Find the one unknown name of a size such as `B+1`; return whether there was one."""
        static = {name: known.get_length() for name, known in self.known.items() if known.is_static}
        linear = language.as_linear(dim, language.sizes_given(self.attributes) | static)
        if linear is None or linear.name in self.known:
            if self.binds_all:
                self.name(str(dim), size, axis)
            return False
        try:
            self.known[linear.name], self.axes[linear.name] = linear.solve(size), axis
        except ShapeError:
            raise ShapeError(f"{words(axis)} is {size}, expected {dim} for some {linear.name}") from None
        self.known[str(dim)], self.axes[str(dim)] = size, axis
        return True


def words(axis: AxisLabel | language.Value) -> str:
    """Return the text of an axis of an input, or of a size, for messages."""
    return f"{axis[0]}.shape[{axis[1]}]" if isinstance(axis, tuple) else str(axis)


SizeOf = Callable[[KnownSizes], Dimension | None]
CheckSize = Callable[[KnownSizes, Any, AxisLabel], bool | None]
"""Function that compares a size; it returns False if the expected size is not known yet."""


def size_of(value: language.Dim | language.Value, attributes: Collection[str]) -> SizeOf:
    """Return a function that computes the size, or gives None if something it needs is unknown."""
    match value:
        case language.FixedSize(value=number):
            known = Dimension(number)
            return lambda sizes: known
        case language.Name(name=name) if name in attributes:
            return lambda sizes: _given_or(sizes.attributes[name], sizes.known.get(name))
        case language.Name(name=name):
            return lambda sizes: sizes.known.get(name)
        case language.Sum(of=of):
            return lambda sizes: _first(_of_lengths(sizes, Dimension.sum_of, of), sizes.known.get(str(value)))
        case language.Max(of=of):
            return lambda sizes: _of_lengths(sizes, Dimension.max_of, of)
        case language.Count(of=of):
            return lambda sizes: Dimension(language.count_of(sizes.attributes[of]))
        case language.Fresh(size=size):
            return size_of(size, attributes)
        case language.Given(attribute=attribute, otherwise=otherwise):
            other = size_of(otherwise, attributes)
            return lambda sizes: _given_or(sizes.attributes.get(attribute), other(sizes))
        case language.Arithmetic(operator=operator, left=left, right=right):
            one, two, apply = (
                size_of(left, attributes),
                size_of(right, attributes),
                language.OPERATORS[operator],
            )
            return lambda sizes: _first(sizes.known.get(str(value)), _apply(apply, one(sizes), two(sizes)))
    return lambda sizes: None


def _given_or(value: Any, otherwise: Dimension | None) -> Dimension | None:
    """Return the size that an attribute gives if it is a number, else `otherwise`."""
    return Dimension(int(value)) if isinstance(value, int) else otherwise


def _first(one: Dimension | None, other: Dimension | None) -> Dimension | None:
    return other if one is None else one


def _of_lengths(sizes: KnownSizes, of: Callable[[str], Dimension], name: str) -> Dimension | None:
    tensor = sizes.tensors.get(name)
    return None if tensor is None else sizes.equalities.resolve(of(tensor))


def _apply(
    operator: Callable[[Any, Any], Any], left: Dimension | None, right: Dimension | None
) -> Dimension | None:
    return None if left is None or right is None else operator(left, right)


def read_axis(dim: language.Dim, attributes: Collection[str]) -> list[tuple[bool, CheckSize]]:
    """Return the checks of an axis, or of the axes of `*d`: run at once (True), or when all names are known."""
    match dim:
        case language.Rest(name=name):
            return [(True, lambda sizes, found, place: sizes.rest(name, found, place))]
        case language.Name(name=name) if name not in attributes:
            return [(True, lambda sizes, found, place: sizes.name(name, found, place))]
        case language.AtLeast(name=name, bound=bound):
            least = size_of(bound, attributes)
            return [
                (True, lambda sizes, found, place: sizes.name(name, found, place)),
                (False, lambda sizes, found, place: sizes.at_least(least(sizes), bound, found, place)),
            ]
    assert not isinstance(dim, (language.Fresh, language.Anything))
    expected = size_of(dim, attributes)

    def compare(sizes: KnownSizes, found: Dimension, place: AxisLabel) -> bool:
        size = expected(sizes)
        if size is None:
            return sizes.solve(dim, found, place)
        sizes.merge(size, found, dim, place)
        return True

    return [(False, compare)]


class OutputShape:
    """Computes the shape of an output from the sizes of the inputs."""

    __slots__ = ("dims",)

    def __init__(self, dims: tuple[language.Dim, ...], attributes: Collection[str]) -> None:
        self.dims = [
            (dim.name, None) if isinstance(dim, language.Rest) else (_name_of(dim), size_of(dim, attributes))
            for dim in dims
        ]

    def of(self, sizes: KnownSizes, result: str) -> PartialShape:
        """Return the shape; a name that no input has is a new size, the same in all outputs."""
        found: list[Dimension] = []
        for axis, (name, size_of) in enumerate(self.dims):
            if size_of is None:
                rest = sizes.rests.get(str(name))
                if rest is None:
                    return PartialShape.dynamic()
                found += rest
                continue
            size = size_of(sizes)
            if size is None:
                size = Dimension.axis_of(result, axis)
                if name is not None:
                    sizes.known[name] = size
            found.append(sizes.equalities.resolve(size) if size.terms else size)
        return PartialShape(found)


def _name_of(dim: language.Dim) -> str | None:
    """Return the name of a size that inputs need not have."""
    match dim:
        case language.Name(name=name) | language.Given(otherwise=language.Name(name=name)):
            return name
        case language.Fresh(size=size):
            return _name_of(size)
    return None
