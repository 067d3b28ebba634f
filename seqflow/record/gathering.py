"""Rows gathered from several records at once."""

from collections.abc import Sequence
from typing import Any

from seqflow.record.record import Record
from seqflow.record.rows import concat_records, take_rows


def gather_rows(records: Sequence[Record], rows: Any) -> Record:
    """The rows `rows[K]`, counted over the records one after another, with everything below them, in new arrays.

    The same as `take_rows(concat_records(records), rows)`. Raises OpIndexError for a row outside them.
    """
    return take_rows(concat_records(records), rows)
