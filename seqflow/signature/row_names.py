"""Converts row spaces from names of tensors, which users declare and read, to terms, and back."""

from collections.abc import Hashable
from typing import Any

from seqflow.shape.terms import Term, Terms
from seqflow.signature.rows import Described, Positions
from seqflow.tensor import TensorSpec


def declare(spec: TensorSpec, terms: Terms) -> TensorSpec:
    """Return the spec with its declared rows as terms."""
    if not spec.axes and spec.points is None:
        return spec
    axes = [declared(one, terms) for one in spec.axes]
    return TensorSpec(spec.dtype, spec.shape, axes=axes, points=declared(spec.points, terms))


def declared(rows: Hashable | None, terms: Terms) -> Term | None:
    """Return declared rows, or positions, as a term; None if there is no declaration."""
    if rows is None:
        return None
    if isinstance(rows, Positions):
        return terms.positions(terms.value(rows.inside))
    return terms.described(terms.value(rows.by)) if isinstance(rows, Described) else terms.declared(rows)


def publish(spec: TensorSpec, terms: Terms) -> TensorSpec:
    """Return the spec with rows in the form of declarations: by the names of the tensors that describe them."""
    if not spec.axes and spec.points is None:
        return spec
    axes = [published(one, terms) for one in spec.axes]
    return TensorSpec(spec.dtype, spec.shape, axes=axes, points=published(spec.points, terms))


def published(space: Any, terms: Terms) -> Any:
    """Return rows by the name of a tensor that describes them, or as declared; else the term itself."""
    if not isinstance(space, Term):
        return space
    space = terms.find(space)
    if space.said is None:
        space.said = _said(space, terms)
    return space.said


_BY_LENGTHS: dict[str, type[Described] | type[Positions]] = {"described": Described, "positions": Positions}


def _said(space: Term, terms: Terms) -> Any:
    made_up: Described | Positions | None = None
    for one in terms.members(space):
        if one.kind == "rows":
            return one.data
        if one.kind in _BY_LENGTHS and one.data is None:
            say = _BY_LENGTHS[one.kind]
            for lengths in terms.members(one.args[0]):
                # lengths with a name come first: users cannot refer to a result without one (`%1`)
                if lengths.tensor is not None and not lengths.tensor.startswith("%"):
                    return say(lengths.tensor)
                if lengths.tensor is not None and made_up is None:
                    made_up = say(lengths.tensor)
    return made_up or space
