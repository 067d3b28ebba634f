"""Files of Criteo's click logs: in each line a label, 13 integers and 26 categories, separated by tabs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.lines.line_faults import Malformed, excerpt
from seqflow.providers.lines.text_lines import LineFiles, LineFormat
from seqflow.providers.provider import Provider
from seqflow.record.buffers import buffer_of, leaf_array, validity
from seqflow.record.record import Tensor

NUM_INTEGERS, NUM_CATEGORIES = 13, 26
_TAB = b"\t"
_INTEGER, _HEXADECIMAL = re.compile(rb"[+-]?[0-9]{1,19}"), re.compile(rb"[0-9a-fA-F]{1,16}")
Categories = Literal["ids", "texts"]


@file_format("criteo")
class Criteo(Format):
    """Options of files of Criteo's click logs."""

    categories: Categories = "ids"
    """Categories as numbers ("ids"), or as the texts in the file ("texts")."""
    batch_bytes: int | str = "4 MiB"
    """Bytes of a file that are read, and prepared, together."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of columns `label`, `integers` (13 a row) and `categories` (26); missing ones are null.

        Categories are hexadecimal numbers; `categories="texts"` reads them as texts. There is no column `label` if
        the first line has 39 fields, as the lines of a test set have.
        """
        opened = LineFiles.of(files)
        opened.leave_out_unreadable(lambda line: line.rstrip(b"\r"), _has_label)
        _, lines = next(opened.samples(_is_whole), ("", []))
        has_label = next(map(_has_label, filter(_is_whole, lines)), True)
        line_format = CriteoFormat(has_label, self.categories)
        return opened.provider(line_format, byte_count(self.batch_bytes))


def _is_whole(line: bytes) -> bool:
    return line.count(_TAB) + 1 - NUM_INTEGERS - NUM_CATEGORIES in (0, 1)


def _has_label(line: bytes) -> bool:
    """Return whether a line has a label; raise ValueError for another number of fields."""
    if not _is_whole(line):
        raise ValueError(f"found {len(line.split(_TAB))} fields, expected 39 or 40")
    return line.count(_TAB) == NUM_INTEGERS + NUM_CATEGORIES


@dataclass(frozen=True, slots=True)
class CriteoFormat(LineFormat):
    """Parser of lines of Criteo's click logs; see LineFormat."""

    has_label: bool
    categories: Categories
    kind: str = "criteo"

    @property
    def schema(self) -> pa.Schema:
        label = pa.field("label", pa.int64(), nullable=False)
        integers = pa.field("integers", pa.list_(pa.int64(), NUM_INTEGERS), nullable=False)
        kind = pa.list_(pa.int64(), NUM_CATEGORIES) if self.categories == "ids" else pa.list_(pa.binary())
        return pa.schema([*[label] * self.has_label, integers, pa.field("categories", kind, nullable=False)])

    @property
    def bases(self) -> list[int]:
        """Base of the number in each field; 0 for texts."""
        base = 16 if self.categories == "ids" else 0
        return [10] * (self.has_label + NUM_INTEGERS) + [base] * NUM_CATEGORIES

    def parse(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        widths = np.array([*[1] * self.has_label, NUM_INTEGERS, NUM_CATEGORIES])
        numbers, missing, starts, good = kernels.parse_fields(data, np.array(self.bases), widths)
        if self.has_label:
            good = good & ~missing[0][:, 0]
        columns = [pa.array(numbers[0][:, 0])] * self.has_label
        columns.append(_fixed_lists(numbers[-2], missing[-2]))
        make = _fixed_lists if self.categories == "ids" else partial(_texts, data)
        columns.append(make(numbers[-1], missing[-1]))
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return batch, self._malformed(data, starts, np.flatnonzero(~good).tolist())

    def _malformed(self, data: Tensor, starts: Tensor, rows: list[int]) -> Iterator[Malformed]:
        """Yield the first fault of each of these lines."""
        for row in rows:
            start = int(starts[row])
            stop = int(starts[row + 1]) if row + 1 < len(starts) else len(data)
            line = data[start:stop].tobytes().partition(b"\n")[0].removesuffix(b"\r")
            fields = line.split(_TAB)
            if len(fields) != len(self.bases):
                found = f"found {len(fields)} fields, expected {len(self.bases)} fields"
                yield Malformed(row, start, "categories", found)
                continue
            for number, field in enumerate(fields):
                if (fault := self._fault(number, field)) is not None:
                    column, expected = fault
                    yield Malformed(row, start, column, f"found {excerpt(field)}, expected {expected}")
                    break
                start += len(field) + 1

    def _fault(self, number: int, field: bytes) -> tuple[str, str] | None:
        """Return the column of a malformed field and what is expected there; None for a valid field."""
        base = self.bases[number]
        if number < self.has_label:
            return None if _is_number(field, base) else ("label", "an integer")
        if not field or not base or _is_number(field, base):
            return None
        return (
            ("integers", "an integer or nothing")
            if base == 10
            else ("categories", "a hexadecimal number or nothing")
        )


def _is_number(field: bytes, base: int) -> bool:
    form = _INTEGER if base == 10 else _HEXADECIMAL
    return form.fullmatch(field) is not None and abs(int(field, base)) < 2**63


def _fixed_lists(numbers: Tensor, missing: Tensor) -> pa.Array:
    """Return lists of one size; missing numbers are null."""
    values = leaf_array(numbers.reshape(-1), pa.int64(), missing.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(values, numbers.shape[1])


def _texts(data: Tensor, places: Tensor, missing: Tensor) -> pa.Array:
    """Return lists of bytes; missing texts are null. `places` come from `kernels.parse_fields`."""
    # the kernel packs the start of a field and its size into one int64
    starts, sizes = places.reshape(-1) >> 32, places.reshape(-1) & (1 << 32) - 1
    offsets = kernels.lengths_to_offsets(sizes)
    packed = np.empty(int(offsets[-1]), np.uint8)
    kernels.move_slices(data, starts, sizes, packed, offsets[:-1])
    buffers = [validity(missing.reshape(-1)), buffer_of(offsets.astype(np.int32)), buffer_of(packed)]
    values = pa.Array.from_buffers(pa.binary(), len(sizes), buffers)
    ends = np.arange(len(places) + 1, dtype=np.int32) * places.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends), values)
