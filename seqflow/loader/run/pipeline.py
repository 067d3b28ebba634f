"""The pipeline of one source: its windows are scheduled, read and made into the batches of any epoch."""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from seqflow import executor
from seqflow.errors import BatchPlanError, OpError
from seqflow.identity.transforms import name_of
from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.assign_ranks import ALL_BATCHES, Assignment, Skips, SkipSpan, Steps
from seqflow.loader.epoch.state import (
    AT_BEGINNING,
    PASS,
    Position,
    check_changes,
    check_loader_schema,
    check_prepared,
    check_same_source,
    check_step,
    check_streams,
)
from seqflow.loader.epoch.table import (
    OWN_NUMBERS,
    Numbering,
    RowStream,
    SingleRows,
    StreamOrder,
    Table,
)
from seqflow.loader.order.conditions import fulfilling
from seqflow.loader.order.identity import LoaderIdentity, added_files, check_same
from seqflow.loader.order.index import Indexing, LengthsIndex, Measured
from seqflow.loader.order.recipe import Listing, Recipe
from seqflow.loader.order.windows import StreamWindows, Windows, assign_windows, cut_windows
from seqflow.loader.plans.balanced_pools import Totals
from seqflow.loader.plans.packed import Packed
from seqflow.loader.plans.row_plans import Buckets, Rows, TokenBudget
from seqflow.loader.plans.shares import lists_of, shared
from seqflow.loader.plans.window_rows import Pad, WindowRows
from seqflow.loader.run.derived import Derived, derived_tensors
from seqflow.loader.run.iterator import EpochPlan, RunOptions
from seqflow.loader.run.ledger import BadRowHandler, BadRows
from seqflow.loader.run.reading import read_slices
from seqflow.loader.run.source_run import SourceRun
from seqflow.loader.run.tasks import BatchTask
from seqflow.loader.run.windows import NET_ERRORS, ROW_ERRORS, KeptWindow, WindowMaker, apply
from seqflow.loader.run.workers import Prefetch
from seqflow.net import Net
from seqflow.record import Record, convert
from seqflow.record.selection import select_schema
from seqflow.shape import Dimension
from seqflow.signature import Described, OwnRows
from seqflow.tensor import TensorSpec

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class Pipeline:
    """Makes the batches of any epoch of a recipe, from any place on, for the ranks of an assignment."""

    recipe: Recipe
    assignment: Assignment
    index: Path | None
    bad_rows: BadRows
    version: str | None
    """Version of Python functions, if you give one."""
    prefetch: Prefetch
    skip: Sequence[SkipSpan] = ()
    """Spans of omitted batches, each with its epoch."""
    totals: Totals | None = None
    """Totals over all batches of a step."""
    steps_of: int = 1
    """Number of batches of a rank in a step, if the plan has no balance."""
    earlier: "tuple[int, Pipeline] | None" = field(default=None, init=False)
    """Epoch of a loaded state to whose data files were added since, and the pipeline of the files before them."""

    def __post_init__(self) -> None:
        self.listing = Listing(self.recipe)
        self._connect()

    def _connect(self, whole: Indexing | None = None) -> None:
        self.identity = LoaderIdentity(self.recipe, self.listing, self.version)
        self._kept, self._index = KeptWindow(), None
        self._windows: dict[int, Sequence[Windows]] = {}
        """Windows of each stream, in the last epochs."""
        self._counts: dict[int, Sequence[list[int] | None]] = {}
        """Numbers of batches of each of these windows, if an index counts them."""
        if self.index is not None:
            self._index = Indexing(self.index, self.identity, self._planned_lengths, self._measure, whole)

    def of_epoch(self, epoch: int) -> "Pipeline":
        """Return the pipeline of the files of an epoch: files added inside an epoch join at the next one.

        All passes of a mix in an epoch are of that epoch.
        """
        if self.earlier is None or self.earlier[0] != epoch % PASS:
            return self
        return self.earlier[1]

    def _of_files(self, files: Collection[str]) -> "Pipeline":
        """Return the same pipeline of some of the files, whose lengths are in the index of all of them."""
        found, source = copy(self), self.recipe.source
        # in the order of the source: of_files keeps the order that it is given
        chosen = [name for name in source.files if name in files]
        found.recipe, found.earlier = replace(self.recipe, source=source.of_files(chosen)), None
        found.listing = Listing(found.recipe)
        found._connect(self._index)
        found.identity.transforms = self.identity.transforms  # noted before functions run
        return found

    @property
    def threads(self) -> int:
        return self.prefetch.threads

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings without what has been read."""
        return vars(self) | {"_kept": KeptWindow(), "_windows": {}, "_counts": {}}

    @property
    def epochs_differ(self) -> bool:
        """Whether the batches of one epoch differ from those of the next, because of their order or of random ops."""
        nets = (one for one in (self.recipe.prepare, self.recipe.net) if isinstance(one, Net))
        return self.recipe.shuffle is not None or any(net.is_random for net in nets)

    def for_parts(self) -> "Pipeline":
        """Return the same pipeline for another process, which makes parts that it is sent: without files,
        threads or index.
        """
        recipe = replace(self.recipe, source=self.recipe.source.of_files(()))
        return Pipeline(
            recipe, ALL_BATCHES, None, BadRows("skip"), self.version, Prefetch(threads=0), self.skip
        )

    def as_member(self, number: int, counted: Collection[str], *, of_rows: bool) -> "Pipeline":
        """Return the same pipeline as a source of a mix, with a number of its own, by which its order differs
        from those of the others. Totals are made of the tensors `counted`.
        """
        found, all_counted = copy(self), {*self.recipe.counted, *counted}
        found.recipe = replace(self.recipe, member=number, of_rows=of_rows, counted=all_counted)
        found._connect()
        return found

    def all_batches(self, size: int = 1) -> "Pipeline":
        """Return the same pipeline for all batches of its epochs in order, each in memory of its own.

        Without a balance a step has `size` batches. Totals are the values of each batch of a step, for clients
        that sum those they hand out.
        """
        found = copy(self)
        found.assignment, found.skip, found.steps_of = ALL_BATCHES, (), size
        found.prefetch = replace(self.prefetch, reuse=False)
        found.totals = None if self.totals is None else Totals(self.totals.texts, apart=True)
        return found

    def first_batches(self, epoch: int, windows: int) -> tuple[Array, int] | None:
        """Return the first batch, int64, of each run of so many consecutive windows, and the number of batches.

        A run is read without the others; pools of steps are not cut. With several streams, which take turns,
        the epoch is one run. Return None if batches are not counted before reading.
        """
        table = self.table(epoch, counted=True)[1]
        if not table.counted or table.total is None:
            return None
        firsts = np.zeros(1, np.int64)
        if len(table.streams) == 1:
            firsts = np.frombuffer(table.streams[0].firsts, np.int64)[:-1:windows]
            if (steps := self.steps()) is not None:
                # without a number of steps, a pool has those that begin in one window: runs would cut them
                pool = 0 if steps.pool is None else steps.size * steps.pool
                firsts = -(-firsts // pool) * pool if pool else firsts[:1]
        return np.unique(firsts[firsts < max(1, table.total)]), table.total

    @property
    def derived(self) -> Mapping[str, Derived]:
        """Tensors of its batches that follow from lengths, by name."""
        return derived_tensors(self.recipe)

    # Iterating

    def beginning(self, epoch: int) -> Position:
        """Return the place before the first batch of an epoch."""
        return Position(epoch, 0, None, self.assignment.world_size)

    @property
    def members(self) -> "list[Pipeline]":
        """Pipelines of all sources."""
        return [self]

    def handlers(self, *marks: str) -> list[BadRowHandler]:
        """Return the receivers of the bad rows of an iteration."""
        bad_rows = self.bad_rows.marked(*marks, *self.assignment.marks)
        return [BadRowHandler(bad_rows, self.recipe.source.files)]

    def run(self, start: Position, run_options: RunOptions) -> SourceRun:
        """Return a run of one pass over the source from a place on."""
        if (of_epoch := self.of_epoch(start.epoch)) is not self:
            return of_epoch.run(start, run_options)
        if self.recipe.functions:
            self.identity.look_at_functions()
        steps = self.steps(run_options.numbering)
        if steps is not None and self.totals is not None:
            check_step(start, self.assignment.world_size, steps.size)
        timings = run_options.stats.timings
        with timings.time("list"):
            layout, table = self.table(start.epoch)
        self._check_counts(table)
        if run_options.parts is not None:
            run_options.parts.of(layout)
        table, closed_before = _resumed(table, layout, start), 0
        if run_options.counts_on and start.batch:
            stream = table.streams[0]
            closed_before = stream.next_window(stream.window_of(start.batch - 1))
        index, traced = self._index, run_options.traced
        maker = WindowMaker(
            self.recipe,
            self.listing.stamps,
            self._kept if self._keeps_window(layout) and not traced else None,  # it has no row numbers
            None if index is None or table.counted or run_options.at_once else index.measured(),
            traced,
            self._read_index() if run_options.by_lengths else None if index is None else index.lengths,
            timings,
            empty_rows(self.recipe) if run_options.by_lengths and self.plans_by_lengths else None,
        )
        again = partial(
            self.run, self.beginning(start.epoch), RunOptions.of_some(numbering=run_options.numbering)
        )
        plan = EpochPlan(start, table, layout, again, steps, self.totals, closed_before)
        return SourceRun(plan, maker, run_options, reuse=self.prefetch.reuse)

    def _read_index(self) -> LengthsIndex | None:
        return None if self._index is None or not self._index.path.exists() else self._index.read()

    @cached_property
    def plans_by_lengths(self) -> bool:
        """Whether the rows of each batch follow from rows and lengths of blocks that are known without reading."""
        recipe, plan = self.recipe, self.recipe.batch
        if recipe.source.is_stream or recipe.source.where is not None or recipe.omits_rows or recipe.grouped:
            return False
        if (
            not isinstance(plan, Rows | TokenBudget | Buckets | Packed)
            or plan.along
            or not self._keeps_rows()
        ):
            return False
        if plan.balance is not None and plan.balance.cost is not None:
            return False
        columns = empty_rows(recipe)
        planned = recipe.planned_lengths(columns)
        return planned is None or (columns.parents[planned] is None and self._read_index() is not None)

    @property
    def _has_function(self) -> bool:
        """Whether a Python function prepares rows, so that their columns are not known before they are read."""
        return self.recipe.prepare is not None and not isinstance(self.recipe.prepare, Net)

    def check_rows(self) -> None:
        """Raise an error, before anything is read, when costs, totals or conditions use columns that prepared
        rows lack.
        """
        recipe, balance = self.recipe, self.recipe.batch.balance
        checked = balance or self.totals or recipe.keep or recipe.require or recipe.shares
        if self._has_function or not checked:
            return
        rows = empty_rows(recipe)
        for share in recipe.shares:
            share.check(rows, recipe.pad)
        if balance is not None:
            balance.check(rows)
        if self.totals is not None:
            self.totals.check(rows, recipe.pad)
        fulfilling((*recipe.keep, *recipe.require), rows)

    def check_totals(self, totals: Totals) -> None:
        """Raise BatchPlanError when totals do not fit the prepared rows, if these are known before reading."""
        if not self._has_function:
            totals.check(empty_rows(self.recipe), self.recipe.pad)

    def steps(self, numbering: Numbering = OWN_NUMBERS) -> Steps | None:
        """Return the rule by which batches make steps; None if steps are not used."""
        balance, ranks = self.recipe.batch.balance, self.assignment.ranks
        if balance is not None:
            return Steps(balance.step, balance.group, balance.steps_in_pool, ranks, numbering=numbering)
        if self.totals is None:
            return None
        return Steps(ranks.world_size * self.steps_of, ranks.world_size, 1, ranks, numbering=numbering)

    def parts_of(self, task: BatchTask, epoch: int) -> "list[tuple[str | None, Pipeline, BatchTask]]":
        """Return the batches of sources that a batch consists of, each with the name of its source in a mix."""
        return [(None, self.of_epoch(epoch), task)]

    @property
    def prepare_name(self) -> str | None:
        """Name in errors of the net or function that prepares rows."""
        prepare = self.recipe.prepare
        return (
            None if prepare is None else "the net prepare" if isinstance(prepare, Net) else name_of(prepare)
        )

    def window_maker(self) -> WindowMaker:
        """Return a maker of single windows, of which nothing is kept."""
        return WindowMaker(self.recipe, self.listing.stamps)

    def unmeasured(self) -> Measured | None:
        """Return the collector of the lengths of all rows, if an epoch has to make the index."""
        if self._index is None or self._index.path.exists() or self.counts_rows:
            return None
        return self._index.measured()

    def end_epoch(self) -> None:
        """End an epoch that was read completely: write the index if all rows are measured."""
        if self._index is not None:
            self._index.keep()

    def _keeps_window(self, layout: StreamWindows) -> bool:
        """Return whether rows are read once for all epochs because one window holds all of them.

        Rows that are prepared by a Python function, or by random ops, may differ in the next epoch.
        """
        prepare = self.recipe.prepare
        again = prepare is None or (isinstance(prepare, Net) and not prepare.is_random)
        return again and not self.recipe.source.is_stream and layout.has_one_window

    # Counting

    def num_batches(self, epoch: int) -> int | None:
        """Return the number of batches of an epoch; None if it is not known before reading.

        An index is made if that gives the number.
        """
        total = self._given_total()
        if total is None:
            total = self.table(epoch, counted=True)[1].total
        return None if total is None else Skips(self.skip, epoch).kept_before(total)

    @cached_property
    def counts_rows(self) -> bool:
        """Whether the rows of each window are known before anything is read, and batches have a fixed number of
        rows.
        """
        recipe = self.recipe
        rows = self._rows_of(
            assign_windows(recipe.windows(self.listing.slices(), 0), recipe.streams, recipe.source.kind)
        )
        return rows is not None and not recipe.source.is_stream

    def lengths_index(self, *, anew: bool, update: bool = False) -> LengthsIndex:
        """Return the lengths of all prepared rows; raise OpError when there is no index."""
        if self._index is None:
            raise OpError("Loader: there is no index; give index=, the file to keep it in")
        self._counts.clear()
        return self._index.read(anew=anew, update=update)

    @property
    def num_indexed_blocks(self) -> int:
        """Number of blocks that were read for the index, because no older index had their lengths."""
        return 0 if self._index is None else self._index.num_read_blocks

    def table(self, epoch: int, *, counted: bool = False) -> tuple[StreamWindows, Table]:
        """Return the windows of an epoch, and the table of its batches.

        Their batches are `counted` if possible, even if the index has to be made first.
        """
        if (of_epoch := self.of_epoch(epoch)) is not self:
            return of_epoch.table(epoch, counted=counted)
        recipe = self.recipe
        if recipe.source.is_stream:
            if recipe.streams > 1:
                raise OpError("Loader: streams: the source is a stream itself, expected streams = 1")
            found = cut_windows(recipe.slices(), recipe.window)
            return StreamWindows(found=found), Table([StreamOrder(None)], self._given_total())
        of_streams = _kept_of_epoch(
            self._windows,
            epoch,
            lambda: assign_windows(
                recipe.windows(self.listing.slices(), epoch), recipe.streams, recipe.source.kind
            ),
        )
        return StreamWindows(of_streams), self._table_of(of_streams, epoch, counted)

    def _given_total(self) -> int | None:
        steps = self.recipe.steps_per_epoch
        return None if steps is None else steps * self.assignment.world_size

    def _table_of(self, of_streams: Sequence[Windows], epoch: int, counted: bool) -> Table:
        """Return the table of some windows."""
        recipe, plan = self.recipe, self.recipe.batch
        rows = self._rows_of(of_streams)
        if rows is not None and recipe.of_rows:
            return Table([SingleRows(of) for of in rows])
        if rows is not None:
            assert plan.rows_across is not None
            streams: Sequence[StreamOrder] = [
                RowStream(of, plan.rows_across, drop_last=plan.drop_last) for of in rows
            ]
            return Table(streams, self._given_total())
        counts: Sequence[list[int] | None] = [None] * recipe.streams
        # a missing index is made here only if counts are needed: an epoch makes it while it reads
        if self._index is not None and (counted or recipe.streams > 1 or self._index.path.exists()):
            lengths = self._index.read()
            counts = _kept_of_epoch(
                self._counts,
                epoch,
                lambda: [lengths.counts(recipe, windows, epoch) for windows in of_streams],
            )
        streams = [
            StreamOrder(len(windows), count) for windows, count in zip(of_streams, counts, strict=True)
        ]
        return Table(streams, self._given_total())

    def _rows_of(self, of_streams: Sequence[Windows]) -> list[Array] | None:
        """Return the rows of the windows of each stream, if batches have a fixed number of rows and run across
        windows.
        """
        recipe = self.recipe
        if recipe.batch.rows_across is None or recipe.omits_rows:
            return None
        rows = [windows.rows for windows in of_streams]
        known = [one for one in rows if one is not None]
        return known if len(known) == len(rows) and self._keeps_rows() else None

    def _keeps_rows(self) -> bool:
        """Return whether row i of the result of `prepare` is known to be row i of its input."""
        prepare = self.recipe.prepare
        if not isinstance(prepare, Net):
            return prepare is None
        return executor.keeps_rows(prepare, empty_source(self.recipe))

    def _check_counts(self, table: Table) -> None:
        """Raise OpError when streams are interleaved and their batches are not counted before reading."""
        if not table.counted and len(table.streams) > 1:
            raise OpError(
                f"Loader: streams = {len(table.streams)} needs the number of batches of each stream, which is not "
                "known before reading",
                advice="give %(index)s, or Rows(n) of data whose rows are known and kept",
            )

    # Identity and state

    def settings(self) -> dict[str, Any]:
        """Settings that decide the batches and their order, by name."""
        settings = self.identity.settings(self.assignment.world_size)
        return settings | ({"skip": [list(span) for span in self.skip]} if self.skip else {})

    def fingerprint(self, epoch: int) -> dict[str, Any]:
        """Return the entries of a state in an epoch besides the place."""
        data = self.of_epoch(epoch).identity.data
        return {"by_rows": self.counts_rows, "settings": self.settings(), "data": data}

    def start_of(
        self, state: Mapping[str, Any], changes: str, what: str = "load_state_dict: ", *, begun: bool = False
    ) -> Position:
        """Return the place of a saved state; raise OpError, beginning with `what`, when it does not fit.

        The epoch of a mix may have `begun` before the first batch of this source.
        """
        if self.recipe.source.read_once:
            raise OpError(
                "load_state_dict: the source is a stream, which can be read once\n"
                "  read files instead, or pass a function that makes a new stream each time"
            )
        check_changes(changes)
        check_loader_schema(state)
        if state.get("changes"):
            raise OpError(
                f"{what}files were added in the middle of the epoch, which versions of seqflow before 0.4 have done\n"
                "  finish the epoch with that version, or begin it again: set_epoch(…)"
            )
        start, data = Position.from_json(state), self.identity.data
        added, _ = added_files(state["data"], data)
        also = {*(AT_BEGINNING if start.batch == 0 else ()), *(("data",) if added else ())}
        now = {"settings": self.settings(), "data": data}
        changed = check_same_source(what, state, now, changes, also)
        check_streams(state["windows"], self.recipe.streams)
        check_prepared(what, state, changed, counts_rows=self.counts_rows)
        # before the first batch of an epoch, new files join at once
        earlier = self._before(state["data"], {*added}, what) if added and (begun or start.batch) else None
        if added and self._index is not None and self._index.path.exists():
            self._index.read(update=True)
        self.earlier = None if earlier is None else (start.epoch % PASS, earlier)
        return start

    def _before(self, data: Mapping[str, Any], added: Collection[str], what: str) -> "Pipeline":
        """Return the pipeline of the files without those added since some data were those of a state."""
        files = zip(self.recipe.source.files, self.identity.files, strict=True)
        found = self._of_files({name for name, (path, *_) in files if path not in added})
        # files that were damaged then, and are gone now, had no rows
        before, now = ({**of, "damaged files": None} for of in (data, found.identity.data))
        check_same(what, {"data": before}, {"data": now}, "\n  begin the epoch again: set_epoch(…)")
        return found

    def _planned_lengths(self) -> str | None:
        """Return the lengths that batches are planned on, as far as they are known before reading."""
        recipe = self.recipe
        return recipe.batch.lengths if self._has_function else recipe.planned_lengths(empty_rows(recipe))

    def _measure(self, measured: Measured) -> None:
        """Measure the rows that were not measured yet, in one pass over the source."""
        slices = [one for one in self.listing.slices() if measured.lacks(one)]
        read_slices(WindowMaker(self.recipe, self.listing.stamps, measured=measured), slices, self.threads)

    # Batches before anything is read

    @cached_property
    def no_rows(self) -> Record:
        """The columns that are read, as a record without rows."""
        return empty_source(self.recipe)

    def empty_batch(self) -> Record | None:
        """Return a batch without rows; None if Python functions make them, or a net needs rows."""
        recipe = self.recipe
        if recipe.functions:
            return None
        try:
            batch = self._empty_before_net()
            return batch if recipe.net is None else apply(recipe.net, batch)
        except ROW_ERRORS as error:
            if isinstance(error, (BatchPlanError, *NET_ERRORS)):
                raise
            return None

    def spec(self) -> dict[str, TensorSpec]:
        """Return dtype and shape of each tensor of the batches; raise OpError when a Python function makes them."""
        recipe = self.recipe
        for function in recipe.functions:
            raise OpError(f"Loader.spec: the result of {name_of(function)} is not known\n  write it as a net")
        specs = _specs_of(self._empty_before_net(), recipe.pad, recipe.batch.limits(None, None).rows)
        if not isinstance(recipe.net, Net):
            return specs
        inferred = recipe.net.infer(specs)
        return {name: inferred.specs[name] for name in recipe.net.outputs(tuple(specs))}

    def _empty_before_net(self) -> Record:
        """Return a batch without rows, as the input of `net`."""
        recipe, record = self.recipe, empty_rows(self.recipe)
        rows = WindowRows((record,), None, recipe.pad)
        return shared(recipe.batch.of_window(rows, recipe.planned_lengths(record)).empty(), recipe.shares)


_KEPT_EPOCHS = 2
"""Number of epochs whose windows and counts are kept: batches of two may be asked for at one time."""


def _kept_of_epoch(kept: dict[int, T], epoch: int, make: Callable[[], T]) -> T:
    """Return what is kept for an epoch, made if it is not kept yet; the oldest is dropped."""
    found = kept.get(epoch)
    if found is None:
        found = kept[epoch] = make()
        while len(kept) > _KEPT_EPOCHS:
            kept.pop(next(iter(kept)), None)
    return found


def _resumed(table: Table, layout: StreamWindows, start: Position) -> Table:
    """Return the table of a run that continues a state; raise OpError when the window of the state does not exist."""
    if table.counted or start.window is None:
        return table
    at = start.window
    if layout.window((0, at.position)) is None:
        windows = layout.counts[0] or layout.num_found
        raise OpError(
            f"load_state_dict: the state is in window {at.position} of stream 0, which has {windows}: the state is "
            "damaged"
        )
    # windows that were found on the way to the position hold their rows
    layout.release(at.position)
    resumed = StreamOrder(layout.counts[0], base=at.position, first=at.first)
    resumed.add(at.batches)
    return Table([resumed], table.total)


def empty_source(recipe: Recipe) -> Record:
    """Return a record of the source without rows."""
    schema = recipe.source.schema
    chosen = schema if recipe.columns is None else select_schema(schema, recipe.columns)
    return convert(chosen.empty_table(), fill=recipe.fill, valid=recipe.valid, read=recipe.tensors_read)[0]


def empty_rows(recipe: Recipe) -> Record:
    """Return a prepared record without rows."""
    record = empty_source(recipe)
    return record if recipe.prepare is None else apply(recipe.prepare, record)


def _specs_of(batch: Record, pads: Mapping[str, Pad], most_rows: int | None) -> dict[str, TensorSpec]:
    """Return specs of batches with the tensors of this one, any number of rows, and any width of padded tensors.

    Lists that rows share are at most as many as the rows of a batch.
    """
    rows = Dimension.symbol("batch")
    own, of_lists = OwnRows("the record"), {index: OwnRows(index) for index in batch.shares.values()}
    specs = {}
    for name, tensor in batch.items():
        parent = batch.parents[name]
        sizes = [Dimension(size) for size in tensor.shape[1:]]
        pad = pads.get(name.removesuffix(".mask"))
        if pad is not None and pad.max_length is None and sizes:
            sizes[0] = Dimension.axis_of(name.removesuffix(".mask"), 1)
        first = rows if parent is None else Dimension.sum_of(parent)
        held = own if parent is None else Described(parent)
        if name in batch.shares:
            first, held = lists_of(batch.shares[name], most_rows), of_lists[batch.shares[name]]
        specs[name] = TensorSpec(tensor.dtype, [first, *sizes], held, points=of_lists.get(name))
    return specs
