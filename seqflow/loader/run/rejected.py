"""Rows that cannot be used, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seqflow.errors import ProviderError, SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.printable import printable_line
from seqflow.record import BadRow
from seqflow.record.run_ends import take_table

if TYPE_CHECKING:
    import pyarrow as pa

    from seqflow.loader.run.provenance import RowNumbers
    from seqflow.providers import Block

REASON_FIELDS = ("file", "block", "row", "column", "reason")
"""The fields of the column that says why a row cannot be used; after them a quarantine file has its `line`."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows that cannot be used, and why."""

    rows: pa.Table
    """One for each entry of `bad`."""
    bad: tuple[BadRow, ...]
    numbers: tuple[int | None, ...]
    """Their numbers in the block; None where `prepare` made new rows."""
    block: Block
    in_prepare: int
    """How many of them were read and converted, but not prepared, or not put into a batch."""

    @classmethod
    def of(
        cls,
        batch: pa.RecordBatch | pa.Table,
        bad: Sequence[BadRow],
        numbers: RowNumbers | None,
        block: Block,
        *,
        in_prepare: int,
    ) -> Rejected:
        """The bad rows of a batch, whose numbers in the block are `numbers`."""
        rows = [one.row for one in bad]
        table = take_table(batch, np.array(rows, np.int64))
        in_block = tuple(None if numbers is None else int(numbers[row]) for row in rows)
        return cls(table, tuple(bad), in_block, block, in_prepare)

    @property
    def count(self) -> int:
        """How many rows they are: one may be bad in several columns."""
        return len({one.row for one in self.bad})

    def table(self) -> pa.Table:
        """The rows as a quarantine file has them, with a column that says why."""
        import pyarrow as pa

        rows, bad = self.rows, self.bad
        reasons = pa.StructArray.from_arrays(
            [
                pa.array([printable_line(self.block.origin)] * len(bad), pa.string()),
                pa.array([self.block.index] * len(bad), pa.int64()),
                pa.array(self.numbers, pa.int64()),
                pa.array([row.column for row in bad], pa.string()),
                pa.array([row.reason for row in bad], pa.string()),
                pa.array([row.line for row in bad], pa.large_binary()),
            ],
            names=[*REASON_FIELDS, "line"],
        )
        name = "bad"
        while name in rows.schema.names:
            name += "_"
        return pa.table({name: reasons, **dict(zip(rows.schema.names, rows.columns, strict=True))})

    def error(self) -> ProviderError:
        """The error for the first of them, where bad rows are errors."""
        return bad_row_error(self.bad[0], self.numbers[0], self.block)


def bad_row_error(bad: BadRow, number: int | None, block: Block) -> ProviderError:
    """The error for a bad row, which has this number in its block, or was made by `prepare`."""
    row = "a row that prepare made" if number is None else f"row {number}"
    return ProviderError(
        f"{block.origin}, block {block.index}, {row}, column {bad.column!r}: {bad.reason}\n"
        "  bad_rows= says what becomes of such rows, fill= and valid= of nulls"
    )


def refused_row(row: int, names: Iterable[str], error: Exception) -> BadRow:
    """The bad row for the error of a net on this row alone. The statement that failed stands for its column."""
    statement = error.statement if isinstance(error, SeqflowError) else ""
    return BadRow(row, statement or ", ".join(names), str(error).split("\n")[0])


def keep_rows(num_rows: int, bad: Sequence[BadRow]) -> Array:
    """bool[num_rows]: the rows that are not bad."""
    keep = np.ones(num_rows, bool)
    keep[[row.row for row in bad]] = False
    return keep
