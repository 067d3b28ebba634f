"""Make batches, run them through `net`, again without rows that it refuses, and trace where their rows come from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpIndexError, SeqflowError, nearest
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.packed import Packed
from seqflow.loader.plans.plan import WindowBatches
from seqflow.loader.plans.shares import shared
from seqflow.loader.plans.window_rows import Pieces
from seqflow.loader.run.ledger import Stats, describe_rows, refused_row
from seqflow.loader.run.step_pads import padded_early
from seqflow.loader.run.tasks import BatchTask
from seqflow.loader.run.timings import Timer
from seqflow.loader.run.windows import (
    EACH_FAILS,
    WindowMaker,
    blames_rows,
    by_halves,
    each_fails,
    fails_empty,
    first_failing,
    keys_of_rows,
)
from seqflow.net import Net
from seqflow.printable import printable
from seqflow.providers import Provider
from seqflow.record import BadRow, Record, slice_rows
from seqflow.record.batch_memory import BatchMemory

set_field = object.__setattr__
"""Set a field of a batch that was just made and that no other code holds."""


class BatchResult(NamedTuple):
    """A batch, or the error raised when making it."""

    task: BatchTask
    batch: Record | None
    error: BaseException | None = None
    memory: BatchMemory | None = None
    """Memory that holds the batch, to be used again after it."""
    refused: tuple[BadRow, ...] = ()
    """Rows of the window that `net` refused, which are not in the batch."""


def finished_batch(made: BatchResult) -> Record:
    """Return the batch of a task as users get it, with the totals of its step if they are counted."""
    batch, task = made.batch, made.task
    assert batch is not None
    if task.totals is None:
        return batch
    fields = batch.tensors, batch.parents, batch.num_rows, batch.schema, batch.dictionaries, batch.number
    return LoadedBatch(*fields, shares=batch.shares).of_step(task.step, task.totals)


class BatchMaker:
    """Makes the batches of an epoch, in any thread.

    With `reuse`, batches lie in memory that is used again: the page faults of new memory cost more than copying
    the rows.
    """

    def __init__(
        self, windows: WindowMaker, epoch: int, stats: Stats, *, reuse: bool, numbered: bool
    ) -> None:
        self._windows, self._epoch, self._stats, self._reuse = windows, epoch, stats, reuse
        self._numbered = numbered
        """Whether batches know their numbers: those of a part may be counted over the part, or over the epoch."""
        self._net, self._shares = windows.recipe.net, windows.recipe.shares
        self.free: list[BatchMemory] = []
        """Memory that is not in use by any batch."""

    def make(self, tasks: list[BatchTask]) -> list[BatchResult]:
        """Return the batches, up to the first error."""
        with self._stats.timings.time("make") as timer:
            timer.calls = len(tasks)
            memories = [self._memory() for _ in tasks]
            together = self._make_together(tasks, memories)
            made = []
            for task, memory, batch in zip(tasks, memories, together, strict=True):
                try:
                    made.append(self._made(task, memory, batch, timer))
                except BaseException as error:
                    made.append(BatchResult(task, None, error))
                    break
        self._stats.add_making(timer.seconds)
        return made

    def _made(
        self, task: BatchTask, memory: BatchMemory | None, batch: Record | None, timer: Timer
    ) -> BatchResult:
        """Return a batch, which may have been made together with others, after its net."""
        batches, done = self._before_net(task)
        if done:
            try:
                batch = batches.make(task.number, memory) if batch is None else batch
                with self._stats.timings.time("net", timer):
                    batch = self._net_of(task, done=done)(batch)
                if self._numbered:
                    set_field(batch, "number", task.batch)
                return BatchResult(task, batch, None, memory)
            except Exception:
                batch = None  # made again as it is without steps that are done: for the error of the net, and its row
        if batch is None:
            batch = task.batches.make(task.number, memory)
        if task.fill == "pad":
            batch = slice_rows(batch, 0, 0)
        batch = shared(batch, self._shares)
        if self._numbered:
            set_field(batch, "number", task.batch)
        made = BatchResult(task, batch, None, memory)
        if not isinstance(self._net, Net):
            return made
        with self._stats.timings.time("net", timer):
            return self._run_net(made)

    def finish(self, made: BatchResult) -> BatchResult:
        """Return the batch as it is handed out: users' functions run in their own thread, nets have already run
        in the workers.
        """
        if self._net is None or isinstance(self._net, Net):
            return made
        with self._stats.timings.time("function"):
            return self._run_net(made)

    def _make_together(
        self, tasks: list[BatchTask], memories: list[BatchMemory | None]
    ) -> Sequence[Record | None]:
        """Return the batches if one window plans them all; None for each that must be made alone."""
        batches = tasks[0].batches
        if len(tasks) > 1 and all(task.batches is batches and task.fill != "pad" for task in tasks):
            try:
                return self._before_net(tasks[0])[0].make_all([task.number for task in tasks], memories)
            except (SeqflowError, MemoryError):
                pass  # made one by one, the batches before the bad one are handed out first
        return [None] * len(tasks)

    def _before_net(self, task: BatchTask) -> tuple[WindowBatches, tuple[int, ...]]:
        """Return the batches that `net` gets, and the steps whose results they have: those that pad columns."""
        net, batches = self._net, task.batches
        if not isinstance(net, Net) or self._shares or task.fill == "pad":
            return batches, ()
        if batches.before_net is None:
            batches.before_net = padded_early(batches, net)
        return batches.before_net

    def _net_of(
        self, task: BatchTask, chosen: Array | None = None, done: Collection[int] = ()
    ) -> Callable[[Record], Record]:
        """Return `net` as it runs on a batch, or on the rows of it that are chosen."""
        seed = task.seed or (task.windows[0].window.number, task.row.inside)
        return self._windows.net_of(*seed, self._epoch, self._keys(task, chosen), done)

    def _memory(self) -> BatchMemory | None:
        if not self._reuse:
            return None
        try:
            # not a check before the pop: another thread may take the last one in between
            return self.free.pop()
        except IndexError:
            return BatchMemory()

    def _keys(self, task: BatchTask, chosen: Array | None = None) -> Array | None:
        """Return the keys of the rows of a batch, or of a part of it; None if `net` draws no random numbers.

        A row of several pieces has the key of its first piece, and of the place where this begins in its row.
        """
        if not (isinstance(self._net, Net) and self._net.is_random) or task.fill == "pad":
            return None
        batches, ranges = task.batches, [one for window in task.windows for one in window.ledger.ranges]
        numbers, rows = batches.numbers(task.number), batches.row_of_pieces(task.number)
        if batches.cut:
            pieces = batches.pieces_of(task.number)
            if chosen is not None:
                numbers, rows, pieces = numbers[chosen], rows[chosen], pieces.take(chosen)
            first = np.unique(rows, return_index=True)[1]
            keys = keys_of_rows(ranges, numbers[first])
            return kernels.random_output(keys, pieces.starts[first].astype(np.uint64))
        return keys_of_rows(ranges, numbers if chosen is None else numbers[chosen])

    def _run_net(self, made: BatchResult) -> BatchResult:
        """Return the result of `net` on a batch, without the rows that it refuses if bad rows are omitted.

        An error gets a note with the place of the row that causes it, or else of the batch.
        """
        assert made.batch is not None
        task = made.task

        def net(record: Record, chosen: Array | None = None) -> Record:
            run = self._net_of(task, chosen)
            return run(record if chosen is None else shared(record, self._shares))

        try:
            batch = net(made.batch)
            set_field(batch, "number", made.batch.number)
            return made._replace(batch=batch)
        except Exception as error:
            count = 0 if task.fill == "pad" else len(task.batches.numbers(task.number))
            searched, row, run = False, None, partial(_run_part, net, task)
            if blames_rows(error) and self._windows.recipe.keeps_going:
                accepted = _accepted(made, net, count, error) if count else None
                if accepted is not None:
                    return accepted
                searched = True
            elif blames_rows(error) and isinstance(self._net, Net):
                searched, row = True, first_failing(run, count, error)
            if row == 0 and each_fails(run, count):
                error.add_note(EACH_FAILS)
            else:
                error.add_note(printable(_place_of(task, row, searched=searched)))
            raise


RunNet = Callable[..., Record]
"""Runs a net on a batch, or on the part of it whose places are given, too."""


def _run_part(net: RunNet, task: BatchTask, start: int, stop: int) -> Record:
    """Return the result of a net on only some of the rows of a batch, or pieces of packed rows."""
    chosen = np.arange(start, stop)
    return net(task.batches.part(task.number, chosen), chosen)


def _accepted(made: BatchResult, net: RunNet, count: int, error: Exception) -> BatchResult | None:
    """Return the batch without those of its `count` rows or pieces that fail alone; None if that does not help."""
    task = made.task
    run = partial(_run_part, net, task)
    found = by_halves(run, 0, count, failed=error)
    failing = {rows.start: failed for rows, failed in found if isinstance(failed, Exception)}
    # rows that fail only together, or a net that fails without rows: omitting rows is not a cure
    if not failing or (len(failing) == count and fails_empty(run)):
        return None
    chosen = np.setdiff1d(np.arange(count), list(failing))
    part = task.batches.part(task.number, chosen)
    try:
        batch = net(part, chosen)
    except Exception as left:
        if blames_rows(left):
            return None
        raise
    numbers = task.batches.numbers(task.number)
    refused = [refused_row(int(numbers[at]), part, failed) for at, failed in failing.items()]
    assert made.batch is not None
    set_field(batch, "number", made.batch.number)
    task = task._replace(size=task.batches.size_of_part(task.number, chosen))
    return made._replace(task=task, batch=batch, refused=tuple(refused))


def _place_of(task: BatchTask, row: int | None, *, searched: bool) -> str:
    """Return the place of a batch, or of one of its rows, as text."""
    ranges = [one for window in task.windows for one in window.ledger.ranges]
    numbers = task.batches.numbers(task.number)
    if row is not None:
        return f"at {describe_rows(ranges, numbers[row : row + 1])}"
    place = f"in a batch of {describe_rows(ranges, numbers)}"
    return f"{place}: no row of it is the cause alone" if searched else place


PREFIX = "step."
"""Prefix of the names of totals in a batch."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LoadedBatch(Record):
    """A batch of a mix, or of a loader that counts totals: `batch["step.trained"]` is one of the totals, a 0-d
    array.

    Names, `items()` and `in` are those of the tensors: totals have no rows, which a net or `to_arrow` needs of all
    that a record holds. `totals` has them all; the dicts of `loader.to("torch")` contain them as `step.trained`.
    """

    sources: tuple[str, ...] = ()
    """Names of the sources in a mix that its rows come from."""
    step: int = 0
    """Number of its step in the epoch."""
    totals: Mapping[str, int | float] = field(default_factory=dict)
    """Totals over all batches of the step, on all ranks, by name."""

    def __getitem__(self, name: str) -> Any:
        if name not in self.tensors and name.removeprefix(PREFIX) in self.totals and name.startswith(PREFIX):
            return np.asarray(self.totals[name.removeprefix(PREFIX)])
        return Record.__getitem__(self, name)

    def of_step(self, step: int | None, totals: Mapping[str, int | float]) -> LoadedBatch:
        """Return the batch with the number and the totals of its step. Warn of a total of 0."""
        assert step is not None
        for name, total in totals.items():
            if not total:
                warnings.warn(
                    f"totals: {name} of step {step} is 0: no batch of it has any, do not divide by it",
                    stacklevel=4,
                )
        return replace(self, step=step, totals=totals)


