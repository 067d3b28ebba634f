"""Windows in memory: slices are read and prepared, without rows that fail, then ordered, and batches planned."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from seqflow import executor, kernels
from seqflow.errors import (
    LodError,
    NetError,
    OpError,
    OpMemoryError,
    OpResultError,
    OpTypeError,
    ProviderError,
    ShapeError,
)
from seqflow.kernels import KernelError
from seqflow.kernels.arrays import Array
from seqflow.kernels.draws import Reseed, RowDraws
from seqflow.loader.order.conditions import fulfilling, unfulfilled
from seqflow.loader.order.groups import groups_of
from seqflow.loader.order.index import LengthsIndex, Measured
from seqflow.loader.order.recipe import NET, PREPARE, Recipe, Stamps, Transform, check_unchanged
from seqflow.loader.order.windows import BlockSlice, Window
from seqflow.loader.plans.plan import WindowBatches, key_of
from seqflow.loader.plans.shares import differing_rows
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.ledger import (
    Ledger,
    Rejected,
    RowNumbers,
    RowRange,
    good_rows,
    move,
    places_in,
    refused_row,
)
from seqflow.loader.run.timings import Timings
from seqflow.net import Net
from seqflow.printable import printable, without_values
from seqflow.progress import Stage, stage
from seqflow.providers import Block
from seqflow.record import BadRow, Record, convert, slice_rows, take_rows, to_arrow
from seqflow.record.record import parents_by_name
from seqflow.record.row_source import RowSource
from seqflow.record.rows import read_only_record, split_rows
from seqflow.record.run_ends import take_table
from seqflow.record.selection import select_schema

T = TypeVar("T")


_TRIED = 8
"""Rows at each end of a batch or block that are tried alone, to tell a wrong net from a wrong row."""
EACH_FAILS = "all rows that were tried fail so: the net is wrong, not a row"
_SMALL_BLOCK, _MOST_TOGETHER = 128 << 10, 1 << 20
"""Bytes from which on a block is read alone, and the most bytes of small blocks that are read together."""
ROW_ERRORS = (LodError, OpError, ShapeError)
"""Errors that the data of a row can cause."""


NET_ERRORS: tuple[type[Exception], ...] = (NetError, OpTypeError, OpMemoryError, OpResultError)
"""Errors of the net itself, or of the machine, whatever the rows."""


def blames_rows(error: Exception) -> bool:
    """Return whether the data of a row may have caused the error."""
    return isinstance(error, ROW_ERRORS) and not isinstance(error, NET_ERRORS)


def by_halves(
    run: Callable[[int, int], T],
    start: int,
    stop: int,
    is_caught: Callable[[Exception], bool] = lambda error: True,
    failed: Exception | None = None,
) -> Iterator[tuple[slice, T | Exception]]:
    """Yield the results of `run(start, stop)` on rows; if they fail together, run it on each half, and so on.

    The result of a row that fails alone is its error. Errors that are not caught are raised. `failed` is the
    error of all rows together, if it is known.
    """
    found: T | Exception
    try:
        found = failed or run(start, stop)
    except Exception as error:
        if start == stop or not is_caught(error):
            raise
        found = error
    if not isinstance(found, Exception) or stop - start == 1:
        yield slice(start, stop), found
        return
    middle = (start + stop) // 2
    yield from by_halves(run, start, middle, is_caught)
    yield from by_halves(run, middle, stop, is_caught)


def fails_empty(run: Callable[[int, int], object]) -> bool:
    """Return whether a net fails even without rows, whatever the rows are."""
    try:
        run(0, 0)
    except Exception:
        return True
    return False


def first_failing(run: Callable[[int, int], object], count: int, error: Exception) -> int | None:
    """Return the first of `count` rows, failing together, that fails alone; None if none does, or no rows fail
    too.
    """
    if not count or fails_empty(run):
        return None
    found = by_halves(run, 0, count, failed=error)
    return next((rows.start for rows, result in found if isinstance(result, Exception)), None)


def each_fails(run: Callable[[int, int], object], count: int) -> bool:
    """Return whether the first and the last of `count` rows, of two at least, all fail alone for the same reason."""
    tried = {*range(min(count, _TRIED)), *range(max(0, count - _TRIED), count)}
    reasons = set()
    for row in sorted(tried):
        try:
            run(row, row + 1)
            return False
        except Exception as error:
            reasons.add((getattr(error, "statement", ""), without_values(str(error))))
    return len(tried) > 1 == len(reasons)


def apply(transform: Net | Transform, record: Record, reseed: Reseed | RowDraws | None = None) -> Record:
    """Return the result of a net or a function on a record; raise LodError or OpTypeError when a function's
    result is not a record.

    The result of a function must not be written to: the function may keep it, and return it again.
    `reseed` gives the random ops of a net another seed, made from their own.
    """
    if isinstance(transform, Net):
        return executor.run(transform, record, reseed=reseed)
    result = transform(record)
    name = getattr(transform, "__name__", repr(transform))
    if not isinstance(result, Mapping) or not all(isinstance(key, str) for key, _ in _items(result)):
        raise OpTypeError(f"{name} returned {type(result).__name__}, expected a mapping of names to arrays")
    for key, value in _items(result):
        if not isinstance(value, np.ndarray):
            kind, of_torch = type(value), hasattr(value, "numpy")
            advice = ".numpy() makes one of a torch tensor" if of_torch else "numpy.asarray makes one"
            raise OpTypeError(
                f"{name} returned {key!r} as {kind.__module__}.{kind.__qualname__}, expected a NumPy array"
                f"\n  {advice}"
            )
    made = result if isinstance(result, Record) else record_of(result)
    _check(made, name)
    return read_only_record(made)


def record_of(tensors: Mapping[str, np.ndarray[Any, Any]]) -> Record:
    """Return a record of tensors by name: `x.lengths` describes `x.values`, all other tensors have an entry for
    each row.
    """
    parents = parents_by_name(tensors)
    rows = (len(array) for name, array in tensors.items() if parents[name] is None and array.ndim)
    return Record(dict(tensors), parents, next(rows, 0))


def one_row_space(record: Record) -> Record:
    """Return the record; raise LodError unless all tensors without a parent have the same number of rows."""
    rows = {name: record[name].shape[:1] for name, parent in record.parents.items() if parent is None}
    if set(rows.values()) - {(record.num_rows,)}:
        found = ", ".join(f"{name} has {count[0] if count else 'no'}" for name, count in rows.items())
        missing = [f"{name[:-7]}.lengths" for name in rows if name.endswith(".values")]
        raise LodError(
            f"prepare: {found} rows, expected the same number everywhere\n"
            f"  return the lengths that describe each tensor{' (' * bool(missing)}{', '.join(missing)}"
            f"{')' * bool(missing)}, or leave it out of return"
        )
    return record


def _items(result: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return list((result.tensors if isinstance(result, Record) else result).items())


def _check(record: Record, name: str) -> None:
    """Raise LodError unless all lengths of a record are counts that describe the rows of their tensors."""
    for tensor, parent in record.parents.items():
        if tensor not in record.tensors or (parent is not None and parent not in record.tensors):
            raise LodError(f"{name} returned a record with a parent for {tensor}, but without one of the two")
    if missing := record.tensors.keys() - record.parents.keys():
        raise LodError(f"{name} returned a record without a parent, or None, for {min(missing)}")
    totals = {
        parent: _total(record, parent, name) for parent in record.parents.values() if parent is not None
    }
    for tensor, parent in record.parents.items():
        if parent is not None and record[tensor].shape[:1] != (totals[parent],):
            raise LodError(
                f"{name} returned {tensor}{list(record[tensor].shape)}, but the sum of {parent} is {totals[parent]}"
            )
    try:
        TopologicalSorter({of: [parent] for of, parent in record.parents.items()}).prepare()
    except CycleError as error:
        raise LodError(f"{name} returned a record in which {error.args[1][0]} are above themselves") from None


def _total(record: Record, lengths: str, name: str) -> int:
    found = record[lengths]
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise LodError(
            f"{name} returned {lengths} as {found.dtype}{list(found.shape)}, expected lengths: 1-D integers"
        )
    try:
        return int(kernels.check_lengths(found))
    except KernelError as error:
        raise LodError(f"{name} returned {lengths} that are not lengths: {error}") from None


def read_tasks(slices: Sequence[BlockSlice]) -> Iterator[range]:
    """Yield the places of slices that one task reads: those of one block, or several small blocks.

    Reading a small block holds Python's lock for most of the time: two threads that share it take twice as long.
    """
    first = stop = size = 0
    for _, of_block in groupby(slices, key=lambda one: one.number):
        block = list(of_block)
        own = sum(one.nbytes for one in block)
        if own >= _SMALL_BLOCK or block[0].block.nbytes is None:  # a block of unknown size may be large
            own = _MOST_TOGETHER
        size += own
        if first < stop and size >= _MOST_TOGETHER:
            yield range(first, stop)
            first, size = stop, own
        stop += len(block)
    if first < stop:
        yield range(first, stop)


def _result_of(run: Callable[[], T]) -> T | BaseException:
    """Return the result of a call, or its error."""
    try:
        return run()
    except BaseException as error:
        return error


def _key_of(one: BlockSlice, numbers: RowNumbers | None) -> tuple[int, ...]:
    return one.key if numbers is None else one.key[:1]


def keys_of_rows(ranges: Sequence[RowRange], rows: Array) -> Array:
    """uint64: a random number for each of some rows that are counted over ranges in turn, by its place in its block.

    It is the same for any windows, batches and ranks.
    """
    of, places = places_in([one.rows for one in ranges], rows)
    keys = np.empty(len(rows), np.uint64)
    for at in np.unique(of).tolist():
        here, one = of == at, ranges[at]
        inside = places[here] if one.numbers is None else np.asarray(one.numbers)[places[here]]
        if one.numbers is not None and len(np.unique(inside)) < len(inside):
            inside = places[here]  # rows that `prepare` made several of
        keys[here] = kernels.random_output(np.uint64(key_of(*one.key)), inside.astype(np.uint64))
    return keys


class _Prepared(NamedTuple):
    """Prepared rows, their numbers in the block, and those of their groups; None if these are not known."""

    record: Record
    numbers: RowNumbers | None
    groups: Array | None

    def taken(self, rows: Array) -> "_Prepared":
        """Return some rows, in order."""
        if len(rows) == self.record.num_rows:
            return self
        numbers = None if self.numbers is None else np.asarray(self.numbers)[rows]
        return _Prepared(
            take_rows(self.record, rows), numbers, None if self.groups is None else self.groups[rows]
        )


def _groups_by_block(ranges: Sequence[RowRange]) -> list[Array]:
    """Return the numbers of the groups of the rows of each block, if rows are in groups."""
    found = groupby(ranges, key=lambda one: id(one.block))
    parts = ([one.groups for one in of if one.groups is not None] for _, of in found)
    return [np.concatenate(of) for of in parts if of]


PreparedSlice = tuple[tuple[Record, ...], Ledger]
"""Rows of a block, read and prepared: the ledger has a range for each record."""


_WITH_FIRST: PreparedSlice = (), Ledger()
"""Result for a block whose rows come with those of another one."""


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window whose rows are in memory and whose batches are planned."""

    window: Window
    rows: WindowRows
    batches: WindowBatches
    ledger: Ledger
    lengths: str | None
    """Lengths that its batches are planned on."""


