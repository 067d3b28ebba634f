"""Pieces of rows: consecutive elements of list columns, moved straight from the records of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.record import Record

if TYPE_CHECKING:
    from seqflow.loader.window_rows import WindowRows


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """The elements of the rows of a window in tensors under one lengths tensor.

    `rows` are counted over the records one after another. No record is copied.
    """

    records: Sequence[Record]
    first_rows: Array
    """[records]: the number of the first row of each record."""
    offsets: Sequence[Array]
    """For each record, where the elements of its rows start."""

    @staticmethod
    def under(rows: WindowRows, lengths: str) -> Elements:
        counts = np.array([record.num_rows for record in rows.records], np.int64)
        offsets = [kernels.lengths_to_offsets(record[lengths]) for record in rows.records]
        return Elements(rows.records, kernels.lengths_to_offsets(counts)[:-1], offsets)

    def move(
        self, name: str, rows: Array, starts: Array, sizes: Array, target: Array, target_starts: Array
    ) -> None:
        """Copy elements of the tensor `name`: for each k, sizes[k] of rows[k] from its element starts[k] on."""
        of_record = np.searchsorted(self.first_rows, rows, side="right") - 1
        order = np.argsort(of_record, kind="stable")
        ends = np.cumsum(np.bincount(of_record, minlength=len(self.records)))
        begin = 0
        for number, end in enumerate(ends.tolist()):
            if begin < end:
                chosen = order[begin:end]
                places = self.offsets[number][rows[chosen] - self.first_rows[number]] + starts[chosen]
                source = self.records[number][name]
                kernels.move_slices(source, places, sizes[chosen], target, target_starts[chosen])
            begin = end
