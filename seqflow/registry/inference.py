"""Inference of one op: dtypes, shapes and rows of its outputs, from the specs of its inputs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from seqflow.errors import OpTypeError, SeqflowError
from seqflow.registry.definition import OpDef
from seqflow.registry.errors import name_op
from seqflow.registry.value_numbering import name_values
from seqflow.shape import Dimension, Equalities, InferenceContext, PartialShape
from seqflow.shape.guards import Guards
from seqflow.shape.index_targets import either, moved
from seqflow.shape.terms import Term, Terms
from seqflow.signature.bind_rows import Facts, RowSpaces
from seqflow.signature.bind_specs import Names, Specs, bind_specs
from seqflow.signature.language import GIVEN_DTYPE, Argument, Fresh, Sum
from seqflow.signature.rows import NamedOutput, declare, declared, name_outputs, publish, published
from seqflow.tensor import TensorSpec


class Inference(NamedTuple):
    """Inferred outputs of one call, its guards, and the inputs whose values would help."""

    outputs: list[TensorSpec]
    guards: Guards
    """Sizes, and lengths, that were assumed equal without proof."""
    requested: frozenset[str] = frozenset()
    """Inputs whose values, if they were known, would determine more of the outputs' shapes."""
    sizes: Mapping[str, PartialShape] = {}
    """Outputs that are vectors of sizes, with the known sizes."""
    rows: Mapping[str, Term] = {}
    """Rows that tensors without declared rows have from now on."""


class CallOfSpecs(NamedTuple):
    """A call of an op on specs, with all attributes, already checked."""

    op: OpDef
    specs: Specs
    attributes: Mapping[str, Any]
    values: Mapping[str, Any]
    """Inputs that are known as arrays."""
    names: Names
    """Names of the tensors passed as inputs."""
    results: Sequence[str]
    """Names of the output tensors."""

    @classmethod
    def alone(cls, op: OpDef, specs: Specs, attributes: Mapping[str, Any]) -> "CallOfSpecs":
        """Return a call outside of nets, whose tensors have the signature's own names."""
        results = [f"{op.name}.{name}" for name in op.signature.result_names(attributes)]
        return cls(op, specs, attributes, {}, _own_names(specs), results)


def infer(call: CallOfSpecs, equalities: Equalities | None = None, all_declared: bool = True) -> Inference:
    """Infer the outputs of a call, first by the signature, then by the op's shape function.

    Without `equalities` the op is inferred alone; rows are then declared, and returned, by the names of tensors.
    """
    completed = call.op.signature.completed
    call = call._replace(specs=completed(call.specs), names=completed(call.names))
    try:
        holds = _held(call.op, call.specs)
        if equalities is not None:
            return _infer(call, equalities, holds)
        known = Equalities(all_declared)
        found = _infer(call, known, holds, rows_matter=holds.rows or holds.points)
    except SeqflowError as error:
        raise name_op(call.op.name, call.op.signature, error) from error.__cause__
    for spec in found.outputs:
        if spec.axes or spec.points is not None:
            return found._replace(outputs=[publish(spec, known.terms) for spec in found.outputs])
    return found


def _infer(call: CallOfSpecs, equalities: Equalities, holds: "_Held", rows_matter: bool = True) -> Inference:
    """Infer the outputs; without `rows_matter`, the values of inputs need not be distinguished."""
    if holds.undeclared:
        call = call._replace(specs=_declared(call.specs, equalities.terms))
    op = call.op
    with equalities.staged():  # undoes all changes if an error is raised
        named = name_outputs(op.signature, call.results)
        if op.same is not None:
            _unify(op, op.same, call.names, equalities)
        inputs = _input_values(call, equalities) if rows_matter else {}
        facts = name_values(op, inputs, call.attributes, named, equalities) if rows_matter else Facts(())
        outputs, guards = bind_specs(
            op.name, op.spec_reader, call.specs, attributes=call.attributes, names=call.names, results=named,
            facts=facts, equalities=equalities,
        )  # fmt: skip
        found = Inference(outputs, guards)
        if op.shape is not None:
            found = _with_shape_function(call, found, facts, equalities)
        if holds.points:
            moved = move_points(op, call.specs, named, found.outputs, equalities.terms)
            found = found._replace(outputs=moved)
        return found


