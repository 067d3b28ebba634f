"""Blocks of a source with a filter: rows are counted by reading its columns alone; only kept rows are returned."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from seqflow.providers.bad_files import BadFile
from seqflow.providers.filter.row_filter import RowFilter
from seqflow.providers.filter.value_ranges import RangedSource
from seqflow.providers.source import Block, SlicedSource, Source, UnfitRow, bad_row_error, reads_within
from seqflow.record import BadRow
from seqflow.record.arrow_types import TEXT_VIEWS, is_any_level
from seqflow.record.record import Tensor
from seqflow.record.run_ends import decoded_type, take_table
from seqflow.record.selection import Selection, Table

_WHOLE_BYTES, _PIECE_BYTES = 64 << 20, 8 << 20
"""Bytes above which a block is read in pieces, and bytes of each piece."""


class KeptRows(NamedTuple):
    """Rows of a block that a filter keeps."""

    table: Table
    numbers: range | Tensor
    """Positions of these rows in the block."""
    left_out: int
    """Number of rows that the filter has left out; if a block is read in slices, the first one counts all of them."""
    damage: BadFile | None = None
    """Description of a damaged block, which has no rows here."""


@dataclass(frozen=True, slots=True)
class FilteredBlock(Block):
    """The rows of a block that a filter keeps; their number is not known before they are counted, or read."""

    inner: Block = field(repr=False)
    left_out: int | None
    is_whole: bool = False
    """Whether the ranges of values tell that all of its rows are kept."""


@dataclass(frozen=True, slots=True)
class FilteredReader:
    """Reader of the rows of a source that a filter keeps."""

    source: Source
    filter: RowFilter

    def blocks(self, schema: pa.Schema) -> Iterator[FilteredBlock]:
        """Yield all blocks with their kept rows, in order."""
        full = self.filter.with_columns(schema)
        paths = list(self.filter.looks_at().values())
        if not isinstance(self.source, RangedSource) or not paths:
            judged = self.filter.expression is not None
            yield from (self._filtered(block, True, judged) for block in self.source.blocks(full))
            return
        # all at once: the ranges are compared as columns, which is much faster than block by block
        found = list(self.source.ranged_blocks(full, paths))
        possible = self.filter.possible([ranges for _, ranges in found])
        may_be_left_out = possible.false | possible.null
        for (block, _), may_be_kept, may_not in zip(found, possible.true, may_be_left_out, strict=True):
            yield self._filtered(block, bool(may_be_kept), bool(may_not))

    def _filtered(self, block: Block, may_be_kept: bool, may_be_left_out: bool) -> FilteredBlock:
        """Return a block; its rows are known if the ranges of its values tell that none or all are kept."""
        rows, dropped = None, self.filter.dropped.count(block)
        if not may_be_kept:
            rows = 0
        elif not may_be_left_out and block.num_rows is not None:
            rows = block.num_rows - dropped
        return _with_rows(block, rows, is_whole=not (may_be_left_out or dropped))

    def counted(self, block: FilteredBlock, max_bytes: int | None) -> FilteredBlock:
        """Return a block with the number of its kept rows."""
        return _with_rows(block.inner, self.count(block.inner, max_bytes), is_whole=block.is_whole)

    def count(self, block: Block, max_bytes: int | None) -> int:
        """Return the number of rows of a block that are kept."""
        key = block.origin, block.index
        counts = self.filter.counts
        if key not in counts:
            counts[key] = sum(len(found) for found in self._numbers(block, max_bytes))
        return counts[key]

    def read(
        self, block: Block, schema: pa.Schema, bad_rows: list[BadRow] | None, max_bytes: int | None
    ) -> KeptRows:
        """Return the kept rows of a block. Rows that can't be read are kept: they are bad rows, not rows left out."""
        assert isinstance(block, FilteredBlock)
        self.filter.dropped.check(block.inner)
        if block.num_rows == 0:
            return KeptRows(empty_table(schema), range(0), block.left_out or 0)
        if block.is_whole:
            return self._read_whole(block.inner, schema, bad_rows, max_bytes)
        full = self.filter.with_columns(schema)
        tables: list[Table] = []
        numbers: list[Tensor] = []
        rows = kept = 0
        for start, table, bad in self._pieces(block.inner, full, max_bytes):
            mask = self._mask(block.inner, start, table, bad)
            places = np.flatnonzero(mask)
            _report(bad, places, kept, block.inner, bad_rows)
            numbers.append(places + start)
            tables.append(_chosen(table, schema, mask))
            rows += table.num_rows
            kept += len(places)
        return KeptRows(_joined(tables), np.concatenate(numbers), rows - kept)

    def read_rows(
        self,
        block: Block,
        schema: pa.Schema,
        rows: range,
        max_bytes: int | None,
        bad_rows: list[BadRow] | None,
    ) -> KeptRows:
        """Return some kept rows of a block: `rows` counts kept rows. One piece of the block is held at a time."""
        assert isinstance(block, FilteredBlock)
        if block.is_whole:
            return KeptRows(self._read_rows(block.inner, schema, rows, max_bytes, bad_rows), rows, 0)
        inner, full = block.inner, self.filter.with_columns(schema)
        key = inner.origin, inner.index
        numbers = self.filter.numbers.get(key, lambda: np.concatenate(list(self._numbers(inner, max_bytes))))
        chosen = numbers[rows.start : rows.stop]
        tables = []
        start = int(chosen[0])
        stop = int(chosen[-1]) + 1
        for piece in _ranges(inner, start, stop, _piece_bytes(max_bytes)):
            bad: list[BadRow] = []
            table = self._read_rows(inner, full, piece, max_bytes, bad)
            first, last = np.searchsorted(chosen, [piece.start, piece.stop]).tolist()
            places = chosen[first:last] - piece.start
            mask = np.zeros(len(piece), bool)
            mask[places] = True
            _report(bad, places, first, inner, bad_rows)
            tables.append(_chosen(table, schema, mask))
        left_out = (block.left_out or 0) if rows.start == 0 else 0
        if rows.stop == len(numbers):
            self.filter.numbers.forget(key)
        # the source keeps its reader until the block's last row is asked for
        if rows.stop == len(numbers) and stop < (inner.num_rows or 0):
            last_row = range((inner.num_rows or 0) - 1, inner.num_rows or 0)
            self._read_rows(inner, full, last_row, max_bytes, [])
        return KeptRows(_joined(tables), chosen, left_out)

    def _read_whole(
        self, block: Block, schema: pa.Schema, bad_rows: list[BadRow] | None, max_bytes: int | None
    ) -> KeptRows:
        """Return all rows of a block, without the columns that only the filter reads."""
        if max_bytes is not None and reads_within(self.source):
            table = self.source.read_within(block, schema, None, max_bytes, bad_rows)
        else:
            table = self.source.read(block, schema, bad_rows)
        return KeptRows(table, range(table.num_rows), 0)

    def _numbers(self, block: Block, max_bytes: int | None) -> Iterator[Tensor]:
        """Yield the positions of the kept rows, piece by piece; reads only the filter's columns."""
        if self.filter.expression is None and block.num_rows is not None:
            yield np.flatnonzero(self.filter.dropped.mask(block, 0, block.num_rows))
            return
        for start, table, bad in self._pieces(block, self.filter.columns, max_bytes):
            yield np.flatnonzero(self._mask(block, start, table, bad)) + start

    def _mask(self, block: Block, start: int, table: Table, bad: list[BadRow]) -> Tensor:
        """Return bool[rows]: which rows from `start` on are kept, and those that cannot be judged, as bad rows."""
        kept = self.filter.dropped.mask(block, start, table.num_rows)
        if self.filter.expression is None:
            return kept
        mask: Tensor = self.filter.mask(table).to_numpy()
        judged = self.filter.columns.names
        mask[[one.row for one in bad if not isinstance(one, UnfitRow) or one.column in judged]] = True
        return mask & kept

    def _pieces(
        self, block: Block, schema: pa.Schema, max_bytes: int | None
    ) -> Iterator[tuple[int, Table, list[BadRow]]]:
        """Yield the block, or the parts of a large one that can be sliced, each with its first row's position and its
        bad rows.
        """
        most, bad = _piece_bytes(max_bytes), list[BadRow]()
        is_large = (block.nbytes or 0) > (_WHOLE_BYTES if max_bytes is None else most)
        if is_large and isinstance(self.source, SlicedSource) and block.num_rows:
            for rows in _ranges(block, 0, block.num_rows, most):
                bad = []
                yield rows.start, self._read_rows(block, schema, rows, max_bytes, bad), bad
        elif max_bytes is not None and reads_within(self.source):
            yield 0, self.source.read_within(block, schema, None, max_bytes, bad), bad
        else:
            yield 0, self.source.read(block, schema, bad), bad

    def _read_rows(
        self,
        block: Block,
        schema: pa.Schema,
        rows: range,
        max_bytes: int | None,
        bad_rows: list[BadRow] | None,
    ) -> Table:
        if max_bytes is not None and reads_within(self.source):
            return self.source.read_within(block, schema, rows, max_bytes, bad_rows)
        assert isinstance(self.source, SlicedSource)
        return self.source.read_rows(block, schema, rows, bad_rows)


