"""Pieces of rows: consecutive elements of list columns, moved straight from the records of a window."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.loader.padding import pad_columns
from seqflow.loader.window_rows import WindowRows
from seqflow.record import Record
from seqflow.record.rows import one_dictionary


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of the rows of a window, in order: of each its row, first element, and number of elements."""

    rows: Array
    """The rows' places in the order of the window."""
    starts: Array
    sizes: Array

    def take(self, chosen: Array | slice) -> Pieces:
        return Pieces(self.rows[chosen], self.starts[chosen], self.sizes[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class CutColumn:
    """A tensor of a list column that is cut: its part in each record, and where the rows of that start."""

    lengths: str
    parts: Sequence[Array]
    offsets: Sequence[Array]


@dataclass(frozen=True, slots=True, eq=False)
class CutRows:
    """The rows of a window, of which some columns are cut and the others stay whole. No record is copied."""

    rows: WindowRows
    columns: Mapping[str, CutColumn]
    others: WindowRows
    first_rows: Array
    """[records]: the number of the first row of each record."""
    dictionaries: Mapping[str, pa.Array] = field(default_factory=dict)

    @staticmethod
    def of(rows: WindowRows, tensors: Mapping[str, str]) -> CutRows:
        """`tensors` are the names of those that are cut, each with its lengths."""
        offsets = {
            lengths: [kernels.lengths_to_offsets(record[lengths]) for record in rows.records]
            for lengths in tensors.values()
        }
        columns, dictionaries = {}, {}
        for name, lengths in tensors.items():
            parts = [record[name] for record in rows.records]
            if name in rows.records[0].dictionaries:
                of_records = [record.dictionaries[name] for record in rows.records]
                parts, dictionaries[name] = one_dictionary(parts, of_records)
            columns[name] = CutColumn(lengths, parts, offsets[lengths])
        cut = {*tensors, *tensors.values()}
        others = WindowRows([without(record, cut) for record in rows.records], rows.order)
        counts = np.array([record.num_rows for record in rows.records], np.int64)
        first_rows = kernels.lengths_to_offsets(counts)[:-1]
        return CutRows(rows, columns, others, first_rows, dictionaries)

    def numbers(self, pieces: Pieces) -> Array:
        """The number of the row of each piece, counted over the records of the window."""
        return self.rows.numbers(pieces.rows)

    def gather(self, name: str, pieces: Pieces) -> Array:
        """The elements of some pieces in the tensor `name`, one piece after another."""
        column = self.columns[name]
        rows = self.numbers(pieces)
        ends = kernels.lengths_to_offsets(pieces.sizes)
        target = np.empty((int(ends[-1]), *column.parts[0].shape[1:]), column.parts[0].dtype)
        of_record = np.searchsorted(self.first_rows, rows, side="right") - 1
        by_record = np.argsort(of_record, kind="stable")
        stops = np.cumsum(np.bincount(of_record, minlength=len(self.first_rows)))
        begin = 0
        for record, end in enumerate(stops.tolist()):
            if begin < end:
                chosen = by_record[begin:end]
                inside = column.offsets[record][rows[chosen] - self.first_rows[record]]
                kernels.move_slices(
                    column.parts[record], inside + pieces.starts[chosen], pieces.sizes[chosen],
                    target, ends[:-1][chosen],
                )  # fmt: skip
            begin = end
        return target

    def take(self, pieces: Pieces) -> Record:
        """One row for each piece, in new arrays."""
        taken, first = self.others.take(pieces.rows), self.rows.records[0]
        made = {name: self.gather(name, pieces) for name in self.columns}
        for column in self.columns.values():
            made[column.lengths] = pieces.sizes.astype(first[column.lengths].dtype, copy=False)
        tensors = {name: made[name] if name in made else taken[name] for name in first.tensors}
        dictionaries = {**taken.dictionaries, **self.dictionaries}
        record = Record(tensors, first.parents, len(pieces.rows), first.schema, dictionaries)
        return pad_columns(record, self.rows.pad) if self.rows.pad else record


def without(record: Record, names: Collection[str]) -> Record:
    """The record without some of its tensors."""
    kept = {name: tensor for name, tensor in record.items() if name not in names}
    parents = {name: record.parents[name] for name in kept}
    dictionaries = {name: values for name, values in record.dictionaries.items() if name in kept}
    return Record(kept, parents, record.num_rows, record.schema, dictionaries)