@dataclass(frozen=True, slots=True)
class Trace:
    """Origin of a row, a piece of a row, or an element of a batch.

    >>> print(Trace("docs.parquet", 3, 17, "tokens", 402))
    docs.parquet, block 3, row 17, column tokens, element 402
    """

    file: str
    """The file; for data in memory, its name in errors."""
    block: int
    """Number of the row group, record batch or group of lines in it."""
    row: int | None
    """Number of the row in the block; None if `prepare` made new rows, so that it is not known."""
    column: str | None = None
    """List column whose elements are counted, as `prepare` made it."""
    element: int | None = None
    """Place of the element in the row's list, or of the first element of a piece."""
    elements: int | None = None
    """Number of elements of a piece of a row."""
    hidden_by: str | None = None
    """Name of what made new rows, so that their numbers are not known."""
    source: str | None = None
    """Name of the source, in a Mix."""
    part: int | None = None
    """Number among the rows that `prepare` made from this row, from 0; None if it made one."""

    def __str__(self) -> str:
        of_row = f"row {self.row}" if self.hidden_by is None else f"a row that {self.hidden_by} made"
        parts = [self.file, f"block {self.block}", of_row]
        if self.part is not None:
            parts.append(f"part {self.part}")
        if self.column is not None:
            parts.append(f"column {self.column}")
        if self.elements is not None and self.element is not None:
            parts.append(f"elements {self.element} to {self.element + self.elements - 1}")
        elif self.element is not None:
            parts.append(f"element {self.element}")
        return ", ".join(parts)


