"""Loader: batches from a provider, through `prepare`, a batch plan and `net`, in the order of the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from seqflow import executor, kernels, providers
from seqflow.byte_sizes import parse_bytes
from seqflow.errors import BatchPlanError, NetError, OpError, SeqflowError
from seqflow.loader.bad_rows import BadRowHandler, BadRows
from seqflow.loader.batching import Rows, batches, planned_lengths
from seqflow.loader.packing import Packed, pack, packed_batches
from seqflow.loader.plans import BatchPlan, batch_plan
from seqflow.loader.prefetch import Prefetch
from seqflow.loader.provenance import (
    NET_ERRORS,
    ROW_ERRORS,
    Provenance,
    RowNumbers,
    RowRange,
    describe_rows,
    first_failing_row,
)
from seqflow.loader.transforms import Transform, apply, one_row_space, transform_of
from seqflow.net import Net
from seqflow.providers import Block, Provider
from seqflow.record import BadRow, Record, convert, from_arrow, nbytes, slice_rows, to_arrow


@dataclass(slots=True)
class Stats:
    """Counts of one iteration so far."""

    rows: int = 0
    """Rows of the source, without bad ones."""
    tokens: int = 0
    """Elements of the planned column in the batches so far."""
    cells: int = 0
    """Elements of these batches when dense: of packed rows, or of rows padded to the longest."""
    batches: int = 0
    bad_rows: int = 0
    seconds_waiting: float = 0.0
    """Time for which the consumer waited for data."""
    bytes_in_flight: int = 0
    """Bytes of blocks read ahead or in use, of at most `memory`."""

    @property
    def fill(self) -> float | None:
        """The part of all cells that holds tokens; None before there are any."""
        return self.tokens / self.cells if self.cells else None


class Loader:
    """Batches of named tensors from a source of rows.

        loader = Loader("docs/*.parquet", columns=["tokens"], batch=256, net="x, mask = pad(…)")
        for batch in loader: ...

    `source` is a path, a glob, a folder, an object with `__arrow_c_stream__`, or a provider; further keywords go
    to `sf.open`. Blocks come in order. `prepare` runs on each block before batches are planned and may change
    lengths and the number of rows; `net` runs on each batch. Both are a Net, its text, or a Python function from
    record to mapping. `batch` is a number of rows, `Rows`, `TokenBudget` or `Packed`. `constants` are bound to both
    nets.

    `window` is how many bytes of rows are packed together; `memory` bounds the bytes of blocks read ahead and in
    use (one block is always let through). `fill` and `valid` say what null values become, `bad_rows` what
    happens to rows that cannot be used.

    Each `iter(loader)` starts anew. A batch is a Record: a mapping of names to tensors that knows which
    lengths describe each. `batch.num_rows` counts its rows.
    """

    def __init__(
        self,
        source: Any,
        *,
        columns: Sequence[str] | None = None,
        prepare: Net | str | Transform | None = None,
        net: Net | str | Transform | None = None,
        batch: BatchPlan | int = 256,
        constants: Mapping[str, Any] | None = None,
        window: int | str = "32 MiB",
        memory: int | str = "256 MiB",
        bad_rows: str | BadRows = "raise",
        fill: Any = None,
        valid: bool = False,
        **options: Any,
    ) -> None:
        is_provider = isinstance(source, Provider)
        self.source: Provider = source if is_provider else providers.open(source, columns=columns, **options)
        self.columns = columns
        self.prepare, self.net = _bind_constants(
            transform_of(prepare), transform_of(net), dict(constants or {})
        )
        self.batch = batch_plan(batch)
        self.window, self.memory = _bytes("window", window), _bytes("memory", memory)
        self.bad_rows = BadRows(bad_rows) if isinstance(bad_rows, str) else bad_rows  # type: ignore[arg-type]
        self.fill, self.valid = fill, valid
        self._stats = Stats()
        self._ahead: Prefetch[Record] | None = None

    @property
    def num_rows(self) -> int | None:
        """Rows of the source, where the format knows them."""
        return self.source.num_rows

    def empty_batch(self) -> Record | None:
        """A batch without rows, with the tensors that batches have.

        None where Python functions make them, or a net needs rows.
        """
        nets = [net for net in (self.prepare, self.net) if net is not None]
        if not all(isinstance(net, Net) for net in nets):
            return None
        record = from_arrow(
            self.source.schema.empty_table(), columns=self.columns, fill=self.fill, valid=self.valid
        )
        try:
            record = record if self.prepare is None else apply(self.prepare, record)
            name = self.planned_lengths(record)
            if isinstance(self.batch, Packed):
                assert name is not None
                record = pack(record, self.batch, name)
            return record if self.net is None else apply(self.net, record)
        except ROW_ERRORS as error:
            if isinstance(error, (BatchPlanError, *NET_ERRORS)):
                raise
            return None

    def planned_lengths(self, record: Record) -> str | None:
        """The lengths that batches of such records are planned on; BatchPlanError where there must be some."""
        plan = self.batch
        needed_by = None if isinstance(plan, Rows) else type(plan).__name__
        return planned_lengths(record, plan.lengths, needed_by)

    def stats(self) -> Stats:
        """Counts of the last iteration so far."""
        if self._ahead is not None:
            self._stats.seconds_waiting = self._ahead.seconds_waiting
            self._stats.bytes_in_flight = self._ahead.bytes_in_flight
        return self._stats

    def __iter__(self) -> Iterator[Record]:
        stats = self._stats = Stats()
        handler = BadRowHandler(self.bad_rows, self.source.files)
        provenance, row = Provenance(), 0
        ahead = self._ahead = Prefetch(self._records(handler, stats, provenance), nbytes, self.memory)
        finished = False
        try:
            for batch in self._plan(iter(ahead), stats):
                stats.batches += 1
                result = batch if self.net is None else self._run_net(self.net, batch, provenance, row)
                row += batch.num_rows
                del batch  # the consumer may drop it before the next one is made
                yield result
                del result
            finished = True
        finally:
            handler.close(keep=finished)

    def _run_net(self, net: Net | Transform, batch: Record, provenance: Provenance, start: int) -> Record:
        """The result of `net` on a batch; an error gets a note with the place of the batch's rows."""
        if not isinstance(self.batch, Packed):
            provenance.forget_before(start)
        try:
            return apply(net, batch)
        except Exception as error:
            row = _failing_row(net, batch, error)
            what = "in a batch of" if row is None else "at"
            error.add_note(f"{what} {describe_rows(provenance, batch, start, row)}")
            raise

    def _records(self, handler: BadRowHandler, stats: Stats, provenance: Provenance) -> Iterator[Record]:
        """Blocks as records, prepared; runs in the thread that reads ahead."""
        with kernels.single_thread():
            for block in self.source.blocks():
                record, numbers = self._read(block, handler)
                before = handler.count
                for prepared, kept in self._prepare(record, numbers, block, handler):
                    if self.net is not None:
                        provenance.add(RowRange(block, prepared.num_rows, kept))
                    yield prepared
                    del prepared
                stats.rows += record.num_rows - (handler.count - before)
                stats.bad_rows = handler.count

    def _read(self, block: Block, handler: BadRowHandler) -> tuple[Record, RowNumbers]:
        """The good rows of a block, and their row numbers in it."""
        unreadable: list[BadRow] = []
        table = self.source.read(block, self.columns, bad_rows=unreadable if handler.keeps_going else None)
        record, bad = convert(table, fill=self.fill, valid=self.valid)
        numbers: RowNumbers = range(table.num_rows)
        if bad or unreadable:
            kept = handler.remove(table, [*unreadable, *bad], numbers, block)
            record, _ = convert(table.filter(kept), fill=self.fill, valid=self.valid)
            numbers = np.flatnonzero(kept)
        return record, numbers

    def _prepare(
        self, record: Record, numbers: RowNumbers, block: Block, handler: BadRowHandler
    ) -> Iterator[tuple[Record, RowNumbers | None]]:
        """The results of `prepare`, and their row numbers in the block where it keeps the rows."""
        if self.prepare is None:
            yield record, numbers
            return
        try:
            prepared = one_row_space(apply(self.prepare, record))
        except ROW_ERRORS as error:
            if handler.keeps_going and not isinstance(error, NET_ERRORS):
                yield from self._prepare_halves(record, numbers, block, handler, error)
                return
            row = _failing_row(self.prepare, record, error)
            of_row = "" if row is None else f", row {numbers[row]}"
            error.add_note(f"preparing {block.origin}, block {block.index}{of_row}")
            raise
        keeps = isinstance(self.prepare, Net) and executor.keeps_rows(self.prepare, record)
        yield prepared, numbers if keeps else None

    def _prepare_halves(
        self, record: Record, numbers: RowNumbers, block: Block, handler: BadRowHandler, error: SeqflowError
    ) -> Iterator[tuple[Record, RowNumbers | None]]:
        """Find the rows that `prepare` refuses by halving, and prepare the others."""
        if record.num_rows <= 1:
            reason = str(error).split("\n")[0]
            handler.remove(to_arrow(record), [BadRow(0, ", ".join(record), reason)], numbers, block)
            return
        middle = record.num_rows // 2
        for half in (slice(0, middle), slice(middle, record.num_rows)):
            rows = slice_rows(record, half.start, half.stop)
            yield from self._prepare(rows, numbers[half], block, handler)

    def _plan(self, records: Iterator[Record], stats: Stats) -> Iterator[Record]:
        first = next(records, None)
        if first is None:
            return
        name = self.planned_lengths(first)
        everything = _chain(first, records)
        if isinstance(self.batch, Packed):
            assert name is not None
            for batch in packed_batches(everything, self.batch, name, self.window):
                stats.tokens += int(batch["piece_lengths"].sum())
                stats.cells += batch.num_rows * self.batch.capacity
                yield batch
                del batch
            return
        for batch in batches(everything, self.batch, name):
            if name is not None and batch.num_rows:
                stats.tokens += kernels.check_lengths(batch[name])
                stats.cells += batch.num_rows * kernels.max_length(batch[name])
            yield batch


