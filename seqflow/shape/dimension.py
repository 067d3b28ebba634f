"""Dimension: how many there are along one axis, as far as it is known before the data is read."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache, reduce
from math import gcd
from operator import index, mul
from typing import Any, Literal, NoReturn, SupportsIndex, overload

from seqflow.errors import ShapeError

LARGEST = 2**63 - 1
"""The largest size; arithmetic on static sizes refuses to go beyond, bounds beyond it are unbounded."""

LARGEST_FORM = 24
"""How many terms a size keeps; longer ones keep their bounds only."""

NAME = r"(?:[^\W\d]\w*|%\d+|`[^`\n]*`)(?:\.\w+)*(?:\[\d+\])?"
"""A name of a size or of a tensor: `B`, `doc.values`, `x.shape[1]`; of a result without a name, `%1`; quoted, any."""

AtomKind = Literal["size", "sum", "max", "len", "*", "/", "//", "smaller", "larger"]
_NOT_GIVEN = object()

Bounds = tuple[int, int | None]
Terms = tuple[tuple["Atom", int], ...]


class Comparison(Enum):
    """The answer to "are these two sizes equal?"."""

    EQUAL = "equal"
    UNEQUAL = "unequal"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Atom:
    """A size that arithmetic does not take apart; the same text is the same atom.

    It is a named size (`B`), something about a lengths tensor (`sum(x)`, `max(x)`, `len(x)`), or the result of
    an operation that has no linear form: a product of atoms, a quotient, the smaller or larger of two sizes.
    """

    text: str
    kind: AtomKind = field(compare=False)
    name: str = field(compare=False, default="")
    operands: tuple["Dimension", ...] = field(compare=False, default=())
    bounds: Bounds = field(compare=False, default=(0, None))

    @property
    def factor_text(self) -> str:
        """The text where it stands beside a `*`."""
        return f"({self.text})" if self.kind in ("/", "//") else self.text

    def as_dimension(self) -> "Dimension":
        return _raw(*self.bounds, 0, ((self, 1),))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Dimension:
    """A size: static, between bounds, or unknown; it may have a name.

    `Dimension(3)` is static, `Dimension(2, 5)` and `Dimension(7, None)` lie between bounds, `Dimension()` is
    unknown. A named one is a sum `constant + Σ k·atom`, so that arithmetic on names can be compared. An unknown
    without a name has no identity: nothing proves that two of them are equal, not even one with itself.

    `==` and `hash` compare structure (a static dimension equals its int); "are these the same size?" is
    `compare`. Arithmetic keeps bounds and raises ShapeError for a static negative, a zero divisor, an inexact
    static division, and a static result above int64.

    >>> batch = Dimension.symbol("B")
    >>> print(batch + 1, 4 * batch, Dimension(2, 5) + 1, 6 - Dimension.dynamic(), 0 * Dimension.dynamic())
    B+1 4*B 3..6 0..6 0
    >>> (batch + 1).compare(batch)
    <Comparison.UNEQUAL: 'unequal'>
    """

    min_length: int
    max_length: int | None
    """The largest size it can be; None where there is no bound."""
    constant: int
    terms: Terms | None
    """The atoms and their factors, by text; empty for a static size, None for one without a name."""

    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(self, low: SupportsIndex) -> None: ...
    @overload
    def __init__(self, low: SupportsIndex, high: SupportsIndex | None) -> None: ...
    def __init__(self, low: Any = _NOT_GIVEN, high: Any = _NOT_GIVEN) -> None:
        if low is _NOT_GIVEN:
            _set(self, 0, None, 0, None)
            return
        low = _size(low)
        high = low if high is _NOT_GIVEN else None if high is None else _size(high)
        if high is not None and high < low:
            raise ShapeError(f"dimension: {low}..{high} is empty, expected the lower bound first")
        if low == high:
            _set(self, low, high, low, ())
        else:
            _set(self, low, high, 0, None)

    @staticmethod
    def dynamic() -> "Dimension":
        """The size of which nothing is known, `?`."""
        return _raw(0, None, 0, None)

    @staticmethod
    def symbol(name: str, low: int = 0, high: int | None = None) -> "Dimension":
        """A named size, such as `B`; the same name is the same size. ShapeError for what is not a name."""
        return _atomic("size", name, low, high)

    @staticmethod
    def sum_of(lengths: str, low: int = 0, high: int | None = None) -> "Dimension":
        """The sum of the lengths tensor of this name, `sum(lengths)`."""
        return _atomic("sum", quoted(lengths), low, high)

    @staticmethod
    def max_of(lengths: str, low: int = 0, high: int | None = None) -> "Dimension":
        """The largest of the lengths tensor of this name, `max(lengths)`; 0 where it is empty."""
        return _atomic("max", quoted(lengths), low, high)

    @staticmethod
    def len_of(tensor: str, low: int = 0, high: int | None = None) -> "Dimension":
        """The size of axis 0 of the tensor of this name, `len(tensor)`."""
        return _atomic("len", quoted(tensor), low, high)

    @staticmethod
    def of(value: "DimensionLike") -> "Dimension":
        """`value` itself, a static size from an int, or what a text says."""
        if type(value) is Dimension:
            return value
        if type(value) is int and 0 <= value <= LARGEST:
            return _static(value)
        return Dimension.parse(value) if isinstance(value, str) else Dimension(value)

    @staticmethod
    def parse(text: str) -> "Dimension":
        """Read `3`, `?`, `2..5`, `7..`, `B`, `4*H+1`, `sum(lengths)`, `B:2..5`; the inverse of `str`.

        Raises ShapeError with a column where the text is malformed, negative, or an empty range.

        >>> Dimension.parse("2..5").max_length
        5
        """
        from seqflow.shape.text import Reader

        reader = Reader(text)
        dimension = reader.dimension()
        reader.end()
        return dimension

    @property
    def is_static(self) -> bool:
        """Whether it is one known number."""
        return self.terms == ()

    @property
    def is_dynamic(self) -> bool:
        return self.terms != ()

    @property
    def is_named(self) -> bool:
        """Whether it is a known number or a sum of atoms, so that equality with others can be proved."""
        return self.terms is not None

    def get_length(self) -> int:
        """The static size; ShapeError (a ValueError) where it is dynamic."""
        if self.terms != ():
            raise ShapeError(f"dimension: {self} is dynamic, expected a static size")
        return self.min_length

    def __int__(self) -> int:
        return self.get_length()

    def __index__(self) -> int:
        return self.get_length()

    def __bool__(self) -> NoReturn:
        raise ShapeError(f"dimension: the truth of {self} is not defined\n  ask dimension.compare(other)")

    # Comparing

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dimension):
            return (
                self.min_length == other.min_length
                and self.max_length == other.max_length
                and self.constant == other.constant
                and self.terms == other.terms
            )
        if isinstance(other, int):
            return self.terms == () and self.min_length == other
        return NotImplemented

    def __hash__(self) -> int:
        if self.terms == ():
            return hash(self.min_length)
        return hash((self.min_length, self.max_length, self.constant, self.terms))

    def compare(self, other: "DimensionLike") -> Comparison:
        """Whether the two are the same size in every run (EQUAL), in no run (UNEQUAL), or it depends.

        >>> Dimension.parse("2*B").compare(7), Dimension.parse("B").compare(7)
        (<Comparison.UNEQUAL: 'unequal'>, <Comparison.UNKNOWN: 'unknown'>)
        """
        other = Dimension.of(other)
        if self.terms == () and other.terms == ():
            return Comparison.EQUAL if self.min_length == other.min_length else Comparison.UNEQUAL
        if _disjoint(self, other):
            return Comparison.UNEQUAL
        if self.terms is None or other.terms is None:
            return Comparison.UNKNOWN
        constant, terms = difference(self, other)
        if not terms:
            return Comparison.UNEQUAL if constant else Comparison.EQUAL
        low, high = _form_bounds(constant, terms)
        excluded = (low is not None and low > 0) or (high is not None and high < 0)
        if excluded or constant % gcd(*terms.values()):
            return Comparison.UNEQUAL
        return Comparison.UNKNOWN

    def compatible(self, other: "DimensionLike") -> bool:
        """Whether the two can be the same size."""
        return self.compare(other) is not Comparison.UNEQUAL

    def same_scheme(self, other: "DimensionLike") -> bool:
        """Whether both are dynamic, or both static and equal."""
        other = Dimension.of(other)
        if self.terms == () and other.terms == ():
            return self.min_length == other.min_length
        return self.is_dynamic and other.is_dynamic

    def relaxes(self, other: "DimensionLike") -> bool:
        """Whether every size `other` can have is one this can have; names are not looked at."""
        other = Dimension.of(other)
        return self.min_length <= other.min_length and (
            self.max_length is None or (other.max_length is not None and other.max_length <= self.max_length)
        )

    def refines(self, other: "DimensionLike") -> bool:
        """Whether every size this can have is one `other` can have; names are not looked at."""
        return Dimension.of(other).relaxes(self)

    # Combining

    def merge(self, other: "DimensionLike") -> "Dimension":
        """What is known if the two are the same size; ShapeError where they cannot be.

        >>> print(Dimension(2, 5).merge(Dimension(4, None)), Dimension.dynamic().merge(3))
        4..5 3
        """
        other = Dimension.of(other)
        if self.terms == () and self == other:
            return self
        if self.compare(other) is Comparison.UNEQUAL:
            raise ShapeError(f"dimension: {self} and {other} are different sizes, expected equal ones")
        low, high = max(self.min_length, other.min_length), _smaller(self.max_length, other.max_length)
        best = min(self, other, key=_plainness)
        if best.min_length == low and best.max_length == high:
            return best
        if low == high:
            return _static(low)
        return _raw(low, high, best.constant, best.terms)

    def relax(self, other: "DimensionLike") -> "Dimension":
        """What holds of both: the hull of the bounds; the name stays where both are the same size.

        >>> print(Dimension(2).relax(3))
        2..3
        """
        other = Dimension.of(other)
        low, high = min(self.min_length, other.min_length), _larger(self.max_length, other.max_length)
        if self.terms is not None and self.constant == other.constant and self.terms == other.terms:
            return _raw(low, high, self.constant, self.terms)
        return _raw(low, high, 0, None)

    def broadcast_merge(self, other: "DimensionLike") -> "Dimension":
        """The size when one of the two may be 1 and is then repeated, as NumPy does; ShapeError otherwise.

        A name survives where the other side can only be 1 or the same size.

        >>> print(Dimension(3).broadcast_merge(1), Dimension.dynamic().broadcast_merge(0))
        3 0
        """
        other = Dimension.of(other)
        if other.is_static and other.min_length == 1:
            return self
        if self.is_static and self.min_length == 1:
            return other
        if not (self.may_be(1) or other.may_be(1)):
            return self.merge(other)
        if not self.may_be(1):
            return self
        if not other.may_be(1):
            return other
        return self if self.compare(other) is Comparison.EQUAL else self.without_name().relax(other)

    def may_be(self, size: int) -> bool:
        """Whether `size` lies between the bounds."""
        return self.min_length <= size and (self.max_length is None or size <= self.max_length)

    def within(self, low: int, high: int | None) -> "Dimension":
        """The same size, known to lie between these bounds too; ShapeError where it cannot."""
        return self.merge(Dimension(low, high))

    def without_name(self) -> "Dimension":
        """The bounds alone."""
        return self if self.is_static else _raw(self.min_length, self.max_length, 0, None)

    def without_bounds(self) -> "Dimension":
        """The form alone, with the bounds it implies by itself; for a size without a name, itself."""
        if not self.terms:
            return self
        return _raw(*_natural(self.constant, dict(self.terms)), self.constant, self.terms)

    # Arithmetic

    def __add__(self, other: "DimensionLike") -> "Dimension":
        other = Dimension.of(other)
        if other.terms == () and not other.min_length:
            return self
        if self.terms == () and not self.min_length:
            return other
        if self.terms == () and other.terms == () and (size := self.min_length + other.min_length) <= LARGEST:
            return _static(size)
        return linear(0, ((1, self), (1, other)), (self, "+", other))

    def __sub__(self, other: "DimensionLike") -> "Dimension":
        other = Dimension.of(other)
        if other.terms == () and not other.min_length:
            return self
        return linear(0, ((1, self), (-1, other)), (self, "-", other))

    def __mul__(self, other: "DimensionLike") -> "Dimension":
        other = Dimension.of(other)
        if self.terms == () and self.min_length < 2:
            return other if self.min_length else self
        if other.terms == () and other.min_length < 2:
            return self if other.min_length else other
        if self.terms == () and other.terms == () and (size := self.min_length * other.min_length) <= LARGEST:
            return _static(size)
        low, high = _times((self.min_length, self.max_length), (other.min_length, other.max_length))
        if self.terms is None or other.terms is None:
            return _normal(0, None, low, high, (self, "*", other))
        terms: dict[Atom, int] = {}
        for atom, k in (*self.terms, (None, self.constant)):
            for other_atom, other_k in (*other.terms, (None, other.constant)):
                if product := _product(atom, other_atom):
                    terms[product] = terms.get(product, 0) + k * other_k
        return _normal(self.constant * other.constant, terms, low, high, (self, "*", other))

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: "DimensionLike") -> "Dimension":
        return Dimension.of(other) - self

    def __floordiv__(self, other: "DimensionLike") -> "Dimension":
        """The quotient rounded down; ShapeError for a zero divisor."""
        return self._divide(Dimension.of(other), "//")

    def __rfloordiv__(self, other: "DimensionLike") -> "Dimension":
        return Dimension.of(other) // self

    def divide_exactly(self, other: "DimensionLike") -> "Dimension":
        """The quotient where nothing may remain; ShapeError where something must, or for a zero divisor.

        >>> print(Dimension.parse("6*B+4").divide_exactly(2))
        3*B+2
        """
        return self._divide(Dimension.of(other), "/")

    def minimum(self, other: "DimensionLike") -> "Dimension":
        """The smaller of the two."""
        return self._choose(Dimension.of(other), "smaller")

    def maximum(self, other: "DimensionLike") -> "Dimension":
        """The larger of the two."""
        return self._choose(Dimension.of(other), "larger")

    def _divide(self, other: "Dimension", kind: Literal["/", "//"]) -> "Dimension":
        if other.max_length == 0:
            raise ShapeError(f"dimension: {self} {kind} {other}: the divisor is zero")
        if other.terms == () and other.min_length == 1:
            return self
        low, high = _over((self.min_length, self.max_length), (other.min_length, other.max_length), kind)
        what = (self, kind, other)
        if high is not None and high < low:
            raise ShapeError(f"dimension: {_words(what)} leaves a remainder, expected a multiple of {other}")
        if self.terms == ():
            if other.terms == ():
                return _static(low)
            if self.min_length == 0:
                return self
        if self.terms is None or other.terms is None:
            return _normal(0, None, low, high, what)
        if quotient := _divide_terms(self, other, kind):
            return _normal(quotient[0], dict(quotient[1]), low, high, what)
        if (
            kind == "/"
            and other.terms == ()
            and self.constant % gcd(other.constant, *(k for _, k in self.terms))
        ):
            raise ShapeError(f"dimension: {_words(what)} leaves a remainder, expected a multiple of {other}")
        return _normal(0, {_opaque(kind, self, other): 1}, low, high, what)

    def _choose(self, other: "Dimension", kind: Literal["smaller", "larger"]) -> "Dimension":
        small, large = self._ordered(other)
        if small is not None and large is not None:
            return small if kind == "smaller" else large
        low, high = _chosen((self.min_length, self.max_length), (other.min_length, other.max_length), kind)
        terms = {_opaque(kind, self, other): 1} if self.is_named and other.is_named else None
        return _normal(0, terms, low, high, ("the", kind, "of", self, "and", other))

    def _ordered(self, other: "Dimension") -> "tuple[Dimension, Dimension] | tuple[None, None]":
        """The two, the provably smaller one first."""
        for small, large in ((self, other), (other, self)):
            if small.max_length is not None and small.max_length <= large.min_length:
                return small, large
            if small.is_named and large.is_named:
                low, _ = _form_bounds(*difference(large, small))
                if low is not None and low >= 0:
                    return small, large
        return None, None

    def evaluate(self, sizes: Mapping[str, int]) -> int | None:
        """The size where `sizes` gives each atom by its text; None where one is missing.

        >>> Dimension.parse("sum(lengths)+2*B").evaluate({"sum(lengths)": 7, "B": 3})
        13
        """
        if self.terms is None:
            return None
        total = self.constant
        for atom, k in self.terms:
            size = sizes.get(atom.text)
            if size is None:
                parts = [operand.evaluate(sizes) for operand in atom.operands]
                if not parts or None in parts:
                    return None
                made = OPERATIONS[atom.kind](*[Dimension(part) for part in parts if part is not None])
                size = made.get_length()
            total += k * size
        return total

    def atom_texts(self) -> list[str]:
        """The texts of all named sizes it is made of, those inside products and the like too."""
        found: list[str] = []
        for atom, _ in self.terms or ():
            found += [t for operand in atom.operands for t in operand.atom_texts()] or [atom.text]
        return found

    # Text

    @property
    def form(self) -> str:
        """The text without bounds: `4*H+1`; for a size without a name, its bounds."""
        if self.terms is None:
            return self._range if (self.min_length, self.max_length) != (0, None) else "?"
        parts = [_term_text(k, atom) for atom, k in self.terms if k > 0]
        if self.constant or not self.terms:
            parts.append(f"{self.constant:+d}" if parts else str(self.constant))
        parts += [_term_text(k, atom) for atom, k in self.terms if k < 0]
        return "".join(parts).removeprefix("+")

    @property
    def _range(self) -> str:
        return f"{self.min_length}..{'' if self.max_length is None else self.max_length}"

    def __str__(self) -> str:
        if not self.terms or (self.min_length, self.max_length) == _natural(self.constant, dict(self.terms)):
            return self.form
        return f"{self.form}:{self._range}"

    def __repr__(self) -> str:
        return f"Dimension({str(self)!r})" if self.is_dynamic else f"Dimension({self.min_length})"


Rank = Dimension
"""How many axes a shape has: a Dimension."""

DimensionLike = Dimension | SupportsIndex | str
"""What is accepted as a dimension: a Dimension, an int, or the text of one."""


def _size(value: SupportsIndex | None) -> int:
    try:
        if isinstance(value, bool) or value is None:
            raise TypeError
        size = index(value)
    except TypeError:
        raise ShapeError(f"dimension: {value!r} is not a size, expected an integer") from None
    if not 0 <= size <= LARGEST:
        expected = "0 or more" if size < 0 else f"at most {LARGEST}"
        raise ShapeError(f"dimension: {size} is not a size, expected {expected}")
    return size


_set_field = object.__setattr__


def _set(new: Dimension, low: int, high: int | None, constant: int, terms: Terms | None) -> None:
    _set_field(new, "min_length", low)
    _set_field(new, "max_length", high)
    _set_field(new, "constant", constant)
    _set_field(new, "terms", terms)


def _raw(low: int, high: int | None, constant: int, terms: Terms | None) -> Dimension:
    new = object.__new__(Dimension)
    if low == high:
        _set(new, low, high, low, ())
    else:
        _set(new, low, high, constant, terms)
    return new


def _static(size: int) -> Dimension:
    new = object.__new__(Dimension)
    _set(new, size, size, size, ())
    return new


def quoted(tensor: str) -> str:
    """A tensor's name as it stands in a dimension: in backticks where it would not be read as one name.

    >>> quoted("doc.lengths"), quoted("my column.lengths")
    ('doc.lengths', '`my column.lengths`')
    """
    if re.fullmatch(NAME, tensor):
        return tensor
    return "`" + re.sub(r"[`\n]", "'", tensor) + "`"


@lru_cache(maxsize=4096)
def _atomic(kind: AtomKind, name: str, low: int, high: int | None) -> Dimension:
    if not re.fullmatch(NAME, name):
        raise ShapeError(
            f"dimension: {name!r} is not a name, expected letters, digits, _, dots or an [index]"
        )
    atom = Atom(name if kind == "size" else f"{kind}({name})", kind, name)
    between = Dimension(low, high)
    return _raw(between.min_length, between.max_length, 0, ((atom, 1),))


def _normal(
    constant: int, terms: dict[Atom, int] | None, low: int | None, high: int | None, what: tuple[object, ...]
) -> Dimension:
    """The dimension of this form, within these bounds and those its atoms imply."""
    kept: Terms | None = None
    if terms is not None:
        terms = {atom: k for atom, k in terms.items() if k}
        if not terms:
            low = high = constant
        else:
            least, most = _form_bounds(constant, terms)
            low = least if low is None or (least is not None and least > low) else low
            high = _smaller(high, most)
            if len(terms) <= LARGEST_FORM and all(abs(k) <= LARGEST for k in (constant, *terms.values())):
                kept = tuple(sorted(terms.items(), key=lambda term: term[0].text))
    if high is not None and high < 0:
        raise ShapeError(f"dimension: {_words(what)} is negative, expected a size of 0 or more")
    if low == high and low is not None and low > LARGEST:
        raise ShapeError(f"dimension: {_words(what)} is above {LARGEST}, the largest int64")
    low = min(max(low or 0, 0), LARGEST)
    high = None if high is None or high > LARGEST else high
    if high is not None and high < low:
        raise ShapeError(f"dimension: {_words(what)} would have to lie in {low}..{high}, which is empty")
    return _raw(low, high, 0 if kept is None else constant, kept)


def _words(what: tuple[object, ...]) -> str:
    return " ".join(map(str, what))


def linear(constant: int, parts: Iterable[tuple[int, Dimension]], what: tuple[object, ...]) -> Dimension:
    """`constant + Σ k·part`."""
    low: int | None = constant
    high: int | None = constant
    terms: dict[Atom, int] | None = {}
    for k, part in parts:
        least, most = _scaled(k, (part.min_length, part.max_length))
        low = None if low is None or least is None else low + least
        high = None if high is None or most is None else high + most
        constant += k * part.constant
        if part.terms is None:
            terms = None
        elif terms is not None:
            for atom, factor in part.terms:
                terms[atom] = terms.get(atom, 0) + k * factor
    return _normal(constant, terms, low, high, what)


def difference(a: Dimension, b: Dimension) -> tuple[int, dict[Atom, int]]:
    terms = dict(a.terms or ())
    for atom, k in b.terms or ():
        terms[atom] = terms.get(atom, 0) - k
    return a.constant - b.constant, {atom: k for atom, k in terms.items() if k}


def _disjoint(a: Dimension, b: Dimension) -> bool:
    return (a.max_length is not None and a.max_length < b.min_length) or (
        b.max_length is not None and b.max_length < a.min_length
    )


def _plainness(dimension: Dimension) -> tuple[bool, int, str]:
    """Which of two equal sizes to keep: a static one, then the shorter and alphabetically first form."""
    return dimension.terms is None, len(dimension.terms or ()), dimension.form


# Bounds: (lowest, highest), None where unbounded


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _larger(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def _scaled(k: int, bounds: Bounds) -> tuple[int | None, int | None]:
    least, most = k * bounds[0], None if bounds[1] is None else k * bounds[1]
    return (least, most) if k > 0 else (most, least)


def _times(a: Bounds, b: Bounds) -> Bounds:
    if a[1] == 0 or b[1] == 0:
        return 0, 0
    return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]


def _over(a: Bounds, b: Bounds, kind: Literal["/", "//"]) -> Bounds:
    high = None if a[1] is None else a[1] // max(b[0], 1)
    if b[1] is None:
        return int(kind == "/" and a[0] > 0), high
    return (-(-a[0] // b[1]) if kind == "/" else a[0] // b[1]), high


def _chosen(a: Bounds, b: Bounds, kind: Literal["smaller", "larger"]) -> Bounds:
    if kind == "smaller":
        return min(a[0], b[0]), _smaller(a[1], b[1])
    return max(a[0], b[0]), _larger(a[1], b[1])


def _form_bounds(constant: int, terms: dict[Atom, int]) -> tuple[int | None, int | None]:
    """Between what `constant + Σ k·atom` lies; it may be negative, and None is unbounded."""
    low: int | None = constant
    high: int | None = constant
    for atom, k in terms.items():
        least, most = _scaled(k, atom.bounds)
        low = None if low is None or least is None else low + least
        high = None if high is None or most is None else high + most
    return low, high


def _natural(constant: int, terms: dict[Atom, int]) -> Bounds:
    """The bounds that the form alone implies."""
    low, high = _form_bounds(constant, terms)
    return min(max(low or 0, 0), LARGEST), None if high is None or high > LARGEST else high


# Atoms made by operations


def _factors(atom: Atom) -> tuple[Atom, ...]:
    if atom.kind != "*":
        return (atom,)
    return tuple(factor for operand in atom.operands for factor, _ in operand.terms or ())


def _product(a: Atom | None, b: Atom | None) -> Atom | None:
    if a is None or b is None:
        return a or b
    return _product_of((*_factors(a), *_factors(b)))


def _product_of(factors: Iterable[Atom]) -> Atom:
    ordered = sorted(factors, key=lambda atom: atom.text)
    if len(ordered) == 1:
        return ordered[0]
    bounds: Bounds = (1, 1)
    for factor in ordered:
        bounds = _times(bounds, factor.bounds)
    operands = tuple(factor.as_dimension() for factor in ordered)
    return Atom("*".join(factor.factor_text for factor in ordered), "*", "", operands, bounds)


def _opaque(kind: Literal["/", "//", "smaller", "larger"], a: Dimension, b: Dimension) -> Atom:
    a, b = a.without_bounds(), b.without_bounds()
    bounds_a, bounds_b = (a.min_length, a.max_length), (b.min_length, b.max_length)
    if kind == "/" or kind == "//":
        text = f"{_wrapped(a, divisor=False)}{kind}{_wrapped(b, divisor=True)}"
        return Atom(text, kind, "", (a, b), _over(bounds_a, bounds_b, kind))
    a, b = sorted((a, b), key=lambda dimension: dimension.form)
    text = f"{'min' if kind == 'smaller' else 'max'}({a.form},{b.form})"
    return Atom(text, kind, "", (a, b), _chosen(bounds_a, bounds_b, kind))


def _wrapped(operand: Dimension, divisor: bool) -> str:
    terms = operand.terms or ()
    compound = len(terms) + bool(operand.constant) > 1
    if divisor and not compound:
        compound = any(k != 1 or atom.kind in ("*", "/", "//") for atom, k in terms)
    return f"({operand.form})" if compound else operand.form


def _divide_terms(a: Dimension, b: Dimension, kind: str) -> tuple[int, Iterable[tuple[Atom, int]]] | None:
    """The quotient as a form; None where it has none."""
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
        left = list(_factors(atom))
        for factor in _factors(by):
            if factor not in left:
                return None
            left.remove(factor)
        if k % divisor:
            return None
        if left:
            quotient.append((_product_of(left), k // divisor))
        else:
            constant += k // divisor
    return constant, quotient


def _term_text(k: int, atom: Atom) -> str:
    sign = "+" if k > 0 else "-"
    return f"{sign}{atom.text}" if abs(k) == 1 else f"{sign}{abs(k)}*{atom.factor_text}"


def _multiply_all(*factors: Dimension) -> Dimension:
    return reduce(mul, factors)


OPERATIONS: Mapping[str, Callable[..., Dimension]] = {
    "*": _multiply_all,
    "/": Dimension.divide_exactly,
    "//": Dimension.__floordiv__,
    "smaller": Dimension.minimum,
    "larger": Dimension.maximum,
}
"""What each kind of atom that has operands makes of them."""
