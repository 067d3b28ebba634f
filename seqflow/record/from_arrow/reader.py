"""TensorReader: converts one Arrow array to tensors, level by level of its nested type."""

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.record.arrow_types import LISTS, TEXTS, fixed_shape, innermost, is_any, leaf_dtype, tensor_order
from seqflow.record.buffers import frozen, leaf_array, leaf_values, nulls_of, view
from seqflow.record.from_arrow.fills import (
    Fill,
    UnfitError,
    bytes_of,
    code_of,
    fill_of,
    fixed_of,
    number_of,
    rows_of,
    unfit_message,
)
from seqflow.record.lists import bytes_as_lists, filled_lists, list_parts
from seqflow.record.record import Tensor, join_names
from seqflow.record.unified_types import declaration

Convert = Callable[[Any, pa.DataType], Any]


@dataclass(slots=True)
class Level:
    """A level of a column, such as the values of a list: its type, and the nulls among its rows."""

    name: str
    kind: pa.DataType
    parent: str | None
    nullable: bool
    nulls: Tensor | None

    @property
    def has_nulls(self) -> bool:
        return self.nulls is not None and bool(self.nulls.any())


@dataclass(frozen=True, slots=True)
class ValueFault:
    """Nulls of a level that have neither a fill value nor a mask."""

    level: Level
    reason: str

    @property
    def positions(self) -> Tensor:
        nulls = self.level.nulls
        assert nulls is not None
        return np.flatnonzero(nulls.reshape(len(nulls), -1).any(axis=1))


