"""Recipe: how the windows of a source are made into batches, whoever makes them and in whatever order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from seqflow import executor
from seqflow.errors import OpError, ProviderError, SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.pad import Pad
from seqflow.loader.plans.permutation import key_of, permutation
from seqflow.loader.plans.plan import BatchPlan, WindowBatches
from seqflow.loader.plans.planned_lengths import planned_lengths
from seqflow.loader.plans.window_batches import NoBatches
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.bad_rows import Rejected, bad_row_error, keep_rows, refused_row
from seqflow.loader.run.provenance import ROW_ERRORS, RowNumbers, RowRange, blames_rows, first_failing_row
from seqflow.loader.run.transforms import Transform, apply, one_row_space
from seqflow.loader.schedule.order import Shuffle
from seqflow.loader.schedule.windows import Part, Window, cut_windows, parts_of
from seqflow.net import Net
from seqflow.printable import printable
from seqflow.providers import Block, Provider
from seqflow.record import BadRow, Record, Valid, convert, slice_rows, take_rows, to_arrow
from seqflow.record.row_source import RowSource
from seqflow.record.rows import read_only_record
from seqflow.record.run_ends import decoded_type
from seqflow.record.selection import select_schema

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCKS, _ROWS, _BATCHES, _PREPARE, _NET = range(5)
"""What random numbers are drawn for; they are mixed into the keys, so that no two are alike."""


@dataclass(frozen=True, slots=True)
class PreparedPart:
    """A part of a window, read and prepared."""

    records: tuple[Record, ...]
    ranges: tuple[RowRange, ...]
    """Where the rows of each record come from."""
    rejected: tuple[Rejected, ...]
    num_rows: int
    """Rows that were read, without bad ones."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """All that decides which batches there are. A window's batches depend on it, the epoch and the window alone."""

    source: Provider
    columns: Sequence[str] | None
    prepare: Net | Transform | None
    net: Net | Transform | None
    batch: BatchPlan
    window_bytes: int
    shuffle: Shuffle | None
    fill: Any
    valid: Valid
    keeps_going: bool
    """Bad rows are left out; else they are errors."""
    pad: Mapping[str, Pad]
    stamps: Mapping[str, Stamp]
    """Size and time of change of each file when its blocks were listed."""
    memory: int
    """Bytes that may be in memory at once."""

    @property
    def seed(self) -> int:
        return 0 if self.shuffle is None else self.shuffle.seed

    def parts(self) -> Iterator[Part]:
        """All blocks in the order of the source, the large ones sliced."""
        sliced = self.source.slices_blocks and self.shuffle is None
        for number, block in enumerate(self.source.blocks()):
            yield from parts_of(number, block, self.window_bytes, sliced=sliced)

    def windows(self, parts: Sequence[Part], epoch: int) -> list[Window]:
        """The windows of an epoch: blocks in their order, cut where a window is full.

        Where rows are shuffled, blocks are in a random order, but inside a window in that of the source.
        """
        if self.shuffle is None:
            return list(cut_windows(parts, self.window_bytes))
        parts = [parts[i] for i in permutation(len(parts), self.key(epoch, _BLOCKS))]
        return [window.in_order() for window in cut_windows(parts, self.window_bytes)]

    def key(self, epoch: int, *parts: int) -> int:
        return key_of(self.seed, epoch, *parts)

    def read(self, part: Part, epoch: int) -> PreparedPart:
        """Read a part and apply `prepare`. Its tensors are read-only, since batches may share their memory."""
        started = perf_counter()
        self._check_unchanged(part)
        record, numbers, rejected = self._convert(part)
        read = perf_counter()
        found = list(self._prepare(record, numbers, part, epoch, rejected))
        kept = record.num_rows - sum(one.in_prepare for one in rejected)
        return PreparedPart(
            tuple(read_only_record(one) for one, _ in found),
            tuple(RowRange(part.block, one.num_rows, rows) for one, rows in found),
            tuple(rejected),
            kept,
            read - started,
            perf_counter() - read,
        )

    def _check_unchanged(self, part: Part) -> None:
        """ProviderError where the file of a part is another one than when its blocks were listed."""
        then = self.stamps.get(part.block.origin)
        if then is not None and (now := stamp_of(part.block.origin)) != then:
            what = (
                "is gone"
                if now is None
                else f"had {then[0]} bytes and has {now[0]} now, or was written again"
            )
            raise ProviderError(
                f"{part.block.origin} changed while it was read: it {what}\n  make a new loader, and run again"
            )

    def open(
        self,
        window: Window,
        parts: Sequence[PreparedPart],
        epoch: int,
        rows_of: Callable[[Sequence[Record]], RowSource] = RowSource,
    ) -> OpenWindow:
        """Put the rows of a window in order, and plan its batches."""
        started = perf_counter()
        pairs = [pair for part in parts for pair in zip(part.records, part.ranges, strict=True)]
        filled = [pair for pair in pairs if pair[0].num_rows] or pairs[:1]
        records = tuple(record for record, _ in filled)
        count = sum(record.num_rows for record in records)
        source = rows_of(records) if records else None
        rows = WindowRows(records, self.order(window, count, epoch), self.pad, source)
        lengths = self.planned_lengths(records[0]) if records else None
        batches = self.plan(rows, lengths, window, epoch)
        ranges = tuple(one for _, one in filled)
        rejected = tuple(self.rejected(batches.bad, ranges))
        return OpenWindow(window, rows, batches, ranges, rejected, lengths, perf_counter() - started)

    def order(self, window: Window, rows: int, epoch: int) -> Array | None:
        """The order of a window's rows; None where it is that of the source."""
        if self.shuffle is None:
            return None
        return permutation(rows, self.key(epoch, _ROWS, window.number))

    def plan(self, rows: WindowRows, lengths: str | None, window: Window, epoch: int) -> WindowBatches:
        """The batches of a window whose rows are in order. Only their lengths are looked at."""
        if not rows.records:
            return NoBatches()
        key = self.key(epoch, _BATCHES, window.number)
        return self.batch.of_window(rows, lengths, key, self.shuffle is not None, window.number)

    def make_window(self, window: Window, epoch: int) -> OpenWindow:
        """Read, prepare and plan a window at once."""
        return self.open(window, [self.read(part, epoch) for part in window.parts], epoch)

    def net_of(self, window: int, number: int, epoch: int) -> Callable[[Record], Record]:
        """`net`, as it runs on batch `number` of a window."""
        assert self.net is not None
        return partial(apply, self.net, reseed=partial(self._seed, epoch, _NET, window, number))

    def planned_lengths(self, record: Record) -> str | None:
        """The lengths that batches of such records are planned on; BatchPlanError where there must be some."""
        plan = self.batch
        return planned_lengths(record, plan.lengths, type(plan).__name__ if plan.needs_lengths else None)

    def rejected(self, bad: Sequence[BadRow], ranges: Sequence[RowRange]) -> Iterator[Rejected]:
        """The rows of the source for those of a window that batches cannot be planned with, or `net` cannot take.

        They are read again, since what `prepare` made of them has other columns. Where it made new rows, there are
        nulls in their place.
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
            if not self.keeps_going:
                number = None if of.numbers is None else int(of.numbers[inside[0].row])
                raise bad_row_error(inside[0], number, of.block)
            if of.numbers is None:
                new_rows = self._null_rows(len(inside))
                yield Rejected(new_rows, tuple(inside), (None,) * len(inside), of.block, in_prepare=0)
            else:
                numbers = [int(of.numbers[one.row]) for one in inside]
                rows = range(min(numbers), max(numbers) + 1) if self._slices(of.block) else None
                start = 0 if rows is None else rows.start
                table = self.source.read(of.block, self.columns, bad_rows=[], rows=rows)
                in_table = [one._replace(row=row - start) for one, row in zip(inside, numbers, strict=True)]
                in_block = range(start, start + table.num_rows)
                yield Rejected.of(table, in_table, in_block, of.block, in_prepare=0)

    def _slices(self, block: Block) -> bool:
        """Whether a block is read in slices."""
        sliced = self.source.slices_blocks and self.shuffle is None
        return sliced and (block.nbytes or 0) > self.window_bytes

    def _null_rows(self, count: int) -> pa.Table:
        import pyarrow as pa

        schema = self.source.schema
        chosen = schema if self.columns is None else select_schema(schema, self.columns)
        return pa.table({field.name: pa.nulls(count, decoded_type(field.type)) for field in chosen})

    def _seed(self, epoch: int, *parts: int) -> int:
        *places, seed = parts
        return key_of(seed, self.key(epoch, *places))

    def _convert(self, part: Part) -> tuple[Record, RowNumbers, list[Rejected]]:
        """The good rows of a part, their row numbers in the block, and the bad rows."""
        unreadable: list[BadRow] = []
        table = self.source.read(
            part.block,
            self.columns,
            bad_rows=unreadable if self.keeps_going else None,
            rows=None if part.stop is None else range(part.start, part.stop),
            max_bytes=self.memory,
        )
        record, bad = convert(table, fill=self.fill, valid=self.valid)
        numbers: RowNumbers = range(part.start, part.start + table.num_rows)
        if not bad and not unreadable:
            return record, numbers, []
        known = {one.row for one in unreadable}  # which are null in all columns
        bad = [*unreadable, *(one for one in bad if one.row not in known)]
        rejected = Rejected.of(table, bad, numbers, part.block, in_prepare=0)
        if not self.keeps_going:
            raise rejected.error()
        kept = keep_rows(table.num_rows, bad)
        good = np.flatnonzero(kept)
        return take_rows(record, good), good + part.start, [rejected]

    def _prepare(
        self, record: Record, numbers: RowNumbers, part: Part, epoch: int, rejected: list[Rejected]
    ) -> Iterator[tuple[Record, RowNumbers | None]]:
        """The results of `prepare`, and their row numbers in the block where it keeps the rows."""
        if self.prepare is None:
            yield record, numbers
            return
        run = partial(
            apply, self.prepare, reseed=partial(self._seed, epoch, _PREPARE, part.number, part.start)
        )
        try:
            prepared = one_row_space(run(record))
        except ROW_ERRORS as error:
            if self.keeps_going and blames_rows(error):
                yield from self._prepare_halves(record, numbers, part, epoch, rejected, error)
                return
            row = first_failing_row(run, record, error) if isinstance(self.prepare, Net) else None
            of_row = "" if row is None else f", row {numbers[row]}"
            error.add_note(printable(f"preparing {part.block.origin}, block {part.block.index}{of_row}"))
            raise
        keeps = isinstance(self.prepare, Net) and executor.keeps_rows(self.prepare, record)
        yield prepared, numbers if keeps else None

    def _prepare_halves(
        self,
        record: Record,
        numbers: RowNumbers,
        part: Part,
        epoch: int,
        rejected: list[Rejected],
        error: SeqflowError,
    ) -> Iterator[tuple[Record, RowNumbers | None]]:
        """Find the rows that `prepare` refuses by halving, and prepare the others."""
        if record.num_rows <= 1:
            bad = refused_row(0, record, error)
            rejected.append(Rejected.of(to_arrow(record), [bad], numbers, part.block, in_prepare=1))
            return
        middle = record.num_rows // 2
        for half in (slice(0, middle), slice(middle, record.num_rows)):
            rows = slice_rows(record, half.start, half.stop)
            yield from self._prepare(rows, numbers[half], part, epoch, rejected)


Stamp = tuple[int, int]


def stamp_of(path: str) -> Stamp | None:
    """Size and time of change of a file; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def check_blocks(recipe: Recipe, parts: Sequence[Part]) -> None:
    """OpError where rows are shuffled in windows that a block does not fit into."""
    if recipe.shuffle is None:
        return
    largest = max(parts, key=lambda part: part.nbytes, default=None)
    if largest is not None and largest.nbytes > recipe.window_bytes:
        from seqflow.byte_sizes import format_bytes

        raise OpError(
            f"Loader: {largest.block.origin}, block {largest.block.index} has "
            f"{format_bytes(largest.nbytes)}, but rows are shuffled in windows of "
            f"{format_bytes(recipe.window_bytes)}\n"
            f"  raise window to {largest.nbytes} bytes or more, or write the file with smaller row groups"
        )
