"""Record batches of one schema, for streams of Arrow."""

from collections.abc import Iterable
from itertools import chain

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.printable import printable_line
from seqflow.record.record import Record
from seqflow.record.to_arrow import to_arrow


def reader_of(records: Iterable[Record], empty: Record | None) -> pa.RecordBatchReader:
    """Read records as batches of one schema, converted on demand; without records, the schema is that of `empty`."""
    batches = map(to_arrow, records)
    first = next(batches, None)
    if first is None:
        schema = pa.schema([]) if empty is None else to_arrow(empty).schema
        return pa.RecordBatchReader.from_batches(schema, [])
    schema = first.schema
    return pa.RecordBatchReader.from_batches(schema, (of_schema(b, schema) for b in chain([first], batches)))


def of_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the types of `schema`; raise ProviderError when a column does not fit its type."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if batch.schema.names != schema.names:
        raise ProviderError(f"the columns are {_listed(batch.schema)}, expected {_listed(schema)}")
    columns = [_of_type(batch.column(i), schema.field(i)) for i in range(len(schema))]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _of_type(array: pa.Array, field: pa.Field) -> pa.Array:
    if array.type == field.type:
        return array
    try:
        return array.cast(field.type)
    except pa.ArrowException as error:
        raise ProviderError(
            f"column {printable_line(field.name)!r} is {array.type}, expected {field.type}, its type in all batches\n"
            "  an axis padded to the longest row changes the type with each batch: return values and lengths, "
            "which become lists, or pad to a constant size"
        ) from error


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{printable_line(field.name)}: {field.type}" for field in schema)
