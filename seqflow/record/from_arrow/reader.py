"""TensorReader: the tensors of one Arrow array, found by walking down its nested types."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.record.arrow_types import LISTS, TEXTS, fixed_shape, is_any, leaf_dtype, tensor_order
from seqflow.record.buffers import frozen, leaf_values, nulls_of, view
from seqflow.record.from_arrow.lists import bytes_as_lists, list_parts
from seqflow.record.record import Tensor, join_names

Fill = Mapping[str, Any] | Any | None


@dataclass(slots=True)
class TensorReader:
    """Collects the tensors of a column, and the positions of nulls that have neither a fill nor a mask."""

    fill: Fill
    valid: bool
    tensors: dict[str, Tensor] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    dictionaries: dict[str, pa.Array] = field(default_factory=dict)
    faults: dict[str, Tensor] = field(default_factory=dict)

    def update(self, other: "TensorReader") -> None:
        """Add what another reader collected."""
        self.tensors |= other.tensors
        self.parents |= other.parents
        self.dictionaries |= other.dictionaries

    def bad_rows(self) -> Iterator[tuple[str, Tensor]]:
        """For each tensor with faults: its name, and the rows of the column that have them."""
        for name, positions in self.faults.items():
            rows, parent = positions, self.parents[name]
            while parent is not None:
                rows = np.searchsorted(np.cumsum(self.tensors[parent]), rows, side="right")
                parent = self.parents[parent]
            yield name, np.unique(rows)

    def read(
        self, name: str, array: pa.Array, parent: str | None, nullable: bool, nulls: Tensor | None = None
    ) -> None:
        """Add the tensors of `array`, whose rows are described by `parent`.

        `nulls` is true where an enclosing struct is null; the array counts as null there, too.
        """
        kind = array.type
        nulls = _either(nulls_of(array), nulls)
        if isinstance(kind, pa.BaseExtensionType):
            self._read_extension(name, array, parent, nullable, nulls)
        elif types.is_struct(kind):
            for position, child in enumerate(kind):
                inner, values = join_names(name, child.name), array.field(position)
                if len(values) != len(array):
                    raise ProviderError(f"{inner} has {len(values)} rows, but its struct has {len(array)}")
                self.read(inner, values, parent, nullable or child.nullable, nulls)
        elif leaf_dtype(kind) is not None:
            self._add(name, leaf_values(array), parent, nullable, nulls)
        elif types.is_dictionary(kind):
            self._read_dictionary(name, array, parent, nullable, nulls)
        elif fixed_shape(kind) is not None:
            self._read_fixed(name, array, parent, nullable, nulls)
        elif types.is_map(kind):
            entries = self._read_lengths(name, array, parent, nullable, nulls)
            lengths = join_names(name, "lengths")
            self.read(join_names(name, "keys"), entries.field(0), lengths, False)
            self.read(join_names(name, "values"), entries.field(1), lengths, kind.item_field.nullable)
        elif is_any(kind, LISTS):
            rows = self._read_lengths(name, array, parent, nullable, nulls)
            self.read(
                join_names(name, "values"), rows, join_names(name, "lengths"), kind.value_field.nullable
            )
        elif is_any(kind, TEXTS):
            data = self._read_lengths(name, bytes_as_lists(array), parent, nullable, nulls)
            self.read(join_names(name, "values"), data, join_names(name, "lengths"), False)
        else:
            raise ProviderError(
                f"column {name.partition('.')[0]!r}: {name} has type {kind}, which has no tensor form\n"
                f"{_advice(kind)}, or leave the column out with columns="
            )

    def _read_extension(
        self, name: str, array: pa.Array, parent: str | None, nullable: bool, nulls: Tensor | None
    ) -> None:
        if not isinstance(array.type, pa.FixedShapeTensorType):
            self.read(name, array.storage, parent, nullable, nulls)
            return
        order = tensor_order(array.type)
        values, nulls = _fixed_values(array.storage, nulls, tuple(array.type.shape))
        self._add(
            name,
            values.transpose(order),
            parent,
            nullable,
            nulls if nulls is None else nulls.transpose(order),
        )

    def _read_fixed(
        self, name: str, array: pa.Array, parent: str | None, nullable: bool, nulls: Tensor | None
    ) -> None:
        shape = fixed_shape(array.type)
        assert shape is not None
        inner = array.type
        while types.is_fixed_size_list(inner):
            nullable = nullable or inner.value_field.nullable
            inner = inner.value_type
        values, nulls = _fixed_values(array, nulls, shape)
        self._add(name, values, parent, nullable, nulls)

    def _read_dictionary(
        self, name: str, array: pa.Array, parent: str | None, nullable: bool, nulls: Tensor | None
    ) -> None:
        codes = leaf_values(array.indices)
        behind = nulls_of(array.dictionary)
        if behind is not None:
            nulls = _either(nulls, behind.take(codes, mode="clip"))
        self.dictionaries[name] = array.dictionary
        self._add(name, codes, parent, nullable, nulls)

    def _read_lengths(
        self, name: str, array: pa.Array, parent: str | None, nullable: bool, nulls: Tensor | None
    ) -> pa.Array:
        """Add the lengths of a list array, and return the rows of its lists."""
        lengths, rows = list_parts(name, array, nulls)
        self._keep(join_names(name, "lengths"), frozen(lengths), parent)
        self._add_mask(name, nulls, lengths.shape, parent, nullable)
        return rows

    def _add(
        self, name: str, values: Tensor, parent: str | None, nullable: bool, nulls: Tensor | None
    ) -> None:
        """Add values, with `nulls` (of the same shape) filled, masked or noted as faults."""
        self._keep(name, values, parent)
        if nulls is not None and nulls.any():
            fill = self._fill(name)
            if fill is None and not self.valid:
                self.faults[name] = np.flatnonzero(nulls.reshape(len(values), -1).any(axis=1))
            filled = values.copy()
            filled[nulls] = 0 if fill is None else fill_value(fill, values.dtype, name)
            self.tensors[name] = frozen(filled)
        self._add_mask(name, nulls, values.shape, parent, nullable)

    def _add_mask(
        self, name: str, nulls: Tensor | None, shape: tuple[int, ...], parent: str | None, nullable: bool
    ) -> None:
        """Add a mask wherever the schema allows nulls, so that all batches have the same tensors."""
        if self.valid and nullable:
            mask = np.ones(shape, np.bool_) if nulls is None else ~nulls
            self._keep(join_names(name, "valid"), frozen(mask), parent)

    def _keep(self, name: str, tensor: Tensor, parent: str | None) -> None:
        self.tensors[name] = tensor
        self.parents[name] = parent

    def _fill(self, name: str) -> Any:
        if isinstance(self.fill, Mapping):
            return self.fill.get(name, self.fill.get(name.partition(".")[0]))
        return self.fill


def fill_value(fill: Any, dtype: np.dtype[Any], name: str) -> Any:
    """`fill` as a scalar of `dtype`; ProviderError where that would change its value."""
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(fill).astype(dtype)
        exact = dtype.kind in "fMm" or bool(value == fill)
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact:
        raise ProviderError(f"fill={fill!r} is not a value of {name}, which has dtype {dtype}")
    return value


def _fixed_values(
    array: pa.Array, nulls: Tensor | None, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor | None]:
    """The values of fixed-size lists (of fixed-size lists …), and where a value or a list around it is null."""
    num_rows = len(array)
    while types.is_fixed_size_list(array.type):
        size = array.type.list_size
        array = array.values.slice(array.offset * size, len(array) * size)
        nulls = _either(nulls_of(array), None if nulls is None else np.repeat(nulls, size))
    if types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        values = view(array.buffers()[1], np.dtype(np.uint8), array.offset * width, len(array) * width)
        nulls = None if nulls is None else np.repeat(nulls, width)
    else:
        values = leaf_values(array)
    whole = (num_rows, *shape)
    if math.prod(whole) != values.size:
        raise ProviderError(f"{num_rows} fixed-size lists of {list(shape)} have {values.size} values")
    return values.reshape(whole), None if nulls is None else nulls.reshape(whole)


def _either(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _advice(kind: pa.DataType) -> str:
    if types.is_decimal(kind):
        return "cast it to a float or, scaled, to an integer"
    if types.is_null(kind):
        return "every value is null: cast it to the type it should have"
    if types.is_run_end_encoded(kind):
        return "decode it with pyarrow.compute.run_end_decode"
    return "cast it to numbers, lists or strings"
