"""Dimension: the size of one axis, as far as it is known before the data is read."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import index, mul
from typing import Any, Literal, NoReturn, SupportsIndex, TypeVar, overload

from seqflow.arguments import checked
from seqflow.errors import ShapeError
from seqflow.shape.arithmetic import (
    Comparison,
    chosen_of,
    compared,
    ordered,
    product_of,
    quotient_of,
    weighted_sum,
)
from seqflow.shape.atoms import AXIS, NAME, Atom, AtomKind, Summands, formula_text, natural_bounds, quoted
from seqflow.shape.bounds import LARGEST, larger_bound, smaller_bound

_NOT_GIVEN = object()

Size = TypeVar("Size")
"""An integer, or what stands for one."""


@checked(ShapeError, late=True, methods=False)
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Dimension:
    """A size: static, between bounds, or unknown; it may have a name.

    `Dimension(3)` is static, `Dimension(2, 5)` and `Dimension(7, None)` lie between bounds, `Dimension()` is
    unknown. A named size is a sum `constant + Σ k·atom`, so that arithmetic on names can be compared. An
    unknown size without a name has no identity: nothing proves that two of them are equal, and an unknown
    size does not even equal itself.

    `==` and `hash` compare structure (a static dimension equals its int); "are these the same size?" is
    `compare`. Arithmetic keeps bounds and raises ShapeError for a static negative, a zero divisor, an inexact
    static division, and a static result above int64.

    Args:
        low: Smallest size, or the size if it is alone; without it the size is unknown.
        high: Largest size; None for any size.

    >>> batch = Dimension.symbol("B")
    >>> print(batch + 1, 4 * batch, Dimension(2, 5) + 1, 6 - Dimension.dynamic(), 0 * Dimension.dynamic())
    B+1 4*B 3..6 0..6 0
    >>> (batch + 1).compare(batch)
    <Comparison.UNEQUAL: 'unequal'>
    """

    min_length: int
    max_length: int | None
    """The largest possible size; None where there is no bound."""
    constant: int
    terms: Summands | None
    """Atoms and their factors, by text; empty for a static size, None for a size without a name."""

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
        """Return an unknown size, `?`."""
        return _raw(0, None, 0, None)

    @staticmethod
    @checked(ShapeError, late=True)
    def symbol(name: str, low: int = 0, high: int | None = None) -> "Dimension":
        """Return a named size, such as `B`; the same name is the same size. Raise ShapeError for a text that is not a
        name.
        """
        if not re.fullmatch(NAME, name) or re.fullmatch(AXIS, name):
            raise ShapeError(
                f"dimension: {name!r} is not a name, expected letters, digits, _, dots or an [index]"
            )
        return _raw_atom(Atom(name, "size"), low, high)

    @staticmethod
    @checked(ShapeError, late=True)
    def axis_of(tensor: str, axis: int, low: int = 0, high: int | None = None) -> "Dimension":
        """The size of an axis of the tensor of this name, `x.shape[1]`."""
        return _of_tensor("axis", tensor, axis, low, high)

    @staticmethod
    @checked(ShapeError, late=True)
    def sum_of(lengths: str, low: int = 0, high: int | None = None) -> "Dimension":
        """The sum of the lengths tensor of this name, `sum(lengths)`."""
        return _of_tensor("sum", lengths, None, low, high)

    @staticmethod
    @checked(ShapeError, late=True)
    def max_of(lengths: str, low: int = 0, high: int | None = None) -> "Dimension":
        """The largest of the lengths tensor of this name, `max(lengths)`; 0 where it is empty."""
        return _of_tensor("max", lengths, None, low, high)

    @staticmethod
    @checked(ShapeError, late=True)
    def len_of(tensor: str, low: int = 0, high: int | None = None) -> "Dimension":
        """The size of axis 0 of the tensor of this name, `len(tensor)`."""
        return _of_tensor("len", tensor, None, low, high)

    @staticmethod
    def of(value: "DimensionLike") -> "Dimension":
        """`value` itself, or the dimension that an int or a text describes."""
        if type(value) is Dimension:
            return value
        if type(value) is int and 0 <= value <= LARGEST:
            return _static(value)
        return Dimension.parse(value) if isinstance(value, str) else Dimension(value)

    @staticmethod
    @checked(ShapeError, late=True)
    def parse(text: str) -> "Dimension":
        """Read `3`, `?`, `2..5`, `7..`, `B`, `4*H+1`, `sum(lengths)`, `B:2..5`; the inverse of `str`.

        Raises ShapeError with a column when the text is malformed, negative, or an empty range.

        >>> Dimension.parse("2..5").max_length
        5
        """
        from seqflow.shape.text import ShapeText

        reader = ShapeText(text)
        dimension = reader.dimension()
        reader.end()
        return dimension

    @property
    def is_static(self) -> bool:
        """Whether the size is a known number."""
        return self.terms == ()

    @property
    def is_dynamic(self) -> bool:
        return self.terms != ()

    @property
    def is_named(self) -> bool:
        """Whether the size is a known number or a sum of atoms, so that equality with others can be proved."""
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
        """Whether the two are the same size in every run (EQUAL), in no run (UNEQUAL), or in some (UNKNOWN).

        >>> Dimension.parse("2*B").compare(7), Dimension.parse("B").compare(7)
        (<Comparison.UNEQUAL: 'unequal'>, <Comparison.UNKNOWN: 'unknown'>)
        """
        other = Dimension.of(other)
        if self.terms == () and other.terms == ():
            return Comparison.EQUAL if self.min_length == other.min_length else Comparison.UNEQUAL
        return compared(self, other)

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
        """Whether each possible size of `other` is possible for this one; names are ignored."""
        other = Dimension.of(other)
        return self.min_length <= other.min_length and (
            self.max_length is None or (other.max_length is not None and other.max_length <= self.max_length)
        )

    def refines(self, other: "DimensionLike") -> bool:
        """Whether each possible size of this one is possible for `other`; names are ignored."""
        return Dimension.of(other).relaxes(self)

    # Combining

    def merge(self, other: "DimensionLike") -> "Dimension":
        """Return the dimension if the two are the same size; raise ShapeError when they cannot be.

        >>> print(Dimension(2, 5).merge(Dimension(4, None)), Dimension.dynamic().merge(3))
        4..5 3
        """
        other = Dimension.of(other)
        if self.terms == () and self == other:
            return self
        if self.compare(other) is Comparison.UNEQUAL:
            raise ShapeError(f"dimension: {self} and {other} are different sizes, expected equal ones")
        low, high = max(self.min_length, other.min_length), smaller_bound(self.max_length, other.max_length)
        best = _plainer(self, other)
        if best.min_length == low and best.max_length == high:
            return best
        if low == high:
            return _static(low)
        return _raw(low, high, best.constant, best.terms)

    def relax(self, other: "DimensionLike") -> "Dimension":
        """Return a dimension that covers both: the hull of the bounds; a name is kept if both are the same size.

        >>> print(Dimension(2).relax(3))
        2..3
        """
        other = Dimension.of(other)
        low, high = min(self.min_length, other.min_length), larger_bound(self.max_length, other.max_length)
        if self.terms is not None and self.constant == other.constant and self.terms == other.terms:
            return _raw(low, high, self.constant, self.terms)
        return _raw(low, high, 0, None)

    def broadcast_merge(self, other: "DimensionLike") -> "Dimension":
        """Return the size when one of the two may be 1 and is then repeated, as NumPy does; raise ShapeError
        otherwise.

        A name is kept if the other side can only be 1 or the same size.

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
        # either size may be the 1 that is repeated, so no name is certain
        return self if self.compare(other) is Comparison.EQUAL else self.without_name().relax(other)

    def may_be(self, size: int) -> bool:
        """Whether `size` lies between the bounds."""
        return self.min_length <= size and (self.max_length is None or size <= self.max_length)

    def within(self, low: int, high: int | None) -> "Dimension":
        """Return the same size with these bounds in addition; raise ShapeError when it cannot lie in them."""
        if low <= self.min_length and (
            high is None or (self.max_length is not None and self.max_length <= high)
        ):
            return self
        least, most = max(low, self.min_length), smaller_bound(self.max_length, high)
        if low == high or (most is not None and most < least):
            return self.merge(Dimension(low, high))
        return _raw(least, most, self.constant, self.terms)

    def without_name(self) -> "Dimension":
        """Return the bounds alone."""
        return self if self.is_static else _raw(self.min_length, self.max_length, 0, None)

    def without_bounds(self) -> "Dimension":
        """Return the same form with only the bounds that it implies; a size without a name is returned unchanged."""
        if not self.terms:
            return self
        return _raw(*natural_bounds(self.constant, dict(self.terms)), self.constant, self.terms)

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
        return _raw(*product_of(self, other))

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: "DimensionLike") -> "Dimension":
        return Dimension.of(other) - self

    def __floordiv__(self, other: "DimensionLike") -> "Dimension":
        """Return the quotient rounded down; raise ShapeError for a zero divisor."""
        return self._divide(Dimension.of(other), "//")

    def __rfloordiv__(self, other: "DimensionLike") -> "Dimension":
        return Dimension.of(other) // self

    def divide_exactly(self, other: "DimensionLike") -> "Dimension":
        """Return the exact quotient; raise ShapeError for a certain remainder or a zero divisor.

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
        if self.terms == () and other.terms == () and self.min_length % other.min_length == 0:
            return _static(self.min_length // other.min_length)
        if self.max_length == 0:
            return self
        return _raw(*quotient_of(self, other, kind))

    def _choose(self, other: "Dimension", kind: Literal["smaller", "larger"]) -> "Dimension":
        small, large = ordered(self, other)
        if small is not None and large is not None:
            return small if kind == "smaller" else large
        return _raw(*chosen_of(self, other, kind))

    def evaluate(self, sizes: Mapping[str, int]) -> int | None:
        """Return the size when `sizes` gives each atom by its text; None if one is missing.

        >>> Dimension.parse("sum(lengths)+2*B").evaluate({"sum(lengths)": 7, "B": 3})
        13
        """
        return self.computed(lambda atom: sizes.get(atom.text))

    def computed(
        self,
        size_of: Callable[[Atom], Size | None],
        operations: Mapping[str, Callable[..., Size]] | None = None,
    ) -> Size | None:
        """Return the size when `size_of` knows each atom; None if it does not know one.

        An unknown atom that is the result of an operation is computed from its operands; `operations` has a
        function for each kind of atom, for sizes that are not integers.
        """
        if self.terms is None:
            return None
        total: Any = self.constant
        for atom, k in self.terms:
            size: Any = size_of(atom)
            if size is None:
                parts = [operand.computed(size_of, operations) for operand in operands_of(atom)]
                if not parts or any(part is None for part in parts):
                    return None
                size = (operations or INTEGER_OPERATIONS)[atom.kind](*parts)
            total = total + k * size
        return total  # type: ignore[no-any-return]

    def atoms(self) -> list[Atom]:
        """The atoms of the form; for an atom made by an operation, the atoms of its operands."""
        found: list[Atom] = []
        for atom, _ in self.terms or ():
            found += [one for operand in operands_of(atom) for one in operand.atoms()] or [atom]
        return found

    # Text

    @property
    def formula(self) -> str:
        """The text without bounds: `4*H+1`; for a size without a name, its bounds."""
        if self.terms is None:
            return self._range if (self.min_length, self.max_length) != (0, None) else "?"
        return formula_text(self.constant, self.terms)

    @property
    def _range(self) -> str:
        return f"{self.min_length}..{'' if self.max_length is None else self.max_length}"

    def __str__(self) -> str:
        bounds = self.min_length, self.max_length
        if not self.terms or bounds == natural_bounds(self.constant, dict(self.terms)):
            return self.formula
        return f"{self.formula}:{self._range}"

    def __repr__(self) -> str:
        return f"Dimension({str(self)!r})" if self.is_dynamic else f"Dimension({self.min_length})"


Rank = Dimension
"""The number of axes of a shape: a Dimension."""

DimensionLike = Dimension | SupportsIndex | str
"""Accepted as a dimension: a Dimension, an int, or the text of one."""


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


# setters of the slots: `object.__setattr__` would look up each slot by name
_set_min, _set_max, _set_constant, _set_terms = (
    Dimension.__dict__[name].__set__ for name in ("min_length", "max_length", "constant", "terms")
)


def _set(new: Dimension, low: int, high: int | None, constant: int, terms: Summands | None) -> None:
    _set_min(new, low)
    _set_max(new, high)
    _set_constant(new, constant)
    _set_terms(new, terms)


def _raw(low: int, high: int | None, constant: int, terms: Summands | None) -> Dimension:
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


@lru_cache(maxsize=4096)
def _of_tensor(kind: AtomKind, tensor: str, axis: int | None, low: int, high: int | None) -> Dimension:
    name = quoted(tensor)
    text = f"{kind}({name})" if axis is None else f"{name}.shape[{axis}]"
    return _raw_atom(Atom(text, kind, tensor, axis), low, high)


def _raw_atom(atom: Atom, low: int, high: int | None) -> Dimension:
    between = Dimension(low, high)
    return _raw(between.min_length, between.max_length, 0, ((atom, 1),))


def linear(constant: int, parts: Iterable[tuple[int, Dimension]], what: tuple[object, ...]) -> Dimension:
    """Return `constant + Σ k·part`; `what` describes the computation in errors."""
    return _raw(*weighted_sum(constant, parts, what))


@lru_cache(maxsize=4096)
def as_dimension(atom: Atom) -> Dimension:
    """The atom as a Dimension."""
    return _raw(*atom.bounds, 0, ((atom, 1),))


def operands_of(atom: Atom) -> tuple[Dimension, ...]:
    """The operands of the operation that made the atom; none for a named size."""
    return tuple([as_dimension(factor) for factor in atom.factors]) if atom.factors else atom.operands


def _plainer(a: Dimension, b: Dimension) -> Dimension:
    """Return which of two equal sizes to keep: a static one, then the shorter and alphabetically first form."""
    if a.terms is None or b.terms is None or len(a.terms) != len(b.terms):
        ranks = [(one.terms is None, len(one.terms or ())) for one in (a, b)]
        if ranks[0] != ranks[1]:
            return a if ranks[0] < ranks[1] else b
    return a if a.formula <= b.formula else b


def _multiply_all(*factors: Dimension) -> Dimension:
    return reduce(mul, factors)


OPERATIONS: Mapping[str, Callable[..., Dimension]] = {
    "*": _multiply_all,
    "/": Dimension.divide_exactly,
    "//": Dimension.__floordiv__,
    "smaller": Dimension.minimum,
    "larger": Dimension.maximum,
}
"""The operation of each kind of atom that has operands."""


def _of_integers(operation: Callable[..., Dimension]) -> Callable[..., Any]:
    return lambda *sizes: operation(*map(Dimension, sizes)).get_length()


INTEGER_OPERATIONS = {kind: _of_integers(operation) for kind, operation in OPERATIONS.items()}
