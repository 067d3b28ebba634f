"""Walking down one Arrow array, level by level, to the tensors at its leaves."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError
from seqflow.record.buffers import frozen, leaf_dtype, leaf_values, nulls_of, view
from seqflow.record.record import Tensor, join_names

Fill = Mapping[str, Any] | Any | None

_STRINGS = (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
_STRING_VIEWS = (types.is_string_view, types.is_binary_view)
_LIST_VIEWS = (types.is_list_view, types.is_large_list_view)
_LISTS = (types.is_list, types.is_large_list, *_LIST_VIEWS, types.is_fixed_size_list)


def is_any(kind: pa.DataType, predicates: tuple[Any, ...]) -> bool:
    """Whether one of pyarrow's type predicates holds."""
    return any(holds(kind) for holds in predicates)


@dataclass(slots=True)
class TensorReader:
    """Collects the tensors of a column, and the nulls that nothing was asked to replace."""

    fill: Fill
    valid: bool
    tensors: dict[str, Tensor] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    dictionaries: dict[str, pa.Array] = field(default_factory=dict)
    faults: dict[str, Tensor] = field(default_factory=dict)

    def update(self, other: "TensorReader") -> None:
        """Take over what another reader collected."""
        self.tensors |= other.tensors
        self.parents |= other.parents
        self.dictionaries |= other.dictionaries

    def bad_rows(self) -> Iterator[tuple[str, Tensor]]:
        """For each tensor with nulls that may not be there: its name, and the column's rows they are in."""
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

        `nulls` says where an enclosing struct is null: there the array is null, whatever it says itself.
        """
        kind = array.type
        nulls = _either(nulls_of(array), nulls)
        if isinstance(kind, pa.BaseExtensionType):
            self._read_extension(name, array, parent, nullable, nulls)
        elif types.is_struct(kind):
            for position, child in enumerate(kind):
                self.read(
                    join_names(name, child.name),
                    array.field(position),
                    parent,
                    nullable or child.nullable,
                    nulls,
                )
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
        elif is_any(kind, _LISTS):
            rows = self._read_lengths(name, array, parent, nullable, nulls)
            self.read(
                join_names(name, "values"), rows, join_names(name, "lengths"), kind.value_field.nullable
            )
        elif is_any(kind, _STRINGS) or is_any(kind, _STRING_VIEWS):
            data = self._read_lengths(name, _bytes_as_lists(array), parent, nullable, nulls)
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
        """Add the lengths of a list array; its rows below come back."""
        lengths, rows = _list_parts(name, array, nulls)
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
        """Masks are there for whatever the schema lets be null, so that batches don't differ."""
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


def fixed_shape(kind: pa.DataType) -> tuple[int, ...] | None:
    """The extra axes of a type whose rows are all of one shape and hold numbers only; None for others."""
    if types.is_fixed_size_binary(kind) and not isinstance(kind, pa.BaseExtensionType):
        return (kind.byte_width,)
    if not types.is_fixed_size_list(kind):
        return None
    if leaf_dtype(kind.value_type) is not None:
        return (kind.list_size,)
    inner = fixed_shape(kind.value_type)
    return None if inner is None else (kind.list_size, *inner)


def tensor_order(kind: pa.FixedShapeTensorType) -> tuple[int, ...]:
    """The axes of the stored tensor in the order the type shows them, rows first."""
    order = kind.permutation or range(len(kind.shape))
    return (0, *(axis + 1 for axis in order))


def _fixed_values(
    array: pa.Array, nulls: Tensor | None, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor | None]:
    """The values of fixed-size lists (of fixed-size lists …), and where they or what holds them is null."""
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
    assert math.prod(whole) == values.size
    return values.reshape(whole), None if nulls is None else nulls.reshape(whole)


def _list_parts(name: str, array: pa.Array, nulls: Tensor | None) -> tuple[Tensor, pa.Array]:
    """The length of each list, 0 where null, and the rows of all lists, without any that nulls hide."""
    if is_any(array.type, _LIST_VIEWS):
        return _list_view_parts(array, nulls)
    if types.is_fixed_size_list(array.type):
        size = array.type.list_size
        lengths = np.full(len(array), size, np.int64)
        start, total = array.offset * size, len(array) * size
    else:
        dtype = np.dtype(np.int64 if types.is_large_list(array.type) else np.int32)
        offsets = view(array.buffers()[1], dtype, array.offset, len(array) + 1 if len(array) else 0)
        lengths = np.subtract(offsets[1:], offsets[:-1], dtype=np.int64)
        start, total = (int(offsets[0]), int(offsets[-1] - offsets[0])) if len(offsets) else (0, 0)
        _check_offsets(name, offsets, lengths, len(array.values))
    rows = array.values.slice(start, total)
    if nulls is not None and lengths[nulls].any():
        starts = np.cumsum(lengths) - lengths
        lengths[nulls] = 0
        rows = _take_ranges(rows, starts, lengths)
    return lengths, rows


def _list_view_parts(array: pa.Array, nulls: Tensor | None) -> tuple[Tensor, pa.Array]:
    dtype = np.dtype(np.int64 if types.is_large_list_view(array.type) else np.int32)
    _, starts_buffer, sizes_buffer, *_ = array.buffers()
    starts = view(starts_buffer, dtype, array.offset, len(array)).astype(np.int64)
    lengths = view(sizes_buffer, dtype, array.offset, len(array)).astype(np.int64)
    if nulls is not None:
        lengths[nulls] = 0
    first, sizes = starts[lengths > 0], lengths[lengths > 0]
    if not len(first):
        return lengths, array.values.slice(0, 0)
    if np.array_equal(first[1:], first[:-1] + sizes[:-1]):
        return lengths, array.values.slice(int(first[0]), int(sizes.sum()))
    return lengths, _take_ranges(array.values, starts, lengths)


def _check_offsets(name: str, offsets: Tensor, lengths: Tensor, num_rows: int) -> None:
    if not len(offsets):
        return
    if lengths.min() < 0 or offsets[0] < 0:
        row = int(np.argmax(lengths < 0))
        raise ProviderError(
            f"{name}: the Arrow offsets decrease at row {row}: {offsets[row : row + 2].tolist()}"
        )
    if offsets[-1] > num_rows:
        raise ProviderError(
            f"{name}: the Arrow offsets reach to {offsets[-1]}, but there are {num_rows} values"
        )


def _take_ranges(rows: pa.Array, starts: Tensor, lengths: Tensor) -> pa.Array:
    """Copy the ranges `rows[starts : starts + lengths]`, one after another."""
    ends = np.cumsum(lengths)
    indices = np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
    try:
        return rows.take(pa.array(indices))
    except pa.ArrowNotImplementedError:  # types that Arrow can't take from, such as string views
        some = np.flatnonzero(lengths)
        pieces = [rows.slice(starts[i], lengths[i]) for i in some]
        return pa.concat_arrays(pieces) if pieces else rows.slice(0, 0)


def _bytes_as_lists(array: pa.Array) -> pa.Array:
    """A string or binary array as the list<uint8> array it is in memory."""
    if is_any(array.type, _STRING_VIEWS):
        array = array.cast(pa.large_binary())
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    values = pa.Array.from_buffers(pa.uint8(), data.size if data else 0, [None, data or pa.py_buffer(b"")])
    kind = pa.large_list(pa.uint8()) if wide else pa.list_(pa.uint8())
    return pa.Array.from_buffers(kind, len(array), [None, offsets], 0, array.offset, [values])


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
