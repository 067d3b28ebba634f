"""RowSource: batches of rows from several records, which are not joined for that."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.errors import ProviderError
from seqflow.kernels import ChunkedRows
from seqflow.record.batch_memory import BatchMemory
from seqflow.record.record import Record, Tensor
from seqflow.record.rows import check_alike, concat_records, one_dictionary, row_indices, slice_rows


class Spans(NamedTuple):
    """The first of the rows below each of some rows, counted over all records, and how many there are."""

    starts: Tensor
    sizes: Tensor


class RowSource:
    """The rows of several records, numbered from one to the next; batches of them are gathered with `take`.

    The records must have the same tensors, of the same dtypes and row shapes, under the same lengths, or
    ProviderError is raised. Values stay where they are. Offsets are computed once, and dictionary codes are
    renumbered where the dictionaries differ. Threads may share it.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        if not records:
            raise ProviderError("there is no record to take rows from")
        for other in records[1:]:
            check_alike(records[0], other)
        records = self.records = _with_one_dictionary(records)
        self.first_rows: list[int] = [0, *np.cumsum([record.num_rows for record in records]).tolist()]
        self.num_rows = self.first_rows[-1]
        self.parents = records[0].parents
        self.schema = records[0].schema
        self.dictionaries = records[0].dictionaries
        self.chunks = {name: ChunkedRows([record[name] for record in records]) for name in records[0]}
        described = {parent for parent in self.parents.values() if parent is not None}
        self.offsets = {name: kernels.lengths_to_offsets(self.tensor(name)) for name in described}

    def tensor(self, name: str) -> Tensor:
        """A tensor of all records, joined; of one record as it is."""
        arrays = self.chunks[name].arrays
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def take(
        self,
        rows: Any,
        memory: BatchMemory | None = None,
        *,
        without: Collection[str] = (),
        spans: Mapping[str, Spans] | None = None,
    ) -> Record:
        """The rows `rows[K]`, in this order, repeats allowed, with everything below them, in arrays of their own.

        These are in `memory` where it is given, until it is used again. The tensors `without` are left out. For
        lengths of the record's rows, `spans` may have what to take of each row instead of everything below it.
        Raises OpIndexError for a row outside 0 ≤ row < num_rows.
        """
        return self.take_known(row_indices(rows, self.num_rows, "take"), memory, without=without, spans=spans)

    def take_known(
        self,
        rows: Tensor,
        memory: BatchMemory | None = None,
        *,
        without: Collection[str] = (),
        spans: Mapping[str, Spans] | None = None,
    ) -> Record:
        """The same as `take`, of int64 numbers that are those of rows: kernels raise a KernelError for others."""
        tensors = self.gather(rows, dict(spans or {}), memory, without=without)
        parents, dictionaries = self.parents, self.dictionaries
        if without:
            parents = {name: parents[name] for name in tensors}
            dictionaries = {name: dictionaries[name] for name in dictionaries if name in tensors}
        return Record(tensors, parents, len(rows), self.schema, dictionaries)

    def gather(
        self,
        rows: Tensor,
        spans: dict[str, Spans],
        memory: BatchMemory | None = None,
        *,
        without: Collection[str] = (),
    ) -> dict[str, Tensor]:
        """The tensors of rows as in `take_known`, but for some. `spans` are as in `take`; those found are added."""
        cut = dict(spans)
        tensors = {}
        for name, chunks in self.chunks.items():
            if name in without:
                continue
            if name in cut:
                tensors[name] = cut[name].sizes.astype(chunks.dtype)
                continue
            parent = self.parents[name]
            starts, sizes = (rows, np.ones_like(rows)) if parent is None else self.spans(parent, rows, spans)
            out = None
            if memory is not None:
                out = memory.empty(name, (int(sizes.sum()), *chunks.row_shape), chunks.dtype)
            tensors[name] = kernels.gather_slices(chunks, starts, sizes, out=out)
        return tensors

    def slice(self, start: int, stop: int) -> Record:
        """The rows start … stop - 1, with everything below them: views where one record has them all.

        Limits are Python's, as in `slice_rows`.
        """
        start, stop, _ = slice(start, stop).indices(self.num_rows)
        parts = [
            slice_rows(record, max(start - first, 0), min(stop, end) - first)
            for record, (first, end) in zip(self.records, pairwise(self.first_rows), strict=True)
            if first < stop and start < end
        ]
        return concat_records(parts or [slice_rows(self.records[0], 0, 0)])

    def spans(self, lengths: str, rows: Tensor, found: dict[str, Spans]) -> Spans:
        """The rows of the tensors that `lengths` describes, below each of `rows`; `found` has those known."""
        if lengths not in found:
            offsets, parent = self.offsets[lengths], self.parents[lengths]
            first, count = (rows, 1) if parent is None else self.spans(parent, rows, found)
            starts = kernels.gather(offsets, first)
            found[lengths] = Spans(starts, kernels.gather(offsets, first + count) - starts)
        return found[lengths]


def gather_rows(records: Sequence[Record], rows: Any) -> Record:
    """The rows `rows[K]`, counted over the records one after another, with everything below them, in new arrays.

    The same as `take_rows(concat_records(records), rows)`. For more than one batch, use a RowSource.
    """
    return RowSource(records).take(rows)


def _with_one_dictionary(records: Sequence[Record]) -> list[Record]:
    """The records, with codes renumbered to one dictionary for each tensor of codes."""
    records = list(records)
    for name in records[0].dictionaries:
        codes, merged = one_dictionary(
            [record[name] for record in records], [record.dictionaries[name] for record in records]
        )
        records = [
            replace(
                record,
                tensors={**record.tensors, name: each},
                dictionaries={**record.dictionaries, name: merged},
            )
            for record, each in zip(records, codes, strict=True)
        ]
    return records
