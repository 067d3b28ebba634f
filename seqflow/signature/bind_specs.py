"""Binding a signature to specs: infers shapes, dtypes and row spaces of the outputs without data."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpTypeError, ShapeError
from seqflow.shape import Equalities, PartialShape
from seqflow.shape.guards import Guards
from seqflow.shape.terms import Term
from seqflow.signature.advice import instead_of_form
from seqflow.signature.bind_arrays import NOT_A_SCALAR, expected_dtype
from seqflow.signature.bind_rows import BoundInput, Facts, RowSpaces
from seqflow.signature.bind_sizes import AxisLabel, CheckSize, KnownSizes, OutputShape, read_axis
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
