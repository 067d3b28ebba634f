"""Rows: batches of equally many rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.loader.row_batches import RowBatches, row_batches
from seqflow.loader.row_selection import RowSelection, check_lengths_between
from seqflow.loader.row_sizes import row_sizes
from seqflow.loader.window_batches import Spans, padded_sizes
from seqflow.loader.window_rows import WindowRows


@dataclass(frozen=True, slots=True)
class Rows:
    """Batches of `n` rows. A last short batch is kept unless `drop_last`."""

    n: int
    drop_last: bool = False
    lengths: str | None = None
    """The lengths tensor whose fill is reported; the only list column of numbers by default."""
    min_length: int | None = None
    """Shorter rows are left out, and counted."""
    max_length: int | None = None
    """Longer rows are left out, and counted."""

    def __post_init__(self) -> None:
        at_least_one("Rows", n=self.n, min_length=self.min_length, max_length=self.max_length)
        check_lengths_between("Rows", self.min_length, self.max_length)

    @property
    def filters(self) -> bool:
        """Whether rows may be left out by their lengths."""
        return self.min_length is not None or self.max_length is not None

    @property
    def needs_lengths(self) -> bool:
        """Whether the records must have lengths to plan on."""
        return self.filters

    def of_window(
        self, rows: WindowRows, lengths: str | None, key: int, shuffled: bool, window: int
    ) -> RowBatches:
        """The batches of a window, in the order of its rows."""
        if lengths is None:
            assert not self.filters  # planned_lengths sees to that
            spans = self.spans(rows.num_rows)
            nothing = RowSelection.all_of(np.zeros(0, np.int64))
            return row_batches(rows, nothing, spans, padded_sizes(spans, None), self.drop_last)
        selection, _ = self.select(rows, lengths)
        spans = self.spans(len(selection.pieces.sizes))
        return row_batches(
            rows, selection, spans, padded_sizes(spans, selection.pieces.sizes), self.drop_last
        )

    def select(self, rows: WindowRows, lengths: str) -> tuple[RowSelection, None]:
        """The rows that batches are made of, none of which is cut."""
        return RowSelection.all_of(row_sizes(rows, lengths)).between(self.min_length, self.max_length), None

    def spans(self, num_rows: int, sizes: Array | None = None) -> Spans:
        """Which of these consecutive rows make a batch."""
        full = np.arange(self.n, num_rows + 1, self.n, dtype=np.int64)
        left = num_rows % self.n
        return Spans.until(np.append(full, num_rows) if left else full, left > 0)


def at_least_one(plan: str, **counts: int | None) -> None:
    """OpError unless each count is an int, 1 or more, or left out."""
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise OpError(f"{plan}: {name} is {count!r}, expected an integer, 1 or more")
