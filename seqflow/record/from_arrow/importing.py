"""Import Arrow data of other libraries through the Arrow C data interface."""

import sys
from typing import Any

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.record.python_values import check_alike
from seqflow.record.validation import reading, validated


def as_table(obj: Any) -> pa.RecordBatch | pa.Table:
    """Return a record batch or table of any object with columns that offers Arrow data; raise ProviderError for
    others.

    Data of other libraries are validated.
    """
    if isinstance(obj, pa.RecordBatch | pa.Table):
        return obj
    if isinstance(obj, pa.StructArray):
        return pa.RecordBatch.from_arrays(obj.flatten(), schema=pa.schema(list(obj.type)))
    if isinstance(obj, pa.ChunkedArray) and pa.types.is_struct(obj.type):
        return pa.Table.from_batches(map(as_table, obj.chunks), pa.schema(list(obj.type)))
    if (
        imported := _imported(obj, pa.table, pa.record_batch, "can't be read as columns of Arrow")
    ) is not None:
        return imported
    raise ProviderError(
        f"expected a record batch, a table or another holder of Arrow columns, not {type(obj).__name__}",
        advice="ak.to_arrow_table(array) has the columns"
        if type(obj).__module__.startswith("awkward")
        else "",
    )


def imported_array(obj: Any) -> Any:
    """Import an array of another library, as an array of structs if it has columns; return other objects unchanged.

    Data of pyarrow get only the checks that take constant time; data of other libraries are validated in full.
    """
    if isinstance(obj, pa.Array | pa.ChunkedArray | pa.RecordBatch | pa.Table):
        with reading(f"a {type(obj).__name__} is not valid Arrow data"):
            obj.validate()
        return obj
    imported = _imported(obj, pa.chunked_array, pa.array, "that is not an Arrow column or table")
    return obj if imported is None else imported


def _imported(obj: Any, of_stream: Any, of_array: Any, what: str) -> Any:
    """Import an object through the Arrow C interface; None if it does not implement it."""
    name = f"a {type(obj).__name__}"
    try:
        if hasattr(obj, "__arrow_c_stream__"):
            imported = of_stream(obj)
        elif hasattr(obj, "__arrow_c_array__"):
            imported = of_array(obj)
        else:
            return None
        if (pandas := sys.modules.get("pandas")) and isinstance(obj, pandas.DataFrame | pandas.Series):
            _check_objects(obj, getattr(imported, "schema", None) or imported.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ProviderError(f"{name} {what}: {error}") from error
    return validated(imported, name)


def _check_objects(obj: Any, kinds: Any) -> None:
    """Raise ValueError for Python values of pandas that Arrow changes, as it does in columns of several kinds."""
    columns = (
        [(obj, kinds)]
        if obj.ndim == 1
        else [(one, kinds.field(at).type) for at, (_, one) in enumerate(obj.items())]
    )
    for column, kind in columns:
        if column.dtype == object:
            try:
                check_alike(column[column.notna()].tolist(), kind)
            except ValueError as error:
                raise ValueError(f"column {column.name!r}: {error}") from None
