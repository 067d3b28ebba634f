"""Rows that meet in one op: the same, taken to be the same, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqflow.errors import LodError
from seqflow.shape.arithmetic import Comparison
from seqflow.shape.dimension import Dimension
from seqflow.shape.guards import Guard, Guards, SameLengths
from seqflow.shape.terms import Term, made_from, words

if TYPE_CHECKING:
    from seqflow.shape.equalities import Equalities


def meet(equalities: Equalities, one: Term, other: Term, guards: Guards, origin: str) -> bool:
    """Whether two axes hold the same rows.

    Rows of an input of which nobody said whose they are become the rows they meet first. Where they later meet
    rows that other lengths describe, both lengths are taken to be equal, which is noted in `guards`.
    """
    terms = equalities.terms
    if terms.equal(one, other):
        return True
    left, right = terms.find(one), terms.find(other)
    if left.kind == "variable" or right.kind == "variable":
        if left.kind == "steps" or right.kind == "steps" or made_from(terms, left, right):
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
    """Whether two spaces are the same slice, or join, of other rows."""
    return (
        one.kind == other.kind in ("sliced", "joined")
        and one.data == other.data
        and len(one.args) == len(other.args)
    )


def _meet_whole(equalities: Equalities, one: Term, other: Term, guards: Guards, origin: str) -> bool:
    """Whether the rows that were sliced, or joined, are the same; no op compares how many these are."""
    sizes = [_count(equalities, rows) for rows in (one, other)]
    if not meet(equalities, one, other, guards, origin):
        return False
    left, right = sizes
    if left is not None and right is not None and left.compare(right) is not Comparison.EQUAL:
        guards.append(Guard(left, right, origin, is_checked=False))
    return True


def _count(equalities: Equalities, rows: Term) -> Dimension | None:
    """How many rows there are, as far as a tensor says it."""
    found = equalities.rows_counted(rows)
    if found is None and rows.kind == "described" and (lengths := equalities.terms.find(rows.args[0]).vector):
        return Dimension.sum_of(lengths)
    return found


def differing(one: str, rows: Term, other: str, others: Term) -> LodError:
    """The error for inputs, or axes, that hold different rows."""
    kind, advice = words(rows, others)
    return LodError(f"{one} holds {rows}, but {other} {others}: {kind}\n  {advice}")
