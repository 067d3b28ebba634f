"""Arithmetic on sizes: bounds, the normal form `constant + Σ k·atom`, and comparisons that both can prove.

Results are the fields of a dimension; `Dimension` builds it from them, and has shortcuts for static sizes.
"""

from collections.abc import Iterable
from enum import Enum
from math import gcd
from typing import TYPE_CHECKING, Literal

from seqflow.errors import ShapeError
from seqflow.shape.atoms import (
    Atom,
    Summands,
    factors_of,
    form_bounds,
    opaque_atom,
    product_atom,
    product_of_atoms,
)
from seqflow.shape.bounds import LARGEST, chosen, over, scaled, smaller_bound, times

if TYPE_CHECKING:
    from seqflow.shape.dimension import Dimension

LARGEST_FORM = 24
"""Largest number of terms of a form; a longer form is dropped and only its bounds are kept."""
LARGEST_ATOM = 64
"""Largest number of names and operations in one term: squaring twenty times must not give a million factors."""

Fields = tuple[int, int | None, int, Summands | None]
"""The fields of a dimension: the bounds, the constant and the terms."""


class Comparison(Enum):
    """The answer to "are these two sizes equal?"."""

    EQUAL = "equal"
    UNEQUAL = "unequal"
    UNKNOWN = "unknown"


# Comparing


def compared(a: "Dimension", b: "Dimension") -> Comparison:
    """Compare two sizes, as far as their bounds and forms prove the answer."""
    if _disjoint(a, b):
        return Comparison.UNEQUAL
    if a.terms is None or b.terms is None:
        return Comparison.UNKNOWN
    constant, terms = difference(a, b)
    if not terms:
        return Comparison.UNEQUAL if constant else Comparison.EQUAL
    low, high = form_bounds(constant, terms)
    excluded = (low is not None and low > 0) or (high is not None and high < 0)
    # no integers solve `constant + Σ k·atom = 0` if the gcd of all k does not divide the constant
    if excluded or constant % gcd(*terms.values()):
        return Comparison.UNEQUAL
    return Comparison.UNKNOWN


def ordered(a: "Dimension", b: "Dimension") -> "tuple[Dimension, Dimension] | tuple[None, None]":
    """Return both sizes, the provably smaller one first; (None, None) if the order cannot be proved."""
    for small, large in ((a, b), (b, a)):
        if small.max_length is not None and small.max_length <= large.min_length:
            return small, large
        if small.is_named and large.is_named:
            low, _ = form_bounds(*difference(large, small))
            if low is not None and low >= 0:
                return small, large
    return None, None


def difference(a: "Dimension", b: "Dimension") -> tuple[int, dict[Atom, int]]:
    """The form of `a - b`, its terms by atom."""
    terms = dict(a.terms or ())
    for atom, k in b.terms or ():
        terms[atom] = terms.get(atom, 0) - k
    return a.constant - b.constant, {atom: k for atom, k in terms.items() if k}


def _disjoint(a: "Dimension", b: "Dimension") -> bool:
    return (a.max_length is not None and a.max_length < b.min_length) or (
        b.max_length is not None and b.max_length < a.min_length
    )


# Operations


def weighted_sum(constant: int, parts: Iterable[tuple[int, "Dimension"]], what: tuple[object, ...]) -> Fields:
    """Return the fields of `constant + Σ k·part`; `what` describes the computation in errors."""
    low: int | None = constant
    high: int | None = constant
    terms: dict[Atom, int] | None = {}
    for k, part in parts:
        least, most = scaled(k, (part.min_length, part.max_length))
        low = None if low is None or least is None else low + least
        high = None if high is None or most is None else high + most
        constant += k * part.constant
        if part.terms is None:
            terms = None
        elif terms is not None:
            for atom, factor in part.terms:
                terms[atom] = terms.get(atom, 0) + k * factor
    return normal_form(constant, terms, low, high, what)


def product_of(a: "Dimension", b: "Dimension") -> Fields:
    """Return the fields of `a·b`."""
    low, high = times((a.min_length, a.max_length), (b.min_length, b.max_length))
    if a.terms is None or b.terms is None:
        return normal_form(0, None, low, high, (a, "*", b))
    terms: dict[Atom, int] = {}
    for atom, k in (*a.terms, (None, a.constant)):
        for other_atom, other_k in (*b.terms, (None, b.constant)):
            if product := product_atom(atom, other_atom):
                terms[product] = terms.get(product, 0) + k * other_k
    return normal_form(a.constant * b.constant, terms, low, high, (a, "*", b))


