"""Windows in memory: their slices are read and prepared, then their rows are ordered and batches planned on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from seqflow import executor
from seqflow.loader.plans.plan import WindowBatches
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.provenance import (
    ROW_ERRORS,
    RowNumbers,
    RowRange,
    blames_rows,
    by_halves,
    first_failing,
)
from seqflow.loader.run.rejected import Rejected, bad_row_error, keep_rows, refused_row
from seqflow.loader.run.required import Required, required_of
from seqflow.loader.run.transforms import apply, one_row_space
from seqflow.loader.schedule.index import Measured
from seqflow.loader.schedule.recipe import NET, PREPARE, Listing, Recipe, Stamps
from seqflow.loader.schedule.windows import BlockSlice, Window
from seqflow.net import Net
from seqflow.printable import printable
from seqflow.progress import Stage, stage
from seqflow.record import BadRow, Record, convert, slice_rows, take_rows, to_arrow
from seqflow.record.row_source import RowSource
from seqflow.record.rows import read_only_record
from seqflow.record.run_ends import decoded_type
from seqflow.record.selection import select_schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class PreparedSlice:
    """Rows of a block, read and prepared."""

    records: tuple[Record, ...]
    ranges: tuple[RowRange, ...]
    """Where the rows of each record come from."""
    rejected: tuple[Rejected, ...]
    num_rows: int
    """Rows that were read, without bad ones."""
    filtered: int
    """Rows that `where` has left out."""
    seconds_reading: float
    seconds_preparing: float


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window whose rows are in memory and whose batches are planned."""

    window: Window
    rows: WindowRows
    batches: WindowBatches
    ranges: tuple[RowRange, ...]
    rejected: tuple[Rejected, ...]
    """Rows that batches cannot be planned with."""
    lengths: str | None
    """The lengths that its batches are planned on."""
    seconds_planning: float


@dataclass(slots=True)
class KeptWindow:
    """The prepared rows of a source that one window holds: they are read once, and shuffled anew each epoch."""

    slices: dict[tuple[int, int], PreparedSlice] = field(default_factory=dict)
    _rows: RowSource | None = None
    _of: Sequence[Record] = ()
    """The records that the rows are of."""

    def rows(self, records: Sequence[Record]) -> RowSource:
        """The rows of the records, which are the same in each epoch."""
        if self._rows is None or [*map(id, records)] != [*map(id, self._of)]:
            self._rows, self._of = RowSource(records), records
        return self._rows


