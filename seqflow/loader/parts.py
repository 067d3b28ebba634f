"""An epoch in parts: made one after another in this process, or planned here and made by other processes."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from itertools import count

from seqflow.loader.epoch.assign_ranks import Skips
from seqflow.loader.epoch.state import Position
from seqflow.loader.epoch.table import RowStream, StreamOrder, Table
from seqflow.loader.loader import Loader
from seqflow.loader.order.index import Measured
from seqflow.loader.order.recipe import Stamps
from seqflow.loader.order.windows import Parts, StreamWindows, Window
from seqflow.loader.run.iterator import EpochPlan, Iteration, RunOptions
from seqflow.loader.run.ledger import BadRowHandler, Stats
from seqflow.loader.run.source_run import SourceRun
from seqflow.loader.run.windows import WindowMaker
from seqflow.loader.run.workers import Workers
from seqflow.providers import Provider
from seqflow.record import Record


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A planned part, with everything that is needed to make it: nothing else passes from one part to the next."""

    number: int
    epoch: int
    windows: tuple[Window, ...]
    following: tuple[Window, ...]
    """The windows after them from which their last batch takes rows."""
    first_row: int | None
    """Number of rows before its first window, if batches run across windows; else None."""
    is_full: bool
    """Whether it has reached its size; the last part may not."""
    stop: int
    """Position after its last window."""
    counts_batches: bool
    """Whether batches of each window were counted before anything was read."""
    first_batch: int
    """Number of batches before its first window, if they were counted; else 0."""
    stamps: Stamps
    """Size and modification time of the files that it reads, when they were listed."""


def origins_of(windows: Iterable[Window]) -> tuple[str, ...]:
    """Return the files of windows, in order."""
    return tuple(dict.fromkeys(one.block.origin for window in windows for one in window.slices))


def joined(parts: Sequence[PlannedPart]) -> PlannedPart:
    """Return consecutive parts as one, with the number of the first."""
    windows = {one.number: one for part in parts for one in (*part.windows, *part.following)}
    in_order = tuple(windows[number] for number in sorted(windows))
    own = sum(len(part.windows) for part in parts)
    return replace(
        parts[0],
        windows=in_order[:own],
        following=in_order[own:],
        is_full=parts[-1].is_full,
        stop=parts[-1].stop,
        stamps={path: stamp for part in parts for path, stamp in part.stamps.items()},
    )


def make_parts(
    loader: Loader, parts: Parts, first: int, handler: BadRowHandler, stats: Stats
) -> "Generator[PartBatches, None, None]":
    """Yield the batches of each part of the coming epoch, from part `first` on, at whose beginning the loader is.

    After all batches of a part were handed out, the loader's state is the place after the part, and handler and
    stats cover exactly the parts so far.
    """
    with loader.iteration([handler], stats, parts=parts) as iteration:
        yield from _parts_of(iteration, parts, first)


class PartBatches:
    """The batches of one part; after they are handed out, all counts cover exactly this part and those before it."""

    def __init__(self, number: int, of: Iteration, parts: Parts) -> None:
        self.number, self._of, self._parts = number, of, parts

    def __iter__(self) -> Iterator[Record]:
        return iter(self._of)

    @property
    def is_full(self) -> bool:
        """Whether the part has reached its size; known after its batches are handed out."""
        return self._parts.stop(self.number) is not None

    @property
    def num_batches(self) -> int:
        """Number of batches of the part, including skipped ones; known after its batches are handed out."""
        (stream,) = self._of.run.table.streams
        return int(stream.planned - stream.start_batch)

    @property
    def last_batches(self) -> int:
        """Batches of its last window."""
        (stream,) = self._of.run.table.streams
        return stream.count_of(stream.stop - 1) or 0


def _parts_of(iteration: Iteration, parts: Parts, first: int) -> Iterator[PartBatches]:
    """Yield the batches of each part of the only stream, from part `first` on."""
    run = iteration.run
    assert isinstance(run, SourceRun)
    for number in count(first):
        run.begin_part(number)
        yield PartBatches(number, iteration, parts)
        stop = parts.stop(number)
        # a full part may be the last one: only the next window tells
        if stop is None or run.epoch.layout.window((0, stop)) is None:
            return


