"""From Arrow to named tensors."""

from seqflow.record.from_arrow.columns import BadRow, convert, find_bad_rows, from_arrow
from seqflow.record.from_arrow.importing import as_table

__all__ = ["BadRow", "as_table", "convert", "find_bad_rows", "from_arrow"]
