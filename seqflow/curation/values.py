"""Numbers by which values of columns are compared: equal for equal values, or ordered as the values are."""

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow import kernels, ops
from seqflow.errors import ProviderError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.random_bits import output
from seqflow.record import Record, from_arrow
from seqflow.record.arrow_types import child_fields, with_child_fields
from seqflow.record.buffers import chunks_of
from seqflow.record.exact_casts import CONVERTIBLE, exact_cast
from seqflow.record.selection import Table

_SEEDS = (1, 2)
"""Seeds of the two halves of a key."""
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_UNITS = ("s", "ms", "us", "ns")
_DECIMAL = pa.decimal256(76, 38)
"""Type of all decimals of up to 38 digits, before and after the point."""


def scores(column: pa.Array) -> tuple[Array, Array]:
    """Return two int64 numbers for each value, which are ordered as the values are; a null or NaN comes first."""
    kind = column.type
    is_null, low = column.is_null(nan_is_null=True).to_numpy(False), np.zeros(len(column), np.int64)
    if types.is_decimal(kind):
        digits = exact_cast(column, pa.decimal128(38, kind.scale))
        words = np.frombuffer(digits.buffers()[1], np.int64).reshape(-1, 2)
        low, high = words[digits.offset : digits.offset + len(digits)].T
        low = low ^ _LEAST  # as a number without a sign
    elif types.is_floating(kind):
        bits = (column.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0).view(np.int64)
        high = np.where(bits < 0, bits ^ _GREATEST, bits)
    else:
        whole = column.cast(_whole_type(kind)).fill_null(0).to_numpy()
        high = (
            (whole ^ np.uint64(2**63)).view(np.int64) if whole.dtype == np.uint64 else whole.astype(np.int64)
        )
    # no decimal of 38 digits has the least high word, and no other number the least low one
    return np.where(is_null, _LEAST, high), np.where(is_null, _LEAST, low)


def _whole_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the integers that store integers and times of this type."""
    if types.is_integer(kind):
        return kind
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def record_of(table: Table) -> Record:
    """Return columns as tensors, with a mask for each level that may have nulls; equal values have equal tensors in
    columns of any width, scale and coding, numbers of some units excepted.
    """
    plain = pa.schema([(one.name, _plain_type(one.type)) for one in table.schema])
    columns = [
        pa.chunked_array([_cast(chunk, kind) for chunk in chunks_of(table.column(at))], kind)
        for at, kind in enumerate(plain.types)
    ]
    # Arrow has no tensors of decimals; those of one scale have one text each
    texts = pa.schema([(one.name, _plain_type(one.type, pa.large_string())) for one in table.schema])
    wide = pa.table(columns, plain)
    found: Record = from_arrow(wide if texts == plain else wide.cast(texts), valid=True)
    return found


def _plain_type(kind: pa.DataType, decimals: pa.DataType = _DECIMAL) -> pa.DataType:
    """Return the widest type of values of this type, fields of structs in the order of their names."""
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type, decimals)
    if types.is_integer(kind):
        return pa.uint64() if types.is_uint64(kind) else pa.int64()
    if types.is_floating(kind) or types.is_decimal(kind):
        return pa.float64() if types.is_floating(kind) else decimals
    if types.is_fixed_size_binary(kind):
        return pa.large_binary()
    fields = [child.with_type(_plain_type(child.type, decimals)) for _, child in child_fields(kind)]
    if types.is_struct(kind):
        return pa.struct(sorted(fields, key=lambda field: field.name))
    if not fields:
        return kind
    return with_child_fields(kind, fields) if types.is_map(kind) else pa.large_list(fields[0])


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return exact_cast(column, kind, CONVERTIBLE)
    except pa.ArrowInvalid as error:
        raise ProviderError(f"deduplicate: {error}, which is not compared") from None


def hashes(record: Record) -> list[Array]:
    """Return two int64 hashes of the values of all columns of each row."""
    states = [np.zeros(record.num_rows, np.uint64) for _ in _SEEDS]
    for name, tensor in record.items():
        values, kinds = _comparable(tensor)
        counts, above = np.ones(len(values), np.int64), record.parents[name]
        while above is not None:
            counts, above = kernels.segment_reduce("sum", counts, record[above]), record.parents[above]
        states = _mixed(states, values, counts)
        if kinds is not None and kinds.any():
            # only rows that have some: those of other columns without any have the same hashes
            has_some = kernels.segment_reduce("sum", (kinds != 0).astype(np.int64), counts) > 0
            others = _mixed(states, kinds, counts)
            states = [np.where(has_some, one, state) for one, state in zip(others, states, strict=True)]
    return [(state >> np.uint64(1)).view(np.int64) for state in states]


def _mixed(states: list[Array], data: Array, counts: Array) -> list[Array]:
    """Return states that also depend on the next `counts` values for each row."""
    held = np.ascontiguousarray(data).view(np.uint8)
    return [
        output(state, ops.hash_text(held, counts * data.dtype.itemsize, seed=seed).view(np.uint64))
        for state, seed in zip(states, _SEEDS, strict=True)
    ]


def _comparable(tensor: Array) -> tuple[Array, Array | None]:
    """Return values that are equal if those of the tensor are, and kinds that tell apart equal bits.

    The kind of a number that int64 holds is 0, in columns of integers and floats; bytes of texts have no kinds.
    """
    if tensor.dtype == np.uint8:
        return tensor, None
    if tensor.dtype.kind in "mM":
        return _times(tensor)
    if tensor.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole, large = tensor.astype(np.int64), tensor.astype(np.uint64).view(np.int64)
            is_whole = tensor == np.floor(tensor)
        bits = np.where(np.isnan(tensor), np.nan, tensor).view(np.int64)  # one NaN
        kinds = np.full(len(tensor), 2, np.uint8)
        kinds[is_whole & (tensor >= 2.0**63) & (tensor < 2.0**64)] = 1
        kinds[is_whole & (tensor >= -(2.0**63)) & (tensor < 2.0**63)] = 0
        return np.choose(kinds, [whole, large, bits]), kinds
    values = tensor.view(np.int64) if tensor.dtype == np.uint64 else tensor.astype(np.int64)
    return values, ((tensor >> np.uint64(63)).astype(np.uint8) if tensor.dtype == np.uint64 else None)


def _times(tensor: Array) -> tuple[Array, Array]:
    """Return times in the largest unit that holds them, from seconds down to nanoseconds, and the kinds of these."""
    unit = np.datetime_data(tensor.dtype)[0]
    values = tensor.view(np.int64)
    if unit == "D":
        values, unit = values * 86_400, "s"
    units = np.full(len(values), _UNITS.index(unit), np.uint8)
    for at in range(_UNITS.index(unit), 0, -1):
        is_whole = (units == at) & (values % 1000 == 0)
        values, units = np.where(is_whole, values // 1000, values), units - is_whole
    return values, units + (16 if tensor.dtype.kind == "M" else 32)
