"""Loader: batches from a provider, in an order that a seed decides, for one rank or many."""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby, islice
from typing import Any

from seqflow import executor, providers
from seqflow.byte_sizes import format_bytes
from seqflow.errors import BatchPlanError, OpError, ProviderError
from seqflow.identity.transforms import name_of, transform_identity
from seqflow.loader.arguments import (
    bad_rows_of,
    bind_constants,
    byte_count,
    constants_of,
    index_file,
    positive,
    shuffle_of,
    thread_count,
    version_of,
)
from seqflow.loader.converted import Converted, converted
from seqflow.loader.options import check_options
from seqflow.loader.plans.pad import Pad, pads_of
from seqflow.loader.plans.plan import BatchPlan, batch_plan
from seqflow.loader.plans.rows import Rows
from seqflow.loader.plans.specs import specs_of
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.bad_rows import BadRowHandler, BadRows
from seqflow.loader.run.batches import Run, Turn
from seqflow.loader.run.kept import KeptWindow
from seqflow.loader.run.provenance import NET_ERRORS, ROW_ERRORS
from seqflow.loader.run.reading import Open, Read, Spot, WindowReader
from seqflow.loader.run.recipe import Recipe, Stamp, check_blocks, stamp_of
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.transforms import Transform, apply, transform_of
from seqflow.loader.run.workers import Task, Workers
from seqflow.loader.schedule.crossing import Crossing
from seqflow.loader.schedule.dealing import Deal, Rotation
from seqflow.loader.schedule.fingerprint import fingerprint
from seqflow.loader.schedule.index import (
    LengthsIndex,
    Measured,
    check_is_index,
    index_key,
    read_index,
    write_index,
)
from seqflow.loader.schedule.order import Shuffle
from seqflow.loader.schedule.ranks import deal_of
from seqflow.loader.schedule.state import FORMAT, Position, check_prepared_place, check_start, check_state
from seqflow.loader.schedule.streams import Checkpoint, Stream
from seqflow.loader.schedule.windows import Part, Window, cut_windows, deal_windows
from seqflow.net import Net
from seqflow.providers import Provider
from seqflow.providers.opening import option_names
from seqflow.record import Fill, Record, Valid, check_fill, check_valid, from_arrow
from seqflow.tensor import TensorSpec


