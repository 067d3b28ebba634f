"""Binding a signature to sizes, before there is any data.

Each dimension of a signature is read once, into a function: for inputs it compares the size of an axis with the
dimension, for outputs it computes the size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from seqflow.errors import LodError, ShapeError
from seqflow.shape import Comparison, Dimension, Equalities, Guard, PartialShape
from seqflow.shape.guards import Guards
from seqflow.signature import language

AxisLabel = tuple[str, int]
"""Input and number of an axis, for messages."""


class KnownSizes:
    """Sizes of the dimension variables of one call, collected while its inputs are bound."""

    __slots__ = (
        "attributes", "axes", "binds_all", "equalities", "guards", "known", "rest_axes", "rests", "tensors",
    )  # fmt: skip

    def __init__(self, attributes: Mapping[str, Any], equalities: Equalities, guards: Guards) -> None:
        self.attributes = attributes
        self.equalities = equalities
        self.guards = guards
        self.tensors: Mapping[str, str] = {}
        """Tensors whose sums sizes may use, by their names in the signature."""
        self.known: dict[str, Dimension] = {}
        """Sizes by name; also sizes such as `G*R` that inputs have, by their text."""
        self.binds_all = False
        """Whether a size that cannot be computed is bound like a name: the same text is the same size."""
        self.axes: dict[str, AxisLabel] = {}
        """First axis of each name."""
        self.rests: dict[str, tuple[Dimension, ...]] = {}
        self.rest_axes: dict[str, AxisLabel] = {}

    def name(self, name: str, size: Dimension, axis: AxisLabel) -> None:
        known = self.known.get(name)
        if known is None:
            self.known[name], self.axes[name] = size, axis
        else:
            self.known[name] = self.merge(known, size, self.axes[name], axis)

    def rest(self, name: str, sizes: tuple[Dimension, ...], axis: AxisLabel) -> None:
        known = self.rests.get(name)
        if known is None:
            self.rests[name], self.rest_axes[name] = sizes, axis
            return
        first = self.rest_axes[name]
        if len(known) != len(sizes):
            raise ShapeError(
                f"{words(axis)} is {PartialShape(sizes)}, expected {PartialShape(known)} as in {words(first)}"
            )
        self.rests[name] = tuple([self.merge(*pair, first, axis) for pair in zip(known, sizes, strict=True)])

    def at_least(
        self, least: Dimension | None, bound: language.Value, size: Dimension, axis: AxisLabel
    ) -> None:
        if least is not None and size.max_length is not None:
            if size.max_length < least.min_length:
                raise ShapeError(f"{words(axis)} is {size}, expected {bound} = {least} or more")
            self.equalities.limit(least, size, words(axis))

    def merge(
        self, known: Dimension, size: Dimension, known_axis: AxisLabel | language.Value, axis: AxisLabel
    ) -> Dimension:
        """Return one size for both if they are proved equal, or assumed so by a guard; raise if they cannot be."""
        if known.terms is not None and known.terms == size.terms and known.constant == size.constant:
            return known  # the usual case
        answer = self.equalities.compare(known, size)
        if answer is Comparison.EQUAL:
            return known
        if answer is Comparison.UNEQUAL:
            why = "".join(f"\n  {line}" for line in self.equalities.explain(known, size))
            kind = LodError if isinstance(known_axis, language.Sum) else ShapeError
            raise kind(f"{words(axis)} is {size}, but {words(known_axis)} is {known}{why}")
        origin = f"{words(known_axis)} and {words(axis)}"
        self.guards.append(Guard(known, size, origin))
        return self.equalities.equate(known, size, origin)

    def is_unknown(self, check: CheckSize, found: Any, axis: AxisLabel, tensors: Mapping[str, str]) -> bool:
        """Compare a size if it can be computed; return whether it cannot be computed yet."""
        self.tensors = tensors
        return check(self, found, axis) is False

    def solve(self, dim: language.Dim, size: Dimension, axis: AxisLabel) -> bool:
        """Find the one unknown name of a size such as `B+1`; return whether there was one."""
        static = {name: known.get_length() for name, known in self.known.items() if known.is_static}
        linear = language.as_linear(dim, language.sizes_given(self.attributes) | static)
        if linear is None or linear.name in self.known:
            if self.binds_all:
                self.name(str(dim), size, axis)
            return False
        try:
            self.known[linear.name], self.axes[linear.name] = linear.solve(size), axis
        except ShapeError:
            raise ShapeError(f"{words(axis)} is {size}, expected {dim} for some {linear.name}") from None
        self.known[str(dim)], self.axes[str(dim)] = size, axis
        return True


def words(axis: AxisLabel | language.Value) -> str:
    """Return the text of an axis of an input, or of a size, for messages."""
    return f"{axis[0]}.shape[{axis[1]}]" if isinstance(axis, tuple) else str(axis)


SizeOf = Callable[[KnownSizes], Dimension | None]
CheckSize = Callable[[KnownSizes, Any, AxisLabel], bool | None]
"""Function that compares a size; it returns False if the expected size is not known yet."""


def size_of(value: language.Dim | language.Value, attributes: Collection[str]) -> SizeOf:
    """Return a function that computes the size, or gives None if something it needs is unknown."""
    match value:
        case language.FixedSize(value=number):
            known = Dimension(number)
            return lambda sizes: known
        case language.Name(name=name) if name in attributes:
            return lambda sizes: _given_or(sizes.attributes[name], sizes.known.get(name))
        case language.Name(name=name):
            return lambda sizes: sizes.known.get(name)
        case language.Sum(of=of):
            return lambda sizes: _first(_of_lengths(sizes, Dimension.sum_of, of), sizes.known.get(str(value)))
        case language.Max(of=of):
            return lambda sizes: _of_lengths(sizes, Dimension.max_of, of)
        case language.Count(of=of):
            return lambda sizes: Dimension(language.count_of(sizes.attributes[of]))
        case language.Fresh(size=size):
            return size_of(size, attributes)
        case language.Given(attribute=attribute, otherwise=otherwise):
            other = size_of(otherwise, attributes)
            return lambda sizes: _given_or(sizes.attributes.get(attribute), other(sizes))
        case language.Arithmetic(operator=operator, left=left, right=right):
            one, two, apply = (
                size_of(left, attributes),
                size_of(right, attributes),
                language.OPERATORS[operator],
            )
            return lambda sizes: _first(sizes.known.get(str(value)), _apply(apply, one(sizes), two(sizes)))
    return lambda sizes: None


def _given_or(value: Any, otherwise: Dimension | None) -> Dimension | None:
    """Return the size that an attribute gives if it is a number, else `otherwise`."""
    return Dimension(int(value)) if isinstance(value, int) else otherwise


def _first(one: Dimension | None, other: Dimension | None) -> Dimension | None:
    return other if one is None else one


def _of_lengths(sizes: KnownSizes, of: Callable[[str], Dimension], name: str) -> Dimension | None:
    tensor = sizes.tensors.get(name)
    return None if tensor is None else sizes.equalities.resolve(of(tensor))


def _apply(
    operator: Callable[[Any, Any], Any], left: Dimension | None, right: Dimension | None
) -> Dimension | None:
    return None if left is None or right is None else operator(left, right)


def read_axis(dim: language.Dim, attributes: Collection[str]) -> list[tuple[bool, CheckSize]]:
    """Return the checks of an axis, or of the axes of `*d`: run at once (True), or when all names are known."""
    match dim:
        case language.Rest(name=name):
            return [(True, lambda sizes, found, place: sizes.rest(name, found, place))]
        case language.Name(name=name) if name not in attributes:
            return [(True, lambda sizes, found, place: sizes.name(name, found, place))]
        case language.AtLeast(name=name, bound=bound):
            least = size_of(bound, attributes)
            return [
                (True, lambda sizes, found, place: sizes.name(name, found, place)),
                (False, lambda sizes, found, place: sizes.at_least(least(sizes), bound, found, place)),
            ]
    assert not isinstance(dim, (language.Fresh, language.Anything))
    expected = size_of(dim, attributes)

    def compare(sizes: KnownSizes, found: Dimension, place: AxisLabel) -> bool:
        size = expected(sizes)
        if size is None:
            return sizes.solve(dim, found, place)
        sizes.merge(size, found, dim, place)
        return True

    return [(False, compare)]


class OutputShape:
    """Computes the shape of an output from the sizes of the inputs."""

    __slots__ = ("dims",)

    def __init__(self, dims: tuple[language.Dim, ...], attributes: Collection[str]) -> None:
        self.dims = [
            (dim.name, None) if isinstance(dim, language.Rest) else (_name_of(dim), size_of(dim, attributes))
            for dim in dims
        ]

    def of(self, sizes: KnownSizes, result: str) -> PartialShape:
        """Return the shape; a name that no input has is a new size, the same in all outputs."""
        found: list[Dimension] = []
        for axis, (name, size_of) in enumerate(self.dims):
            if size_of is None:
                rest = sizes.rests.get(str(name))
                if rest is None:
                    return PartialShape.dynamic()
                found += rest
                continue
            size = size_of(sizes)
            if size is None:
                size = Dimension.axis_of(result, axis)
                if name is not None:
                    sizes.known[name] = size
            found.append(sizes.equalities.resolve(size) if size.terms else size)
        return PartialShape(found)


def _name_of(dim: language.Dim) -> str | None:
    """Return the name of a size that inputs need not have."""
    match dim:
        case language.Name(name=name) | language.Given(otherwise=language.Name(name=name)):
            return name
        case language.Fresh(size=size):
            return _name_of(size)
    return None