def _with_shape_function(
    call: CallOfSpecs, said: Inference, facts: Facts, equalities: Equalities
) -> Inference:
    """Run the op's shape function on the outputs that were inferred by the signature."""
    op, attributes = call.op, call.attributes
    known: dict[int | str, Any] = {name: one for name, one in call.values.items() if name in call.specs}
    context = InferenceContext.of_specs(
        op.name, call.specs, said.outputs, input_values=known, attributes=attributes, equalities=equalities
    )
    context.facts = facts
    context.tensors = _tensors(call.names) | dict(
        zip(op.signature.tensor_names(attributes), call.results, strict=True)
    )
    context.results = dict(enumerate(call.results))
    context.output_names = op.signature.result_names(attributes)
    outputs = [
        TensorSpec(one.dtype, one.shape, axes=one.axes, points=one.points)
        for one in context.run(op.shape)  # type: ignore[arg-type]
    ]
    requested = frozenset(context.requested_tensors | context.requested_shapes)
    return Inference(
        outputs, said.guards + context.guards, requested, context.output_values, context.given_rows
    )


class _Held(NamedTuple):
    """Row information of the inputs of a call."""

    rows: bool
    """Whether an axis has rows."""
    points: bool
    """Whether integers have a target."""
    undeclared: bool
    """Whether some rows or targets are not terms yet."""


def _held(op: OpDef, specs: Specs) -> _Held:
    """Return the row information of specs; raise OpTypeError when a spec is missing or of a wrong type."""
    rows = points = undeclared = False
    listed = op.signature.listed
    if not op.required_inputs <= specs.keys():
        missing = next(
            name for name in op.signature.arguments if name in op.required_inputs.difference(specs)
        )
        raise OpTypeError(f"{missing} is missing\n  {op.signature}")
    for name, given in specs.items():
        is_list = name in listed
        for one in given if is_list and isinstance(given, (list, tuple)) else (given,):
            if type(one) is not TensorSpec or (is_list and one is given):
                expected = "a list of TensorSpecs" if name in listed else "a TensorSpec"
                raise OpTypeError(f"{name} is {given!r:.60} ({type(given).__name__}), expected {expected}")
            if one.points is not None:
                points, undeclared = True, undeclared or type(one.points) is not Term
            for axis in one.axes:
                if axis is not None:
                    rows, undeclared = True, undeclared or type(axis) is not Term
    return _Held(rows, points, undeclared)


def _declared(specs: Specs, terms: Terms) -> Specs:
    return {
        name: declare(spec, terms) if isinstance(spec, TensorSpec) else [declare(one, terms) for one in spec]
        for name, spec in specs.items()
    }


def _input_values(call: CallOfSpecs, equalities: Equalities) -> dict[str, Any]:
    """Return the value terms of the given inputs."""
    value = equalities.terms.value
    return {
        name: value(tensors) if isinstance(tensors, str) else [value(one) for one in tensors]
        for name in call.op.signature.arguments
        if name in call.specs and (tensors := call.names[name]) is not None
    }


def infer_rows(
    op: OpDef, names: Names, attributes: Mapping[str, Any], results: Sequence[str], rows: Mapping[str, Any]
) -> list[Any]:
    """Return the row space of axis 0 of each output, for inputs called `names` with `rows` and unknown shapes."""
    equalities = Equalities(all_declared=False)
    terms = equalities.terms
    given, names = op.complete(attributes), op.signature.completed(names)
    named = name_outputs(op.signature, list(results))
    inputs = {
        name: terms.value(one) if isinstance(one, str) else [terms.value(tensor) for tensor in one]
        for name, one in names.items()
    }
    facts = name_values(op, inputs, given, named, equalities)
    spaces = RowSpaces(op.name, op.signature, op.claims, given, equalities, [], facts)
    single = {name: one for name, one in names.items() if isinstance(one, str)}
    for argument in op.signature.input_arguments:
        tensors = names.get(argument.name, ())
        for tensor in [tensors] if isinstance(tensors, str) else tensors:
            if tensor in rows:
                spaces.input(argument, (declared(rows[tensor], terms),), None, tensor, single)
    return [
        published(axes[0], terms) if axes else None
        for output in named
        for axes in [spaces.output(output.argument, None, {**single, **output.tensors})]
    ]


