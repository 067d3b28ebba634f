"""Compares the row spaces of inputs that are combined in one op: equal, assumed equal, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seqflow.errors import LodError
from seqflow.shape.arithmetic import Comparison
from seqflow.shape.dimension import Dimension
from seqflow.shape.guards import Guard, Guards, SameLengths
from seqflow.shape.terms import Term, Terms, made_from, row_difference, told_apart

if TYPE_CHECKING:
    from seqflow.shape.equalities import Equalities


def meet(equalities: Equalities, one: Term, other: Term, guards: Guards, origin: str) -> bool:
    """Return whether two axes hold the same rows.

    An input without a declared row space takes the first one it is combined with. When it is later combined with rows
    described by other lengths, both lengths are assumed equal, and `guards` gets an entry.
    """
    terms = equalities.terms
    if terms.equal(one, other) or one.kind == other.kind == "plain":
        return True
    left, right = terms.find(one), terms.find(other)
    if left.kind == "variable" or right.kind == "variable":
        if not (left.is_rows and right.is_rows) or made_from(terms, left, right):
            return False
        equalities.unite(one, other, origin)
        return True
    if "variable" in (one.kind, other.kind) and left.kind == right.kind == "described":
        (mine,), (theirs,) = left.args, right.args
        if mine.tensor is not None and theirs.tensor is not None:
            equalities.unite(mine, theirs, origin)
            guards.append(SameLengths(mine.tensor, theirs.tensor, origin))
            return True
    return _made_alike(left, right) and all(
        _meet_whole(equalities, *pair, guards, origin) for pair in zip(left.args, right.args, strict=True)
    )


def _made_alike(one: Term, other: Term) -> bool:
    """Return whether two row spaces are the same slice, or the same join, of other rows; slices of steps may be
    shifted.
    """
    return (
        one.kind == other.kind in ("sliced", "joined")
        and len(one.args) == len(other.args)
        and (
            one.data == other.data
            or (one.kind == "joined" and _may_be_alike(one, other))
            or one.args[0].kind == other.args[0].kind == "steps"
        )
    )


def _may_be_alike(one: Term, other: Term) -> bool:
    """Return whether the parts of two joins may have equal sizes; sizes of rows are compared together with the
    rows.
    """
    sizes = [term.data or (None,) * len(term.args) for term in (one, other)]
    return all(
        (left is None and right is None)
        or (left is not None and right is not None and left.compatible(right))
        for left, right in zip(*sizes, strict=True)
    )


def _meet_whole(equalities: Equalities, one: Term, other: Term, guards: Guards, origin: str) -> bool:
    """Return whether the sliced or joined rows are the same; a guard compares their number, since no op does."""
    sizes = [_count(equalities, rows) for rows in (one, other)]
    if not meet(equalities, one, other, guards, origin):
        return False
    left, right = sizes
    if left is not None and right is not None and left.compare(right) is not Comparison.EQUAL:
        guards.append(Guard(left, right, origin, is_checked=False))
    return True


def _count(equalities: Equalities, rows: Term) -> Dimension | None:
    """Return the number of rows, if a tensor gives it."""
    found = equalities.rows_counted(rows)
    if found is None and rows.kind == "described" and (lengths := equalities.terms.find(rows.args[0]).vector):
        return Dimension.sum_of(lengths)
    return found


def differing(one: str, rows: Term, other: str, others: Term, better: str | None = None) -> LodError:
    """Make the error for inputs, or axes, that hold different rows; `better` replaces the general advice."""
    kind, advice, _ = row_difference(rows, others)
    mine, theirs = told_apart(rows, others)
    return LodError(f"{one} holds {mine}, but {other} {theirs}: {kind}\n  {better or advice}")


def holds_rows(terms: Terms, axis: Term) -> bool:
    """Return whether an axis is known to hold rows: neither steps of a padded axis nor an undeclared row space."""
    return axis.is_rows and terms.find(axis).kind != "variable"


def plain_meets(
    place: InputAxis, size: Dimension, other: InputAxis, rows: Term, is_described: bool = False
) -> LodError:
    """Return the error for an axis that is a plain size, although another input holds rows for it.

    `is_described`: the other input is not data but the lengths that describe the axis.
    """
    found = f"{place} is a plain size {size}, but {other} holds {rows}"
    if is_described:
        return LodError(
            f"{found}: lengths of rows go with values that they describe\n"
            f"  if {place.label} has one value for each row that {other.written} describes, say so: "
            f"same_rows(values, {place.written}), where values has these rows"
        )
    return LodError(
        f"{found}: rows meet the same rows, or a size of 1\n"
        f"  if {place.label} has one value for each of these rows, say so: "
        f"same_rows({other.written}, {place.written})"
    )


class InputAxis(NamedTuple):
    """An axis of an input tensor, for messages."""

    label: str
    """Name of the input in the op's signature."""
    axis: int
    tensor: str | None

    def __str__(self) -> str:
        return f"{self.label}.shape[{self.axis}]" if self.axis else self.label

    @property
    def written(self) -> str:
        """The tensor as it is written in the text of the net."""
        if self.tensor is None or self.tensor.startswith(("%", "_")):
            return "…"
        return f"transpose({self.tensor})" if self.axis else self.tensor
