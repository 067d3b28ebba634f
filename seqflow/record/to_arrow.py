"""`to_arrow`: named tensors as Arrow columns, of their original types if these still fit."""

from dataclasses import replace
from typing import Any, overload

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow import kernels
from seqflow.arguments import checked
from seqflow.errors import ProviderError, ProviderTypeError
from seqflow.record.arrays import (
    MisfitError,
    fixed_array,
    fixed_size_lists,
    list_array,
    map_array,
    struct_array,
    tensor_array,
    text_array,
)
from seqflow.record.arrow_types import fixed_shape, innermost, leaf_dtype, tensor_order
from seqflow.record.buffers import INT32_MAX, leaf_array, unfit_times
from seqflow.record.lists import take_any
from seqflow.record.record import Record, Tensor, list_parents
from seqflow.sequence import Sequence


@overload
def to_arrow(record: Record) -> pa.RecordBatch: ...
@overload
def to_arrow(record: Sequence) -> pa.Array: ...
@checked(late=True)
def to_arrow(record: Record | Sequence) -> pa.RecordBatch | pa.Array:
    """Convert named tensors to columns, and a Sequence to an array of lists; the inverse of from_arrow.

    Columns whose tensors still fit their type in `record.schema` get that type back. Otherwise, values and
    the lengths that describe them become a list column named after the values (`c.values` becomes `c`);
    several values with the same lengths become several columns. Extra axes become fixed-size lists, lengths
    that describe nothing become integers, and masks (`c.valid`) become the nulls of the tensors they mask.
    Lists that rows share, of a loader with `share`, become a dictionary of lists, and the rows' indices its codes.
    Columns that were run-end encoded, or views, are plain ones. Memory is shared, except for offsets, bools,
    and arrays that are not contiguous. Raises ProviderError for a tensor that cannot be a column: its dtype
    has no Arrow type, or its number of rows differs from the one given by its parent.

    Args:
        record: Record, or a Sequence.
    """
    if isinstance(record, Sequence):
        return to_arrow(_record_of(record)).column(0)
    if not isinstance(record, Record):
        raise ProviderTypeError(
            f"to_arrow: found {type(record).__name__}, expected a record or a Sequence\n"
            "  a mapping of arrays has no lengths for its values: seqflow.run returns a record for a record"
        )
    if record.shares:
        return _with_shared(record)
    writer = _ArrowWriter(record)
    columns: dict[str, tuple[pa.Field, pa.Array]] = {}
    tried = set()
    for name in record.tensors:
        root = name.partition(".")[0]
        field = writer.fields.get(root)
        if field is not None and root not in tried:
            tried.add(root)
            array = writer.under_schema(field, None)
            if array is not None:
                columns[root] = field.with_type(array.type), array
    writer.mark_described()
    for name in record.tensors:
        if name in writer.used:
            continue
        root = name.partition(".")[0]
        field, parent = writer.fields.get(root), writer.outermost(root)
        # a column with more levels of lengths than in the schema, such as one value for each piece of a packed row
        array = None if field is None or parent is None else writer.under_schema(field, parent)
        column = root if array is not None else _free_name(name, columns)
        array = writer.derived(name) if array is None else array
        columns[column] = pa.field(column, array.type), array
    fields = [field for field, _ in columns.values()]
    metadata = record.schema.metadata if record.schema is not None and fields == list(record.schema) else None
    if not columns:
        # pyarrow makes a batch without columns, but with rows, only from an array of structs
        return pa.RecordBatch.from_struct_array(pa.array([{}] * record.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(
        [array for _, array in columns.values()], schema=pa.schema(fields, metadata)
    )


def plain_lists(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns with the lists of each row in place of dictionaries of lists, which files cannot hold.

    Parquet has none, and those of an Arrow file are the same for all batches.
    """
    for at, field in enumerate(batch.schema):
        if types.is_dictionary(field.type) and types.is_nested(field.type.value_type):
            column = batch.column(at)
            lists = column.dictionary.take(column.indices)
            batch = batch.set_column(at, field.with_type(lists.type), lists)
    return batch


def _with_shared(record: Record) -> pa.RecordBatch:
    """Return the columns of a record; those that rows share are dictionaries of lists, with the rows' indices."""
    of_lists = {
        name for name, parent in record.parents.items() if name in record.shares or parent in record.shares
    }
    rows: dict[str, Tensor] = {}
    columns: dict[str, pa.Array] = {}
    for name, tensor in record.tensors.items():
        if name not in of_lists and name not in record.shares.values():
            rows[name] = tensor
    plain = to_arrow(replace(record, tensors=rows, shares={}))
    for index in dict.fromkeys(record.shares.values()):
        own = {name for name, of in record.shares.items() if of == index}
        lists = {name: one for name, one in record.tensors.items() if {name, record.parents[name]} & own}
        count = len(next(record[name] for name in own))
        found = to_arrow(replace(record, tensors=lists, num_rows=count, shares={}))
        codes = pa.array(record[index].astype(np.int32) if count <= INT32_MAX else record[index])
        for name, column in zip(found.schema.names, found.columns, strict=True):
            columns[name] = pa.DictionaryArray.from_arrays(codes, column)
    order = dict.fromkeys(name.partition(".")[0] for name in record.tensors)
    columns |= dict(zip(plain.schema.names, plain.columns, strict=True))
    names = sorted(columns, key=lambda name: [*order, name].index(name))
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names)


def _record_of(sequence: Sequence) -> Record:
    """Return the tensors of a column of lists, with the names that from_arrow gives them."""
    parents = list_parents("column", sequence.num_levels)
    tensors = dict(zip(parents, (*sequence.lod, sequence.values), strict=True))
    return Record(tensors, parents, len(sequence))


class _ArrowWriter:
    """Builds arrays from a record's tensors, and records the names of the tensors it used."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.used: set[str] = set()
        self.fields: dict[str, pa.Field] = {field.name: field for field in record.schema or ()}
        self.names: dict[str, list[str]] = {}
        """Names of the tensors of each column."""
        for name in record.tensors:
            self.names.setdefault(name.partition(".")[0], []).append(name)

    def outermost(self, column: str) -> str | None:
        """Return the lengths above all tensors of a column; None if it has an entry for each row."""
        return self.record.parents[min(self.names[column], key=self.record.depth)]

    def under_schema(self, field: pa.Field, parent: str | None) -> pa.Array | None:
        """Return the column with its type in the schema, in lists of the lengths `parent` and those above them; None
        if the tensors no longer fit.
        """
        names, before = self.names[field.name], self.used
        self.used = taken = set[str]()  # of this column: a copy of all would take longer for each column
        rows = self.record.num_rows if parent is None else kernels.check_lengths(self.record[parent])
        try:
            array = self.build(field.name, field.type, rows, parent)
        except MisfitError:
            array = None
        self.used = before
        if array is None or any(name not in taken and not name.endswith(".valid") for name in names):
            # a tensor of the column was left over: all of its tensors become columns of their own
            return None
        before.difference_update(names)
        before |= taken
        return self.in_lists(array, parent)

    def build(self, name: str, kind: pa.DataType, rows: int, parent: str | None) -> pa.Array:
        if isinstance(kind, pa.FixedShapeTensorType):
            return self.build_tensor(name, kind, rows, parent)
        if isinstance(kind, pa.BaseExtensionType):
            stored = self.build(name, kind.storage_type, rows, parent)
            return (
                pa.ExtensionArray.from_storage(kind, stored) if stored.type == kind.storage_type else stored
            )
        if types.is_struct(kind):
            nulls = self.nulls(name, rows, parent)
            children = [self.build(f"{name}.{child.name}", child.type, rows, parent) for child in kind]
            return struct_array(kind, children, rows, nulls)
        if types.is_dictionary(kind):
            codes = self.build(name, kind.index_type, rows, parent)
            dictionary = self.record.dictionaries.get(name)
            if dictionary is None or dictionary.type != kind.value_type or not _codes_fit(codes, dictionary):
                raise MisfitError
            return pa.DictionaryArray.from_arrays(codes, dictionary, ordered=kind.ordered)
        dtype = leaf_dtype(kind)
        if dtype is not None:
            values, nulls = self.take(name, rows, parent, dtype, ()), self.nulls(name, rows, parent)
            if dtype.kind in "Mm" and (unfit := unfit_times(values, kind, nulls)).size:
                raise ProviderError(f"to_arrow: {unfit[0]} is not a value of {kind}")
            return leaf_array(values, kind, nulls)
        shape = fixed_shape(kind)
        if shape is not None:
            values = self.take(name, rows, parent, leaf_dtype(innermost(kind)) or np.dtype(np.uint8), shape)
            return fixed_array(kind, values, self.nulls_by_level(name, values, parent))
        return self.build_lists(name, kind, rows, parent)

    def build_tensor(self, name: str, kind: pa.DataType, rows: int, parent: str | None) -> pa.Array:
        order = tensor_order(kind)
        shape = tuple(kind.shape[axis - 1] for axis in order[1:])
        values = self.take(name, rows, parent, leaf_dtype(kind.value_type), shape)
        stored = np.ascontiguousarray(values.transpose(np.argsort(order))).reshape(rows, -1)
        of_values = self.nulls(f"{name}.values", rows, parent, shape)
        if of_values is not None:
            of_values = of_values.transpose(np.argsort(order)).reshape(rows, -1)
        nulls = [self.nulls(name, rows, parent), of_values]
        return pa.ExtensionArray.from_storage(kind, fixed_array(kind.storage_type, stored, nulls))

    def build_lists(self, name: str, kind: pa.DataType, rows: int, parent: str | None) -> pa.Array:
        lengths_name = f"{name}.lengths"
        lengths = self.take(lengths_name, rows, parent, None, ())
        total = kernels.check_lengths(lengths)
        nulls = self.nulls(name, rows, parent)
        if types.is_map(kind):
            keys = self.build(f"{name}.keys", kind.key_type, total, lengths_name)
            items = self.build(f"{name}.values", kind.item_type, total, lengths_name)
            return map_array(kind, lengths, keys, items, nulls)
        if types.is_fixed_size_list(kind):
            child = self.build(f"{name}.values", kind.value_type, total, lengths_name)
            return fixed_size_lists(kind, rows, _padded(child, lengths, kind.list_size, nulls), nulls)
        if hasattr(kind, "value_field"):
            child = self.build(f"{name}.values", kind.value_type, total, lengths_name)
            return list_array(kind, lengths, child, nulls)
        values = self.take(f"{name}.values", total, lengths_name, np.dtype(np.uint8), ())
        return text_array(kind, lengths, values, nulls)

    def take(
        self, name: str, rows: int, parent: str | None, dtype: np.dtype[Any] | None, shape: tuple[int, ...]
    ) -> Tensor:
        """Return the tensor; raise MisfitError when it is not as expected. `dtype` None accepts any integer."""
        tensor = self.record.tensors.get(name)
        if (
            tensor is None
            or self.record.parents[name] != parent
            or tensor.shape != (rows, *shape)
            or (tensor.dtype.kind not in "iu" if dtype is None else tensor.dtype != dtype)
        ):
            raise MisfitError
        self.used.add(name)
        return tensor

    def nulls(self, name: str, rows: int, parent: str | None, shape: tuple[int, ...] = ()) -> Tensor | None:
        """Return the nulls of a tensor, from its mask `name.valid`; None if it has no mask."""
        mask = self.record.tensors.get(f"{name}.valid")
        if mask is None or mask.dtype != np.bool_ or mask.shape != (rows, *shape):
            return None
        if self.record.parents[f"{name}.valid"] != parent:
            return None
        self.used.add(f"{name}.valid")
        return ~mask

    def nulls_by_level(self, name: str, values: Tensor, parent: str | None) -> list[Tensor | None]:
        """Return the nulls of rows, and of each further axis; a single mask of all values is the last one."""
        rows, *shape = values.shape
        names = [name + ".values" * axes for axes in range(values.ndim)]
        nulls = [self.nulls(one, rows, parent, tuple(shape[:axes])) for axes, one in enumerate(names)]
        if shape and nulls[-1] is None:
            nulls[-1] = self.nulls(name, rows, parent, tuple(shape))
        return nulls

    def mark_described(self) -> None:
        """Mark lengths and masks as used when they become part of the column of another tensor."""
        record = self.record
        for name, parent in record.parents.items():
            if name in self.used:
                continue
            while parent is not None and not name.endswith(".valid"):
                self.used.add(parent)
                parent = record.parents[parent]
            masked = name.removesuffix(".valid")
            if masked != name and f"{masked}.lengths" in record.tensors:
                self.nulls(masked, len(record[name]), parent)
            elif masked != name and (tensor := self.masked(masked)) is not None:
                self.nulls_by_level(tensor, record[tensor], record.parents[tensor])

    def masked(self, name: str) -> str | None:
        """Return the tensor of that name, or the tensor whose axes the trailing `.values` denote; None if there is
        none.
        """
        while name not in self.record.tensors:
            if not name.endswith(".values"):
                return None
            name = name.removesuffix(".values")
        return name

    def derived(self, name: str) -> pa.Array:
        """Return one tensor as a column, with a level of lists for each of the lengths above it."""
        record = self.record
        tensor, parent = record[name], record.parents[name]
        self.check_rows(name)
        array = tensor_array(name, tensor, self.nulls_by_level(name, tensor, parent))
        if name in record.dictionaries and _codes_fit(array, record.dictionaries[name]):
            array = pa.DictionaryArray.from_arrays(array, record.dictionaries[name])
        return self.in_lists(array, parent)

    def in_lists(self, array: pa.Array, parent: str | None) -> pa.Array:
        """Return an array in lists of the lengths `parent`, and of those above them."""
        while parent is not None:
            self.check_rows(parent)
            lengths = self.record[parent]
            above = self.record.parents[parent]
            nulls = self.nulls(parent.removesuffix(".lengths"), len(lengths), above)
            wide = len(array) > INT32_MAX
            kind = pa.large_list(array.type) if wide else pa.list_(array.type)
            array, parent = list_array(kind, lengths, array, nulls), above
        return array

    def check_rows(self, name: str) -> None:
        parent = self.record.parents[name]
        tensor = self.record[name]
        if tensor.ndim == 0:
            raise ProviderError(
                f"to_arrow: {name} is a scalar, and a column has one row per row of the record"
            )
        if parent is None:
            expected, said = self.record.num_rows, "the record has"
        else:
            expected, said = kernels.check_lengths(self.record[parent]), f"sum({parent}) is"
        if len(tensor) != expected:
            raise ProviderError(f"to_arrow: {name} has {len(tensor)} rows, but {said} {expected}")


def _padded(child: pa.Array, lengths: Tensor, size: int, nulls: Tensor | None) -> pa.Array:
    """Return the values of lists of `size`, with nulls in place of empty null lists; raise MisfitError for other
    lengths.
    """
    full = lengths == size
    if full.all():
        return child
    if nulls is None or not (full | nulls).all():
        raise MisfitError
    places = np.repeat(np.where(full, np.cumsum(lengths) - size, len(child)), size)
    # index len(child) is the first of the `size` nulls appended after the values
    places += np.tile(np.arange(size), len(lengths))
    return take_any(pa.concat_arrays([child, pa.nulls(size, child.type)]), places)


def _codes_fit(codes: pa.Array, dictionary: pa.Array) -> bool:
    values = np.asarray(codes.drop_null()) if codes.null_count else np.asarray(codes)
    return values.size == 0 or (values.min() >= 0 and values.max() < len(dictionary))


def _free_name(name: str, taken: dict[str, Any]) -> str:
    """Return the tensor's name without `.values`, unless another column has this name."""
    short = name
    while short.endswith(".values"):
        short = short.removesuffix(".values")
    return name if short in taken else short
