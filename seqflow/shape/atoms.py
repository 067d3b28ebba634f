"""Atoms: the named sizes in a form `constant + Σ k·atom`, and their text.

A form is stored as its constant and its terms. This file does not create Dimensions.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from seqflow.shape.bounds import LARGEST, Bounds, chosen, over, scaled, times

if TYPE_CHECKING:
    from seqflow.shape.dimension import Dimension

NAME = r"(?:[^\W\d]\w*|%\d+|`[^`\n]*`)(?:\.\w+)*(?:\[\d+\])?"
"""Pattern of a name of a size or tensor: `B`, `doc.values`, `x.shape[1]`; `%1` is unnamed; in backticks, any."""
AXIS = r"(?P<tensor>.+)\.shape\[(?P<axis>\d+)\]"
"""Pattern of the size of an axis of a tensor."""

AtomKind = Literal["size", "axis", "sum", "max", "len", "*", "/", "//", "smaller", "larger"]
Summands = tuple[tuple["Atom", int], ...]


class Atom(str):
    """A size that arithmetic treats as a unit: its text, and facts about it. Atoms with the same text are the same.

    It is a named size (`B`), the size of an axis of a tensor (`x.shape[1]`), something about a lengths tensor
    (`sum(x)`, `max(x)`, `len(x)`), or the result of an operation that has no linear form: a product of atoms, a
    quotient, the smaller or larger of two sizes.
    """

    __slots__ = ("axis", "bounds", "factors", "kind", "operands", "size", "tensor")

    kind: AtomKind
    tensor: str | None
    """The tensor that the atom is about; None for a named size and for results of operations."""
    axis: int | None
    """The axis of the tensor, for the size of an axis."""
    operands: tuple["Dimension", ...]
    """The two sizes of a quotient, or of the smaller or larger of two."""
    bounds: Bounds
    factors: tuple["Atom", ...]
    """The atoms of a product."""
    size: int
    """Number of names and operations that it is made of."""

    def __new__(
        cls,
        text: str,
        kind: AtomKind,
        tensor: str | None = None,
        axis: int | None = None,
        operands: tuple["Dimension", ...] = (),
        bounds: Bounds = (0, None),
        factors: tuple["Atom", ...] = (),
    ) -> "Atom":
        """Create an atom. It is a string, so that a look-up in a dict costs no more than for a string."""
        # equality and hash are those of the text, so everything else about an atom must follow from its text
        new = super().__new__(cls, text)
        new.kind, new.tensor, new.axis = kind, tensor, axis
        new.operands, new.bounds, new.factors = operands, bounds, factors
        within = [atom for operand in operands for atom, _ in operand.terms or ()]
        new.size = sum(atom.size for atom in (*factors, *within)) + (not factors)
        return new

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.kind, self.tensor, self.axis, self.operands, self.bounds, self.factors

    @property
    def text(self) -> str:
        """The text of the atom."""
        return str(self)

    @property
    def factor_text(self) -> str:
        """The text of the atom as a factor, next to a `*`."""
        return f"({self})" if self.kind in ("/", "//") else str(self)


def unquoted(name: str) -> str:
    """Return a tensor's name as `quoted` writes it, without backticks."""
    return name[1:-1] if re.fullmatch("`[^`]*`", name) else name


def quoted(tensor: str) -> str:
    """Return a tensor's name for the text of a dimension, in backticks if it would not be read as one name.

    >>> quoted("doc.lengths"), quoted("my column.lengths")
    ('doc.lengths', '`my column.lengths`')
    """
    if re.fullmatch(NAME, tensor):
        return tensor
    return "`" + re.sub(r"[`\n]", "'", tensor) + "`"


# Bounds and text of a form


def form_bounds(constant: int, terms: dict[Atom, int]) -> tuple[int | None, int | None]:
    """The bounds of `constant + Σ k·atom`, which may be negative; None is unbounded."""
    low: int | None = constant
    high: int | None = constant
    for atom, k in terms.items():
        least, most = scaled(k, atom.bounds)
        low = None if low is None or least is None else low + least
        high = None if high is None or most is None else high + most
    return low, high


def natural_bounds(constant: int, terms: dict[Atom, int]) -> Bounds:
    """Return the bounds that the form alone implies."""
    low, high = form_bounds(constant, terms)
    return min(max(low or 0, 0), LARGEST), None if high is None or high > LARGEST else high


def formula_text(constant: int, terms: Summands) -> str:
    """`constant + Σ k·atom` as text: `4*H+1`."""
    parts = [_term_text(k, atom) for atom, k in terms if k > 0]
    if constant or not terms:
        parts.append(f"{constant:+d}" if parts else str(constant))
    parts += [_term_text(k, atom) for atom, k in terms if k < 0]
    return "".join(parts).removeprefix("+")


def _term_text(k: int, atom: Atom) -> str:
    sign = "+" if k > 0 else "-"
    return f"{sign}{atom}" if abs(k) == 1 else f"{sign}{abs(k)}*{atom.factor_text}"


# Atoms made by operations


def product_atom(a: Atom | None, b: Atom | None) -> Atom | None:
    """The product of two atoms; None stands for the factor 1."""
    if a is None or b is None:
        return a or b
    return product_of_atoms((*factors_of(a), *factors_of(b)))


def product_of_atoms(factors: Iterable[Atom]) -> Atom:
    """The atom that is the product of these, in the order of their texts."""
    # sorted, so that a*b and b*a are one atom
    ordered = sorted(factors)
    if len(ordered) == 1:
        return ordered[0]
    bounds: Bounds = (1, 1)
    for factor in ordered:
        bounds = times(bounds, factor.bounds)
    text = "*".join(factor.factor_text for factor in ordered)
    return Atom(text, "*", bounds=bounds, factors=tuple(ordered))


def factors_of(atom: Atom) -> tuple[Atom, ...]:
    """Return the factors of a product; any other atom is its own single factor."""
    return atom.factors or (atom,)


def opaque_atom(kind: Literal["/", "//", "smaller", "larger"], a: "Dimension", b: "Dimension") -> Atom:
    """The atom for a quotient, or for the smaller or larger of two sizes."""
    # without the bounds known now: they are not in the text, which identifies the atom
    a, b = a.without_bounds(), b.without_bounds()
    bounds_a, bounds_b = (a.min_length, a.max_length), (b.min_length, b.max_length)
    if kind == "/" or kind == "//":
        text = f"{_wrapped(a, divisor=False)}{kind}{_wrapped(b, divisor=True)}"
        return Atom(text, kind, operands=(a, b), bounds=over(bounds_a, bounds_b, kind))
    # sorted, so that min(a,b) and min(b,a) are one atom
    a, b = sorted((a, b), key=lambda dimension: dimension.formula)
    text = f"{'min' if kind == 'smaller' else 'max'}({a.formula},{b.formula})"
    return Atom(text, kind, operands=(a, b), bounds=chosen(bounds_a, bounds_b, kind))


def _wrapped(operand: "Dimension", divisor: bool) -> str:
    terms = operand.terms or ()
    compound = len(terms) + bool(operand.constant) > 1
    if divisor and not compound:
        compound = any(k != 1 or atom.kind in ("*", "/", "//") for atom, k in terms)
    return f"({operand.formula})" if compound else operand.formula
