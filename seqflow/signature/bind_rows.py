"""Binding a signature to rows: finds the row space of each axis of the outputs.

The name of an axis decides. A plain name that inputs and outputs share claims that row i is still row i.
`sum(lengths)` claims that the rows are those that the lengths describe, `max(lengths)` that the axis is padded for
the lengths. Any other name on axis 0 stands for new rows, and the op may claim how they were made. All other axes are
plain sizes.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from seqflow.errors import LodError
from seqflow.shape.equalities import Equalities
from seqflow.shape.guards import Guards
from seqflow.shape.index_targets import are_indices, are_positions, wrong_indices, wrong_positions
from seqflow.shape.row_matching import InputAxis, differing, holds_rows, meet, plain_meets
from seqflow.shape.terms import Term, row_difference, value_text
from seqflow.signature.language import (
    Argument,
    AtLeast,
    Dim,
    Fresh,
    Given,
    Max,
    Name,
    OpCall,
    Rest,
    Signature,
    Sum,
    Value,
)
from seqflow.signature.op_properties import Claims
from seqflow.tensor import TensorSpec

Axes = tuple[Term | None, ...]


class Facts(NamedTuple):
    """Value terms and attributes of one call, from which new rows are made."""

    depends: Sequence[Term]
    """Values of the inputs; new rows depend on these."""
    attributes: Hashable = ()
    """Attributes in a form that can be compared."""
    padded: Mapping[str, Term] = {}
    """Lengths that an output is padded for, if they differ from those of the input."""


class BoundInput(NamedTuple):
    """An input tensor: its argument in the signature, and its spec."""

    argument: Argument
    spec: TensorSpec
    label: str
    """Its name in messages: `data`, or `data[2]` in a list."""
    tensor: str
    names: Mapping[str, str]
    """Tensors whose sums its sizes may use, by their names in the signature."""


@dataclass
class RowSpaces:
    """Row spaces of one call: the rows that each dimension variable stands for."""

    op: str
    signature: Signature
    claims: Claims
    attributes: Mapping[str, Any]
    equalities: Equalities
    guards: Guards
    facts: Facts
    named: dict[str, tuple[Term, str]] = field(default_factory=dict)
    """Row space of each dimension variable, and the input that it comes from."""
    rests: dict[tuple[str, int], tuple[Term, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.terms = self.equalities.terms
        self.arguments = self.signature.arguments
        self.side = str(self.attributes.get("side") or "right")

    # Inputs

    def input(
        self, argument: Argument, axes: Axes, rank: int | None, label: str, tensors: Mapping[str, str]
    ) -> None:
        """Record the row spaces of the axes of one input; raise LodError when they differ from recorded ones.

        If the rank is unknown, only axes that are counted from the front are used.
        """
        count = len(axes)
        extra = 0 if rank is None else rank - len(argument.dims)
        for dim, _, first, lengths in argument.axes:
            axis = first if first >= 0 else count if rank is None else first + rank
            if isinstance(dim, Rest):
                self.rest(dim.name, axes[axis : axis + extra + 1], label, axis)
            elif axis < count:
                space = axes[axis]
                if space is not None:
                    self.axis(dim, lengths, space, f"{label}.shape[{axis}]" if axis else label, tensors)

    def axis(
        self, dim: Dim, lengths: str | None, space: Term, label: str, tensors: Mapping[str, str]
    ) -> None:
        if isinstance(dim, (Name, AtLeast)):
            self.name(dim.name, space, label)
        if lengths is None or lengths not in tensors:
            return
        if isinstance(dim, Sum):
            expected = self.terms.described(self.terms.value(tensors[lengths]))
            if not meet(self.equalities, expected, space, self.guards, f"{label} and {lengths}"):
                raise self.wrong_lengths(space, expected, label, lengths)
        else:
            self.padded(lengths, space, label, tensors)

    def name(self, name: str, space: Term, label: str) -> None:
        known, owner = self.named.setdefault(name, (space, label))
        if known is not space and not meet(
            self.equalities, known, space, self.guards, f"{owner} and {label}"
        ):
            raise differing(
                label, space, owner, known, self.picked(label, space) or self.picked(owner, known)
            )

    def picked(self, label: str, space: Term) -> str | None:
        """Return advice if the op takes one position of each sequence but is given several; else None."""
        argument = self.arguments.get(label)
        if argument is None or argument.dtype.word != "position" or space.kind != "described":
            return None
        if not self.claims.several:
            return None
        return (
            f"{self.claims.several} takes several positions in a sequence: picked={value_text(space.args[0])}"
        )

    def rest(self, name: str, axes: Axes, label: str, first: int) -> None:
        for i, space in enumerate(axes):
            if space is not None:
                place = f"{label}.shape[{first + i}]"
                known, owner = self.rests.setdefault((name, i), (space, place))
                if known is not space and not meet(
                    self.equalities, known, space, self.guards, f"{owner} and {place}"
                ):
                    raise differing(place, space, owner, known)

    def padded(self, of: str, space: Term, label: str, tensors: Mapping[str, str]) -> None:
        """Raise LodError when an axis is padded for other lengths; axis 0 may hold rows, such as those of weights."""
        expected = self.terms.steps(self.terms.value(tensors[of]), self.side)
        may_be_rows = label in self.arguments or self.terms.find(space).kind == "variable"
        if not (space.is_rows and may_be_rows) and not self.terms.equal(space, expected):
            raise self.wrong_lengths(space, expected, label, of)

    def refuse_plain(self, inputs: Sequence[Any]) -> None:
        """Raise LodError when an axis of an input is a plain size and another input has rows there.

        The declaration of an input gives the rows of axis 0 only; nothing is declared for its other axes.
        """
        for argument, spec, label, _, _ in inputs:
            if spec.shape.dimensions is None or (spec.axes and spec.axes[0] is not None):
                continue
            if any(one is not None and one.kind == "variable" for one in spec.axes):
                continue  # an axis without a declaration is not known to be plain
            for axis, held in self.opposite(argument, len(spec.shape.dimensions)):
                if (axis >= len(spec.axes) or spec.axes[axis] is None) and holds_rows(self.terms, held[0]):
                    tensors = {one.label: one.tensor for one in inputs}
                    other, _, its_axis = held[1].partition(".shape[")
                    raise plain_meets(
                        InputAxis(label, axis, tensors[label]),
                        spec.shape.dimensions[axis],
                        InputAxis(other, int(its_axis[:-1] or 0), tensors.get(other)),
                        held[0],
                        is_described=axis == 0 and isinstance(argument.dims[0], Sum),
                    )

    def opposite(self, argument: Argument, rank: int) -> Iterator[tuple[int, tuple[Term, str]]]:
        """Yield the axes of an input where other inputs have rows, with the rows and the input that has them."""
        for dim, _, first, _ in argument.axes:
            if isinstance(dim, Rest):
                count = rank - len(argument.dims) + 1
                found = [(first + i, self.rests.get((dim.name, i))) for i in range(count)]
            else:
                found = [(first if first >= 0 else rank + first, self.held(dim))]
            yield from ((axis, held) for axis, held in found if held is not None)

    def held(self, dim: Dim) -> tuple[Term, str] | None:
        """Return the rows that other inputs have at this dimension, and the input that has them."""
        match dim:
            case Name(name=name) | AtLeast(name=name):
                return self.named.get(name)
            case Sum(of=of):
                lengths = self.arguments.get(of)
                above = self.held(lengths.dims[0]) if lengths is not None and lengths.dims else None
                return None if above is None else (above[0], of)
        return None

    def wrong_lengths(self, space: Term, expected: Term, label: str, lengths: str) -> LodError:
        kind, advice, _ = row_difference(space, expected)
        found = value_text(expected.args[0])
        return LodError(f"{label} holds {space}, but {lengths} is {found}: {kind}\n  {advice}")

    # What integers point at

    def check_pointing(self, inputs: Sequence[BoundInput]) -> None:
        """Raise LodError when integers are known to point at another target than the op expects."""
        for argument, spec, label, _, names in inputs:
            points, target = spec.points, argument.dtype.points
            if points is None or target is None:
                continue
            expected = self.target(argument, target, names)
            if expected is None:
                continue
            if argument.dtype.word == "position":
                (lengths,) = expected.args
                if not are_positions(self.terms, points, lengths):
                    raise wrong_positions(label, points, str(target), lengths)
            elif not are_indices(self.equalities, points, expected, self.guards, label):
                owner = self.named[str(target)][1] if str(target) in self.named else str(target)
                raise wrong_indices(label, points, owner, expected)

    def target(self, argument: Argument, points: Name | Sum, tensors: Mapping[str, str]) -> Term | None:
        """Return the target that integers point at; None if it is a plain size."""
        if argument.dtype.word == "position":
            name = str(points)
            return self.terms.positions(self.terms.value(tensors[name])) if name in tensors else None
        return self.space(points, True, tensors)

    # Outputs

    def output(self, argument: Argument, rank: int | None, tensors: Mapping[str, str]) -> Axes:
        """Return the row space of each axis of an output."""
        found: list[Term | None] = []
        for i, dim in enumerate(argument.dims):
            if isinstance(dim, Rest):
                if rank is None:
                    break
                if self.rests:
                    known = [self.rests.get((dim.name, j)) for j in range(rank - len(argument.dims) + 1)]
                    found += [one[0] if one else None for one in known]
                else:
                    found += [None] * (rank - len(argument.dims) + 1)
            else:
                found.append(self.space(dim, i == 0, tensors))
        # a TensorSpec omits plain axes at the end
        while found and found[-1] is None:
            found.pop()
        return tuple(found)

    def space(self, dim: Dim, is_rows: bool, tensors: Mapping[str, str]) -> Term | None:
        """Return the row space of an axis of an output; None for a plain size."""
        if isinstance(dim, Given):
            other = dim.otherwise
            return self.space(other, is_rows, tensors) if isinstance(other, (Max, Name)) else None
        if isinstance(dim, Name):
            if dim.name in self.named:
                return self.named[dim.name][0]
            is_new = is_rows and dim.name not in self.signature.bound and dim.name not in self.attributes
            return self.new(dim.name, tensors) if is_new else None
        if isinstance(dim, Sum) and dim.of in tensors:
            return self.terms.described(self.terms.value(tensors[dim.of]))
        if isinstance(dim, Max) and dim.of in tensors:
            lengths = self.facts.padded.get(dim.of) or self.terms.value(tensors[dim.of])
            return self.terms.steps(lengths, self.side)
        if isinstance(dim, Fresh) and is_rows:
            known = self.named.get(dim.size.name) if isinstance(dim.size, Name) else None
            # padding a padded axis again changes the number of steps, not the lengths
            is_padded = known is not None and known[0].kind == "steps"
            return known[0] if known and is_padded else self.new(dim.name, tensors)
        return None

    def new(self, name: str, tensors: Mapping[str, str]) -> Term:
        """Return the rows of a name that no input has: those that the op claims, else rows of the op's own."""
        claim = self.claims.rows.get(name)
        made = None if claim is None else self.claimed(claim, tensors)
        if made is not None:
            return made
        values, depends = self.facts.depends, self.claims.depends.get(name)
        if depends is not None:
            values = [self.terms.value(tensors[one]) for one in depends if one in tensors]
        # equal calls make equal rows
        return self.terms.make("new", (self.op, name, self.facts.attributes), *values)

    def claimed(self, space: Value, tensors: Mapping[str, str]) -> Term | None:
        """Return the term of a claim, rows or a value; None if it is made of plain rows."""
        match space:
            case Name(name=name):
                if name in self.named:
                    return self.named[name][0]
                return self.terms.value(tensors[name]) if name in tensors else None
            case Sum(of=of):
                return self.terms.described(self.terms.value(tensors[of]))
            case OpCall(op="groups", arguments=(ids, *count)):
                data = tuple(self.attributes.get(str(one)) for one in count)
                return self.terms.make("groups", data, self.terms.value(tensors[str(ids)]))
            case OpCall(op=kind, arguments=arguments):
                names = [str(one) for one in arguments if str(one) in self.attributes]
                given = tuple(frozen(self.attributes[name]) for name in names)
                parts = [self.claimed(one, tensors) for one in arguments if str(one) not in self.attributes]
                known = [part for part in parts if part is not None]
                if len(known) < len(parts):
                    return None
                if kind == "select":
                    return self.terms.select(*known)
                return self.terms.make(kind, given or None, *known)
        raise TypeError(space)

    def describe(self, output: str, tensor: str) -> None:
        """Record the rows of the inputs that an output describes, if the op claims them by name."""
        claim, _ = self.claims.describes.get(output, (None, None))
        if isinstance(claim, Name) and claim.name in self.named:
            lengths = self.terms.described(self.terms.value(tensor))
            self.equalities.unite(lengths, self.named[claim.name][0], self.op)


def frozen(value: Any, longest: float = inf) -> Any:
    """Return an attribute's value in a hashable form; None for an array of more than `longest` elements."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes()) if value.size <= longest else None
    if isinstance(value, (list, tuple)):
        return tuple(frozen(one, longest) for one in value)
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
