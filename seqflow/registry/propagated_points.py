"""Propagates the targets of integers from inputs to the outputs that hold their values."""

from collections.abc import Sequence
from typing import NamedTuple

from seqflow.registry.definition import OpDef
from seqflow.shape.index_targets import either, moved
from seqflow.shape.terms import Term, Terms
from seqflow.signature.bind_specs import Specs
from seqflow.signature.language import GIVEN_DTYPE, Argument, Fresh, Sum
from seqflow.signature.rows import NamedOutput
from seqflow.tensor import TensorSpec


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
