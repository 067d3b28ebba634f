"""What integers point at: rows, of which they are indices, or places inside the sequences of lengths.

It is a term: of rows, of the positions inside sequences, or of one or the other where both were joined.
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
    """Whether integers that point at this may be indices of these rows.

    Padded steps, and the rows of an input of which nobody said whose they are, take any. What points at rows points
    at the same where these are the first of several that were joined; and groups by ids are what the ids point at.
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
    """Whether the ids that made the groups point at the same."""
    ids = equalities.specs.get(equalities.terms.find(groups.args[0]))
    return ids is not None and ids.points is not None and equalities.terms.equal(ids.points, points)


def are_positions(terms: Terms, points: Term, lengths: Term) -> bool:
    """Whether integers that point at this may be positions inside the sequences of these lengths.

    Positions that were moved with their sequences need the lengths they had, moved as well.
    """
    if points.kind != "positions":
        return False
    (known,) = points.args
    if points.data != "moved" and terms.equal(known, lengths):
        return True
    return points.data is not None and _is_moved_from(terms, lengths, known)


def _is_moved_from(terms: Terms, value: Term, known: Term) -> bool:
    """Whether a value holds what another held, moved."""
    parts = [part for one in terms.members(value) if one.is_moved for part in one.args if not part.is_rows]
    return any(terms.equal(known, part) or _is_moved_from(terms, part, known) for part in parts)


def either(terms: Terms, found: Iterable[Term | None]) -> Term | None:
    """What integers point at that were taken from several tensors; integers of which nobody said it go with all."""
    known: list[Term] = []
    for one in found:
        if one is not None and not any(terms.equal(one, other) for other in known):
            known.append(one)
    return known[0] if len(known) == 1 else terms.make("either", None, *known) if known else None


def moved(terms: Terms, points: Term, how: Literal["moved", "perhaps"]) -> Term:
    """What integers point at whose rows were moved, or perhaps were: positions may belong to other sequences now."""
    if points.kind != "positions" or points.data == "moved":
        return points
    return terms.make("positions", how, *points.args)


def wrong_indices(label: str, points: Term, owner: str, rows: Term) -> LodError:
    """The error for integers that are no indices of these rows."""
    if points.kind == "positions":
        lengths = value_text(points.args[0])
        of = f"the rows that {lengths} describes"
        how = f"makes indices of them, for {lengths}" if str(rows) == of else f"makes indices of {of}"
        return LodError(
            f"{label} holds {points}, but {owner} holds {rows}: positions inside sequences are no indices of rows\n"
            f"  to_rows or to_rows_within {how}; gather_within takes them as they are"
        )
    if points.kind == "either":
        return LodError(
            f"{label} points at {points}, but {owner} holds {rows}: indices of several rows were joined\n"
            "  gather from each by its own indices, and join what comes out"
        )
    difference = row_difference(points, rows)
    same = difference.equal == "lengths"
    return LodError(
        f"{label} points at {points}, but {owner} holds {rows}: indices of some rows, used on others\n"
        f"  {difference.advice if same else 'gather from the rows they point at'}"
    )


def wrong_positions(label: str, points: Term, of: str, lengths: Term) -> LodError:
    """The error for integers that are no positions inside the sequences of these lengths."""
    found = value_text(lengths)
    if points.kind != "positions":
        return LodError(
            f"{label} points at {points}, but {of} is {found}: indices of rows are no positions inside sequences\n"
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
