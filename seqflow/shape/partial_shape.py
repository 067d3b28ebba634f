"""PartialShape: the dimensions of a tensor, as far as they are known before the data is read."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Literal, overload

from seqflow.arguments import checked
from seqflow.errors import ShapeError
from seqflow.shape.dimension import Dimension, DimensionLike, Rank

Broadcasting = Literal["numpy", "pdpd", "none"]


@checked(ShapeError, late=True, methods=False)
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class PartialShape:
    """A tuple of dimensions, or a shape of dynamic rank, `?`.

    It cannot be changed: every operation returns a new shape, or raises ShapeError naming the dimension and
    both values. `{}` is the shape of a scalar, which is static. A dimension is a Dimension, an int or its text.

    >>> a, b = PartialShape([2, "?"]), PartialShape.parse("{?,5}")
    >>> print(a.merge(b), a + b, a.relax(b), a.broadcast_merge([1]))
    {2,5} {2..,5..} {?,?} {2,?}
    """

    dimensions: tuple[Dimension, ...] | None
    """The dimensions; None where the rank is dynamic."""

    def __init__(self, dimensions: Iterable[DimensionLike]) -> None:
        if isinstance(dimensions, str):
            raise ShapeError(f"shape: {dimensions!r} is text\n  read it with PartialShape.parse")
        _set_field(self, "dimensions", tuple([Dimension.of(dimension) for dimension in dimensions]))

    @staticmethod
    def dynamic(rank: DimensionLike | None = None) -> "PartialShape":
        """The shape with unknown dimensions, and with an unknown rank unless it is given.

        >>> print(PartialShape.dynamic(), PartialShape.dynamic(2))
        ? {?,?}
        """
        rank = Dimension.dynamic() if rank is None else Dimension.of(rank)
        if rank.is_dynamic:
            return _shape(None)
        return _shape(tuple(Dimension.dynamic() for _ in range(rank.get_length())))

    @staticmethod
    def of(value: "ShapeLike") -> "PartialShape":
        """`value` itself, or the shape that a text or these dimensions describe."""
        if isinstance(value, PartialShape):
            return value
        return PartialShape.parse(value) if isinstance(value, str) else PartialShape(value)

    @staticmethod
    @checked(ShapeError, late=True)
    def parse(text: str) -> "PartialShape":
        """Read `{1,?,2..5,7..}`, `{}` or `?`; the inverse of `str`. Raises ShapeError with a column for malformed
        text.

        >>> PartialShape.parse("{B,?,2..5}")[2].max_length
        5
        """
        from seqflow.shape.text import ShapeText

        reader = ShapeText(text)
        dimensions = reader.shape()
        reader.end()
        return _shape(None if dimensions is None else tuple(dimensions))

    @property
    def rank(self) -> Rank:
        """The number of dimensions."""
        return Dimension.dynamic() if self.dimensions is None else Dimension(len(self.dimensions))

    @property
    def is_static(self) -> bool:
        """Whether the rank and every dimension are known numbers."""
        if self.dimensions is None:
            return False
        return all(dimension.terms == () for dimension in self.dimensions)

    @property
    def is_dynamic(self) -> bool:
        return not self.is_static

    @property
    def all_non_negative(self) -> bool:
        """Always true: a negative dimension cannot be created."""
        return True

    @property
    def min_shape(self) -> tuple[int, ...]:
        """Return the smallest size of each dimension; raise ShapeError when the rank is dynamic."""
        return tuple(dimension.min_length for dimension in self)

    @property
    def max_shape(self) -> tuple[int | None, ...]:
        """Return the largest size of each dimension, None if unbounded; raise ShapeError when the rank is dynamic."""
        return tuple(dimension.max_length for dimension in self)

    @property
    def num_elements(self) -> Dimension:
        """The product of the dimensions: 1 for a scalar, 0 where any is 0, even if another is unknown."""
        if self.dimensions is None:
            return Dimension.dynamic()
        if 0 in [dimension.max_length for dimension in self.dimensions]:
            return Dimension(0)
        return reduce(mul, self.dimensions) if self.dimensions else Dimension(1)

    def to_shape(self) -> tuple[int, ...]:
        """Return the sizes as ints; raise ShapeError when any is dynamic."""
        if not self.is_static:
            raise ShapeError(f"shape: {self} is dynamic, expected a static shape")
        return tuple([dimension.min_length for dimension in self])

    def named(self, tensor: str) -> "PartialShape":
        """The shape with a name, such as `x.shape[1]`, for each dimension that has none.

        Only named sizes can be proved equal, so a net names the dimensions of its inputs first.

        >>> print(PartialShape.parse("{3,?,2..5}").named("x"))
        {3,x.shape[1],x.shape[2]:2..5}
        """
        if self.dimensions is None or all(dimension.terms is not None for dimension in self.dimensions):
            return self
        return _shape(
            tuple(
                dimension
                if dimension.is_named
                else Dimension.axis_of(tensor, i, dimension.min_length, dimension.max_length)
                for i, dimension in enumerate(self.dimensions)
            )
        )

    # Sequence

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._known())

    @overload
    def __getitem__(self, index: int) -> Dimension: ...
    @overload
    def __getitem__(self, index: slice) -> "PartialShape": ...
    def __getitem__(self, index: int | slice) -> "Dimension | PartialShape":
        known = self._known()
        if isinstance(index, slice):
            return _shape(known[index])
        if not -len(known) <= index < len(known):
            raise ShapeError(f"shape: {self} has no dimension {index}, expected one of its {len(known)}")
        return known[index]

    def _known(self) -> tuple[Dimension, ...]:
        if self.dimensions is None:
            raise ShapeError("shape: ? has no dimensions to go through, its rank is dynamic")
        return self.dimensions

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self.dimensions == other.dimensions if isinstance(other, PartialShape) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.dimensions)

    # Comparing

    def compatible(self, other: "ShapeLike") -> bool:
        """Whether the two can be the same shape."""
        other = PartialShape.of(other)
        if self.dimensions is None or other.dimensions is None:
            return True
        return len(self) == len(other) and all(a.compatible(b) for a, b in zip(self, other, strict=True))

    def same_scheme(self, other: "ShapeLike") -> bool:
        """Whether both have dynamic rank, or the same rank and dimensions static and equal in the same places."""
        other = PartialShape.of(other)
        if self.dimensions is None or other.dimensions is None:
            return self.dimensions is other.dimensions
        return len(self) == len(other) and all(a.same_scheme(b) for a, b in zip(self, other, strict=True))

    def relaxes(self, other: "ShapeLike") -> bool:
        """Whether each possible shape of `other` is possible for this one."""
        other = PartialShape.of(other)
        if self.dimensions is None or other.dimensions is None:
            return self.dimensions is None
        return len(self) == len(other) and all(a.relaxes(b) for a, b in zip(self, other, strict=True))

    def refines(self, other: "ShapeLike") -> bool:
        """Whether each possible shape of this one is possible for `other`."""
        return PartialShape.of(other).relaxes(self)

    # Combining

    def merge_rank(self, rank: DimensionLike) -> "PartialShape":
        """Return the shape if it has this rank; raise ShapeError when it has another.

        >>> print(PartialShape.dynamic().merge_rank(2))
        {?,?}
        """
        rank = Dimension.of(rank)
        if self.dimensions is None:
            return PartialShape.dynamic(rank)
        if not rank.compatible(len(self.dimensions)):
            raise ShapeError(f"merge_rank: {self} has rank {len(self)}, expected {rank}")
        return self

    def merge(self, other: "ShapeLike") -> "PartialShape":
        """Return the shape if the two are the same; raise ShapeError when they cannot be."""
        other = PartialShape.of(other)
        if self.dimensions is None or other.dimensions is None:
            return other if self.dimensions is None else self
        self._check_rank("merge", other)
        return _shape(
            tuple(
                _at("merge", i, self, other, Dimension.merge, a, b)
                for i, (a, b) in enumerate(zip(self, other, strict=True))
            )
        )

    def relax(self, other: "ShapeLike") -> "PartialShape":
        """A shape that covers both; `?` where the ranks differ."""
        other = PartialShape.of(other)
        if self.dimensions is None or other.dimensions is None or len(self) != len(other):
            return _shape(None)
        return _shape(tuple(a.relax(b) for a, b in zip(self, other, strict=True)))

    def broadcast_merge(
        self, other: "ShapeLike", mode: Broadcasting = "numpy", axis: int = -1
    ) -> "PartialShape":
        """Return the shape of an elementwise operation on both; raise ShapeError when they do not broadcast.

        `"numpy"` aligns at the right and repeats a dimension of size 1 on either side. `"pdpd"` lays `other`
        over this shape from `axis` on (-1: aligned at the right) and never changes this shape's sizes. `"none"`
        neither checks nor changes anything.

        >>> print(PartialShape([8, 1, 6]).broadcast_merge([7, 1]))
        {8,7,6}
        >>> print(PartialShape([2, "?", 4]).broadcast_merge([3], "pdpd", axis=1))
        {2,3,4}
        """
        other = PartialShape.of(other)
        if mode == "none":
            return self
        if mode == "pdpd":
            return self._overlaid(other, axis)
        if mode != "numpy":
            raise ShapeError(f"broadcast_merge: mode is {mode!r}, expected 'numpy', 'pdpd' or 'none'")
        if self.dimensions is None or other.dimensions is None:
            return _shape(None)
        rank = max(len(self), len(other))
        longer, shorter = (self, other) if len(self) == rank else (other, self)
        extra = rank - len(shorter)
        aligned = enumerate(zip(longer[extra:], shorter, strict=True), extra)
        both = [
            _at("broadcast_merge", i, self, other, Dimension.broadcast_merge, a, b) for i, (a, b) in aligned
        ]
        return _shape((*longer[:extra], *both))

    def _overlaid(self, other: "PartialShape", axis: int) -> "PartialShape":
        if self.dimensions is None or other.dimensions is None:
            return self
        if axis < -1:
            raise ShapeError(f"broadcast_merge: axis is {axis}, expected -1 or more")
        start = len(self) - len(other) if axis == -1 else axis
        laid = list(other)
        while laid and start + len(laid) > len(self) and laid[-1] == 1:
            laid.pop()
        if start < 0 or start + len(laid) > len(self):
            raise ShapeError(f"broadcast_merge: {other} from axis {start} on does not fit into {self}")
        result = list(self)
        for i, dimension in enumerate(laid, start):
            if not dimension.may_be(1):
                result[i] = _at("broadcast_merge", i, self, other, Dimension.merge, result[i], dimension)
        return _shape(tuple(result))

    def __add__(self, other: "ShapeLike") -> "PartialShape":
        """Return the sums of the dimensions; raise ShapeError for different ranks."""
        other = PartialShape.of(other)
        if self.dimensions is None or other.dimensions is None:
            return _shape(None)
        self._check_rank("+", other)
        return _shape(tuple(a + b for a, b in zip(self, other, strict=True)))

    def _check_rank(self, operation: str, other: "PartialShape") -> None:
        if len(self) != len(other):
            raise ShapeError(
                f"{operation}: {self} has rank {len(self)} but {other} has rank {len(other)}, expected equal ones"
            )

    def __str__(self) -> str:
        return "?" if self.dimensions is None else f"{{{','.join(map(str, self.dimensions))}}}"

    def __repr__(self) -> str:
        return f"PartialShape({str(self)!r})"


ShapeLike = PartialShape | str | Iterable[DimensionLike]
"""Accepted as a shape: a PartialShape, its text, or its dimensions."""

_set_field = object.__setattr__


def _shape(dimensions: tuple[Dimension, ...] | None) -> PartialShape:
    new = object.__new__(PartialShape)
    _set_field(new, "dimensions", dimensions)
    return new


def _at(
    operation: str,
    i: int,
    left: PartialShape,
    right: PartialShape,
    combine: Callable[[Dimension, Dimension], Dimension],
    a: Dimension,
    b: Dimension,
) -> Dimension:
    """Return `combine(a, b)`; an error names the place."""
    try:
        return combine(a, b)
    except ShapeError:
        raise ShapeError(f"{operation}: dimension {i} is {a} in {left} but {b} in {right}") from None
