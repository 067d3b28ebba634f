"""WindowRows: the prepared rows of one window, in the order in which they are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.loader.padding import Pad, pad_columns
from seqflow.record import Record, concat_records, nbytes, slice_rows
from seqflow.record.gathering import gather_rows


@dataclass(frozen=True, slots=True, eq=False)
class WindowRows:
    """The rows of some records, one record after another or in another order.

    `order[i]` is the number of row i, counted over the records in turn; None where it is i. The records are not
    joined: batches are gathered straight from them, with the columns of `pad` padded.
    """

    records: Sequence[Record]
    order: Array | None = None
    pad: Mapping[str, Pad] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        if self.order is not None:
            return len(self.order)
        return sum(record.num_rows for record in self.records)

    @property
    def nbytes(self) -> int:
        return sum(nbytes(record) for record in self.records)

    def tensor(self, name: str) -> Array:
        """A tensor that has an entry for each row, in order."""
        parts = [record[name] for record in self.records]
        joined: Array = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return joined if self.order is None else kernels.gather(joined, self.order)

    def numbers(self, rows: Array | slice) -> Array:
        """The numbers of rows, counted over the records in turn."""
        if self.order is not None:
            return self.order[rows]
        return np.arange(self.num_rows)[rows] if isinstance(rows, slice) else rows

    def take(self, rows: Array | slice) -> Record:
        """Rows by their place in the order, repeats allowed, with everything below them.

        Consecutive rows of one record are views of it.
        """
        if isinstance(rows, slice) and self.order is None:
            record = concat_records(self._slices(rows))
        else:
            record = gather_rows(self.records, self.numbers(rows))
        return pad_columns(record, self.pad) if self.pad else record

    def part(self, start: int, stop: int) -> WindowRows:
        """The rows start … stop - 1 of the order."""
        if self.order is None:
            return replace(self, records=self._slices(slice(start, stop)))
        return replace(self, order=self.order[start:stop])

    def joined(self, other: WindowRows) -> WindowRows:
        """The rows of both."""
        records = (*self.records, *other.records)
        if self.order is None and other.order is None:
            return replace(self, records=records)
        count = sum(record.num_rows for record in self.records)
        order = np.concatenate([self.numbers(slice(None)), other.numbers(slice(None)) + count])
        return replace(self, records=records, order=order)

    def _slices(self, rows: slice) -> list[Record]:
        """Consecutive rows as views, one for each record that has some of them."""
        start, stop, _ = rows.indices(self.num_rows)
        found: list[Record] = []
        for record in self.records:
            low, high = max(start, 0), min(stop, record.num_rows)
            if low < high or (not found and record is self.records[-1]):
                found.append(slice_rows(record, min(low, high), high))
            start, stop = start - record.num_rows, stop - record.num_rows
        return found