def quotient_of(a: "Dimension", b: "Dimension", kind: Literal["/", "//"]) -> Fields:
    """Return the fields of `a/b` or `a//b`; raise ShapeError when `a/b` leaves a remainder."""
    low, high = over((a.min_length, a.max_length), (b.min_length, b.max_length), kind)
    what = (a, kind, b)
    if high is not None and high < low:
        raise ShapeError(f"dimension: {_words(what)} leaves a remainder, expected a multiple of {b}")
    if a.terms == () and b.terms == ():
        return low, low, low, ()
    if a.terms is None or b.terms is None:
        return normal_form(0, None, low, high, what)
    if quotient := _divide_terms(a, b, kind):
        return normal_form(quotient[0], dict(quotient[1]), low, high, what)
    if kind == "/" and b.terms == () and a.constant % gcd(b.constant, *(k for _, k in a.terms)):
        raise ShapeError(f"dimension: {_words(what)} leaves a remainder, expected a multiple of {b}")
    return normal_form(0, {opaque_atom(kind, a, b): 1}, low, high, what)


def _divide_terms(a: "Dimension", b: "Dimension", kind: str) -> tuple[int, Iterable[tuple[Atom, int]]] | None:
    """Return the quotient as a form; None if it has none."""
    terms = a.terms or ()
    if a.constant == b.constant and terms == b.terms:
        return 1, ()
    if b.terms == ():
        divisor = b.constant
        if all(k % divisor == 0 for _, k in terms) and (kind == "//" or a.constant % divisor == 0):
            return a.constant // divisor, [(atom, k // divisor) for atom, k in terms]
        return None
    if len(b.terms or ()) != 1 or a.constant or b.constant:
        return None
    ((by, divisor),) = b.terms or ()
    constant, quotient = 0, []
    for atom, k in terms:
        left = list(factors_of(atom))
        for factor in factors_of(by):
            if factor not in left:
                return None
            left.remove(factor)
        if k % divisor:
            return None
        if left:
            quotient.append((product_of_atoms(left), k // divisor))
        else:
            constant += k // divisor
    return constant, quotient


def chosen_of(a: "Dimension", b: "Dimension", kind: Literal["smaller", "larger"]) -> Fields:
    """The smaller or larger of two sizes whose order cannot be proved."""
    low, high = chosen((a.min_length, a.max_length), (b.min_length, b.max_length), kind)
    terms = {opaque_atom(kind, a, b): 1} if a.is_named and b.is_named else None
    return normal_form(0, terms, low, high, ("the", kind, "of", a, "and", b))


# The normal form


def normal_form(
    constant: int, terms: dict[Atom, int] | None, low: int | None, high: int | None, what: tuple[object, ...]
) -> Fields:
    """Return the fields of a dimension with this form, within these bounds and the bounds that its atoms imply."""
    kept: Summands | None = None
    if terms is not None:
        terms = {atom: k for atom, k in terms.items() if k}
        if not terms:
            low = high = constant
        else:
            least, most = form_bounds(constant, terms)
            low = least if low is None or (least is not None and least > low) else low
            high = smaller_bound(high, most)
            is_short = len(terms) <= LARGEST_FORM and all(atom.size <= LARGEST_ATOM for atom in terms)
            if is_short and all(abs(k) <= LARGEST for k in (constant, *terms.values())):
                kept = tuple(sorted(terms.items()))
    if high is not None and high < 0:
        raise ShapeError(f"dimension: {_words(what)} is negative, expected a size of 0 or more")
    if low == high and low is not None and low > LARGEST:
        raise ShapeError(f"dimension: {_words(what)} is above {LARGEST}, the largest int64")
    low = min(max(low or 0, 0), LARGEST)
    high = None if high is None or high > LARGEST else high
    if high is not None and high < low:
        raise ShapeError(f"dimension: {_words(what)} would have to lie in {low}..{high}, which is empty")
    return low, high, 0 if kept is None else constant, kept


def _words(what: tuple[object, ...]) -> str:
    return " ".join(map(str, what))
