"""Records: one batch of named tensors, to and from Arrow without copying."""

from seqflow.record.from_arrow.columns import BadRow, column_from_arrow, convert, from_arrow
from seqflow.record.from_arrow.fills import Fill, Valid, check_fill, check_valid
from seqflow.record.from_arrow.importing import as_table
from seqflow.record.record import Record
from seqflow.record.row_source import take_rows
from seqflow.record.rows import concat_records, nbytes, slice_rows, split_rows
from seqflow.record.to_arrow import to_arrow

__all__ = [
    "BadRow",
    "Fill",
    "Record",
    "Valid",
    "as_table",
    "check_fill",
    "check_valid",
    "column_from_arrow",
    "concat_records",
    "convert",
    "from_arrow",
    "nbytes",
    "slice_rows",
    "split_rows",
    "take_rows",
    "to_arrow",
]
