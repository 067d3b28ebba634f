"""WindowRows: the prepared rows of one window, in the order in which they are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.loader.padding import Pad, Padding
from seqflow.record import Record, nbytes
from seqflow.record.batch_memory import BatchMemory
from seqflow.record.gathering import RowSource


@dataclass(frozen=True, slots=True, eq=False)
class WindowRows:
    """The rows of some records, one record after another or in another order.

    `order[i]` is the number of row i, counted over the records in turn; None where it is i. The records are not
    joined: batches are gathered straight from them. Threads may share it.
    """

    records: Sequence[Record]
    order: Array | None = None
    source: RowSource = field(init=False, repr=False)
    _paddings: dict[tuple[tuple[str, Pad], ...], Padding] = field(
        init=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", RowSource(self.records))

    @property
    def num_rows(self) -> int:
        return self.source.num_rows

    @property
    def nbytes(self) -> int:
        return sum(nbytes(record) for record in self.records)

    def tensor(self, name: str) -> Array:
        """A tensor that has an entry for each row, in order."""
        joined = self.source.tensor(name)
        return joined if self.order is None else kernels.gather(joined, self.order)

    def take(self, rows: Array | slice, memory: BatchMemory | None = None, *, views: bool = False) -> Record:
        """Rows by their place in the order, repeats allowed, with everything below them, in arrays of their own.

        These are in `memory` where it is given, until it is used again. With `views`, a slice of rows that nothing
        has reordered gives read-only views where one record has them all.
        """
        if views and isinstance(rows, slice) and self.order is None:
            start, stop, _ = rows.indices(self.num_rows)
            return self.source.slice(start, stop)
        return self.source.take(self._numbers(rows), memory)

    def take_padded(
        self, rows: Array | slice, pads: Mapping[str, Pad], memory: BatchMemory | None = None
    ) -> Record:
        """The same with some list columns padded: `c` is an array [B, T], beside it `c.mask` and `c.lengths`."""
        key = tuple(pads.items())
        padding = self._paddings.get(key)
        if padding is None:
            padding = self._paddings[key] = Padding(self.source, pads)
        return padding.take(self._numbers(rows), memory)

    def _numbers(self, rows: Array | slice) -> Array:
        """The numbers of rows, counted over the records, from their places in the order."""
        if not isinstance(rows, slice):
            return rows if self.order is None else self.order[rows]
        if self.order is not None:
            return self.order[rows]
        return np.arange(*rows.indices(self.num_rows))
