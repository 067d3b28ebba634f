"""Possible values of a filter in a block, from the smallest and largest values of its columns.

The ranges of all blocks are compared at once, by the same functions of Arrow that compare rows.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.kernels.arrays import Array
from seqflow.providers.filter.arrow_expressions import OPERATORS, ArrowCall, ArrowLiteral, Field, Node
from seqflow.providers.filter.arrow_values import value_of
from seqflow.record.arrow_types import TEXTS, is_any

Path = tuple[str, ...]


class ValueRange(NamedTuple):
    """Bounds of the values of a column in a block; None if they are not known.

    Integers stand for dates and times, in the column's unit, and bytes for texts. NaN may occur whatever the bounds.
    """

    minimum: Any = None
    maximum: Any = None
    has_nulls: bool = True
    has_values: bool = True
    """Whether some values may not be null."""


UNKNOWN = ValueRange()


def range_of_value(value: Any) -> ValueRange:
    """Return the range of a column with one value in all rows of a block: an integer, a text or null."""
    if value is None:
        return ValueRange(has_nulls=True, has_values=False)
    if isinstance(value, str):
        value = value.encode()
    return ValueRange(value, value, has_nulls=False) if isinstance(value, int | bytes) else UNKNOWN


@dataclass(frozen=True, slots=True)
class Possible:
    """Possible results of a condition: for each block, whether it may be true, false or null in some of its rows."""

    true: Array
    false: Array
    null: Array


class Ranges:
    """The ranges of columns in some blocks, by their paths."""

    def __init__(self, count: int, columns: Mapping[Path, tuple[pa.DataType, Sequence[ValueRange]]]) -> None:
        self.count = count
        self._columns = {path: _Column.of(kind, ranges) for path, (kind, ranges) in columns.items()}

    def possible(self, node: Node | None) -> Possible:
        """Return the possible results of a condition; anything is possible if nothing is known."""
        match node:
            case ArrowCall("invert", (inner,)):
                return _inverted(self.possible(inner))
            case ArrowCall("and_kleene", (one, other)):
                return _both(self.possible(one), self.possible(other))
            case ArrowCall("or_kleene", (one, other)):
                return _either(self.possible(one), self.possible(other))
            case ArrowCall("is_null", (Field(path),)):
                return self._null_test(path)
            case ArrowCall("is_valid", (Field(path),)):
                return _inverted(self._null_test(path))
            case ArrowCall("is_in", (Field(path),), members=members):
                return self._membership(path, members)
            case ArrowCall(function, (Field(path), ArrowLiteral(value))) if function in OPERATORS:
                return self._comparison(path, function, value)
            case Field(path):
                return self._comparison(path, "equal", pa.scalar(True))
        return self._anything()

    def _anything(self) -> Possible:
        everywhere = np.ones(self.count, bool)
        return Possible(everywhere, everywhere, everywhere)

    def _null_test(self, path: Path) -> Possible:
        column = self._columns.get(path)
        if column is None:
            return self._anything()
        return Possible(column.has_nulls, column.has_values, np.zeros(self.count, bool))

    def _comparison(self, path: Path, function: str, value: pa.Scalar) -> Possible:
        column = self._columns.get(path)
        if column is None or not value.is_valid:
            return self._anything()
        # NaN lies outside all ranges; it equals nothing, and compares as false
        nans = column.has_values if column.may_be_nan else np.zeros(self.count, bool)
        if function in ("equal", "not_equal"):
            true = column.maybe("less_equal", value, low=True) & column.maybe(
                "greater_equal", value, low=False
            )
            false = column.maybe_not("equal", value, low=True) | column.maybe_not("equal", value, low=False)
            found = Possible(true & column.has_values, (false & column.has_values) | nans, column.has_nulls)
            if function == "equal":
                return found
            return Possible(found.false, found.true, found.null)
        # some value may be less if the smallest one is, and all are if the largest one is
        is_less = function.startswith("less")
        true = column.maybe(function, value, low=is_less) & column.has_values
        false = column.maybe_not(function, value, low=not is_less) & column.has_values
        return Possible(true, false | nans, column.has_nulls)

    def _membership(self, path: Path, members: pa.Array) -> Possible:
        column = self._columns.get(path)
        if column is None:
            return self._anything()
        has_nan = column.may_be_nan and any(one != one for one in members.to_pylist())
        true = (column.may_hold(members) | has_nan) & column.has_values
        # is_in gives false for null, and a range never proves that all of its values are in the list
        return Possible(true, np.ones(self.count, bool), np.zeros(self.count, bool))


def _inverted(one: Possible) -> Possible:
    return Possible(one.false, one.true, one.null)


def _both(one: Possible, other: Possible) -> Possible:
    null = (one.null & (other.null | other.true)) | (other.null & one.true)
    return Possible(one.true & other.true, one.false | other.false, null)


def _either(one: Possible, other: Possible) -> Possible:
    return _inverted(_both(_inverted(one), _inverted(other)))


@dataclass(frozen=True, slots=True)
class _Column:
    """The ranges of one column."""

    low: pa.Array
    high: pa.Array
    """The smallest and largest values; null where they are not known."""
    has_nulls: Array
    has_values: Array
    may_be_nan: bool

    @classmethod
    def of(cls, kind: pa.DataType, ranges: Sequence[ValueRange]) -> "_Column":
        return cls(
            _values([one.minimum for one in ranges], kind),
            _values([one.maximum for one in ranges], kind),
            np.array([one.has_nulls for one in ranges], bool),
            np.array([one.has_values for one in ranges], bool),
            types.is_floating(kind),
        )

    def maybe(self, function: str, value: pa.Scalar, *, low: bool) -> Array:
        """Return bool[blocks]: whether the smallest (`low`) or largest value compares so or is not known."""
        return self._compared(function, value, low, True)

    def maybe_not(self, function: str, value: pa.Scalar, *, low: bool) -> Array:
        """Return bool[blocks]: whether the smallest (`low`) or largest value does not compare so or is not known."""
        found: Array = ~self._compared(function, value, low, False)
        return found

    def may_hold(self, members: pa.Array) -> Array:
        """Return bool[blocks]: whether a member of a list lies in the range; true if unknown, or types differ."""
        kind, of = self.low.type, members.type
        is_text = types.is_large_binary(kind)
        if not is_text and kind != of and not (types.is_integer(kind) and types.is_integer(of)):
            return np.ones(len(self.low), bool)
        try:
            found = _as_numbers(members.cast(kind) if is_text else members).to_pylist()
        except pa.ArrowException:
            return np.ones(len(self.low), bool)
        ordered = sorted(one for one in found if one is not None and one == one)
        limits = zip(_as_numbers(self.low).to_pylist(), _as_numbers(self.high).to_pylist(), strict=True)
        return np.array([_is_between(ordered, low, high) for low, high in limits], bool)

    def _compared(self, function: str, value: pa.Scalar, low: bool, unknown: bool) -> Array:
        import pyarrow.compute as pc

        limits = self.low if low else self.high
        if types.is_large_binary(limits.type):
            content = value.as_py()
            value = pa.scalar(content.encode() if isinstance(content, str) else content)
        compare = getattr(pc, function)(pc.field("limit"), pc.scalar(value))
        try:
            found = value_of(compare, pa.table({"limit": limits}))
        except pa.ArrowException:  # reading the rows raises the same error, if they are read at all
            return np.full(len(limits), unknown)
        filled: Array = pc.fill_null(found, unknown).to_numpy()
        return filled


def _is_between(ordered: Sequence[Any], low: Any, high: Any) -> bool:
    """Return whether an entry of a sorted list lies between limits; None for an open end."""
    at = 0 if low is None else bisect_left(ordered, low)
    return at < len(ordered) and (high is None or ordered[at] <= high)


def _as_numbers(values: pa.Array) -> pa.Array:
    """Convert dates and times to the integers that are stored for them; return other values as they are."""
    if not types.is_temporal(values.type):
        return values
    return values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())


def _values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return limits of ranges as an array of the column's type, texts as bytes; all are null if one does not fit."""
    if is_any(kind, TEXTS) or types.is_fixed_size_binary(kind):
        kind = pa.large_binary()
    if types.is_floating(kind):
        values = [None if value is None or value != value else value for value in values]
    try:
        if types.is_temporal(kind):
            return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(len(values), kind)
