"""Objects that offer Arrow data, of pyarrow or another library, as pyarrow's own."""

from typing import Any

import pyarrow as pa

from seqflow.errors import ProviderError


def as_table(obj: Any) -> pa.RecordBatch | pa.Table:
    """A record batch or table of any object with columns that offers Arrow data; ProviderError for others."""
    if isinstance(obj, pa.RecordBatch | pa.Table):
        return obj
    if isinstance(obj, pa.StructArray):
        return pa.RecordBatch.from_arrays(obj.flatten(), schema=pa.schema(list(obj.type)))
    if isinstance(obj, pa.ChunkedArray) and pa.types.is_struct(obj.type):
        return pa.Table.from_batches(map(as_table, obj.chunks), pa.schema(list(obj.type)))
    try:
        if hasattr(obj, "__arrow_c_stream__"):
            return pa.table(obj)
        if hasattr(obj, "__arrow_c_array__"):
            return pa.record_batch(obj)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ProviderError(f"a {type(obj).__name__} without columns: {error}") from error
    raise ProviderError(
        f"expected a record batch, a table or another holder of Arrow columns, not {type(obj).__name__}"
    )


def imported_array(obj: Any) -> Any:
    """An object of another library as a pyarrow array, of structs where it has columns; others as they are."""
    if isinstance(obj, pa.Array | pa.ChunkedArray | pa.RecordBatch | pa.Table):
        return obj
    try:
        if hasattr(obj, "__arrow_c_stream__"):
            return pa.chunked_array(obj)
        if hasattr(obj, "__arrow_c_array__"):
            return pa.array(obj)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ProviderError(f"a {type(obj).__name__} that is no Arrow column or table: {error}") from error
    return obj
