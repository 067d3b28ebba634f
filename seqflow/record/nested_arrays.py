"""Replace the children of nested Arrow arrays; nulls, offsets and sizes stay."""

from collections.abc import Sequence

import pyarrow as pa

from seqflow.record.buffers import nulls_of, validity

_NUM_BUFFERS = {
    pa.list_(pa.null()).id: 2,
    pa.large_list(pa.null()).id: 2,
    pa.list_(pa.null(), 1).id: 1,
    pa.map_(pa.string(), pa.null()).id: 2,
}
"""The number of buffers of a list array by type id, without those of its child."""


def with_fields(array: pa.StructArray, kind: pa.StructType, children: Sequence[pa.Array]) -> pa.StructArray:
    """Replace the children of a struct array."""
    # not StructArray.from_arrays, which takes the number of rows from the children: there may be none
    buffers = [validity(nulls_of(array))]
    return pa.Array.from_buffers(kind, len(array), buffers, children=list(children))


def with_values(array: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Replace the values of an array of lists, or the entries of an array of maps."""
    buffers = array.buffers()[: _NUM_BUFFERS[array.type.id]]
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset, [values])
