"""The ledger of a window: what has become of each of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from seqflow.loader.run.prepare import RowRange
from seqflow.loader.run.rejects import Rejected
from seqflow.record import BadRow

Column = Literal["rows", "rows_left", "bad_rows", "dropped", "skipped"]
SUMMED = (
    "rows_read", "rows_left", "dropped", "skipped", "filtered",
    "seconds_reading", "seconds_preparing", "seconds_planning",
)  # fmt: skip
"""The fields of a ledger that are added up as they are."""


@dataclass(slots=True)
class Ledger:
    """What has become of the rows of a window, or of a slice of a block: each row is in one column.

    Rows come into the column `rows_left`, or `skipped` where a filter left them out, when they are read. From then on
    they only move between columns, by `reject` and `move`. So `rows_left + dropped + skipped + bad_rows` are all rows
    that have come in, and the sum of all columns of `Stats`, to which closed ledgers are added, are all rows of the
    windows so far. It differs only where `prepare` makes another number of rows.
    """

    rows_read: int = 0
    """Rows that were read and prepared, as the source has them."""
    rows_left: int = 0
    """Rows for batches, as `prepare` made them."""
    dropped: int = 0
    skipped: int = 0
    filtered: int = 0
    """Those skipped ones that `where` left out."""
    rejected: list[Rejected] = field(default_factory=list)
    """The bad rows: those that reading, `prepare`, `require` and the batch plan refuse."""
    refused: dict[int, BadRow] = field(default_factory=dict)
    """Bad rows by their numbers in the window: those that `net` refuses, until all batches are handed out."""
    ranges: tuple[RowRange, ...] = ()
    """Where the rows come from."""
    seconds_reading: float = 0.0
    seconds_preparing: float = 0.0
    seconds_planning: float = 0.0

    @classmethod
    def of_source(cls, rows: int, filtered: int) -> Ledger:
        """The ledger of rows that were read, or are known without reading."""
        return cls(rows, rows, skipped=filtered, filtered=filtered)

    @property
    def bad_rows(self) -> int:
        return sum(one.count for one in self.rejected)

    def reject(self, rejected: Rejected, *, is_prepared: bool = False) -> None:
        """Count bad rows; those that are not prepared do not count as read."""
        self.rejected.append(rejected)
        self.rows_left -= rejected.count
        if not is_prepared:
            self.rows_read -= rejected.count

    def add(self, other: Ledger) -> None:
        """Add the ledger of one of several slices."""
        add_columns(self, other)
        self.rejected += other.rejected


def add_columns(to: Any, ledger: Ledger) -> None:
    """Add the columns of a ledger to those of another, or of Stats."""
    for name in SUMMED:
        setattr(to, name, getattr(to, name) + getattr(ledger, name))


def move(of: Any, rows: int, source: Column, target: Column) -> None:
    """Move rows from one column to another, of a ledger or of Stats."""
    setattr(of, source, getattr(of, source) - rows)
    setattr(of, target, getattr(of, target) + rows)