@dataclass(frozen=True, slots=True)
class WindowMaker:
    """Reads, prepares and plans windows, whoever needs them and in whatever order."""

    recipe: Recipe
    listed: Listing | Stamps
    """Knows which files have changed since they were listed."""
    kept: KeptWindow | None = None
    """Keeps what is read, where one window holds everything."""
    measured: Measured | None = None
    """Takes the lengths of what is read, where an index is made of them."""
    numbered: bool = False
    """Whether parts of windows keep the numbers of rows also where they could be views: for tracing."""
    required: Required | None = field(init=False, default=None)
    """The conditions of the recipe on prepared rows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", required_of(self.recipe.require))

    def make(self, window: Window, epoch: int) -> OpenWindow:
        """Read, prepare and plan a window at once."""
        with stage(Stage("blocks", len(window.slices), "a window", after="planning")) as here:
            slices = []
            for one in window.slices:
                slices.append(self.read(one, epoch))
                here.done += 1
            return self.open(window, slices, epoch)

    def read(self, one: BlockSlice, epoch: int) -> PreparedSlice:
        """Read a slice of a block and apply `prepare`, or take what is kept of it."""
        kept = None if self.kept is None else self.kept.slices
        found = None if kept is None else kept.get(one.key)
        if found is None:
            found = self._read(one, epoch)
            if kept is not None:
                kept[one.key] = found
        if self.measured is not None:
            self.measured.add(self.recipe, one.key, found.records)
        return found

    def _read(self, one: BlockSlice, epoch: int) -> PreparedSlice:
        """Its tensors are read-only, since batches may share their memory."""
        if one.num_rows == 0 and one.filtered:
            return PreparedSlice((), (), (), 0, one.filtered, 0.0, 0.0)
        started = perf_counter()
        self.listed.check_unchanged(one.block.origin)
        record, numbers, rejected, filtered = self._convert(one)
        read = perf_counter()
        found = list(self._prepare(record, numbers, one, epoch, rejected))
        if self.required is not None:
            found = [self._fulfilling(self.required, *pair, one, rejected) for pair in found]
        kept = record.num_rows - sum(one.in_prepare for one in rejected)
        return PreparedSlice(
            tuple(read_only_record(prepared) for prepared, _ in found),
            tuple(RowRange(one.block, prepared.num_rows, rows) for prepared, rows in found),
            tuple(rejected),
            kept,
            filtered,
            read - started,
            perf_counter() - read,
        )

    def _convert(self, one: BlockSlice) -> tuple[Record, RowNumbers, list[Rejected], int]:
        """The good rows of a slice, their row numbers in the block, the bad rows, and how many `where` left out."""
        recipe = self.recipe
        unreadable: list[BadRow] = []
        table, numbers, filtered = recipe.source.read_kept(
            one.block,
            recipe.columns,
            bad_rows=unreadable if recipe.keeps_going else None,
            rows=None if one.stop is None else range(one.start, one.stop),
            max_bytes=recipe.memory,
        )
        record, bad = convert(table, fill=recipe.fill, valid=recipe.valid)
        if not bad and not unreadable:
            return record, numbers, [], filtered
        known = {row.row for row in unreadable}  # which are null in all columns
        bad = [*unreadable, *(row for row in bad if row.row not in known)]
        rejected = Rejected.of(table, bad, numbers, one.block, in_prepare=0)
        if not recipe.keeps_going:
            raise rejected.error()
        good = np.flatnonzero(keep_rows(table.num_rows, bad))
        return take_rows(record, good), np.asarray(numbers)[good], [rejected], filtered

    def _prepare(
        self, record: Record, numbers: RowNumbers, one: BlockSlice, epoch: int, rejected: list[Rejected]
    ) -> Iterator[tuple[Record, RowNumbers | None]]:
        """The results of `prepare`, and their row numbers in the block where it keeps the rows.

        Rows that it refuses are `rejected` where bad rows are left out: the others are prepared without them.
        """
        prepare = self.recipe.prepare
        if prepare is None:
            yield record, numbers
            return
        reseed = partial(self.recipe.seed, epoch=epoch, purpose=PREPARE, numbers=one.random_key)

        def run(start: int, stop: int) -> tuple[Record, Record]:
            rows = record if stop - start == record.num_rows else slice_rows(record, start, stop)
            return rows, one_row_space(apply(prepare, rows, reseed))

        def alone(start: int, stop: int) -> Record:
            return apply(prepare, slice_rows(record, start, stop), reseed)

        def is_caught(error: Exception) -> bool:
            return self.recipe.keeps_going and blames_rows(error)

        try:
            for rows, result in by_halves(run, 0, record.num_rows, is_caught):
                if isinstance(result, Exception):
                    refused = slice_rows(record, rows.start, rows.stop)
                    bad = [refused_row(0, refused, result)]
                    of = Rejected.of(to_arrow(refused), bad, numbers[rows], one.block, in_prepare=1)
                    rejected.append(of)
                else:
                    keeps = isinstance(prepare, Net) and executor.keeps_rows(prepare, result[0])
                    of_rows: RowNumbers | None = numbers[rows] if keeps else None
                    if self.numbered and isinstance(prepare, Net) and not keeps:
                        made_of = executor.row_numbers(prepare, result[0], reseed)
                        of_rows = None if made_of is None else np.asarray(numbers[rows])[made_of]
                    yield result[1], of_rows
        except ROW_ERRORS as error:
            is_net = isinstance(prepare, Net) and blames_rows(error)
            row = first_failing(alone, record.num_rows, error) if is_net else None
            of_row = "" if row is None else f", row {numbers[row]}"
            error.add_note(printable(f"preparing {one.block.origin}, block {one.block.index}{of_row}"))
            raise

    def _fulfilling(
        self,
        required: Required,
        record: Record,
        numbers: RowNumbers | None,
        one: BlockSlice,
        rejected: list[Rejected],
    ) -> tuple[Record, RowNumbers | None]:
        """The prepared rows that fulfil all conditions, and their numbers; the others are `rejected`."""
        bad = required.bad_rows(record)
        if not bad:
            return record, numbers
        if not self.recipe.keeps_going:
            number = None if numbers is None else int(numbers[bad[0].row])
            raise bad_row_error(bad[0], number, one.block)
        rejected.extend(self.rejected(bad, [RowRange(one.block, record.num_rows, numbers)], left_out=True))
        good = np.flatnonzero(keep_rows(record.num_rows, bad))
        return take_rows(record, good), None if numbers is None else np.asarray(numbers)[good]

    def open(self, window: Window, slices: Sequence[PreparedSlice], epoch: int) -> OpenWindow:
        """Put the rows of a window in order, and plan its batches."""
        started = perf_counter()
        recipe = self.recipe
        pairs = [pair for one in slices for pair in zip(one.records, one.ranges, strict=True)]
        filled = [pair for pair in pairs if pair[0].num_rows] or pairs[:1]
        records = tuple(record for record, _ in filled)
        count = sum(record.num_rows for record in records)
        source = None if self.kept is None or not records else self.kept.rows(records)
        order = recipe.order(window, count, epoch)
        if order is None and self.numbered:
            order = np.arange(count)
        rows = WindowRows(records, order, recipe.pad, source)
        lengths = recipe.planned_lengths(records[0]) if records else None
        batches = recipe.plan(rows, lengths, window, epoch)
        ranges = tuple(one for _, one in filled)
        rejected = tuple(self.rejected(batches.bad, ranges))
        return OpenWindow(window, rows, batches, ranges, rejected, lengths, perf_counter() - started)

    def rejected(
        self, bad: Sequence[BadRow], ranges: Sequence[RowRange], *, left_out: bool = False
    ) -> Iterator[Rejected]:
        """The rows of the source for those of a window that batches cannot be planned with, or `net` cannot take.

        They are read again, since what `prepare` made of them has other columns. Where it made new rows, there are
        nulls in their place. Those `left_out` are in no window.
        """
        ends = np.cumsum([one.rows for one in ranges])
        places = np.searchsorted(ends, [one.row for one in bad], side="right")
        for at in np.unique(places).tolist():
            of, start = ranges[at], int(ends[at]) - ranges[at].rows
            inside = [
                one._replace(row=one.row - start)
                for one, place in zip(bad, places, strict=True)
                if place == at
            ]
            if not self.recipe.keeps_going:
                number = None if of.numbers is None else int(of.numbers[inside[0].row])
                raise bad_row_error(inside[0], number, of.block)
            found = self._rejected(inside, of)
            yield replace(found, in_prepare=found.count) if left_out and of.numbers is not None else found

    def _rejected(self, bad: Sequence[BadRow], of: RowRange) -> Rejected:
        """The bad rows of a range, by their places in it."""
        recipe, block = self.recipe, of.block
        if of.numbers is None:
            return Rejected(self._null_rows(len(bad)), tuple(bad), (None,) * len(bad), block, in_prepare=0)
        numbers = [int(of.numbers[one.row]) for one in bad]
        source, block_of_all = recipe.source.unfiltered(block)
        rows = range(min(numbers), max(numbers) + 1) if recipe.is_sliced(block_of_all) else None
        start = 0 if rows is None else rows.start
        table = source.read(block_of_all, recipe.columns, bad_rows=[], rows=rows)
        in_table = [one._replace(row=row - start) for one, row in zip(bad, numbers, strict=True)]
        return Rejected.of(table, in_table, range(start, start + table.num_rows), block, in_prepare=0)

    def _null_rows(self, count: int) -> pa.Table:
        import pyarrow as pa

        schema = self.recipe.source.schema
        chosen = schema if self.recipe.columns is None else select_schema(schema, self.recipe.columns)
        return pa.table({field.name: pa.nulls(count, decoded_type(field.type)) for field in chosen})

    def net_of(self, window: int, number: int, epoch: int) -> Callable[[Record], Record]:
        """`net`, as it runs on batch `number` of a window."""
        assert self.recipe.net is not None
        reseed = partial(self.recipe.seed, epoch=epoch, purpose=NET, numbers=(window, number))
        return partial(apply, self.recipe.net, reseed=reseed)
