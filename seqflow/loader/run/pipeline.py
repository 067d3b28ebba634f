"""The pipeline of one source: its windows are scheduled, read and made into the batches of any epoch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from seqflow import executor
from seqflow.errors import BatchPlanError, OpError
from seqflow.identity.transforms import name_of, transform_identity
from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.steps import OWN_NUMBERS, Numbering, Steps
from seqflow.loader.epoch.table import RowStream, Stream, Table
from seqflow.loader.plans.pad import Pad
from seqflow.loader.plans.rows import Rows
from seqflow.loader.plans.totals import Totals
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.bad_rows import BadRowHandler, BadRows
from seqflow.loader.run.changing import Found, as_of_now, earlier_changes, found_since, renamed, windows_begun
from seqflow.loader.run.indexing import Indexing
from seqflow.loader.run.iterator import SourceIteration
from seqflow.loader.run.provenance import NET_ERRORS, ROW_ERRORS
from seqflow.loader.run.required import required_of
from seqflow.loader.run.source_run import SourceRun
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.tracing import Trace, trace_turn, with_files
from seqflow.loader.run.transforms import apply
from seqflow.loader.run.turns import EpochPlan, turn_at
from seqflow.loader.run.windows import KeptWindow, WindowMaker
from seqflow.loader.run.workers import Prefetch, Workers
from seqflow.loader.schedule.changes import Change, changed_windows
from seqflow.loader.schedule.identity import data_fingerprint, file_fingerprints, index_key, settings_of
from seqflow.loader.schedule.index import LengthsIndex, Measured
from seqflow.loader.schedule.layout import Layout
from seqflow.loader.schedule.older_index import FileBlocks, files_with_blocks
from seqflow.loader.schedule.parts import Parts
from seqflow.loader.schedule.ranks import ALL_BATCHES, Deal
from seqflow.loader.schedule.recipe import Listing, Recipe
from seqflow.loader.schedule.skips import NO_SKIPS, Skips, Span
from seqflow.loader.schedule.state import Position, check_loader_form, check_prepared_place, check_state
from seqflow.loader.schedule.windows import Window, Windows, cut_windows, deal_windows
from seqflow.net import Net
from seqflow.record import Record, from_arrow
from seqflow.shape import Dimension
from seqflow.signature import Described, OwnRows
from seqflow.tensor import TensorSpec


class Pipeline:
    """Makes the batches of any epoch of a recipe, from any place on, for the ranks of a deal."""

    def __init__(
        self,
        recipe: Recipe,
        deal: Deal,
        index: Path | None,
        bad_rows: BadRows,
        version: str | None,
        prefetch: Prefetch,
        skip: Sequence[Span] = (),
        totals: Totals | None = None,
        steps_of: int = 1,
    ) -> None:
        self.recipe, self.deal, self.bad_rows = recipe, deal, bad_rows
        self.skip = skip
        """Spans of batches that are left out, each with its epoch."""
        self.totals, self.steps_of = totals, steps_of
        """What all batches of a step hold, and how many a rank has in it, where the plan has no balance."""
        self.threads, self._reuse = prefetch.threads, prefetch.reuse
        self._version = version
        self.changes: tuple[Change, ...] = ()
        """What was another behind some batches of the epoch that a loaded state is of."""
        self.listing = Listing(recipe)
        self._kept = KeptWindow()
        self._index = None
        if index is not None:
            self._index = Indexing(
                index, recipe, self.listing, self.threads, self._index_key, self._files_with_blocks
            )
        self._identities: dict[str, Any] = {}
        """Those of `prepare` and `net`, once they were asked for."""
        self._required = required_of(recipe.require)
        self._data: dict[str, Any] | None = None
        self._files: list[list[Any]] | None = None
        self._counts_rows: bool | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What it was made from; not what it has read."""
        return vars(self) | {"_kept": KeptWindow(), "_data": None, "_files": None}

    @property
    def epochs_differ(self) -> bool:
        """Whether batches of one epoch are others than those of the next, by their order or by random ops."""
        nets = (one for one in (self.recipe.prepare, self.recipe.net) if isinstance(one, Net))
        return self.recipe.shuffle is not None or any(net.is_random for net in nets)

    def for_parts(self) -> Pipeline:
        """The same for another process, which makes parts that it is sent: it has no files, threads or index."""
        recipe = replace(self.recipe, source=self.recipe.source.of_files(()))
        return Pipeline(
            recipe, ALL_BATCHES, None, BadRows("skip"), self._version, Prefetch(threads=0), self.skip
        )

    # Iterating

    def beginning(self, epoch: int) -> Position:
        """The place before the first batch of an epoch."""
        return Position(epoch, 0, None, self.deal.world_size)

    def handlers(self) -> list[BadRowHandler]:
        """What takes the bad rows of an iteration."""
        return [BadRowHandler(self.bad_rows.marked(*self.deal.marks), self.recipe.source.files)]

    def iterate(
        self,
        start: Position,
        workers: Workers,
        handlers: Sequence[BadRowHandler],
        stats: Stats,
        numbers: Iterator[int] | None = None,
        parts: Parts | None = None,
    ) -> SourceIteration:
        """The batches from a place on: those of this rank, or some by their numbers in the epoch, in order.

        The windows of the only stream may be cut into parts, of which one after another is asked for.
        """
        deal = self.deal if numbers is None else ALL_BATCHES
        skips = Skips(self.skip, start.epoch) if numbers is None else NO_SKIPS
        run = self.run(
            start,
            workers,
            handlers[0],
            stats,
            deal=deal,
            skips=skips,
            parts=parts,
            at_once=numbers is not None,
        )
        return SourceIteration(run, workers, stats, numbers)

    def run(
        self,
        start: Position,
        workers: Workers,
        handler: BadRowHandler,
        stats: Stats,
        *,
        deal: Deal = ALL_BATCHES,
        skips: Skips = NO_SKIPS,
        parts: Parts | None = None,
        numbering: Numbering = OWN_NUMBERS,
        traced: bool = False,
        at_once: bool = True,
        counts_on: bool = False,
    ) -> SourceRun:
        """One pass over the source from a place on.

        `numbering` says which steps the batches belong to, where they are those of a mix. `traced` windows number
        their rows. Windows count `at_once` when they are opened, or with the first batch that is handed out of them.
        Where the run `counts_on`, those of batches before its place were counted by the run before.
        """
        self.look_at_functions()
        self._check_steps(start)
        if self._required is not None and not self._has_function:
            self._required.check(empty_rows(self.recipe))
        layout, table = self.table(start.epoch)
        self._check_counts(table)
        if parts is not None:
            parts.of(layout)
        table, counted = _resumed(table, layout, start), 0
        if counts_on and start.batch:
            stream = table.streams[0]
            counted = stream.next_window(stream.window_of(start.batch - 1))
        epoch = EpochPlan(
            start,
            table,
            layout,
            lambda: self.table(start.epoch)[1],
            deal,
            skips,
            self.steps(numbering),
            self.totals,
            parts,
        )
        is_measured = self._index is not None and not table.counted and not at_once
        maker = WindowMaker(
            self.recipe,
            self.listing,
            self._kept if self._keeps_window(layout) and not traced else None,  # it has no row numbers
            self._index.measured() if is_measured and self._index is not None else None,
            traced,
        )
        return SourceRun(
            epoch, maker, workers, handler, stats, reuse=self._reuse, at_once=at_once, counted=counted
        )

    @property
    def _has_function(self) -> bool:
        """Whether a Python function prepares rows, so that nobody knows what they are before they are read."""
        return self.recipe.prepare is not None and not isinstance(self.recipe.prepare, Net)

    def _check_steps(self, start: Position) -> None:
        """Errors for costs and totals of what records have not, where that is known before reading."""
        recipe, steps = self.recipe, self.steps()
        if steps is None:
            return
        if not self._has_function:
            rows = empty_rows(recipe)
            if recipe.batch.balance is not None:
                recipe.batch.balance.check(rows)
            if self.totals is not None:
                self.totals.check(rows, recipe.pad)
        if self.totals is not None and start.ranks != self.deal.world_size and start.batch % steps.size:
            raise OpError(
                f"load_state_dict: batch {start.batch} is inside a step of {steps.size} batches, whose totals would "
                f"count what {start.ranks} ranks have had\n  choose steps_of so that a step ends there"
            )

    def steps(self, numbering: Numbering = OWN_NUMBERS) -> Steps | None:
        """How batches make steps; None where nothing asks for them."""
        balance, ranks = self.recipe.batch.balance, self.deal.ranks
        if balance is not None:
            return Steps(balance.step, balance.group, balance.steps_in_pool, ranks, numbering=numbering)
        if self.totals is None:
            return None
        return Steps(ranks.world_size * self.steps_of, ranks.world_size, 1, ranks, numbering=numbering)

    def trace(
        self, number: int, epoch: int, row: int | None, element: int | None, column: str | None
    ) -> list[Trace]:
        """Where the rows of a batch come from, the pieces of one of its rows, or one element."""
        handler = BadRowHandler(self.bad_rows.uncounted())
        with closing(Workers(0)) as workers:
            run = self.run(self.beginning(epoch), workers, handler, Stats(), traced=True)
            turn = turn_at(run.turns, number, wait=True)
            if turn is None:
                raise behind_epoch("trace", number, epoch, run.table.num_known)
            found = trace_turn(turn, self.prepare_name, row, element, column)
            return with_files(found, turn, self.recipe.source)

    @property
    def prepare_name(self) -> str | None:
        """What prepares rows, as errors call it."""
        prepare = self.recipe.prepare
        return (
            None if prepare is None else "the net prepare" if isinstance(prepare, Net) else name_of(prepare)
        )

    def window_maker(self) -> WindowMaker:
        """Makes single windows, of which nothing is kept."""
        return WindowMaker(self.recipe, self.listing)

    def unmeasured(self) -> Measured | None:
        """What takes the lengths of all rows, where the index is to be made of them in an epoch."""
        if self._index is None or self._index.path.exists() or self.counts_rows():
            return None
        return self._index.measured()

    def end_epoch(self) -> None:
        """An epoch was read to its end: the index is written, where it has measured all."""
        if self._index is not None:
            self._index.keep()

    def look_at_functions(self) -> None:
        """Note the code of Python functions before they run, which may change what they refer to."""
        for option in ("prepare", "net"):
            if not isinstance(getattr(self.recipe, option), Net):
                self.identity(option)

    def _keeps_window(self, layout: Layout) -> bool:
        """Whether rows are read once for all epochs: one window holds all of them.

        Rows that are prepared by a Python function, or by random ops, may be others in the next epoch.
        """
        prepare = self.recipe.prepare
        again = prepare is None or (isinstance(prepare, Net) and not prepare.is_random)
        return again and not self.recipe.source.is_stream and layout.has_one_window

    # Counting

    def num_batches(self, epoch: int) -> int | None:
        """The number of batches of an epoch; None where it is not known before reading.

        An index is made where that tells it.
        """
        if self.recipe.steps_per_epoch is not None:
            total: int | None = self.recipe.steps_per_epoch * self.deal.world_size
        else:
            total = self.table(epoch, counted=True)[1].total
        return None if total is None else Skips(self.skip, epoch).kept_before(total)

    def batch_at(self, number: int, epoch: int) -> Record:
        """A batch of an epoch by its number; OpError where the epoch has none. Bad rows are not written again."""
        handler = BadRowHandler(self.bad_rows.uncounted())
        with closing(Workers(0)) as workers:
            iteration = self.iterate(self.beginning(epoch), workers, [handler], Stats(), iter([number]))
            for batch in iteration:
                return batch
            raise behind_epoch("batch_at", number, epoch, iteration.run.table.num_known)

    def counts_rows(self) -> bool:
        """Whether the rows of each window are known before anything is read, and batches have a number of them."""
        if self._counts_rows is None:
            recipe = self.recipe
            windows = recipe.windows(self.listing.slices(), 0)
            rows = self._rows_of(deal_windows(windows, recipe.streams))
            self._counts_rows = rows is not None and not recipe.source.is_stream
        return self._counts_rows

    def lengths_index(
        self, *, anew: bool, update: bool = False, measure: Callable[[Measured], None] | None = None
    ) -> LengthsIndex:
        """The lengths of all prepared rows, for an index that others may measure; OpError where none is kept."""
        if self._index is None:
            raise OpError("Loader: there is no index; give index=, the file to keep it in")
        return self._index.read(anew=anew, update=update, measure=measure)

    @property
    def num_indexed_blocks(self) -> int:
        """Blocks that were read for the index, since no older one had their lengths."""
        return 0 if self._index is None else self._index.num_read_blocks

    def table(
        self, epoch: int, *, counted: bool = False, before_last_change: bool = False
    ) -> tuple[Layout, Table]:
        """The windows of an epoch, and the table of its batches.

        Their batches are `counted` where that can be, even if the index has to be made first.
        """
        recipe, changes = self.recipe, [change for change in self.changes if change.epoch == epoch]
        if recipe.source.is_stream:
            if recipe.streams > 1:
                raise OpError("Loader: streams: the source is a stream itself, expected streams = 1")
            return Layout(found=partial(_windows_of_stream, recipe)), Table(
                [Stream(None)], self._given_total()
            )
        if not changes:
            dealt = deal_windows(recipe.windows(self.listing.slices(), epoch), recipe.streams)
            return Layout(dealt), self._table_of(dealt, epoch, counted)
        paths = [path for path, *_ in self._file_fingerprints()]
        by_name = dict(zip(recipe.source.files, paths, strict=True))
        layouts = changed_windows(recipe, self.listing.slices(), by_name, epoch, changes)
        dealt = next(layouts)
        table = self._table_of(dealt, epoch, counted)
        for change in changes[:-1] if before_last_change else changes:
            dealt = next(layouts)
            table = self._table_of(dealt, epoch, counted, (table, change.batch))
        return Layout(dealt), table

    def _given_total(self) -> int | None:
        steps = self.recipe.steps_per_epoch
        return None if steps is None else steps * self.deal.world_size

    def _table_of(
        self, dealt: Sequence[Windows], epoch: int, counted: bool, kept: tuple[Table, int] | None = None
    ) -> Table:
        """The table of some windows; `kept` are that before a change, and the first batch after it."""
        recipe, plan = self.recipe, self.recipe.batch
        before = None if kept is None else (kept[0].turns, kept[1])
        rows = self._rows_of(dealt)
        if rows is not None:
            assert isinstance(plan, Rows)
            restarts = (
                [((0, 0),)] * len(rows)
                if kept is None
                else [_restarts(*kept, one) for one in range(len(rows))]
            )
            return Table(
                [
                    RowStream(of, plan.n, drop_last=plan.drop_last, restarts=restart)
                    for of, restart in zip(rows, restarts, strict=True)
                ],
                self._given_total(),
                before,
            )
        counts: Sequence[list[int] | None] = [None] * recipe.streams
        if self._index is not None and (counted or recipe.streams > 1 or self._index.path.exists()):
            lengths = self._index.read()
            counts = [lengths.counts(recipe, windows, epoch) for windows in dealt]
        streams = [Stream(len(windows), count) for windows, count in zip(dealt, counts, strict=True)]
        return Table(streams, self._given_total(), before)

    def _rows_of(self, dealt: Sequence[Windows]) -> list[Array] | None:
        """The rows of the windows of each stream, where batches have a number of rows and run across windows."""
        recipe = self.recipe
        if not isinstance(recipe.batch, Rows) or recipe.batch.filters or recipe.keeps_going:
            return None
        rows = [windows.rows for windows in dealt]
        known = [one for one in rows if one is not None]
        return known if len(known) == len(rows) and self._keeps_rows() else None

    def _keeps_rows(self) -> bool:
        """Whether row i of what `prepare` makes is known to be row i of what it gets."""
        prepare = self.recipe.prepare
        if not isinstance(prepare, Net):
            return prepare is None
        return executor.keeps_rows(prepare, empty_source(self.recipe))

    def _check_counts(self, table: Table) -> None:
        """OpError where streams are interleaved whose batches are not counted before reading."""
        if not table.counted and len(table.streams) > 1:
            raise OpError(
                f"Loader: streams = {len(table.streams)} needs the number of batches of each stream, which is not "
                'known before reading\n  give index="lengths.arrow", or Rows(n) of data whose rows are known and kept'
            )

    # Identity and state

    def settings(self) -> dict[str, Any]:
        """What decides which batches there are and in which order, by name."""
        identities = self.identity("prepare"), self.identity("net")
        settings = settings_of(self.recipe, *identities, self.deal.world_size)
        return settings | ({"skip": [list(span) for span in self.skip]} if self.skip else {})

    def data_fingerprint(self) -> dict[str, Any]:
        """What a state says of the data: relative paths, sizes, rows and columns, as they were first listed."""
        if self._data is None:
            self._data = data_fingerprint(self.recipe.source, self.listing, self._file_fingerprints())
        return self._data

    def _file_fingerprints(self) -> list[list[Any]]:
        if self._files is None:
            self._files = file_fingerprints(self.recipe.source, self.listing)
        return self._files

    def _files_with_blocks(self) -> list[FileBlocks] | None:
        """The files of the index; None where blocks are not those of one file after another."""
        source = self.recipe.source
        if not source.source_reads_columns:  # a block is of several files
            return None
        return files_with_blocks(self._file_fingerprints(), source.files, self.listing.slices())

    def identity(self, option: str) -> Any:
        """What decides what `prepare` or `net` computes, as JSON: looked at when first asked for, or used."""
        if option not in self._identities:
            self._identities[option] = transform_identity(getattr(self.recipe, option), self._version)
        return self._identities[option]

    def fingerprint(self) -> dict[str, Any]:
        """What a state says besides the place."""
        data = self.data_fingerprint()
        changes = {"changes": [change.to_json() for change in self.changes]} if self.changes else {}
        return {"by_rows": self.counts_rows(), "settings": self.settings(), "data": data, **changes}

    def start_of(self, state: Mapping[str, Any], changes: str) -> Position:
        """The place of a saved state; OpError where it does not fit."""
        if self.recipe.source.read_once:
            raise OpError(
                "load_state_dict: the source is a stream, which can be read once\n"
                "  read files instead, or pass a function that makes a new stream each time"
            )
        check_loader_form(state)
        start, before, self.changes = Position.from_json(state), self.changes, earlier_changes(state)
        try:
            settings, data = self.settings(), self.data_fingerprint()
            found = found_since(state, settings, data)
            if changes == "accept":
                start = self._change(found, start)
            now = as_of_now(state, found, settings, data)
            if changes == "accept":
                changed = check_state(now, settings, data, changes)
            else:
                changed = check_state(
                    state, settings, data, changes, now if self._may_change(found, start) else None
                )
            if "prepare" in changed:
                check_prepared_place(state, self.counts_rows(), self.recipe.streams)
        except BaseException:
            self.changes = before
            raise
        return start

    def _change(self, found: Found, start: Position) -> Position:
        """Note what has changed since a place, so that the windows after it are those of now; the place to go on."""
        if found.added:
            self.changes = renamed(self.changes, found.folder)
        if found and start.batch:  # before the first batch of an epoch nothing needs to be noted
            self._check_changeable(found.was, found.added)
            place = start._replace(batch=self._end_of_pool(start.batch))
            earlier = self.changes
            change = Change(start.epoch, place.batch, (), tuple(found.added), found.was)
            self.changes = (*earlier, change)
            if self._index is not None and self._index.path.exists():
                self._index.read(update=True)
            layout, table = self.table(start.epoch, before_last_change=True)
            self._check_counts(table)
            table = _resumed(table, layout, start)
            begun = windows_begun(table, layout, self.window_maker(), place)
            if self.steps() is None:  # states of older versions count the batches that fill the last round
                place = place._replace(batch=min(place.batch, table.num_known))
            # the rest of a pool may stay empty where the numbers of batches follow from those of rows
            is_inside = (
                start.batch < table.num_known or len(table.streams) > 1 or not table.streams[0].crosses
            )
            if is_inside and place.batch > (start.batch if table.total is None else table.total):
                raise OpError(
                    f"load_state_dict: batch {start.batch} is in the last pool of steps of its epoch, or nobody "
                    "knows, since batches are not counted before reading\n  begin the epoch anew: set_epoch(…)"
                )
            self.changes = (*earlier, replace(change, batch=place.batch, begun=begun))
            return place if start.batch >= table.num_known else start
        return start

    def _end_of_pool(self, batch: int) -> int:
        """The batch behind the steps that exchange rows with that of a batch; OpError where windows do."""
        steps = self.steps()
        if steps is None:
            return batch
        if steps.pool is None:
            raise OpError(
                "load_state_dict: files or sizes may not change in the middle of an epoch where all steps of a "
                "window exchange rows\n  give Balance(pool=…) a number, or begin the epoch anew: set_epoch(…)"
            )
        return -(-batch // (steps.size * steps.pool)) * steps.size * steps.pool

    def _may_change(self, found: Found, start: Position) -> bool:
        try:
            self._check_changeable(found.was, found.added)
            return bool(found) and (start.batch == 0 or self._end_of_pool(start.batch) > 0)
        except OpError:
            return False

    def _check_changeable(self, was: Mapping[str, Any], added: Sequence[str]) -> None:
        """OpError where files or sizes may not change in the middle of an epoch."""
        recipe = self.recipe
        if added and not recipe.source.source_reads_columns:
            raise OpError(
                f"load_state_dict: {added[0]} is new, but each block is of several files, which are others then\n"
                "  begin the epoch anew: set_epoch(…)"
            )
        if "window" in was and recipe.source.where is not None:
            raise OpError(
                f"load_state_dict: window was {was['window']} and is {recipe.window} now, which may not change in "
                "the middle of an epoch where rows are filtered\n  begin the epoch anew: set_epoch(…)"
            )
        if "batch" in was and self.counts_rows():
            raise OpError(
                f"load_state_dict: batch was {was['batch']} and is {recipe.batch} now, but batches run across "
                "windows\n  begin the epoch anew: set_epoch(…)"
            )

    def _index_key(self) -> dict[str, Any]:
        recipe, lengths = self.recipe, self.recipe.batch.lengths
        if recipe.prepare is None or isinstance(recipe.prepare, Net):
            lengths = recipe.planned_lengths(empty_rows(recipe))
        sliced = bool(self.listing.slices().is_slice.any())
        return index_key(recipe, self.data_fingerprint(), self.identity("prepare"), lengths, sliced)

    # Batches before anything is read

    def empty_batch(self) -> Record | None:
        """A batch without rows; None where Python functions make them, or a net needs rows."""
        recipe = self.recipe
        if not all(net is None or isinstance(net, Net) for net in (recipe.prepare, recipe.net)):
            return None
        try:
            batch = self._empty_before_net()
            return batch if recipe.net is None else apply(recipe.net, batch)
        except ROW_ERRORS as error:
            if isinstance(error, (BatchPlanError, *NET_ERRORS)):
                raise
            return None

    def spec(self) -> dict[str, TensorSpec]:
        """Dtype and shape of each tensor of the batches; OpError where a Python function makes them."""
        recipe = self.recipe
        for transform in (recipe.prepare, recipe.net):
            if transform is not None and not isinstance(transform, Net):
                raise OpError(
                    f"Loader.spec: nobody knows what {name_of(transform)} returns\n  write it as a net"
                )
        specs = _specs_of(self._empty_before_net(), recipe.pad)
        if not isinstance(recipe.net, Net):
            return specs
        inferred = recipe.net.infer(specs)
        return {name: inferred.specs[name] for name in recipe.net.outputs(tuple(specs))}

    def _empty_before_net(self) -> Record:
        """A batch without rows, as `net` gets it."""
        recipe, record = self.recipe, empty_rows(self.recipe)
        rows = WindowRows((record,), None, recipe.pad)
        return recipe.batch.of_window(rows, recipe.planned_lengths(record)).empty()


def _resumed(table: Table, layout: Layout, start: Position) -> Table:
    """The table of a run that goes on from a state; OpError when the state is in a window that is not there."""
    if table.counted or start.window is None:
        return table
    at = start.window
    if layout.window((0, at.position)) is None:
        windows = layout.counts[0] or layout.num_found
        raise OpError(
            f"load_state_dict: the state is in window {at.position} of stream 0, which has {windows}: the state is "
            "damaged"
        )
    layout.release(at.position)
    resumed = Stream(layout.counts[0], base=at.position, first=at.first)
    resumed.add(at.batches)
    return Table([resumed], table.total)


def _restarts(table: Table, batch: int, stream: int) -> tuple[tuple[int, int], ...]:
    """From which batches, and which rows, on those of a stream have n rows: again from one after a change on."""
    of = table.streams[stream]
    assert isinstance(of, RowStream)
    places = table.turns.before(stream, batch)
    return (*of.restarts, (places, of.first_row(places)))


def behind_epoch(what: str, number: int, epoch: int, batches: int) -> OpError:
    """The error for a batch that an epoch has not."""
    return OpError(f"{what}: number is {number}, expected less than {batches}, the batches of epoch {epoch}")


def empty_source(recipe: Recipe) -> Record:
    """A record of the source without rows."""
    empty = recipe.source.schema.empty_table()
    record: Record = from_arrow(empty, columns=recipe.columns, fill=recipe.fill, valid=recipe.valid)
    return record


def empty_rows(recipe: Recipe) -> Record:
    """A prepared record without rows."""
    record = empty_source(recipe)
    return record if recipe.prepare is None else apply(recipe.prepare, record)


def _windows_of_stream(recipe: Recipe) -> Generator[Window, None, None]:
    """The windows of a stream, each when its blocks have come."""
    yield from cut_windows(recipe.slices(), recipe.window)


def _specs_of(batch: Record, pads: Mapping[str, Pad]) -> dict[str, TensorSpec]:
    """Specs of batches that have the tensors of this one, with any number of rows; padded ones with any width."""
    rows = Dimension.symbol("batch")
    specs = {}
    for name, tensor in batch.items():
        parent = batch.parents[name]
        sizes = [Dimension(size) for size in tensor.shape[1:]]
        pad = pads.get(name.removesuffix(".mask"))
        if pad is not None and pad.max_length is None and sizes:
            sizes[0] = Dimension.axis_of(name.removesuffix(".mask"), 1)
        first = rows if parent is None else Dimension.sum_of(parent)
        specs[name] = TensorSpec(
            tensor.dtype, [first, *sizes], OwnRows("the record") if parent is None else Described(parent)
        )
    return specs