def plan_parts(loader: Loader, parts: Parts, first: int = 0) -> Iterator[PlannedPart]:
    """Yield the parts of the coming epoch, from part `first` on, for other processes to make. Nothing is read."""
    layout, table = loader.pipeline.table(loader.epoch)
    (stream,) = table.streams
    parts.of(layout)
    _find(layout, parts, first)
    for number in count(first):
        _find(layout, parts, number + 1)
        start, stop = parts.start(number), parts.stop(number)
        own = range(start, (layout.counts[0] or layout.num_found) if stop is None else stop)
        if not own and number:
            return
        first_row, following = None, own.stop
        if isinstance(stream, RowStream):
            first_row, following = stream.ends[own.start], stream.read_until(own.stop)
        windows = tuple(filter(None, (layout.window((0, at)) for at in range(own.start, following))))
        yield PlannedPart(
            number,
            loader.epoch,
            windows[: len(own)],
            windows[len(own) :],
            first_row,
            is_full=stop is not None,
            stop=own.stop,
            counts_batches=table.counted,
            first_batch=stream.firsts[own.start] if table.counted else 0,
            stamps=loader.pipeline.listing.stamps_of(origins_of(windows)),
        )
        if stop is None:
            return


def _find(layout: StreamWindows, parts: Parts, count: int) -> None:
    """Find all windows of the first `count` parts, if they are found one by one."""
    while count and layout.counts == [None] and parts.stop(count - 1) is None:
        if layout.window((0, layout.num_found)) is None:
            return


def loader_for_workers(loader: Loader) -> Loader:
    """Return the loader for other processes, which make parts: it has no files if its source can be divided.

    The values of dictionary columns are collected here, from all files. Raise ProviderError when they cannot be
    known.
    """
    loader.source.find_dictionaries(loader.columns)
    sent = copy(loader)
    sent.pipeline = loader.pipeline.for_parts()
    sent.recipe = sent.pipeline.recipe
    sent.source = sent.recipe.source
    return sent


@contextmanager
def make_part(
    loader: Loader,
    part: PlannedPart,
    handler: BadRowHandler,
    stats: Stats,
    *,
    source: Provider | None = None,
    measured: Measured | None = None,
) -> Iterator[PartBatches]:
    """Provide the batches of one part that another process has planned; the position of the loader does not change.

    They are read from `source`, if given, which has only the files of the part. Batches that the loader skips
    are omitted if the batches before the part were counted, or there are none. `measured` takes the lengths of
    the rows that are read.
    """
    workers, parts = Workers(loader.pipeline.threads), Parts.of_one(len(part.windows))
    recipe = loader.recipe if source is None else replace(loader.recipe, source=source)
    maker = WindowMaker(recipe, part.stamps, measured=measured)
    try:
        skips = Skips(loader.pipeline.skip, part.epoch).after(part.first_batch)
        run_options = RunOptions(workers, [handler], stats, skips=skips, parts=parts)
        run = _run(loader, part, maker, run_options)
        yield next(_parts_of(Iteration(run, run.epoch.start, run_options), parts, 0))
    finally:
        workers.close()


def _run(loader: Loader, part: PlannedPart, maker: WindowMaker, run_options: RunOptions) -> SourceRun:
    recipe = maker.recipe
    loader.pipeline.identity.look_at_functions()
    windows = [*part.windows, *part.following]
    stream = StreamOrder(len(part.windows))
    if part.first_row is not None:
        assert recipe.batch.rows_across is not None
        rows = [window.num_rows or 0 for window in windows]
        stream = RowStream(
            rows, recipe.batch.rows_across, drop_last=recipe.batch.drop_last, before=part.first_row
        )
    start = Position(part.epoch, 0, None, 1)
    steps, totals = loader.pipeline.steps(), loader.pipeline.totals
    plan = EpochPlan(start, Table([stream]), StreamWindows([windows]), steps=steps, totals=totals)
    return SourceRun(plan, maker, run_options)