def trace_task(
    task: BatchTask, prepare: str | None, row: int | None, element: int | None, column: str | None
) -> list[Trace]:
    """Return the origins of the rows of a batch, of the pieces of one of its rows, or of one element."""
    if element is not None and row is None:
        raise OpError(f"trace: element is {element}, expected a row with it")
    batches = task.batches
    numbers, pieces = batches.numbers(task.number), batches.pieces_of(task.number)
    if row is not None:
        chosen = np.flatnonzero(batches.row_of_pieces(task.number) == row)
        numbers, pieces = numbers[chosen], pieces.take(chosen)
        if element is not None:
            name, lengths = _column_to_trace(task, column)
            owners = _elements_of(task, lengths, numbers, pieces, element, f"{name} in row {row}")
            return [
                replace(_of_row(task, int(numbers[at]), prepare), column=name, element=place)
                for at, place in owners
            ]
    found = [_of_row(task, number, prepare) for number in numbers.tolist()]
    if not batches.cut:
        return found
    planned = _planned_column(task)
    parts = zip(found, pieces.starts.tolist(), pieces.sizes.tolist(), strict=True)
    return [replace(one, column=planned, element=start, elements=size) for one, start, size in parts]


def with_files(traces: Sequence[Trace], task: BatchTask, provider: Provider) -> list[Trace]:
    """Return the traces, with the file of each row if the rows of a block come from several files."""
    if not provider.source.file_per_row:
        return list(traces)
    ranges = [one for of in task.windows for one in of.ledger.ranges]
    blocks = {one.block.index: provider.unfiltered(one.block)[1] for one in ranges}
    return [
        one if one.row is None else replace(one, file=provider.source.paths_of(blocks[one.block])[one.row])
        for one in traces
    ]