def _own_names(specs: Specs) -> Names:
    """Return the signature's own names for the tensors; tensors in lists are numbered."""
    return {
        name: [f"{name}[{i}]" for i in range(len(spec))] if isinstance(spec, (list, tuple)) else name
        for name, spec in specs.items()
    }


def _tensors(called: Names) -> dict[str, str]:
    """Return the tensors passed as inputs, tensors of a list under `xs[0]`, `xs[1]`."""
    found: dict[str, str] = {}
    for name, given in called.items():
        if isinstance(given, str):
            found[name] = given
        else:
            found |= {f"{name}[{i}]": tensor for i, tensor in enumerate(given)}
    return found


def _unify(op: OpDef, same: tuple[str, str], names: Names, known: Equalities) -> None:
    """Record that two lengths tensors have the same values."""
    one, other = (str(names[name]) for name in same)
    terms = known.terms
    known.unite(terms.value(one), terms.value(other), op.name)
    known.equate(Dimension.sum_of(one), Dimension.sum_of(other), op.name)
    known.equate(Dimension.max_of(one), Dimension.max_of(other), op.name)


def move_points(
    op: OpDef, specs: Specs, results: Sequence[NamedOutput], outputs: list[TensorSpec], terms: Terms
) -> list[TensorSpec]:
    """Return the outputs with targets: integers that the op moves keep the targets they have in its inputs."""
    sources: list[_Source] = []
    for argument in op.signature.input_arguments:
        given = specs.get(argument.name, ()) if argument.name in op.claims.moves else ()
        for spec in (given,) if isinstance(given, TensorSpec) else given:
            if spec.points is not None:
                sources.append(_Source(argument, spec))
            elif spec.dtype.kind in "iu" and spec.shape.dimensions != ():
                return (
                    outputs  # next to integers of which nothing is known, so nothing is known of the result
                )
    if not sources:
        return outputs
    return [
        TensorSpec(
            spec.dtype, spec.shape, axes=spec.axes, points=_moved_from(op, sources, result, spec, terms)
        )
        if result.argument.dtype.word in _UNCHANGED and spec.dtype.kind in "iu" and spec.points is None
        else spec
        for result, spec in zip(results, outputs, strict=True)
    ]


_UNCHANGED = ("any", GIVEN_DTYPE)
"""Dtype words of outputs that hold moved values of inputs."""


class _Source(NamedTuple):
    """An input of integers that point at something."""

    argument: Argument
    spec: TensorSpec


def _moved_from(
    op: OpDef, sources: Sequence[_Source], result: NamedOutput, output: TensorSpec, terms: Terms
) -> Term | None:
    found = []
    for argument, spec in sources:
        points: Term = spec.points
        if points.kind == "positions":
            before, after = _sequences(op, argument), _sequences(op, result.argument)
            if before is None or after is None:
                same = (
                    spec.rows is not None and output.rows is not None and terms.equal(spec.rows, output.rows)
                )
                points = points if same else moved(terms, points, "perhaps")
            elif before != after:
                points = moved(terms, points, "moved")
        found.append(points)
    return either(terms, found)


def _sequences(op: OpDef, argument: Argument) -> str | None:
    """Return the name of the sequences that the rows of a tensor belong to; None if they have no name.

    A plain name on axis 0 means one sequence for each row; rows of `sum(lengths)` belong to the sequences of axis 0
    of the lengths.
    """
    first = argument.dims[0] if argument.dims else None
    if isinstance(first, Fresh):
        return first.name
    if isinstance(first, Sum):
        arguments = (*op.signature.input_arguments, *op.signature.output_arguments)
        lengths = next(one for one in arguments if one.name == first.of)
        return lengths.row_name or f"the sequences of {first.of}"
    return argument.row_name
