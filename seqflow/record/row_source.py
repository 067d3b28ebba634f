"""RowSource: gathers rows, with everything below them, from several records without joining the records."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.errors import ProviderError
from seqflow.kernels import ChunkedRows
from seqflow.record.batch_memory import BatchMemory
from seqflow.record.record import Record, Tensor
from seqflow.record.rows import check_alike, concat_records, one_dictionary, row_indices, slice_rows


class ChildRanges(NamedTuple):
    """Start and size of each row's children under a lengths tensor, counted over all records."""

    starts: Tensor
    sizes: Tensor


class RowSource:
    """Rows of several records, numbered across all of them; `take_known` gathers batches of rows.

    The records must have the same tensors, of the same dtypes and row shapes, under the same lengths, or
    ProviderError is raised. Values are not moved. Offsets are computed once, and dictionary codes are renumbered if
    the dictionaries differ. Threads may share it.
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
        """Return one tensor of all records, concatenated; not copied if there is only one record."""
        arrays = self.chunks[name].arrays
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def take_known(
        self,
        rows: Tensor,
        memory: BatchMemory | None = None,
        *,
        without: Collection[str] = (),
        ranges: Mapping[str, ChildRanges] | None = None,
    ) -> Record:
        """Return the rows `rows[K]`, in this order, repeats allowed, with everything below them, in new arrays.

        With `memory`, the arrays lie in it, until it is used again. The tensors `without` are left out. For lengths
        of the record's rows, `ranges` may give the part to take of each row, instead of everything below it. Rows are
        int64 and known to be valid; kernels raise a KernelError for others.
        """
        tensors = self.gather(rows, dict(ranges or {}), memory, without=without)
        parents, dictionaries = self.parents, self.dictionaries
        if without:
            parents = {name: parents[name] for name in tensors}
            dictionaries = {name: dictionaries[name] for name in dictionaries if name in tensors}
        return Record(tensors, parents, len(rows), self.schema, dictionaries)

    def gather(
        self,
        rows: Tensor,
        ranges: dict[str, ChildRanges],
        memory: BatchMemory | None = None,
        *,
        without: Collection[str] = (),
    ) -> dict[str, Tensor]:
        """Return the tensors of `rows`, except those `without`; `ranges`, as in `take_known`, gets new entries."""
        # a copy: `ranges` grows below by the ranges of whole rows, which do not cut lengths
        cut = dict(ranges)
        tensors = {}
        for name, chunks in self.chunks.items():
            if name in without:
                continue
            if name in cut:
                tensors[name] = cut[name].sizes.astype(chunks.dtype)
                continue
            parent = self.parents[name]
            if parent is None and memory is None and len(chunks.arrays) == 1:
                tensors[name] = kernels.gather(chunks.arrays[0], rows)  # faster than slices of one row
                continue
            starts, sizes = (
                (rows, np.ones_like(rows)) if parent is None else self.child_ranges(parent, rows, ranges)
            )
            out = None
            if memory is not None:
                out = memory.empty(name, (int(sizes.sum()), *chunks.row_shape), chunks.dtype)
            tensors[name] = kernels.gather_slices(chunks, starts, sizes, out=out)
        return tensors

    def slice(self, start: int, stop: int) -> Record:
        """Return the rows start … stop - 1, with everything below them: views if one record has them all.

        Limits are those of Python's slices, as in `slice_rows`.
        """
        start, stop, _ = slice(start, stop).indices(self.num_rows)
        at = bisect_right(self.first_rows, start) - 1
        if start < stop <= self.first_rows[at + 1]:
            return self._view(at, start, stop)
        # by bisection: a window may have a million records
        parts = [
            self._view(k, max(start, self.first_rows[k]), min(stop, self.first_rows[k + 1]))
            for k in range(at, bisect_left(self.first_rows, stop))
        ]
        return concat_records(parts or [slice_rows(self.records[0], 0, 0)])

    def _view(self, at: int, start: int, stop: int) -> Record:
        """Return rows of one of the records, as views, with limits from the offsets: no lengths are summed."""
        record = self.records[at]
        first = self.first_rows[at]
        bounds: dict[str | None, tuple[int, int, int]] = {None: (first, start, stop)}
        tensors = {}
        for name, tensor in record.tensors.items():
            first, low, high = bounds.get(self.parents[name]) or self._bounds(self.parents[name], bounds)
            tensors[name] = tensor[low - first : high - first]
        return Record(tensors, self.parents, stop - start, self.schema, self.dictionaries)

    def _bounds(
        self, lengths: str | None, found: dict[str | None, tuple[int, int, int]]
    ) -> tuple[int, int, int]:
        """Return three positions below `lengths`: the start of the record, the start and the end of the rows."""
        if lengths not in found:
            assert lengths is not None
            above = self._bounds(self.parents[lengths], found)
            first, low, high = map(self.offsets[lengths].item, above)
            found[lengths] = first, low, high
        return found[lengths]

    def child_ranges(self, lengths: str, rows: Tensor, found: dict[str, ChildRanges]) -> ChildRanges:
        """Return start and size of the children of each of `rows` under `lengths`; `found` caches the results."""
        if lengths not in found:
            offsets, parent = self.offsets[lengths], self.parents[lengths]
            first, count = (rows, 1) if parent is None else self.child_ranges(parent, rows, found)
            starts = kernels.gather(offsets, first)
            found[lengths] = ChildRanges(starts, kernels.gather(offsets, first + count) - starts)
        return found[lengths]


def take_rows(record: Record, indices: Any) -> Record:
    """Return the rows `indices[K]`, in this order, repeats allowed, with everything below them, in new arrays.

    Raises OpIndexError for an index outside 0 ≤ i < num_rows.
    """
    return RowSource([record]).take_known(row_indices(indices, record.num_rows, "take_rows"))


def _with_one_dictionary(records: Sequence[Record]) -> list[Record]:
    """Renumber the codes of all records to one dictionary for each tensor of codes."""
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