def _chain(first: Record, rest: Iterator[Record]) -> Iterator[Record]:
    yield first
    del first
    yield from rest


def _bytes(option: str, size: int | str) -> int:
    try:
        return parse_bytes(size)
    except ValueError as error:
        raise OpError(f"Loader: {option}: {error}") from None


def _bind_constants(
    prepare: Net | Transform | None, net: Net | Transform | None, constants: dict[str, Any]
) -> tuple[Net | Transform | None, Net | Transform | None]:
    """Give each net the constants it reads; NetError for one that neither reads."""
    nets = [item for item in (prepare, net) if isinstance(item, Net)]
    unused = [name for name in constants if not any(name in item.inputs for item in nets)]
    if unused:
        raise NetError(f"net: nothing uses the constant {unused[0]!r}")

    def bound(item: Net | Transform | None) -> Net | Transform | None:
        if not isinstance(item, Net):
            return item
        return item.bind(**{name: value for name, value in constants.items() if name in item.inputs})

    return bound(prepare), bound(net)


def _failing_row(transform: Net | Transform, record: Record, error: Exception) -> int | None:
    """The row of a record that made a net fail. Python functions are not run again, so theirs is None."""
    return first_failing_row(partial(apply, transform), record, error) if isinstance(transform, Net) else None