def _report(bad: list[BadRow], kept: Tensor, start: int, block: Block, bad_rows: list[BadRow] | None) -> None:
    """Add the bad rows of a piece that are kept to `bad_rows`, numbered among all kept rows; None raises an error.

    `kept` are the positions of the kept rows in the piece; `start` of them were kept before.
    """
    places = dict(zip(kept.tolist(), range(start, start + len(kept)), strict=True)) if bad else {}
    for one in bad:
        if one.row in places:
            if bad_rows is None:
                raise bad_row_error(block, one)
            bad_rows.append(one._replace(row=places[one.row]))


def _with_rows(block: Block, rows: int | None, *, is_whole: bool) -> FilteredBlock:
    """Return a block of the source with this number of kept rows, and their share of its size."""
    size, left_out = block.nbytes, None
    if rows is not None and block.num_rows is not None:
        left_out = block.num_rows - rows
        if size is not None and block.num_rows:
            size = -(-size * rows // block.num_rows)  # rounded up: a kept row is never 0 bytes
    return FilteredBlock(block.origin, block.index, rows, size, block, left_out, is_whole)


def _piece_bytes(max_bytes: int | None) -> int:
    """Return a quarter of `max_bytes`, at least 1 MiB."""
    return _PIECE_BYTES if max_bytes is None else max(1 << 20, min(_WHOLE_BYTES, max_bytes // 4))


def _ranges(block: Block, start: int, stop: int, nbytes: int) -> Iterator[range]:
    """Yield ranges of rows that divide a block into parts of about this many bytes."""
    step = max(1, (block.num_rows or 0) * nbytes // max(1, block.nbytes or 0))
    for first in range(start, stop, step):
        yield range(first, min(stop, first + step))


def _chosen(table: Table, schema: pa.Schema, mask: Tensor) -> Table:
    """Return the columns of `schema`, of the rows where the mask is true."""
    is_whole = table.schema.equals(schema)
    chosen = table if is_whole else Selection(table.schema, table.schema, schema).apply(table)
    count = int(np.count_nonzero(mask))
    if count == len(mask):
        return chosen
    if any(is_any_level(kind, _cannot_be_filtered) for kind in chosen.schema.types):
        return _encoded(take_table(chosen, np.flatnonzero(mask)), schema)
    return chosen.filter(pa.array(mask))


def _cannot_be_filtered(kind: pa.DataType) -> bool:
    """Return whether Arrow's `filter` doesn't take arrays of a type."""
    return pa.types.is_run_end_encoded(kind) or any(holds(kind) for holds in TEXT_VIEWS)


def _encoded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Encode columns with run ends again, which `take_table` has decoded."""
    import pyarrow.compute as pc

    for at, expected in enumerate(schema):
        if pa.types.is_run_end_encoded(expected.type) and table.schema.field(at).type != expected.type:
            values = table.column(at).cast(expected.type.value_type)
            table = table.set_column(at, expected, pc.run_end_encode(values, expected.type.run_end_type))
    return table


@lru_cache(maxsize=16)
def empty_table(schema: pa.Schema) -> pa.Table:
    """Return a table without rows; run ends inside other types, of which Arrow makes no array, are decoded types."""
    try:
        return schema.empty_table()
    except pa.ArrowNotImplementedError:
        return pa.schema([field.with_type(decoded_type(field.type)) for field in schema]).empty_table()


def _joined(tables: list[Table]) -> Table:
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables([pa.table(one) for one in tables])