class Loader:
    """Batches of named tensors from a source of rows.

        loader = Loader("docs/*.parquet", columns=["tokens"], shuffle=True, batch=256, net="x, mask = pad(…)")
        for batch in loader: ...

    `source` is a path, a glob, a folder, an object with `__arrow_c_stream__`, or a provider; further keywords go
    to `sf.open`. The blocks of the source are divided into windows of about `window` bytes. In a window, and
    independently of all others, `prepare` runs on each block and may change lengths and the number of rows;
    batches are planned on lengths; `net` runs on each batch. Both are a Net, its text, or a Python function from
    record to mapping. `batch` is a number of rows, `Rows`, `TokenBudget`, `Buckets` or `Packed`. `constants` are
    bound to both nets. `pad` names list columns that become padded tensors.

    `shuffle` is True or `Shuffle(seed)`: blocks come in a random order each epoch, and rows in a random order
    inside a window. A window that holds everything is shuffled exactly, and is kept for the next epoch.

    All ranks see one sequence of batches: batch k goes to rank `k mod world_size`, by default those of the
    environment variables RANK and WORLD_SIZE. Each gets equally many; `tail` says what happens to an incomplete
    last round: "drop" it, "pad" it with empty batches, or "repeat" the epoch's first ones. `streams` interleaves
    that many streams of windows, so that a rank reads its part of the data alone; the number of batches has to be
    known for that, from an `index`, or given as `steps_per_epoch`. `index` is a file with the lengths of all
    prepared rows; True keeps it beside the data. It is made during the first epoch, or by a pass over the data where
    `len` or `streams` need it before, and used from then on.

    `memory` bounds the bytes of windows read ahead and in use, by default four windows; `threads` read and make
    batches, by default one for each core but one, from 1 to 4, since the thread that iterates helps while it waits;
    0 does everything there. With `reuse` a batch is valid until the next one is
    asked for, which may have its memory. `fill` and `valid` say what nulls become, as in
    `from_arrow`; without them a null of any type makes its row a bad one. `bad_rows` says what happens to these.

    Each `iter(loader)` gives the batches of one epoch, and `epoch` advances when it is exhausted. `state_dict()`
    is the place behind the last batch that was handed out, and `load_state_dict` goes on there, with any number
    of ranks and threads. A batch is a Record: a mapping of names to tensors that knows which lengths describe
    each. `batch.num_rows` counts its rows. A state is of these data, settings and nets, and of the code of functions;
    `version` stands for that code, where functions refer to what cannot be compared.
    """

    def __init__(
        self,
        source: Any,
        *,
        columns: Sequence[str] | None = None,
        prepare: Net | str | Transform | None = None,
        net: Net | str | Transform | None = None,
        batch: BatchPlan | int = 256,
        pad: Mapping[str, Pad | float] | Pad | float | None = None,
        constants: Mapping[str, Any] | None = None,
        shuffle: Shuffle | bool | None = None,
        window: int | str = "64 MiB",
        memory: int | str | None = None,
        streams: int = 1,
        rank: int | None = None,
        world_size: int | None = None,
        tail: str = "drop",
        steps_per_epoch: int | None = None,
        index: str | os.PathLike[str] | bool | None = None,
        threads: int | None = None,
        reuse: bool = False,
        bad_rows: str | BadRows = "raise",
        fill: Fill = None,
        valid: Valid = False,
        version: str | int | None = None,
        **options: Any,
    ) -> None:
        check_options(options, _OPTIONS, option_names())
        is_provider = isinstance(source, Provider)
        self.source: Provider = source if is_provider else providers.open(source, columns=columns, **options)
        self.columns = columns
        self.prepare, self.net = bind_constants(
            transform_of("prepare", prepare), transform_of("net", net), constants_of(constants)
        )
        self.batch = batch_plan(batch)
        self.shuffle = shuffle_of(shuffle)
        self.window = byte_count("window", window)
        self.streams = positive("streams", streams)
        self.memory = self._memory(memory)
        self.deal = deal_of(rank, world_size, tail)
        self.steps_per_epoch = (
            None if steps_per_epoch is None else positive("steps_per_epoch", steps_per_epoch)
        )
        self.index = index_file(index, self.source)
        self.threads = thread_count(threads)
        self.reuse = reuse
        self.bad_rows = bad_rows_of(bad_rows)
        if self.bad_rows.path is not None and self.source.finds(self.bad_rows.path):
            raise ProviderError(
                f"Loader: bad_rows.path, {str(self.bad_rows.path)!r}, would be a file of the source\n"
                "write somewhere else, or leave it out with exclude="
            )
        check_fill(fill, self.source.schema)
        check_valid(valid, self.source.schema)
        self.fill, self.valid = fill, valid
        self.version = version_of(version)
        self.pad: Mapping[str, Pad] = {} if pad is None else pads_of(pad, self._pad_record(pad))
        self.epoch = 0
        self._stats = Stats()
        self._start: Position | None = None
        """Where the next iteration begins; None: at the first batch of `epoch`."""
        self._place: Position | None = None
        """The place behind the last batch handed out."""
        self.at_window_end = False
        """Whether the last batch handed out was the last of its window."""
        self._listed: list[Part] | None = None
        self._kept = KeptWindow()
        self._stamps: dict[str, Stamp] = {}
        self._data: dict[str, Any] | None = None
        self._identities: dict[str, Any] = {}
        """Those of `prepare` and `net`, once they were asked for."""
        self._by_rows: bool | None = None
        self._lengths: LengthsIndex | None = None
        self._measured: Measured | None = None
        """The lengths of what was read, where they are to be kept as an index."""

    @property
    def rank(self) -> int:
        return self.deal.rank

    @property
    def world_size(self) -> int:
        return self.deal.world_size

    @property
    def num_rows(self) -> int | None:
        """Rows of the source, where the format knows them."""
        return self.source.num_rows

    @property
    def recipe(self) -> Recipe:
        """What decides which batches there are."""
        return Recipe(
            self.source, self.columns, self.prepare, self.net, self.batch, self.window, self.shuffle,
            self.fill, self.valid, self.bad_rows.policy != "raise", self.pad, self._stamps,
            self.memory,
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """What it was made from, and where it is; not what it has read."""
        unread = dict.fromkeys(("_stats", "_listed", "_kept", "_data", "_lengths", "_measured"))
        return vars(self) | unread | {"_stamps": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _stats=Stats(), _kept=KeptWindow())

    def __repr__(self) -> str:
        where = self._place or Position(self.epoch, 0, {}, self.world_size)
        rank = "" if self.world_size == 1 else f", rank {self.rank} of {self.world_size}"
        return f"Loader of {self.batch}, epoch {where.epoch}, batch {where.batch}{rank}, from {self.source!r}"

    @property
    def is_resuming(self) -> bool:
        """Whether the next iteration goes on from a state that was loaded."""
        return self._start is not None

    @property
    def epochs_differ(self) -> bool:
        """Whether batches of one epoch are others than those of the next, by their order or by random ops."""
        nets = (one for one in (self.prepare, self.net) if isinstance(one, Net))
        return self.shuffle is not None or any(net.is_random for net in nets)

    def set_epoch(self, epoch: int) -> None:
        """Begin the next iteration with the first batch of an epoch."""
        if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 0:
            raise OpError(f"set_epoch: epoch is {epoch!r}, expected an integer, 0 or more")
        self.epoch, self._start, self._place = epoch, None, None

    def __len__(self) -> int:
        """The number of batches of this rank in an epoch; TypeError where it is not known before reading."""
        if self.steps_per_epoch is not None:
            return self.steps_per_epoch
        rotation, _ = self._rotation(self.recipe, self.epoch, counted=True)
        if rotation.total is None:
            raise TypeError(
                "the number of batches is not known before reading: windows are planned on what they hold\n"
                '  give index="lengths.arrow", steps_per_epoch, or Rows(n) of data whose rows are known and kept'
            )
        return self.deal.rounds(rotation.total)

    def take(self, n: int) -> list[Record]:
        """The first n batches of the coming epoch; the loader stays where it is."""
        if n < 0:
            raise OpError(f"take: n is {n}, expected 0 or more")
        before = self.epoch, self._start, self._place
        try:
            with closing(iter(self)) as batches:
                return list(islice(batches, n))
        finally:
            self.epoch, self._start, self._place = before

    def state_dict(self) -> dict[str, Any]:
        """The place behind the last batch that was handed out, as JSON-compatible values.

        Before the first batch it is the place at which the loader begins.
        """
        place = self._place or self._start or Position(self.epoch, 0, {}, self.world_size)
        return {
            "format": FORMAT, **place.to_json(), "by_rows": self.counts_rows(),
            "settings": self.settings(), "data": self.data(),
        }  # fmt: skip

    def load_state_dict(self, state: Mapping[str, Any], *, changes: str = "refuse") -> None:
        """Begin the next iteration behind the batch that was the last when the state was taken.

        The number of ranks and threads may be another one. OpError where the data, a setting, a net or function, or
        what it reads, is not what it was; the message names the difference. With `changes="accept"` `net` may be
        another one, and so may `prepare` where that loses and repeats no row: where a window ends, and where
        batches are counted by the rows of the source.
        """
        if self.source.read_once:
            raise OpError(
                "load_state_dict: the source is a stream, which can be read once\n  read files instead"
            )
        changed = check_state(state, self.settings(), self.data(), changes)
        if "prepare" in changed:
            check_prepared_place(state, self.counts_rows(), self.streams)
        self._start = self._place = Position.from_json(state)
        self.epoch = self._start.epoch

    def to(
        self,
        library: str,
        *,
        pin_memory: bool = False,
        int64: bool | Collection[str] = False,
        cu_seqlens: bool = False,
    ) -> Converted:
        """The same batches as dicts of PyTorch tensors, which share their memory: `loader.to("torch")`.

        `pin_memory`, `int64` and `cu_seqlens` are those of `seqflow.torch.to_tensors`. State, epoch and length are
        the loader's.
        """
        return converted(self, library, pin_memory=pin_memory, int64=int64, cu_seqlens=cu_seqlens)

    def empty_batch(self) -> Record | None:
        """A batch without rows, with the tensors that batches have.

        None where Python functions make them, or a net needs rows.
        """
        nets = [net for net in (self.prepare, self.net) if net is not None]
        if not all(isinstance(net, Net) for net in nets):
            return None
        try:
            batch = self._empty_before_net()
            return batch if self.net is None else apply(self.net, batch)
        except ROW_ERRORS as error:
            if isinstance(error, (BatchPlanError, *NET_ERRORS)):
                raise
            return None

    @property
    def spec(self) -> dict[str, TensorSpec]:
        """Dtype and shape of each tensor of the batches by name, before anything is read.

        Sizes that differ from batch to batch are unknown. OpError where a Python function makes the batches.
        """
        for transform in (self.prepare, self.net):
            if transform is not None and not isinstance(transform, Net):
                raise OpError(
                    f"Loader.spec: nobody knows what {name_of(transform)} returns\n  write it as a net"
                )
        specs = specs_of(self._empty_before_net(), self.pad)
        if not isinstance(self.net, Net):
            return specs
        inferred = self.net.infer(specs)
        return {name: inferred.specs[name] for name in self.net.outputs(tuple(specs))}

    def _empty_before_net(self) -> Record:
        """A batch without rows, as `net` gets it."""
        record = self._empty_rows()
        rows = WindowRows((record,), None, self.pad)
        return self.batch.of_window(rows, self.planned_lengths(record), 0, False, 0).empty()

    def planned_lengths(self, record: Record) -> str | None:
        """The lengths that batches of such records are planned on; BatchPlanError where there must be some."""
        return self.recipe.planned_lengths(record)

    def stats(self) -> Stats:
        """Counts of the last iteration so far, and where its time went."""
        return self._stats

    def __iter__(self) -> Generator[Record, None, None]:
        handler = BadRowHandler(self.bad_rows.marked(*self.deal.marks), self.source.files)
        finished = False
        try:
            yield from self.batches(handler, Stats())
            finished = True
        finally:
            handler.close(keep=finished)

    def batches(self, handler: BadRowHandler, stats: Stats) -> Generator[Record, None, None]:
        """The batches of the coming epoch. Bad rows go to `handler`, counts are added to `stats`.

        Where `at_window_end` is true, both hold what belongs to the batches handed out, and nothing else.
        """
        self._look_at_functions()
        start = self._start or Position(self.epoch, 0, {}, self.world_size)
        self._start = None
        self._stats = stats
        workers = Workers(self.threads)
        self._place, self.at_window_end = start, False
        try:
            run = self.run(start, workers, handler)
            yield from run
            if self._place is start:
                check_start(start.batch, start.ranks, run.num_batches())
            if self._place.epoch == start.epoch:
                self.epoch, self._place = start.epoch + 1, None
                self._keep_measured()
        finally:
            workers.close()

    def _look_at_functions(self) -> None:
        """Note the code of Python functions before they run, which may change what they refer to."""
        for option in ("prepare", "net"):
            if not isinstance(getattr(self, option), Net):
                self.identity(option)

    def run(
        self,
        start: Position,
        workers: Workers,
        handler: BadRowHandler,
        numbers: Iterator[int] | None = None,
    ) -> Run:
        """The batches from a position on: those of this rank, or some by their numbers in the epoch, in order."""
        recipe, epoch = self.recipe, start.epoch
        deal = self.deal if numbers is None else Deal()
        rotation, crossing = self._rotation(recipe, epoch)
        if not rotation.counted:
            self._check_counts(rotation, start)
            for stream, checkpoint in start.windows.items():
                rotation.streams[stream].start_at(checkpoint)
        reader = WindowReader(
            *self._reading(recipe, rotation, measured=numbers is None), epoch, workers,
            lambda spot: _window(rotation, spot),
            rotation.upcoming(deal, start.batch, None if crossing is None else crossing.following),
            self.memory,
            prepares=self.prepare is not None,
        )  # fmt: skip
        return Run(
            recipe, epoch, rotation, deal, start.batch, reader, workers, self._stats, handler, crossing,
            self._handed_out, self.reuse, numbers,
        )  # fmt: skip

    @property
    def place(self) -> Position | None:
        """The place behind the last batch handed out."""
        return self._place

    def begin(self, start: Position | None, stats: Stats | None = None) -> None:
        """Count anew, or go on with earlier counts, from a position on, for a run of some batches."""
        self._stats, self._place = stats or Stats(), start

    def counts_rows(self) -> bool:
        """Whether the rows of each window are known before anything is read, and batches have a number of them."""
        if self._by_rows is None:
            windows = [] if self.source.read_once else self.recipe.windows(self._parts(), self.epoch)
            crossing = self._crossing(deal_windows(windows, self.streams))
            self._by_rows = crossing is not None and not self.source.read_once
        return self._by_rows

    def _handed_out(self, run: Run, turn: Turn) -> None:
        rotation, place = run.rotation, turn.place
        self.at_window_end = not turn.repeated and rotation.streams[place.stream].is_last(place)
        windows: Mapping[int, Checkpoint] = {}
        if not rotation.counted:
            windows = {} if self._place is None else self._place.windows
            if not turn.repeated:
                checkpoint = rotation.streams[place.stream].checkpoint(place.position)
                windows = {**windows, place.stream: checkpoint}
        self._place = Position(run.epoch, run.next_round, windows, self.world_size)

    def _parts(self) -> list[Part]:
        """The blocks of the source, listed once."""
        if self._listed is None:
            stamps = {path: stamp_of(path) for path in self.source.files}
            self._stamps.update((path, stamp) for path, stamp in stamps.items() if stamp is not None)
            parts = [] if self.source.read_once else list(self.recipe.parts())
            check_blocks(self.recipe, parts)
            self._listed = parts
        return self._listed

    def _rotation(
        self, recipe: Recipe, epoch: int, *, counted: bool = False
    ) -> tuple[Rotation, Crossing | None]:
        """The streams of an epoch, and how batches run across their windows.

        Their batches are `counted` where that can be, even if the index has to be made first.
        """
        total = None if self.steps_per_epoch is None else self.steps_per_epoch * self.deal.world_size
        if self.source.read_once:
            if self.streams > 1:
                raise OpError("Loader: streams: the source is a stream itself, expected streams = 1")
            return Rotation([Stream(0, cut_windows(recipe.parts(), self.window))], total), None
        windows = recipe.windows(self._parts(), epoch)
        dealt = deal_windows(windows, self.streams)
        crossing = self._crossing(dealt)
        counts: Sequence[list[int] | None] = [None] * self.streams
        if crossing is not None:
            counts = crossing.counts
        elif self.index is not None and (counted or self.streams > 1 or self.index.exists()):
            lengths = self.lengths_index()
            counts = [lengths.counts(recipe, stream, epoch) for stream in dealt]
        streams = [Stream(number, *pair) for number, pair in enumerate(zip(dealt, counts, strict=True))]
        return Rotation(streams, total), crossing

    def lengths_index(self, *, anew: bool = False) -> LengthsIndex:
        """The lengths of all prepared rows, from the file `index`, which is made where it is not there.

        `anew` makes it in any case, and takes the place of an older index once it is whole. OpError where the file
        is no index, or of other data or settings: it names the difference.
        """
        if self.index is None:
            raise OpError("Loader: there is no index; give index=, the file to keep it in")
        if self._lengths is None or anew:
            self._check_indexable()
            if anew:
                check_is_index(self.index)
            if anew or not self.index.exists():
                self._measure(self.recipe, self._parts())
            self._lengths = read_index(self.index, self._parts(), self._index_key())
        return self._lengths

    def _index_key(self) -> dict[str, Any]:
        recipe, parts, lengths = self.recipe, self._parts(), self.batch.lengths
        if self.prepare is None or isinstance(self.prepare, Net):
            lengths = self.planned_lengths(self._empty_rows())
        return index_key(recipe, parts, self.identity("prepare"), self.data(), lengths)

    def _measure(self, recipe: Recipe, parts: Sequence[Part]) -> None:
        """Make the index, by one pass over the data."""
        measured = self._measured = Measured(parts)
        read = measured.reading(recipe, recipe.read)
        workers = Workers(self.threads)
        try:
            ahead = max(1, self.memory // max(1, max((part.nbytes for part in parts), default=1)))
            tasks: deque[Task[None]] = deque()
            for _, of_block in groupby(parts, key=lambda part: part.number):
                tasks.append(workers.submit(partial(_read_all, read, list(of_block))))
                while len(tasks) >= ahead:
                    tasks.popleft().result()
            for task in tasks:
                task.result()
        finally:
            workers.close()
        self._keep_measured()

    def _keep_measured(self) -> None:
        """Write the index, once all parts were measured."""
        measured = self._measured
        if measured is not None and measured.complete:
            assert self.index is not None
            write_index(self.index, self._parts(), measured.lengths, self._index_key())
            self._measured = None

    def _check_indexable(self) -> None:
        if self.source.read_once:
            raise OpError(
                "Loader: index: the source is a stream, which can be read once\n  read files instead"
            )
        if isinstance(self.prepare, Net) and self.prepare.is_random:
            raise OpError(
                "Loader: index: prepare draws random numbers, so that lengths differ from epoch to epoch"
            )

    def _crossing(self, dealt: Sequence[Sequence[Window]]) -> Crossing | None:
        """Batches across windows, where the plan is a number of rows and each window's rows are known."""
        rows = [[window.num_rows for window in stream] for stream in dealt]
        if (
            not isinstance(self.batch, Rows)
            or self.batch.filters
            or self.bad_rows.policy != "raise"
            or any(None in stream for stream in rows)
            or not self._keeps_rows()
        ):
            return None
        return Crossing(self.batch, rows)  # type: ignore[arg-type]

    def _keeps_rows(self) -> bool:
        if self.prepare is None:
            return True
        if not isinstance(self.prepare, Net):
            return False
        return executor.keeps_rows(self.prepare, self._empty_source())

    def _empty_source(self) -> Record:
        empty = self.source.schema.empty_table()
        record: Record = from_arrow(empty, columns=self.columns, fill=self.fill, valid=self.valid)
        return record

    def _pad_record(self, pad: Any) -> Record:
        """A record that shows which columns may be padded, where `pad` doesn't name them."""
        return Record({}, {}, 0) if isinstance(pad, Mapping) else self._empty_rows()

    def _empty_rows(self) -> Record:
        record = self._empty_source()
        return record if self.prepare is None else apply(self.prepare, record)

    def _check_counts(self, rotation: Rotation, start: Position) -> None:
        """OpError where streams are interleaved whose batches nobody has counted."""
        if self.streams > 1 and rotation.total is None:
            raise OpError(
                f"Loader: streams = {self.streams} needs the number of batches of each stream, which is not known "
                'before reading\n  give index="lengths.arrow", steps_per_epoch, or Rows(n) of data whose rows are '
                "known and kept"
            )
        if self.streams > 1 and start.batch:
            read = [stream.number for stream in rotation.streams_of(self.deal, start.batch)]
            missing = [stream for stream in read if stream not in start.windows]
            if missing and start.batch >= self.streams:
                raise OpError(
                    f"load_state_dict: the state knows nothing of stream {missing[0]}, since another rank read it\n"
                    "  merge the states of all ranks: seqflow.loader.merge_states([…])"
                )

    def _reading(self, recipe: Recipe, rotation: Rotation, *, measured: bool) -> tuple[Read, Open]:
        """How parts are read and windows opened: once for all epochs where a window holds all of the data.

        Parts that are prepared by a Python function, or by random ops, may be others in the next epoch. With
        `measured` the first epoch makes the index where there is to be one.
        """
        read: Read = recipe.read
        open_window: Open = recipe.open
        again = self.prepare is None or (isinstance(self.prepare, Net) and not self.prepare.is_random)
        if again and not self.source.read_once and rotation.has_one_window:
            read = partial(self._kept.read, recipe)
            open_window = partial(recipe.open, rows_of=self._kept.rows)
        if self.index is not None and not rotation.counted and measured:
            self._check_indexable()
            if self._measured is None:
                self._measured = Measured(self._parts())
            read = self._measured.reading(recipe, read)
        return read, open_window

    def _memory(self, memory: int | str | None) -> int:
        if memory is None:
            return self.window * max(4, self.streams + 2)
        size = byte_count("memory", memory)
        if self.window > size:
            raise OpError(
                f"Loader: window is {format_bytes(self.window)}, expected no more than memory, "
                f"{format_bytes(size)}"
            )
        return size

    def data(self) -> dict[str, Any]:
        """What a state says of the data: relative paths, sizes, rows and columns, as they were first listed."""
        if self._data is None:
            parts = self._parts()
            self._data = fingerprint(
                self.source, parts, {path: size for path, (size, _) in self._stamps.items()}
            )
        return self._data

    def identity(self, option: str) -> Any:
        """What decides what `prepare` or `net` computes, as JSON: looked at when first asked for, or used."""
        if option not in self._identities:
            self._identities[option] = transform_identity(getattr(self, option), self.version)
        return self._identities[option]

    def settings(self) -> dict[str, Any]:
        """What decides which batches there are and in which order, by name."""
        return {
            "columns": None if self.columns is None else list(self.columns),
            "prepare": self.identity("prepare"),
            "net": self.identity("net"),
            "batch": repr(self.batch),
            "pad": {name: repr(how) for name, how in self.pad.items()},
            "shuffle": None if self.shuffle is None else self.shuffle.seed,
            "window": self.window,
            "streams": self.streams,
            "batches": None if self.steps_per_epoch is None else self.steps_per_epoch * self.world_size,
            "fill": repr(self.fill),
            "valid": self.valid if isinstance(self.valid, bool) else sorted(self.valid),
            "bad_rows": self.bad_rows.policy,
        }


_OPTIONS = tuple(inspect.signature(Loader).parameters)[1:-1]
"""The options of a loader, but those that go to `sf.open`."""


def _read_all(read: Read, parts: Sequence[Part]) -> None:
    for part in parts:
        read(part, 0)


def _window(rotation: Rotation, spot: Spot) -> Window:
    stream, position = spot
    window = rotation.streams[stream].window(position)
    assert window is not None
    return window
