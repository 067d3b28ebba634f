"""A survey of a source: its tensors, the lengths of its sequences, and the waste of padding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.kernels.arrays import Array
from seqflow.record import Record
from seqflow.record.from_arrow.columns import convert, without_bad
from seqflow.record.selection import Selection, leaf_types, selection

_MOST = 1 << 17


class SpreadSample:
    """Every k-th of the numbers added, for the smallest power of two k that keeps the sample small enough."""

    def __init__(self) -> None:
        self.values = np.zeros(0, np.int64)
        self._step, self._seen = 1, 0

    def add(self, values: Array) -> None:
        first = -self._seen % self._step
        self._seen += len(values)
        self.values = np.concatenate([self.values, np.asarray(values[first :: self._step], np.int64)])
        while len(self.values) > _MOST:
            self.values = self.values[::2]
            self._step *= 2


@dataclass(slots=True)
class LengthStatistics:
    """Statistics of one lengths tensor, accumulated block by block."""

    batch: int
    rows: int = 0
    total: int = 0
    smallest: int | None = None
    largest: int = 0
    cells: int = 0
    histogram: dict[int, int] = field(default_factory=dict)
    """Number of lengths that need k bits, by k: length 0 needs 0 bits, 1 needs 1, 2 and 3 need 2, …"""
    sample: SpreadSample = field(default_factory=lambda: SpreadSample())
    _open: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, lengths: Array) -> None:
        if not len(lengths):
            return
        self.sample.add(lengths)
        self.rows += len(lengths)
        self.total += int(lengths.sum())
        low = int(lengths.min())
        self.smallest = low if self.smallest is None else min(self.smallest, low)
        self.largest = max(self.largest, int(lengths.max()))
        bits, counts = np.unique(np.frexp(lengths.astype(np.float64))[1], return_counts=True)
        for bit, count in zip(bits.tolist(), counts.tolist(), strict=True):
            self.histogram[bit] = self.histogram.get(bit, 0) + count
        self._count_cells(np.concatenate([self._open, lengths]))

    def _count_cells(self, lengths: Array) -> None:
        whole = len(lengths) // self.batch * self.batch
        self.cells += int(lengths[:whole].reshape(-1, self.batch).max(axis=1, initial=0).sum()) * self.batch
        self._open = lengths[whole:]

    def summary(self) -> dict[str, Any]:
        last = int(self._open.max(initial=0)) * len(self._open)
        cells = self.cells + last
        return {
            "sequences": self.rows,
            "elements": self.total,
            "shortest": self.smallest,
            "mean": self.total / self.rows if self.rows else None,
            "longest": self.largest,
            "padding": 1 - self.total / cells if cells else 0.0,
            "histogram": [
                {"from": (1 << bits) >> 1, "to": (1 << bits) - 1, "count": self.histogram[bits]}
                for bits in sorted(self.histogram)
            ],
        }


class Survey:
    """The tensors of a source and statistics of their lengths, updated block by block."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._rows = 0
        self._blocks = 0
        self._tensors: dict[str, dict[str, Any]] = {}
        self._lengths: dict[str, LengthStatistics] = {}
        self.first: Record | None = None
        """The first records, shown as examples."""
        self._chosen: Selection | None = None

    def add(self, block: Any) -> None:
        """Add one block: a record batch or a table."""
        self._blocks += 1
        for batch in block.to_batches() if hasattr(block, "to_batches") else [block]:
            if self._chosen is None or not self._chosen.source.equals(batch.schema, check_metadata=True):
                self._chosen = _with_tensors(batch.schema)
            self.add_record(without_bad(*convert(self._chosen.apply(batch), valid=True)))

    def add_record(self, record: Record) -> None:
        """Add the rows of a record."""
        self._rows += record.num_rows
        if self.first is None and record.num_rows:
            self.first = record
        for name, parent in record.parents.items():
            if not name.endswith(".valid"):
                self._add_tensor(record, name, parent)
        for name in {parent for parent in record.parents.values() if parent is not None}:
            self._lengths.setdefault(name, LengthStatistics(self._batch)).add(record[name])

    def _add_tensor(self, record: Record, name: str, parent: str | None) -> None:
        array = record[name]
        facts = {"dtype": str(array.dtype), "shape": list(array.shape[1:]), "lengths": parent, "nulls": 0}
        known = self._tensors.setdefault(name, facts)
        masked = name.removesuffix(".lengths")
        masks = (record.get(f"{masked}{'.values' * axes}.valid") for axes in reversed(range(array.ndim)))
        mask = next((mask for mask in masks if mask is not None), None)
        if mask is not None:
            known["nulls"] += mask.size - int(np.count_nonzero(mask))

    @property
    def num_nulls(self) -> int:
        """Number of nulls of all tensors so far."""
        return sum(one["nulls"] for one in self._tensors.values())

    def sample_of(self, name: str) -> Array:
        """Return int64 lengths of one tensor: all of them, or a sample spread over the source."""
        return self._lengths[name].sample.values

    def summary(self) -> dict[str, Any]:
        in_order = [name for name in self._tensors if name in self._lengths]
        return {
            "rows": self._rows,
            "blocks": self._blocks,
            "tensors": self._tensors,
            "lengths": {name: self._lengths[name].summary() for name in in_order},
        }


def _with_tensors(schema: pa.Schema) -> Selection:
    """Return the fields that have tensors: all but those of type null."""
    return selection(schema, [".".join(path) for path, kind in leaf_types(schema) if not types.is_null(kind)])
