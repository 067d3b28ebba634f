"""Files of Criteo's click logs: in each line a label, 13 integers and 26 categories, separated by tabs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.errors import ProviderOptionError
from seqflow.providers.line_faults import Faults, Malformed, excerpt
from seqflow.providers.lines import first_lines, open_lines
from seqflow.providers.numerals import parse_integers
from seqflow.providers.provider import Provider
from seqflow.record.buffers import buffer_of, leaf_array, validity
from seqflow.record.record import Tensor
from seqflow.record.selection import Rename

NUM_INTEGERS, NUM_CATEGORIES = 13, 26
_TAB, _NEWLINE, _RETURN = b"\t\n\r"
Categories = Literal["ids", "texts"]


def open_criteo(
    paths: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    rename: Rename | None = None,
    categories: Categories = "ids",
    batch_bytes: int | None = None,
) -> Provider:
    """A provider of columns `label`, `integers` (13 in each row) and `categories` (26); missing ones are null.

    Categories are hexadecimal numbers, read as such, or, with `categories="texts"`, as the texts they are. There
    is no column `label` where the first line has 39 fields, as those of a test set have.
    """
    if categories not in ("ids", "texts"):
        raise ProviderOptionError(f"categories is {categories!r}, but must be 'ids' or 'texts'")
    without = NUM_INTEGERS + NUM_CATEGORIES
    counts = (line.count(b"\t") + 1 for line in first_lines(paths))
    has_label = next((count for count in counts if count in (without, without + 1)), None) != without
    return open_lines(paths, CriteoFormat(has_label, categories), columns, rename, batch_bytes)


@dataclass(frozen=True, slots=True)
class CriteoFormat:
    """Parses lines of Criteo's click logs; see LineFormat."""

    has_label: bool
    categories: Categories
    kind: str = "criteo"

    @property
    def schema(self) -> pa.Schema:
        label = pa.field("label", pa.int64(), nullable=False)
        integers = pa.field("integers", pa.list_(pa.int64(), NUM_INTEGERS), nullable=False)
        kind = pa.list_(pa.int64(), NUM_CATEGORIES) if self.categories == "ids" else pa.list_(pa.binary())
        return pa.schema([*[label] * self.has_label, integers, pa.field("categories", kind, nullable=False)])

    def parse(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        fields = _Fields.of(data, self.has_label + NUM_INTEGERS + NUM_CATEGORIES)
        first = int(self.has_label)
        middle = first + NUM_INTEGERS
        columns = {"integers": fields.numbers(slice(first, middle), 10, "integers", "an integer or nothing")}
        if self.categories == "ids":
            expected = "a hexadecimal number or nothing"
            columns["categories"] = fields.numbers(slice(middle, None), 16, "categories", expected)
        else:
            columns["categories"] = fields.texts(slice(middle, None))
        if self.has_label:
            columns["label"] = fields.labels()
        ordered = [columns[name] for name in self.schema.names]
        return pa.RecordBatch.from_arrays(ordered, schema=self.schema), fields.malformed()


@dataclass(slots=True)
class _Fields:
    """The fields of all lines but blank ones: `data[starts[r, k]:stops[r, k]]`, all empty in a malformed line."""

    data: Tensor
    starts: Tensor
    stops: Tensor
    bad: Tensor
    """Whether a line has another number of fields."""
    faults: Faults

    @classmethod
    def of(cls, data: Tensor, num_fields: int) -> "_Fields":
        breaks = np.flatnonzero((data == _TAB) | (data == _NEWLINE))
        ends = np.flatnonzero(data[breaks] == _NEWLINE)
        counts = np.diff(ends, prepend=-1)
        line_stops = breaks[ends]
        line_starts = np.concatenate(([0], line_stops + 1))[:-1]
        line_stops = line_stops - ((line_stops > line_starts) & (data[line_stops - 1] == _RETURN))
        rows = np.flatnonzero(line_stops > line_starts)
        line_starts, line_stops, counts, ends = (
            each[rows] for each in (line_starts, line_stops, counts, ends)
        )

        good = np.flatnonzero(counts == num_fields)
        stops = np.repeat(line_starts[:, None], num_fields, axis=1)
        starts = stops.copy()
        stops[good] = breaks[ends[good, None] + np.arange(1 - num_fields, 1)]
        starts[good, 1:] = stops[good, :-1] + 1
        stops[good, -1] = line_stops[good]
        bad = counts != num_fields
        faults = Faults()
        faults.add(
            np.flatnonzero(bad), line_starts[bad], line_stops[bad], "categories", f"{num_fields} fields"
        )
        return cls(data, starts, stops, bad, faults)

    def labels(self) -> pa.Array:
        """The first field of each line, an integer."""
        rows = np.flatnonzero(~self.bad)
        labels = np.zeros(len(self.bad), np.int64)
        labels[rows] = self._parse(rows, self.starts[rows, 0], self.stops[rows, 0], 10, "label", "an integer")
        return pa.array(labels)

    def numbers(self, columns: slice, base: int, name: str, expected: str) -> pa.Array:
        """A fixed-size list of numbers; empty fields are null."""
        starts, stops = self.starts[:, columns], self.stops[:, columns]
        present = stops > starts
        numbers = np.zeros(present.shape, np.int64)
        rows = np.nonzero(present)[0]
        numbers[present] = self._parse(rows, starts[present], stops[present], base, name, expected)
        values = leaf_array(numbers.reshape(-1), pa.int64(), self._nulls(present))
        return pa.FixedSizeListArray.from_arrays(values, present.shape[1])

    def texts(self, columns: slice) -> pa.Array:
        """A list of bytes; empty fields are null."""
        starts, stops = self.starts[:, columns], self.stops[:, columns]
        sizes = (stops - starts).reshape(-1)
        offsets = kernels.lengths_to_offsets(sizes)
        packed = np.empty(int(offsets[-1]), np.uint8)
        kernels.move_slices(self.data, starts.reshape(-1), sizes, packed, offsets[:-1])
        buffers = [validity(self._nulls(stops > starts)), buffer_of(offsets.astype(np.int32))]
        values = pa.Array.from_buffers(pa.binary(), len(sizes), [*buffers, buffer_of(packed)])
        ends = np.arange(len(starts) + 1, dtype=np.int32) * starts.shape[1]
        return pa.ListArray.from_arrays(pa.array(ends), values)

    def malformed(self) -> Iterator[Malformed]:
        """The first fault of each row that has any."""
        for row, start, stop, column, expected in self.faults.first():
            found = excerpt(self.data, start, stop)
            if self.bad[row]:
                found = f"{1 + np.count_nonzero(self.data[start:stop] == _TAB)} fields"
            yield Malformed(row, start, column, f"found {found}, expected {expected}")

    def _parse(
        self, rows: Tensor, starts: Tensor, stops: Tensor, base: int, column: str, expected: str
    ) -> Tensor:
        numbers, wrong = parse_integers(self.data, starts, stops, base)
        self.faults.add(rows[wrong], starts[wrong], stops[wrong], column, expected)
        return numbers

    def _nulls(self, present: Tensor) -> Tensor:
        return (~present & ~self.bad[:, None]).reshape(-1)