def _of_row(task: BatchTask, number: int, prepare: str | None) -> Trace:
    for window in task.windows:
        for one in window.ledger.ranges:
            if number < one.rows:
                if one.numbers is None:
                    return Trace(one.block.origin, one.block.index, None, hidden_by=prepare)
                row = int(one.numbers[number])
                alike = np.flatnonzero(np.asarray(one.numbers) == row)
                part = None if len(alike) == 1 else int(np.searchsorted(alike, number))
                return Trace(one.block.origin, one.block.index, row, part=part)
            number -= one.rows
    raise AssertionError("a batch has rows of its windows alone")


def _column_to_trace(task: BatchTask, column: str | None) -> tuple[str, str]:
    """Return the list column whose elements are counted, and its lengths; raise OpError when there is none."""
    name = _planned_column(task) if column is None else column
    source = task.batches.rows.source
    lengths = f"{name}.lengths"
    if name is not None and lengths not in source.offsets:
        lengths = source.parents.get(name) or ""
    if name is not None and lengths in source.offsets:
        return name, lengths
    columns = [_column_of(task, one) for one in source.offsets if source.parents[one] is None]
    what = "column is None" if name is None else f"column is {name!r}{nearest(name, columns)}"
    raise OpError(f"trace: {what}, expected one of {', '.join(columns) or 'no list columns: there are none'}")


def _elements_of(
    task: BatchTask, lengths: str, numbers: Array, pieces: Pieces, element: int, where: str
) -> list[tuple[int, int]]:
    """Return which of the pieces of a row of the batch contain an element, and its place in the row of the source
    of each: several pieces if they share it.
    """
    plan, source = task.batches.plan, task.batches.rows.source
    capacity, starts, sizes = plan.packed_capacity, pieces.starts, pieces.sizes
    if lengths not in task.batches.cut:
        capacity = None
        of = task.batches.rows.below(lengths, pieces, ())
        starts, sizes = of.starts - source.offsets[lengths][numbers], of.sizes
    elif isinstance(plan, Packed) and plan.share is not None:
        owners = plan.owners(task.batches, pieces, element)
        if len(owners[0]):
            return list(zip(*(of.tolist() for of in owners), strict=True))
        sizes = np.zeros(0, np.int64)
    ends = np.cumsum(sizes if capacity is None else -(-sizes // plan.multiple_of) * plan.multiple_of)
    at = int(np.searchsorted(ends, element, side="right"))
    if element >= 0 and at < len(sizes):
        inside = element - (int(ends[at - 1]) if at else 0)
        if inside < sizes[at]:
            return [(at, int(starts[at]) + inside)]
    if capacity is None:
        raise OpIndexError(
            f"trace: element is {element}, expected less than {sizes.sum()}, the elements of {where}"
        )
    if 0 <= element < capacity:
        raise OpIndexError(f"trace: element {element} of {where.partition(' in ')[2]} is padding")
    raise OpIndexError(f"trace: element is {element}, expected less than the capacity, {capacity}")


def _planned_column(task: BatchTask) -> str | None:
    lengths = task.windows[0].lengths
    return None if lengths is None else _column_of(task, lengths)


def _column_of(task: BatchTask, lengths: str) -> str:
    """Return `c` for `c.lengths`; for lengths with another name, the first values under them."""
    under = (name for name, above in task.batches.rows.source.parents.items() if above == lengths)
    return lengths.removesuffix(".lengths") if lengths.endswith(".lengths") else next(under, lengths)