@dataclass(slots=True)
class TensorReader:
    """Collects the tensors of a column, and the faults: nulls without a fill value or mask."""

    fill: Fill
    valid: bool
    read_names: Collection[str] | None = None
    """Names of the tensors that are read later, or of columns of them; None if all are."""
    column: pa.Field | None = None
    """The whole column, for errors."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    dictionaries: dict[str, pa.Array] = field(default_factory=dict)
    faults: list[ValueFault] = field(default_factory=list)

    def update(self, other: "TensorReader") -> None:
        """Add the tensors that another reader collected."""
        self.tensors |= other.tensors
        self.parents |= other.parents
        self.dictionaries |= other.dictionaries

    def bad_rows(self) -> Iterator[tuple[str, Tensor]]:
        """Yield for each fault its reason, and the rows of the column that have it."""
        for fault in self.faults:
            rows, parent = fault.positions, fault.level.parent
            # from elements up to the rows of the record: element e belongs to the first row whose cumulative length
            # exceeds e
            while parent is not None:
                rows = np.searchsorted(np.cumsum(self.tensors[parent]), rows, side="right")
                parent = self.parents[parent]
            yield fault.reason, np.unique(rows)

    def read(
        self, name: str, array: pa.Array, parent: str | None, nullable: bool, nulls: Tensor | None = None
    ) -> None:
        """Add the tensors of `array`, whose rows are described by `parent`.

        `nulls` is true where an enclosing struct is null; the array counts as null there as well.
        """
        kind = array.type
        level = Level(name, kind, parent, nullable, _either(nulls_of(array), nulls))
        if isinstance(kind, pa.BaseExtensionType):
            self._read_extension(level, array)
        elif types.is_struct(kind):
            self._read_struct(level, array)
        elif leaf_dtype(kind) is not None:
            self._read_numbers(level, leaf_values(array))
        elif types.is_dictionary(kind):
            self._read_dictionary(level, array)
        elif (shape := fixed_shape(kind)) is not None:
            values, levels = _fixed_levels(level, array, shape)
            self._read_fixed(values, [(one, axes) for axes, one in enumerate(levels)])
        elif types.is_map(kind):
            entries = self._read_lists(level, array, rows_of)
            lengths = join_names(name, "lengths")
            self.read(join_names(name, "keys"), entries.field(0), lengths, False)
            self.read(join_names(name, "values"), entries.field(1), lengths, kind.item_field.nullable)
        elif is_any(kind, LISTS):
            rows = self._read_lists(level, array, rows_of)
            lengths = join_names(name, "lengths")
            self.read(join_names(name, "values"), rows, lengths, kind.value_field.nullable)
        elif is_any(kind, TEXTS):
            data = self._read_lists(level, bytes_as_lists(array), _text_rows)
            self.read(join_names(name, "values"), data, join_names(name, "lengths"), False)
        else:
            raise ProviderError(
                f"column {name.partition('.')[0]!r}: {name} has type {kind}, which has no tensor form\n"
                f"{_advice(kind, self.column)}, or leave the column out with columns="
            )

    def _read_struct(self, level: Level, array: pa.StructArray) -> None:
        self._add_mask(level, (len(array),))
        marked = level.nullable and self.valid
        # a struct has no value of its own: its nulls are filled or masked in its fields
        if level.has_nulls and not marked and (self.valid or not level.kind.num_fields):
            self._fill(level, _never_fits)
        for position, child in enumerate(level.kind):
            inner, values = join_names(level.name, child.name), array.field(position)
            if len(values) != len(array):
                raise ProviderError(f"{inner} has {len(values)} rows, but its struct has {len(array)}")
            self.read(inner, values, level.parent, level.nullable or child.nullable, level.nulls)

    def _read_numbers(self, level: Level, values: Tensor) -> None:
        if level.has_nulls:
            value = self._fill(level, number_of)
            values = values.copy()
            values[level.nulls] = 0 if value is None else value
        self._keep(level.name, frozen(values), level.parent)
        self._add_mask(level, values.shape)

    def _read_dictionary(self, level: Level, array: pa.DictionaryArray) -> None:
        """Add the codes. The fill value enters the dictionary even without nulls, so that all chunks share one
        dictionary.
        """
        codes, dictionary = leaf_values(array.indices), array.dictionary
        null_values = nulls_of(dictionary)
        if null_values is not None:
            level = replace(level, nulls=_either(level.nulls, null_values.take(codes, mode="clip")))
        fill = fill_of(self.fill, level.name)
        if fill is not None and (level.nullable or level.has_nulls):
            with suppress(UnfitError):
                _, dictionary = code_of(fill, dictionary, level.kind)
        if level.has_nulls:
            code = self._fill(level, lambda value, kind: code_of(value, dictionary, kind)[0])
            codes = codes.copy()
            codes[level.nulls] = 0 if code is None else code
        self.dictionaries[level.name] = dictionary
        self._keep(level.name, frozen(codes), level.parent)
        self._add_mask(level, codes.shape)

    def _read_extension(self, level: Level, array: pa.ExtensionArray) -> None:
        kind = level.kind
        if not isinstance(kind, pa.FixedShapeTensorType):
            self.read(level.name, array.storage, level.parent, level.nullable, level.nulls)
            return
        order, stored = tensor_order(kind), (len(array), *kind.shape)
        values, [of_rows, of_values] = _fixed_levels(level, array.storage, (math.prod(kind.shape),))
        if of_values.nulls is not None:
            of_values = replace(of_values, nulls=of_values.nulls.reshape(stored).transpose(order))
        self._read_fixed(
            values.reshape(stored).transpose(order), [(of_rows, 0), (of_values, len(kind.shape))]
        )

    def _read_fixed(self, values: Tensor, levels: list[tuple[Level, int]]) -> None:
        """Add values[rows, *shape]; each level has the number of axes of `shape` that it spans."""
        column, element = levels[0][0], innermost(levels[-1][0].kind)
        self._keep(column.name, values, column.parent)
        hidden: Tensor | None = None  # values below a null of an outer level
        absent: Tensor | None = None  # values below a null without a fill value
        masks = []
        for level, axes in levels:
            shape = values.shape[: 1 + axes]
            hidden, absent = (_broadcast(mask, shape) for mask in (hidden, absent))
            nulls = level.nulls if level.nulls is None or hidden is None else level.nulls & ~hidden
            if nulls is not None and nulls.any():
                row = values.shape[1 + axes :]
                value = self._fill(replace(level, nulls=nulls), lambda fill, _: fixed_of(fill, element, row))  # noqa: B023
                values = values.copy()
                values[nulls] = 0 if value is None else value
                hidden, absent = _either(hidden, nulls), _either(absent, nulls if value is None else None)
            masks.append((replace(level, nulls=_either(nulls, absent)), shape))
        self.tensors[column.name] = frozen(values)
        for level, shape in masks:
            self._add_mask(level, shape)

    def _read_lists(self, level: Level, array: pa.Array, convert: Convert) -> pa.Array:
        """Add the lengths of a list array, and return the rows of its lists."""
        lengths, rows = list_parts(level.name, array, level.nulls)
        if level.has_nulls and (fill := self._fill(level, convert)) is not None:
            assert level.nulls is not None
            lengths, rows = filled_lists(level.name, lengths, rows, level.nulls, fill)
        self._keep(join_names(level.name, "lengths"), frozen(lengths), level.parent)
        self._add_mask(level, lengths.shape)
        return rows

    def _fill(self, level: Level, convert: Convert) -> Any:
        """Return the fill value for the nulls of a level; without one return None, and record a fault unless they are
        masked.
        """
        fill = fill_of(self.fill, level.name)
        reason = f"null value in {level.name or 'the array'}"
        if fill is not None:
            try:
                return convert(fill, level.kind)
            except UnfitError:
                reason += f", and {unfit_message(fill, level.name, level.kind)}"
        if self.valid and not level.nullable:
            reason += ", which is declared not null"
        if (not self.valid or not level.nullable) and is_read(level.name, self.read_names):
            self.faults.append(ValueFault(level, reason))
        return None

    def _add_mask(self, level: Level, shape: tuple[int, ...]) -> None:
        """Add a mask wherever the schema allows nulls, so that all batches have the same tensors."""
        if self.valid and level.nullable:
            mask = np.ones(shape, np.bool_) if level.nulls is None else ~level.nulls
            self._keep(join_names(level.name, "valid"), frozen(mask), level.parent)

    def _keep(self, name: str, tensor: Tensor, parent: str | None) -> None:
        self.tensors[name] = tensor
        self.parents[name] = parent


def is_read(name: str, names: Collection[str] | None) -> bool:
    """Return whether one of these tensors, or columns of them, is of this level, one below or one above."""
    return names is None or any(
        f"{name}.".startswith(f"{one}.") or one.startswith(f"{name}.") for one in names
    )


def _text_rows(fill: Any, kind: pa.DataType) -> pa.Array:
    return leaf_array(bytes_of(fill, kind), pa.uint8(), None)


def _never_fits(fill: Any, kind: pa.DataType) -> None:
    raise UnfitError


def _fixed_levels(column: Level, array: pa.Array, shape: tuple[int, ...]) -> tuple[Tensor, list[Level]]:
    """Return the values of fixed-size lists (of fixed-size lists …), and their levels with nulls in the shape of
    each.
    """
    num_rows, levels, axes = len(array), [column], 0
    while types.is_fixed_size_list(array.type):
        size, field, above = array.type.list_size, array.type.value_field, levels[-1]
        array, axes = array.values.slice(array.offset * size, len(array) * size), axes + 1
        name, nulls = join_names(above.name, "values"), nulls_of(array)
        if nulls is not None and len(nulls) == num_rows * math.prod(shape[:axes]):
            nulls = nulls.reshape(num_rows, *shape[:axes])
        levels.append(Level(name, field.type, column.parent, field.nullable, nulls))
    if types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        values = view(array.buffers()[1], np.dtype(np.uint8), array.offset * width, len(array) * width)
    else:
        values = leaf_values(array)
    whole = (num_rows, *shape)
    if math.prod(whole) != values.size:
        raise ProviderError(f"{num_rows} fixed-size lists of {list(shape)} have {values.size} values")
    return values.reshape(whole), levels


def _broadcast(mask: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    """Broadcast a mask along the trailing axes of `shape`."""
    if mask is None:
        return None
    return np.broadcast_to(mask.reshape(*mask.shape, *[1] * (len(shape) - mask.ndim)), shape)


def _either(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _advice(kind: pa.DataType, column: pa.Field | None) -> str:
    if types.is_decimal(kind):
        return "cast it to a float or, scaled, to an integer"
    if types.is_null(kind):
        declared = "" if column is None else f"{{{column.name!r}: {declaration(column.type)!r}}}"
        return f"no value tells its type: declare it with schema={declared}, or cast it"
    return "cast it to numbers, lists or strings"
