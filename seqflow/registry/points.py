"""What the integers of results point at: what the integers that an op moves pointed at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seqflow.shape.pointing import either, moved
from seqflow.shape.terms import Term, Terms
from seqflow.signature.language import GIVEN_DTYPE
from seqflow.signature.rows import NamedOutput
from seqflow.signature.specs import Specs
from seqflow.tensor import TensorSpec

if TYPE_CHECKING:
    from seqflow.registry.definition import OpDef


def given_points(specs: Specs) -> dict[int | str, Any] | None:
    """What the integers of inputs point at; None where nobody said it of any."""
    for spec in specs.values():
        for one in (spec,) if isinstance(spec, TensorSpec) else spec:
            if one.points is not None:
                return {
                    name: spec.points if isinstance(spec, TensorSpec) else [one.points for one in spec]
                    for name, spec in specs.items()
                }
    return None


def move_points(
    op: OpDef, specs: Specs, results: Sequence[NamedOutput], outputs: list[TensorSpec], terms: Terms
) -> list[TensorSpec]:
    """The outputs; integers that the op moved from its inputs point at what they pointed at there."""
    sources: list[TensorSpec] = []
    for name in op.claims.moves:
        given = specs.get(name, ())
        for spec in (given,) if isinstance(given, TensorSpec) else given:
            if spec.points is not None:
                sources.append(spec)
    if not sources:
        return outputs
    return [
        TensorSpec(spec.dtype, spec.shape, axes=spec.axes, points=_moved_from(sources, spec, terms))
        if result.argument.dtype.word in _UNCHANGED and spec.dtype.kind in "iu" and spec.points is None
        else spec
        for result, spec in zip(results, outputs, strict=True)
    ]


_UNCHANGED = ("any", GIVEN_DTYPE)
"""The dtype words of outputs that hold what inputs hold, if the op moves it."""


def _moved_from(sources: Sequence[TensorSpec], output: TensorSpec, terms: Terms) -> Term | None:
    return either(
        terms,
        [one.points if _same_rows(one, output, terms) else moved(terms, one.points) for one in sources],
    )


def _same_rows(one: TensorSpec, other: TensorSpec, terms: Terms) -> bool:
    left, right = one.rows, other.rows
    return left is right or (left is not None and right is not None and terms.equal(left, right))
