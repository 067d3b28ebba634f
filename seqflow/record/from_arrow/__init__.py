"""From Arrow to named tensors."""

from seqflow.record.from_arrow.columns import BadRow, convert, find_bad_rows, from_arrow
from seqflow.record.from_arrow.fills import Fill, Valid, check_fill, check_valid
from seqflow.record.from_arrow.importing import as_table

__all__ = [
    "BadRow",
    "Fill",
    "Valid",
    "as_table",
    "check_fill",
    "check_valid",
    "convert",
    "find_bad_rows",
    "from_arrow",
]
