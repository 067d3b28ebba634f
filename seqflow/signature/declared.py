"""Rows as they are declared, and as they are said of results: by the names of tensors; inside, they are terms."""

from collections.abc import Hashable
from typing import Any

from seqflow.shape.terms import Term, Terms
from seqflow.signature.rows import Described
from seqflow.tensor import TensorSpec


def declare(spec: TensorSpec, terms: Terms) -> TensorSpec:
    """The spec with the rows it declares as terms."""
    if not spec.axes:
        return spec
    return TensorSpec(spec.dtype, spec.shape, axes=[declared(one, terms) for one in spec.axes])


def declared(rows: Hashable | None, terms: Terms) -> Term | None:
    """Rows as a term; rows that the lengths of a tensor describe by the value of that tensor."""
    if rows is None:
        return None
    return terms.described(terms.value(rows.by)) if isinstance(rows, Described) else terms.declared(rows)


def publish(spec: TensorSpec, terms: Terms) -> TensorSpec:
    """The spec with rows as they are declared: by the names of the tensors that describe them."""
    if not spec.axes:
        return spec
    return TensorSpec(spec.dtype, spec.shape, axes=[published(one, terms) for one in spec.axes])


def published(space: Any, terms: Terms) -> Any:
    """Rows by the name of a tensor that describes them, or as they were declared; the term where neither is."""
    if not isinstance(space, Term):
        return space
    space = terms.find(space)
    if space.said is None:
        space.said = _said(space, terms)
    return space.said


def _said(space: Term, terms: Terms) -> Any:
    made_up: Described | None = None
    for one in terms.members(space):
        if one.kind == "rows":
            return one.data
        if one.kind == "described":
            for lengths in terms.members(one.args[0]):
                if lengths.tensor is not None and not lengths.tensor.startswith("%"):
                    return Described(lengths.tensor)
                if lengths.tensor is not None and made_up is None:
                    made_up = Described(lengths.tensor)
    return made_up or space
