"""WindowRows: the prepared rows of one window, in the order in which they are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.record import Record, nbytes
from seqflow.record.gathering import gather_rows


@dataclass(frozen=True, slots=True, eq=False)
class WindowRows:
    """The rows of some records, one record after another or in another order.

    `order[i]` is the number of row i, counted over the records in turn; None where it is i. The records are not
    joined: batches are gathered straight from them.
    """

    records: Sequence[Record]
    order: Array | None = None

    @property
    def num_rows(self) -> int:
        return sum(record.num_rows for record in self.records)

    @property
    def nbytes(self) -> int:
        return sum(nbytes(record) for record in self.records)

    def tensor(self, name: str) -> Array:
        """A tensor that has an entry for each row, in order."""
        parts = [record[name] for record in self.records]
        joined: Array = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return joined if self.order is None else kernels.gather(joined, self.order)

    def take(self, rows: Array | slice) -> Record:
        """Rows by their place in the order, repeats allowed, with everything below them."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.num_rows)
            chosen = np.arange(start, stop) if self.order is None else self.order[start:stop]
        else:
            chosen = rows if self.order is None else self.order[rows]
        return gather_rows(self.records, chosen)
