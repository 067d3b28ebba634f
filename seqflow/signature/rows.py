"""Declarations of row spaces by names of tensors, as terms and back; names of output tensors."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from itertools import count, islice
from typing import Any, NamedTuple

from seqflow.frozen import frozen
from seqflow.shape.terms import Term, Terms
from seqflow.signature.language import Argument, Signature, Sum
from seqflow.tensor import TensorSpec

_serial = count(1)


@frozen
class Described:
    """Rows divided by the lengths tensor of this name: the first `lengths[0]` are sequence 0, and so on."""

    by: str

    def __str__(self) -> str:
        return f"the lengths {self.by}"


@frozen
class OwnRows:
    """Rows that no lengths tensor describes, such as the rows of a record; only equal to themselves."""

    origin: str
    serial: int = field(default_factory=lambda: next(_serial))

    def __str__(self) -> str:
        return self.origin


RowSpace = Described | OwnRows


@frozen
class Positions:
    """Target of integers: positions inside the sequences of the lengths tensor of this name, or -1 for none."""

    inside: str

    def __str__(self) -> str:
        return f"the positions inside the sequences of {self.inside}"


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


def dividing(argument: Argument) -> str | None:
    """Return the lengths that divide the rows of an argument with `sum(lengths)` as axis 0; None for other axes 0."""
    first = argument.dims[0] if argument.dims else None
    return first.of if isinstance(first, Sum) else None


class NamedOutput(NamedTuple):
    """An output tensor: its argument in the signature, and its name."""

    argument: Argument
    repetition: int
    """Index of the repetition of its group; 0 without a group."""
    tensor: str
    tensors: Mapping[str, str]
    """Output tensors whose sums its sizes may use, by their names in the signature."""


def name_outputs(signature: Signature, tensors: Sequence[str]) -> list[NamedOutput]:
    """Match the outputs to the names of their tensors.

    `tensors` are in the order of the results: for `{a, b}*n` the n tensors of a, then the n of b. A signature has at
    most one such group, which gets all tensors that are not plain outputs.
    """
    # without lists, the usual case, an output is one tensor: this runs in each inference of an op
    if signature.outputs == signature.output_arguments:
        pairs = list(zip(signature.output_arguments, tensors, strict=True))
        names = {argument.name: tensor for argument, tensor in pairs}
        return [NamedOutput(argument, 0, tensor, names) for argument, tensor in pairs]
    count = len(tensors) - sum(isinstance(item, Argument) for item in signature.outputs)
    remaining = iter(tensors)
    columns: dict[str, list[str]] = {}
    for item in signature.outputs:
        if isinstance(item, Argument):
            columns[item.name] = [next(remaining)]
        else:
            columns |= {a.name: list(islice(remaining, count // len(item.arguments))) for a in item.arguments}
    shared = {item.name: columns[item.name][0] for item in signature.outputs if isinstance(item, Argument)}
    found: list[NamedOutput] = []
    for item in signature.outputs:
        group = [item] if isinstance(item, Argument) else item.arguments
        own = {argument.name for argument in group}
        for argument in group:
            for i, tensor in enumerate(columns[argument.name]):
                names = shared | {name: columns[name][i] for name in own}
                found.append(NamedOutput(argument, i, tensor, names))
    return found
