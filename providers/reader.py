"""Reader: the rows of the blocks of a source that a filter keeps, with the columns from folders."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from seqflow.byte_sizes import format_bytes
from seqflow.errors import ProviderError
from seqflow.files.interface import Range
from seqflow.providers.bad_files import BadFile
from seqflow.providers.block_columns import BlockColumns
from seqflow.providers.block_slices import SliceReaders
from seqflow.providers.filter.row_filter import RowFilter
from seqflow.providers.filter.value_ranges import UNKNOWN, Path, ValueRange, range_of_value
from seqflow.providers.folders import Folders
from seqflow.providers.source import Block, Source, Steps, UnfitRow, Wanted, bad_row_error
from seqflow.record import BadRow
from seqflow.record.decoded_sizes import row_bytes
from seqflow.record.record import Tensor
from seqflow.record.selection import Selection, Table

_WHOLE_BYTES, _PIECE_BYTES = 64 << 20, 8 << 20
"""Bytes above which a block is read in pieces for a filter, and bytes of each piece."""


class KeptRows(NamedTuple):
    """Rows of a block that a filter keeps."""

    table: Table
    numbers: range | Tensor
    """Positions of these rows in the block."""
    filtered: int
    """Number of rows that the filter has left out; if a block is read in slices, the first one counts all of them."""
    damage: BadFile | None = None
    """Description of a damaged block, which has no rows here."""


class Reader(NamedTuple):
    """Reader of the blocks of a source: whole, or some rows, within a bound of memory, under a filter."""

    source: Source
    filter: RowFilter | None
    slices: SliceReaders
    """The blocks that are being read in slices."""

    def blocks(self, schema: pa.Schema) -> Iterable[Block]:
        """Return all blocks in order; with a filter, with the number of its rows if the ranges of values tell it."""
        if self.filter is not None:
            return self._filtered(self.filter, self.filter.with_columns(schema))
        blocks, folders = self.source.blocks(self._of_files(schema)), self.source.folders
        if folders is None:
            return blocks
        if not isinstance(blocks, BlockColumns):
            return (self._sized(block, schema) for block in blocks)
        row_bytes = np.array([folders.row_bytes(schema, [path]) for path in blocks.origins], np.int64)
        return replace(blocks, nbytes=blocks.nbytes + row_bytes[blocks.file] * blocks.rows)

    def _sized(self, block: Block, schema: pa.Schema) -> Block:
        """Return a block of files with the bytes of the columns from folders added to its size."""
        folders = self.source.folders
        if folders is None or block.nbytes is None:
            return block
        size = folders.row_bytes(schema, self._paths(block)) * (block.num_rows or 0)
        return replace(block, nbytes=block.nbytes + size)

    def _paths(self, block: Block) -> Sequence[str]:
        """Return the file of a block, or that of each row."""
        return self.source.paths_of(block) if self.source.file_per_row else [block.origin]

    def _filtered(self, where: RowFilter, full: pa.Schema) -> Iterator[Block]:
        ranged = self._ranged(full, list(where.looks_at().values()))
        if ranged is None:
            judged = where.expression is not None
            blocks = Reader(self.source, None, self.slices).blocks(full)
            yield from (self._judged(where, block, True, judged) for block in blocks)
            return
        # all at once: the ranges are compared as columns, which is much faster than block by block
        found = list(ranged)
        possible = where.possible([ranges for _, ranges in found])
        may_be_filtered = possible.false | possible.null
        for (block, _), may_be_kept, may_not in zip(found, possible.true, may_be_filtered, strict=True):
            yield self._judged(where, block, bool(may_be_kept), bool(may_not))

    def _ranged(
        self, schema: pa.Schema, paths: Sequence[Path]
    ) -> Iterator[tuple[Block, Sequence[ValueRange]]] | None:
        """Return all blocks, each with the ranges of values in some columns or fields; None if none are known."""
        if not paths:
            return None
        folders = self.source.folders
        return (
            self.source.ranged_blocks(schema, paths)
            if folders is None
            else self._of_folders(folders, schema, paths)
        )

    def _of_folders(
        self, folders: Folders, schema: pa.Schema, paths: Sequence[Path]
    ) -> Iterator[tuple[Block, Sequence[ValueRange]]]:
        own_schema = folders.divided(schema).of_files
        own = [path for path in paths if path[0] in own_schema.names]
        ranged = self.source.ranged_blocks(own_schema, own)
        if ranged is None:
            ranged = ((block, ()) for block in self.source.blocks(own_schema))
        for block, ranges in ranged:
            known = dict(zip(own, ranges, strict=False))
            if not self.source.file_per_row:
                values = folders.values[block.origin]
                known |= {
                    path: range_of_value(values[path[0]])
                    for path in paths
                    # a column that rows may have themselves is known to lack them, or has any values
                    if path[0] in values and not (path in own and known.get(path, UNKNOWN).has_values)
                }
            yield self._sized(block, schema), [known.get(path, UNKNOWN) for path in paths]

    def _judged(self, where: RowFilter, block: Block, may_be_kept: bool, may_be_filtered: bool) -> Block:
        """Return a block; its rows are known if the ranges of its values tell that none or all are kept."""
        rows, dropped = None, where.dropped.count(block)
        if not may_be_kept:
            rows = 0
        elif not may_be_filtered and block.num_rows is not None:
            rows = block.num_rows - dropped
        return _with_rows(block, rows, is_whole=not (may_be_filtered or dropped))

    def counted(self, block: Block, max_bytes: int | None) -> Block:
        """Return a block with the number of its kept rows."""
        assert self.filter is not None
        key, counts = (block.origin, block.index), self.filter.counts
        if key not in counts:
            counts[key] = sum(map(len, self._numbers(self.filter, block.of_source, max_bytes)))
        return _with_rows(block.of_source, counts[key], is_whole=block.is_whole)

    def read(
        self,
        block: Block,
        schema: pa.Schema,
        bad_rows: list[BadRow] | None,
        rows: range | None = None,
        max_bytes: int | None = None,
    ) -> KeptRows:
        """Return the kept rows of a block, or some: `rows` counts kept ones.

        Rows that can't be read are kept: they are bad rows, not rows left out.
        """
        if self.filter is not None:
            self.filter.dropped.check(block.of_source)
        if block.of is None or block.is_whole or self.filter is None:
            table = self._read(block.of_source, schema, bad_rows, rows, max_bytes)
            start = 0 if rows is None else rows.start
            return KeptRows(table, range(start, start + table.num_rows), 0)
        if block.num_rows == 0:
            return KeptRows(schema.empty_table(), range(0), block.filtered or 0)
        inner, where, full = block.of, self.filter, self.filter.with_columns(schema)
        key, chosen, span, kept = (inner.origin, inner.index), None, None, 0
        if rows is not None:
            all_kept = where.numbers.get(
                key, lambda: np.concatenate(list(self._numbers(where, inner, max_bytes)))
            )
            chosen = all_kept[rows.start : rows.stop]
            span = range(int(chosen[0]), int(chosen[-1]) + 1)
        tables: list[Table] = []
        numbers: list[Tensor] = []
        seen = 0
        for start, table, bad in self._pieces(inner, full, span, max_bytes):
            if chosen is None:
                mask = self._mask(where, inner, start, table, bad)
            else:
                mask = np.zeros(table.num_rows, bool)
                low, high = np.searchsorted(chosen, [start, start + table.num_rows])
                mask[chosen[low:high] - start] = True
            places = np.flatnonzero(mask)
            _report(bad, places, kept, inner, bad_rows)
            numbers.append(places + start)
            tables.append(_chosen(table, schema, mask))
            seen, kept = seen + table.num_rows, kept + len(places)
        filtered = seen - kept
        if rows is not None:
            filtered = (block.filtered or 0) if rows.start == 0 else 0
            if rows.stop == len(all_kept):
                where.numbers.forget(key)
                self.slices.forget(key)
        return KeptRows(_joined(tables), np.concatenate(numbers), filtered)

    def together(
        self, blocks: Sequence[Block], schema: pa.Schema, max_bytes: int
    ) -> tuple[Table, list[int]] | None:
        """Return the rows of several small blocks of a file, and the number of each; None if they must be read one by
        one. Raise ProviderError if one of them is damaged, or has a row that can't be read.
        """
        most, own = max_bytes // len(blocks), self._of_files(schema)
        if not self.source.joins or self.filter is not None:
            return None
        if any(self.source.steps(one, own, most) for one in blocks):
            return None
        return self._whole(blocks, own, schema, None), [self.source.rows_of(one) or 0 for one in blocks]

    def ranges(self, block: Block, schema: pa.Schema) -> Collection[Range]:
        """Return the ranges of files that reading a block reads."""
        return self.source.ranges(block, self._of_files(schema))

    def _of_files(self, schema: pa.Schema) -> pa.Schema:
        return schema if self.source.folders is None else self.source.folders.divided(schema).of_files

    def _read(
        self,
        block: Block,
        schema: pa.Schema,
        bad_rows: list[BadRow] | None,
        rows: range | None,
        max_bytes: int | None,
    ) -> Table:
        """Return all rows of a block of the source, or some; raise ProviderError if they exceed `max_bytes`."""
        own, source = self._of_files(schema), self.source
        bound = None if max_bytes is None else source.steps(block, own, max_bytes)
        if rows is None and bound is None:
            return self._whole([block], own, schema, bad_rows)
        if source.slicing == "any":
            (found,) = source.stream(Wanted([block], own, bad_rows, rows))
            found = found if own.names or rows is None else without_columns(len(rows))
        else:
            span = range(source.rows_of(block) or 0) if rows is None else rows
            found = self._forward(block, own, span, bound, max_bytes or 0)
        return self._finished(block, own, schema, found, bad_rows)

    def _whole(
        self, blocks: Sequence[Block], own: pa.Schema, schema: pa.Schema, bad_rows: list[BadRow] | None
    ) -> Table:
        """Return all rows of blocks; `own` are the columns of `schema` that are read from files."""
        source, first = self.source, blocks[0]
        tables = list(source.stream(Wanted(blocks, own, bad_rows)))
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()
        counts = [source.rows_of(one) for one in blocks]
        if None not in counts:
            total = sum(counts)  # type: ignore[arg-type]
            if not (own.names or table.num_rows):
                table = without_columns(total)
            try:
                table.validate()  # a damaged page header may shorten one column
            except pa.ArrowInvalid:
                raise source.wrong_count(first, min(map(len, table.columns))) from None
            if table.num_rows != total:
                raise source.wrong_count(first, table.num_rows)
        return self._finished(first, own, schema, table, bad_rows)

    def _finished(
        self, block: Block, own: pa.Schema, schema: pa.Schema, table: Table, bad_rows: list[BadRow] | None
    ) -> Table:
        source, folders = self.source, self.source.folders
        table = source.finish(block, own, table, bad_rows)
        return table if folders is None else folders.joined(table, schema, self._paths(block))

    def _forward(
        self, block: Block, schema: pa.Schema, rows: range, bound: Steps | None, max_bytes: int
    ) -> Table:
        """Return rows from where the last ones ended; with a `bound`, a few at a time, until they are too large."""
        source, steps = self.source, bound or Steps(len(rows))
        start = partial(source.stream, Wanted([block], schema, steps=steps))
        found: list[pa.RecordBatch] = []
        size = 0
        for first in range(rows.start, rows.stop, steps.rows):
            part = range(first, min(first + steps.rows, rows.stop))
            # readers of other columns, or in other steps, have positions of their own
            key = (block.origin, block.index), (schema, bound)
            read = self.slices.read(key, start, part, source.rows_of(block) or 0)
            if (count := sum(batch.num_rows for batch in read)) != len(part):
                raise source.wrong_count(block, part.start + count)
            found += read
            if bound is None:
                continue
            size += sum(int(row_bytes(one, with_dictionaries=False).sum()) for batch in read for one in batch)
            if size > max_bytes:
                raise ProviderError(
                    f"{source.place(block)}: rows {rows.start} to {part.stop - 1} take "
                    f"{format_bytes(size)} in memory, expected {format_bytes(max_bytes)} at most\n"
                    "its footer does not say so: raise memory, or write the file with smaller row groups"
                )
        return pa.Table.from_batches(found)

    def _numbers(self, where: RowFilter, block: Block, max_bytes: int | None) -> Iterator[Tensor]:
        """Yield the positions of the kept rows, piece by piece; reads only the filter's columns."""
        if where.expression is None and block.num_rows is not None:
            yield np.flatnonzero(where.dropped.mask(block, 0, block.num_rows))
            return
        for start, table, bad in self._pieces(block, where.columns, None, max_bytes):
            yield np.flatnonzero(self._mask(where, block, start, table, bad)) + start

    def _mask(self, where: RowFilter, block: Block, start: int, table: Table, bad: list[BadRow]) -> Tensor:
        """Return bool[rows]: which rows from `start` on are kept, and those that cannot be judged, as bad rows."""
        kept = where.dropped.mask(block, start, table.num_rows)
        if where.expression is None:
            return kept
        mask: Tensor = where.mask(table).to_numpy()
        judged = where.columns.names
        mask[[one.row for one in bad if not isinstance(one, UnfitRow) or one.column in judged]] = True
        return mask & kept

    def _pieces(
        self, block: Block, schema: pa.Schema, span: range | None, max_bytes: int | None
    ) -> Iterator[tuple[int, Table, list[BadRow]]]:
        """Yield the block or some of its rows, a large one in pieces, each with its first row's position and its
        bad rows.
        """
        most, count = _piece_bytes(max_bytes), block.num_rows or 0
        if span is None:
            is_large = (block.nbytes or 0) > (_WHOLE_BYTES if max_bytes is None else most)
            if not (is_large and count and self.source.slicing != "none"):
                bad = list[BadRow]()
                yield 0, self._read(block, schema, bad, None, max_bytes), bad
                return
            span = range(count)
        step = max(1, count * most // max(1, block.nbytes or 0))
        for first in range(span.start, span.stop, step):
            bad, rows = [], range(first, min(span.stop, first + step))
            yield first, self._read(block, schema, bad, rows, max_bytes), bad


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


def _with_rows(block: Block, rows: int | None, *, is_whole: bool) -> Block:
    """Return a block of the source with this number of kept rows, and their share of its size."""
    size = block.nbytes
    if rows is not None and size is not None and block.num_rows:
        size = -(-size * rows // block.num_rows)  # rounded up: a kept row is never 0 bytes
    return Block(block.origin, block.index, rows, size, of=block, is_whole=is_whole)


def _piece_bytes(max_bytes: int | None) -> int:
    """Return a quarter of `max_bytes`, at least 1 MiB."""
    return _PIECE_BYTES if max_bytes is None else max(1 << 20, min(_WHOLE_BYTES, max_bytes // 4))


def _chosen(table: Table, schema: pa.Schema, mask: Tensor) -> Table:
    """Return the columns of `schema`, of the rows where the mask is true."""
    is_whole = table.schema.equals(schema)
    chosen = table if is_whole else Selection(table.schema, table.schema, schema).apply(table)
    count = int(np.count_nonzero(mask))
    if count == len(mask):
        return chosen
    return chosen.filter(pa.array(mask))


def without_columns(rows: int) -> pa.Table:
    """Return a table of rows without columns: sources read no columns as no rows."""
    return pa.table({"": pa.nulls(rows)}).select([])


def _joined(tables: list[Table]) -> Table:
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables([pa.table(one) for one in tables])