@dataclass(slots=True)
class KeptWindow:
    """The prepared rows of a source that one window holds: they are read once, and shuffled again each epoch."""

    slices: dict[tuple[int, int], PreparedSlice] = field(default_factory=dict)
    _rows: RowSource | None = None
    _of: Sequence[Record] = ()
    """Records that the rows come from."""

    def rows(self, records: Sequence[Record]) -> RowSource:
        """Return the rows of the records, which are the same in each epoch."""
        if self._rows is None or [*map(id, records)] != [*map(id, self._of)]:
            self._rows, self._of = RowSource(records), records
        return self._rows


@dataclass(frozen=True, slots=True)
class WindowMaker:
    """Reads, prepares and plans windows, for any caller and in any order."""

    recipe: Recipe
    stamps: Stamps
    """Size and modification time of files when they were listed, to find changed files."""
    kept: KeptWindow | None = None
    """Keeps the rows that are read, if one window holds everything."""
    measured: Measured | None = None
    """Collects the lengths of the rows that are read, if an index is made from them."""
    numbered: bool = False
    """Whether parts of windows keep the numbers of rows even if they could be views: for tracing."""
    index: LengthsIndex | None = None
    """Lengths of all rows, if they are known."""
    timings: Timings = field(default_factory=Timings)
    columns: Record | None = None
    """Prepared columns without rows: windows have zeros for their values, and are planned by known lengths."""

    def make(self, window: Window, epoch: int, threads: int = 0) -> OpenWindow:
        """Read, prepare and plan a window at once; with `threads`, that many and one more read it, as in a run."""

        def read(part: range) -> list[PreparedSlice | BaseException]:
            return list(self.read_all(window.slices[part.start : part.stop], epoch))

        with (
            stage(Stage("blocks", len(window.slices), "a window", after="planning")) as here,
            ThreadPoolExecutor(threads + 1) as pool,
        ):
            slices = []
            for of_task in (pool.map if threads else map)(read, read_tasks(window.slices)):
                for found in of_task:
                    if isinstance(found, BaseException):
                        raise found
                    slices.append(found)
                    here.done += 1
            return self.open(window, slices, epoch)

    def read_all(self, slices: Sequence[BlockSlice], epoch: int) -> Iterator[PreparedSlice | BaseException]:
        """Yield for each slice of one task what `read` returns, or the error that it raises.

        The rows of small blocks may come together with those of the first of them.
        """
        if self.columns is not None:
            yield from (_result_of(partial(self._by_lengths, self.columns, one, epoch)) for one in slices)
            return
        for _, of_file in groupby(slices, key=lambda one: one.block.origin):
            some = list(of_file)
            together = self._read_together(some, epoch)
            yield from together or (_result_of(partial(self.read, one, epoch)) for one in some)

    def _read_together(
        self, slices: Sequence[BlockSlice], epoch: int
    ) -> Iterable[PreparedSlice | BaseException] | None:
        """Return several small blocks of a file, read together; None if they must be read one by one.

        Each is prepared when it is asked for.
        """
        recipe, kept, keys = self.recipe, self.kept or KeptWindow(), [one.key for one in slices]
        if len(slices) == 1 or slices[0].stop is not None or not kept.slices.keys().isdisjoint(keys):
            return None
        blocks = [one.block for one in slices]
        try:
            check_unchanged(self.stamps, blocks[0].origin, recipe.source.bad_files.leaves_out)
            with self.timings.time("read") as timer:
                read = recipe.source.read_together(blocks, recipe.columns, recipe.memory)
                if read is None:
                    return None
                table, rows = read
                record, bad = convert(table, fill=recipe.fill, valid=recipe.valid, read=recipe.tensors_read)
        except (ProviderError, pa.ArrowException):  # raised again, by the block that is the cause
            return None
        if bad:
            return None
        numbers = [*map(range, rows)]
        stops = np.cumsum(rows)[:-1].tolist()
        groups: Sequence[Array | None] = [None] * len(rows)
        if recipe.grouped is not None:
            groups = np.split(groups_of(table, recipe.grouped), stops)
        if recipe.prepare is None and not (recipe.keep or recipe.require) and self.measured is None:
            # one record: a window may have thousands of blocks
            ledger = Ledger.of_source(record.num_rows, 0)
            of_blocks = [one.key[:1] for one in slices]
            ledger.ranges = tuple(map(RowRange, blocks, rows, numbers, of_blocks, groups))
            ledger.seconds_reading = timer.seconds
            found = [((read_only_record(record),), ledger), *[_WITH_FIRST] * (len(blocks) - 1)]
            kept.slices.update(zip(keys, found, strict=True))
            return found
        ledgers = [Ledger.of_source(count, 0) for count in rows]
        ledgers[0].seconds_reading = timer.seconds
        parts = map(_Prepared, split_rows(record, stops), numbers, groups)
        arguments = zip(parts, slices, ledgers, strict=True)
        prepare = (partial(self._prepared, *of, epoch) for of in arguments)
        return (_result_of(partial(self._keep, *of)) for of in zip(slices, prepare, strict=True))

    def _by_lengths(self, columns: Record, one: BlockSlice, epoch: int) -> PreparedSlice:
        """Return the rows of a slice with known lengths and without values; read it if its lengths are not known."""
        plan, planned = self.recipe.batch, self.recipe.planned_lengths(columns)
        lengths = None if self.index is None or planned is None else self.index.of(one, one.number)
        if one.num_rows is None or (planned is not None and lengths is None):
            return self.read(one, epoch)
        rows = one.num_rows
        if lengths is not None and (len(lengths) != rows or lengths.min(initial=0) < 0):
            return self.read(one, epoch)
        found = np.zeros(rows, np.int64) if lengths is None else lengths
        alike = {planned, *(f"{name}.lengths" for name in plan.columns or ())}
        sizes: dict[str | None, int] = dict.fromkeys(alike, int(found.sum())) | {None: rows}
        tensors = {
            name: found.astype(tensor.dtype)
            if name in alike
            # zeros that take no memory
            else np.broadcast_to(
                np.zeros(1, tensor.dtype), (sizes.get(columns.parents[name], 0), *tensor.shape[1:])
            )
            for name, tensor in columns.items()
        }
        ledger, numbers = Ledger.of_source(rows, one.filtered), range(one.start, one.start + rows)
        ledger.ranges = (RowRange(one.block, rows, numbers, _key_of(one, numbers)),)
        return (replace(columns, tensors=tensors, num_rows=rows),), ledger

    def read(self, one: BlockSlice, epoch: int) -> PreparedSlice:
        """Return a slice of a block, read and prepared, or the kept result."""
        return self._keep(one, partial(self._read, one, epoch))

    def _keep(self, one: BlockSlice, read: Callable[[], PreparedSlice]) -> PreparedSlice:
        kept = {} if self.kept is None else self.kept.slices
        if one.key not in kept:
            kept[one.key] = read()
        if self.measured is not None:
            records, ledger = kept[one.key]
            self.measured.add(self.recipe, one.key, records, [one.groups for one in ledger.ranges])
        return kept[one.key]

    def _read(self, one: BlockSlice, epoch: int) -> PreparedSlice:
        """Read and prepare a slice."""
        if one.num_rows == 0 and one.filtered:
            return (), Ledger.of_source(0, one.filtered)
        check_unchanged(self.stamps, one.block.origin, self.recipe.source.bad_files.leaves_out)
        with self.timings.time("read") as timer:
            rows, ledger = self._convert(one)
        ledger.seconds_reading = timer.seconds
        return self._prepared(rows, one, ledger, epoch)

    def _prepared(self, rows: _Prepared, one: BlockSlice, ledger: Ledger, epoch: int) -> PreparedSlice:
        """Prepare the rows of a slice; tensors are read-only, because batches may share their memory."""
        with self.timings.time("prepare") as timer:
            found = list(self._prepare(rows, one, epoch, ledger))
            if self.recipe.keep or self.recipe.require:
                found = [self._fulfilling(of, one, ledger) for of in found]
        ledger.ranges = tuple(
            RowRange(one.block, prepared.num_rows, numbers, _key_of(one, numbers), groups)
            for prepared, numbers, groups in found
        )
        ledger.seconds_preparing = timer.seconds
        return tuple(read_only_record(of.record) for of in found), ledger

    def _convert(self, one: BlockSlice) -> tuple[_Prepared, Ledger]:
        """Return the good rows of a slice, and the ledger, which has the bad ones."""
        recipe = self.recipe
        unreadable: list[BadRow] = []
        table, numbers, filtered, damage = recipe.source.read_kept(
            one.block,
            recipe.columns,
            bad_rows=unreadable if recipe.keeps_going else None,
            rows=None if one.stop is None else range(one.start, one.stop),
            max_bytes=recipe.memory,
        )
        record, bad = convert(table, fill=recipe.fill, valid=recipe.valid, read=recipe.tensors_read)
        ledger = Ledger.of_source(table.num_rows, filtered)
        ledger.damaged = [] if damage is None else [damage]
        known = {row.row for row in unreadable}  # which are null in that column, or in all
        bad = [*unreadable, *(row for row in bad if row.row not in known)]
        rows = _Prepared(
            record, numbers, None if recipe.grouped is None else groups_of(table, recipe.grouped)
        )
        if not bad:
            return rows, ledger
        self._reject(ledger, Rejected.of(table, bad, numbers, one.block))
        return rows.taken(good_rows(table.num_rows, bad)), ledger

    def _reject(self, ledger: Ledger, rejected: Rejected, *, is_prepared: bool = False) -> None:
        """Count bad rows; raise ProviderError when they are errors."""
        if not self.recipe.keeps_going:
            raise rejected.error()
        ledger.reject(rejected, is_prepared=is_prepared)

    def _prepare(self, rows: _Prepared, one: BlockSlice, epoch: int, ledger: Ledger) -> Iterator[_Prepared]:
        """Yield the results of `prepare`, with their row numbers in the block if it keeps the rows.

        If bad rows are omitted, rows that it refuses are rejected, and the others are prepared without them. Raise
        OpError when rows are in groups, and it does not keep rows.
        """
        prepare = self.recipe.prepare
        if prepare is None:
            yield rows
            return
        record, numbers, groups = rows
        assert numbers is not None

        def reseed(start: int, stop: int) -> Reseed | RowDraws:
            keys = None
            if isinstance(prepare, Net) and prepare.is_random:
                own = RowRange(one.block, record.num_rows, numbers, _key_of(one, numbers))
                keys = keys_of_rows([own], np.arange(start, stop))
            return self._draws(epoch, PREPARE, one.key, keys)

        def run(start: int, stop: int) -> Record:
            rows = record if stop - start == record.num_rows else slice_rows(record, start, stop)
            return apply(prepare, rows, reseed(start, stop))

        halves = by_halves(
            lambda start, stop: one_row_space(run(start, stop)),
            0, record.num_rows, lambda error: self.recipe.keeps_going and blames_rows(error),
        )  # fmt: skip
        try:
            for of, result in halves:
                if isinstance(result, Exception):
                    refused = slice_rows(record, of.start, of.stop)
                    bad = [refused_row(0, refused, result)]
                    self._reject(ledger, Rejected.of(to_arrow(refused), bad, numbers[of], one.block))
                else:
                    ledger.rows_left += result.num_rows - (of.stop - of.start)
                    keeps = isinstance(prepare, Net) and executor.keeps_rows(prepare, record)
                    of_rows: RowNumbers | None = numbers[of] if keeps else None
                    if self.numbered and isinstance(prepare, Net) and not keeps:
                        made_of = executor.row_numbers(
                            prepare,
                            slice_rows(record, of.start, of.stop),
                            reseed(of.start, of.stop),
                        )
                        of_rows = None if made_of is None else np.asarray(numbers[of])[made_of]
                    if groups is not None:
                        self._check_keeps(keeps, of.stop - of.start, result.num_rows)
                    yield _Prepared(result, of_rows, None if groups is None else groups[of])
        except Exception as error:
            is_net = isinstance(prepare, Net) and blames_rows(error)
            row = first_failing(run, record.num_rows, error) if is_net else None
            of_row = "" if row is None else f", row {numbers[row]}"
            if not isinstance(prepare, Net) and record.num_rows:
                of_row = f", rows {numbers[0]} to {numbers[-1]}"
            if row == 0 and each_fails(run, record.num_rows):
                of_row = f": {EACH_FAILS}"
            error.add_note(printable(f"preparing {one.block.origin}, block {one.block.index}{of_row}"))
            raise

    def _check_keeps(self, keeps: bool, rows: int, made: int) -> None:
        """Raise OpError unless `prepare` keeps rows: a net does by inference, a function if it returns as many."""
        if keeps or (not isinstance(self.recipe.prepare, Net) and made == rows):
            return
        found = (
            f"made {made} rows of {rows}" if made != rows else "is not known to keep each row in its place"
        )
        assert self.recipe.shuffle is not None
        raise OpError(
            f"Shuffle: by is {self.recipe.shuffle.by!r}, and prepare {found}, expected the same rows: groups are "
            "those of the source",
            advice="leave out rows with %(keep)s or %(where)s, and make several of one before",
        )

    def _fulfilling(self, rows: _Prepared, one: BlockSlice, ledger: Ledger) -> _Prepared:
        """Return the prepared rows that fulfil all conditions.

        Rows that `keep` omits are counted as filtered; `require` judges the others, and rejects some.
        """
        kept, refused = fulfilling(self.recipe.keep, rows.record)
        ledger.leave_out(refused)
        rows = rows.taken(kept)
        record, numbers, _ = rows
        bad = unfulfilled(self.recipe.require, record)
        for rejected in self.rejected(bad, [RowRange(one.block, record.num_rows, numbers)]) if bad else ():
            self._reject(ledger, rejected, is_prepared=numbers is None)
        return rows.taken(good_rows(record.num_rows, bad))

    def open(self, window: Window, slices: Sequence[PreparedSlice], epoch: int) -> OpenWindow:
        """Return the window with its rows in order and its batches planned."""
        with self.timings.time("plan") as timer:
            opened = self._planned(window, slices, epoch)
        opened.ledger.seconds_planning = timer.seconds
        return opened

    def _planned(self, window: Window, slices: Sequence[PreparedSlice], epoch: int) -> OpenWindow:
        recipe, ledger = self.recipe, Ledger()
        slices = [one for one in slices if one is not _WITH_FIRST]
        for _, of_slice in slices:
            ledger.add(of_slice)
        records = [record for found, _ in slices for record in found]
        ranges = [one for _, of in slices for one in of.ranges]
        records = [record for record in records if record.num_rows] or records[:1]
        ledger.ranges = tuple([one for one in ranges if one.rows] or ranges[:1])
        source = None if self.kept is None or not records else self.kept.rows(records)
        order = recipe.order(window, ledger.rows_left, epoch, _groups_by_block(ledger.ranges))
        draws = isinstance(recipe.net, Net) and recipe.net.is_random
        if order is None and (self.numbered or draws):
            order = np.arange(ledger.rows_left)
        rows = WindowRows(records, order, recipe.pad, source)
        while bad := differing_rows(rows, recipe.shares):
            for rejected in self.rejected(bad, ledger.ranges):
                self._reject(ledger, rejected, is_prepared=True)
            left = rows.numbers(slice(None))
            left = left[~np.isin(left, [one.row for one in bad])]
            rows = WindowRows(records, left, recipe.pad, source)
        lengths = recipe.planned_lengths(records[0]) if records else None
        batches = recipe.plan(rows, lengths, window, epoch)
        for rejected in self.rejected(batches.bad, ledger.ranges):
            self._reject(ledger, rejected, is_prepared=True)
        move(ledger, batches.dropped.begun, "rows_left", "dropped")
        move(ledger, batches.skipped, "rows_left", "skipped")
        return OpenWindow(window, rows, batches, ledger, lengths)

    def known(self, window: Window, epoch: int) -> Ledger | None:
        """Return the ledger of a window from the listing and the index; None if it must be read.

        It is known if no row can be bad or left out by `keep`, and `prepare` keeps the number of rows. Then each
        row is in a batch, or omitted by its length, or dropped.
        """
        if self.index is None or self.recipe.omits_rows:
            return None
        lengths = self.index.of_window(window)
        selection = self.recipe.batch.select(lengths)
        if len(lengths) != window.num_rows or lengths.min(initial=0) < 0 or len(selection.too_long):
            return None
        ledger = Ledger.of_source(len(lengths), window.filtered)
        move(ledger, selection.skipped, "rows_left", "skipped")
        rows = int(self.index.rows_of_batches(self.recipe, window, epoch).sum())
        move(ledger, ledger.rows_left - rows, "rows_left", "dropped")
        return ledger

    def known_rows(self, window: Window, epoch: int) -> Array | None:
        """int64: the rows that begin in each batch of a window whose ledger is known; None if it must be read."""
        if self.index is None or self.known(window, epoch) is None:
            return None
        return self.index.rows_of_batches(self.recipe, window, epoch)

    def rejected(self, bad: Sequence[BadRow], ranges: Sequence[RowRange]) -> Iterator[Rejected]:
        """Yield the source rows of some of these ranges that a condition, the batch plan, or `net` refuses.

        They are read again from the source, because the result of `prepare` has other columns. If `prepare`
        made new rows, nulls are in their place.
        """
        found, rows = places_in([one.rows for one in ranges], [one.row for one in bad])
        for at in np.unique(found).tolist():
            of, inside = ranges[at], np.flatnonzero(found == at).tolist()
            numbers = None if of.numbers is None else [int(of.numbers[rows[one]]) for one in inside]
            read = partial(self._read_again, of.block, numbers, len(inside))
            refused = tuple(bad[one] for one in inside)
            yield Rejected(refused, tuple(numbers or [None] * len(inside)), of.block, read)

    def _read_again(self, block: Block, numbers: Sequence[int] | None, count: int) -> pa.Table:
        """Return rows of a block, read again by their numbers; nulls without numbers."""
        source, of_all = self.recipe.source.unfiltered(block)
        if numbers is None:
            schema = source.schema
            chosen = schema if self.recipe.columns is None else select_schema(schema, self.recipe.columns)
            return pa.table({field.name: pa.nulls(count, field.type) for field in chosen})
        rows = range(min(numbers), max(numbers) + 1) if self.recipe.is_sliced(of_all) else None
        table = source.read(of_all, self.recipe.columns, bad_rows=[], rows=rows)
        return take_table(table, np.array(numbers) - (0 if rows is None else rows.start))

    def net_of(
        self, window: int, number: int, epoch: int, keys: Array | None = None, done: Collection[int] = ()
    ) -> Callable[[Record], Record]:
        """Return `net` as it runs on batch `number` of a window; `keys` are those of its rows.

        The batch has the results of the steps `done`.
        """
        net = self.recipe.net
        assert net is not None
        draws = isinstance(net, Net) and net.is_random
        reseed = self._draws(epoch, NET, (window, number), keys) if draws else None
        if isinstance(net, Net) and done:
            return partial(executor.run_rest, net, done=done, reseed=reseed)
        return partial(apply, net, reseed=reseed)

    def _draws(
        self, epoch: int, purpose: int, numbers: tuple[int, int], keys: Array | None
    ) -> Reseed | RowDraws:
        """Return the seeds of random ops for a batch or slice with these numbers, and for its rows by their keys."""
        seed = partial(self.recipe.seed, epoch=epoch, purpose=purpose)
        by_batch = partial(seed, numbers=numbers)
        return by_batch if keys is None else RowDraws(by_batch, partial(seed, numbers=(0, 0)), keys)
