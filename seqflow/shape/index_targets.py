"""Targets of integers: rows, for indices, or positions inside the sequences of lengths.

A target is a term: rows, positions inside sequences, or several of these after tensors with different targets were
joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from seqflow.errors import LodError
from seqflow.shape.guards import Guards
from seqflow.shape.row_matching import meet
from seqflow.shape.terms import Term, Terms, row_difference, value_text

if TYPE_CHECKING:
    from seqflow.shape.equalities import Equalities


def are_indices(equalities: Equalities, points: Term, rows: Term, guards: Guards, origin: str) -> bool:
    """Return whether integers with the target `points` may be indices of these rows.

    Padded steps and undeclared row spaces accept any indices. Indices of rows stay valid when these rows are the
    first part of a join. Groups made by ids are the rows that the ids point at.
    """
    terms = equalities.terms
    found = terms.find(rows)
    if not rows.is_rows or found.kind == "variable" or terms.equal(points, rows):
        return True
    if any(_are_of_groups(equalities, points, one) for one in terms.members(found) if one.kind == "groups"):
        return True
    if not points.is_rows:
        return False
    if terms.find(points).kind == "variable" or meet(equalities, rows, points, guards, origin):
        return True
    return any(
        one.kind == "joined" and are_indices(equalities, points, one.args[0], guards, origin)
        for one in terms.members(found)
    )


def _are_of_groups(equalities: Equalities, points: Term, groups: Term) -> bool:
    """Return whether the ids that made the groups have the same target."""
    ids = equalities.specs.get(equalities.terms.find(groups.args[0]))
    return ids is not None and ids.points is not None and equalities.terms.equal(ids.points, points)


def are_positions(terms: Terms, points: Term, lengths: Term) -> bool:
    """Return whether integers with the target `points` may be positions inside the sequences of these lengths.

    Positions that were moved with their sequences fit the original lengths, moved in the same way.
    """
    if points.kind != "positions":
        return False
    (known,) = points.args
    if points.data != "moved" and terms.equal(known, lengths):
        return True
    return points.data is not None and _is_moved_from(terms, lengths, known)


def _is_moved_from(terms: Terms, value: Term, known: Term) -> bool:
    """Return whether a value holds the moved values of another."""
    parts = [part for one in terms.members(value) if one.is_moved for part in one.args if not part.is_rows]
    return any(terms.equal(known, part) or _is_moved_from(terms, part, known) for part in parts)


def either(terms: Terms, found: Iterable[Term | None]) -> Term | None:
    """Return the target of integers that were taken from several tensors; numbers without one fit every target."""
    known: list[Term] = []
    for one in found:
        if one is not None and not any(terms.equal(one, other) for other in known):
            known.append(one)
    return known[0] if len(known) == 1 else terms.make("either", None, *known) if known else None


def moved(terms: Terms, points: Term, how: Literal["moved", "perhaps"]) -> Term:
    """Return the target of positions after their rows were moved, or perhaps were: they may belong to other sequences
    now.
    """
    if points.kind != "positions" or points.data == "moved":
        return points
    return terms.make("positions", how, *points.args)


def wrong_indices(label: str, points: Term, owner: str, rows: Term) -> LodError:
    """Make the error for integers that are not indices of these rows."""
    if points.kind == "positions":
        lengths = value_text(points.args[0])
        of = f"the rows that {lengths} describes"
        how = f"makes indices of them, for {lengths}" if str(rows) == of else f"makes indices of {of}"
        return LodError(
            f"{label} holds {points}, but {owner} holds {rows}: positions inside sequences are not indices of rows\n"
            f"  to_rows or to_rows_within {how}; gather_within takes them as they are"
        )
    if points.kind == "either":
        return LodError(
            f"{label} points at {points}, but {owner} holds {rows}: indices of several rows were joined\n"
            "  gather from each by its own indices, and join the results"
        )
    difference = row_difference(points, rows)
    same = difference.equal == "lengths"
    return LodError(
        f"{label} points at {points}, but {owner} holds {rows}: indices of some rows, used on others\n"
        f"  {difference.advice if same else 'gather from the rows they point at'}"
    )


def wrong_positions(label: str, points: Term, of: str, lengths: Term) -> LodError:
    """Make the error for integers that are not positions inside the sequences of these lengths."""
    found = value_text(lengths)
    if points.kind != "positions":
        return LodError(
            f"{label} points at {points}, but {of} is {found}: indices of rows are not positions inside sequences\n"
            "  gather takes indices of rows"
        )
    inside = value_text(points.args[0])
    if points.data == "moved":
        return LodError(
            f"{label} holds {points} that were moved since, but {of} is {found}: positions of some sequences, "
            "lengths of others\n  move the lengths as the positions were moved"
        )
    return LodError(
        f"{label} holds {points}, but {of} is {found}: positions of one column, lengths of another\n"
        f"  if the lengths are the same, add a line: same_lengths({inside}, {found})"
    )
