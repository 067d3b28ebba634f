"""The batches of one rank in one epoch, made ahead of whoever takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from time import perf_counter

from seqflow.errors import BatchPlanError
from seqflow.loader.plans.batches import NO_ROWS
from seqflow.loader.plans.dealt import Span
from seqflow.loader.plans.plan import WindowBatches
from seqflow.loader.plans.totals import Totals
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.bad_rows import BadRowHandler
from seqflow.loader.run.batch_of_step import batch_of_step
from seqflow.loader.run.making import BatchMaker, Made, PlannedBatches, RefusedRows, Turn
from seqflow.loader.run.reading import WindowReader
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.steps import StepPlanner
from seqflow.loader.run.windows import OpenWindow, WindowMaker
from seqflow.loader.run.windows_again import WindowsAgain
from seqflow.loader.run.workers import Task, Workers
from seqflow.loader.schedule.ranks import ALL_BATCHES, Deal
from seqflow.loader.schedule.skips import NO_SKIPS, Skips
from seqflow.loader.schedule.state import Position, Progress, check_start
from seqflow.loader.schedule.steps import Steps
from seqflow.loader.schedule.streams import (
    BatchAddress,
    Checkpoint,
    Crossing,
    Rotation,
    Stream,
    WindowAddress,
)
from seqflow.record import Record

_MOST_BATCHES = 8
_MOST_CELLS = 1 << 19
"""A task makes several small batches: at most so many, of so many cells together. Handing a task to a thread costs as
much as gathering a small batch."""


class Waiting(Exception):
    """A window is still being read."""


class PartBatches:
    """The batches of one part; once they were handed out, all that is counted belongs to them and those before."""

    def __init__(self, number: int, stream: Stream, batches: Iterable[Record]) -> None:
        self.number, self._stream, self._batches = number, stream, batches

    def __iter__(self) -> Iterator[Record]:
        return iter(self._batches)

    @property
    def is_full(self) -> bool:
        """Whether the part has reached its size; known when its batches were handed out."""
        return self._stream.part_stop is not None

    @property
    def last_batches(self) -> int:
        """The batches of its last window."""
        return self._stream.checkpoint(self._stream.part_windows.stop - 1).batches


class BatchIterator:
    """One iteration: the batches of a rank in order, or some batches of the epoch by their numbers.

    Windows are read ahead and batches are made ahead by the workers; the thread that iterates only hands out.
    """

    def __init__(
        self,
        windows: WindowMaker,
        rotation: Rotation,
        crossing: Crossing | None,
        start: Position,
        workers: Workers,
        handler: BadRowHandler,
        stats: Stats,
        *,
        deal: Deal = ALL_BATCHES,
        reuse: bool = False,
        numbers: Iterator[int | None] | None = None,
        skips: Skips = NO_SKIPS,
        steps: Steps | None = None,
        totals: Totals | None = None,
    ) -> None:
        self.progress = Progress(start)
        self.checkpoints: Mapping[int, Checkpoint] = {} if rotation.counted else start.windows
        """For streams whose batches are counted while they are read, the window of the last batch handed out."""
        self._start, self._epoch = start, start.epoch
        self._windows, self.rotation, self._crossing, self._deal = windows, rotation, crossing, deal
        self._world_size = deal.world_size
        self._workers, self._handler, self._stats = workers, handler, stats
        following = None if crossing is None else crossing.following
        self._steps = None
        """Deals batches, where a plan asks for balance."""
        if steps is not None:
            index = skips.kept_before(start.batch)
            self._steps = StepPlanner(steps, windows.recipe, self._epoch, stats, self, totals, skips, index)
            following = self._steps.windows_of
        upcoming = rotation.upcoming(deal, start.batch, following, skips)
        self._reader = WindowReader(windows, self._epoch, workers, rotation, upcoming)
        self._maker = BatchMaker(
            windows, self._epoch, stats, reuse=reuse, numbered=not any(one.is_cut for one in rotation.streams)
        )
        self._refused = RefusedRows(windows, handler)
        self._skips_windows = crossing is None and rotation.counted
        """Whether windows without batches are known, and read with a batch beside them."""
        self._numbers = numbers
        """The batches to make, where they are not those of a rank; None where there is none for now."""
        self._number: int | None = None
        self._skips, self._has_skips = skips, bool(skips)
        self._round = deal.first(skips.kept_before(start.batch))
        """The first batch of the round that comes next, counted over those that are not skipped."""
        self._to_next_round = deal.stride - deal.rank - deal.first(0)
        self._total = rotation.total
        """The batches of the epoch, once its end was seen."""
        self._passed_until, self._rows_passed = start.batch, 0
        """The batch before which all that are skipped are counted, and the rows of those since the last turn."""
        self._ahead: deque[Task[list[Made]]] = deque()
        self._is_first = True
        self._open: dict[WindowAddress, OpenWindow] = {}
        """Windows in use."""
        self._uncounted: dict[WindowAddress, OpenWindow] = {}
        """Windows that are open, of which no batch was handed out yet."""
        self._seen: set[WindowAddress] = set()
        self._inside: dict[int, tuple[OpenWindow, WindowBatches]] = {}
        """For each stream the batches inside a window, where its first rows belong to a batch of an earlier one."""
        self._dropped_turn: Turn | None = None
        """The batch of the last, incomplete round, which is dropped."""

    def __iter__(self) -> Iterator[Record]:
        while True:
            self._workers.check_process()
            self._reader.fill()
            self._make_ahead(wait=True)
            if not self._ahead:
                self._end()
                return
            started = perf_counter()
            task = self._ahead.popleft()
            self._workers.help_until(task.done)
            chunk = task.result()
            self._stats.seconds_waiting += perf_counter() - started
            chunk.reverse()
            while chunk:
                made = chunk.pop()
                if made.error is not None:
                    raise made.error
                made = self._maker.finish(made)
                self._hand_out(made)
                batch, memory = made.batch, made.memory
                assert batch is not None
                if made.turn.totals is not None:
                    batch = batch_of_step(batch, made.turn)
                del made
                yield batch
                del batch  # the consumer may drop it before the next one is made
                if memory is not None:
                    self._maker.free.append(memory)
                self._workers.check_process()
                self._make_ahead(wait=False)

    def parts(self, first: int) -> Iterator[PartBatches]:
        """The batches of each part of the only stream, from part `first` on."""
        (stream,) = self.rotation.streams
        for number in count(first):
            stream.part = number
            part = PartBatches(number, stream, self)
            yield part
            if (stop := stream.part_stop) is None or not stream.has(stop):
                return

    def check_start(self) -> None:
        """OpError where nothing was handed out because the state that was loaded lies behind the end of the epoch."""
        start, batches = self._start, self.num_batches()
        if self.progress.position is start:
            before, total = map(self._skips.kept_before, (start.batch, batches))
            check_start(start.batch, start.ranks, batches, before - total, self._deal.stride)

    def has(self, batch: int) -> bool:
        """Whether the epoch has this batch; windows before it are planned where nobody has counted their batches."""
        return self._locate(batch, wait=True) is not None

    def turn(self, batch: int) -> Turn | None:
        """A batch as it is planned, by its number; None where the epoch has none."""
        return self._turn(batch, wait=True)

    def num_batches(self) -> int:
        """The batches of the epoch, once its end was seen."""
        total = self.rotation.total
        return sum(stream.last for stream in self.rotation.streams) if total is None else total

    # Handing out: counts, windows that are done, and the place behind the batch

    def _hand_out(self, made: Made) -> None:
        turn, stats = made.turn, self._stats
        size, address = turn.size, turn.address
        stats.batches += 1
        stats.tokens += size.tokens
        stats.cells += size.cells
        if turn.passed:
            stats.skipped += turn.passed
            stats.rows_left -= turn.passed
        if turn.repeated:
            stats.repeated += size.begun
        elif not turn.empty:
            stats.rows += size.begun
            stats.rows_left -= size.begun
            if self._skips_windows:
                self._open_without_batches(address)
        pool = turn.pool
        if self._uncounted:
            self._count_windows(address if pool is None else address._replace(position=pool.last))
        self._release(address.stream, address.position if pool is None else pool.first)
        if (made.refused or self._refused) and not turn.repeated:
            self._keep_refused(made)
        self._advance(turn)

    def _advance(self, turn: Turn) -> None:
        """Note the place behind a batch."""
        progress, address = self.progress, turn.address
        stream = self.rotation.streams[address.stream]
        if not self.rotation.counted and not turn.repeated:
            at = self.checkpoints.get(address.stream)
            position = address.position if turn.at_end or turn.pool is None else turn.pool.first
            if at is None or at.position != position:
                self.checkpoints = {**self.checkpoints, address.stream: stream.checkpoint(position)}
        progress.at_window_end = not turn.repeated and turn.at_end and stream.is_last(address)
        behind = turn.batch + self._to_next_round
        if self._has_skips:
            behind = self._behind(self._skips.kept_before(turn.batch) + self._to_next_round)
        if self._total is not None and behind > self._total:  # what only fills the last round is not counted
            behind = self._total
        progress.position = Position(self._epoch, behind, self.checkpoints, self._world_size)

    def _behind(self, index: int) -> int:
        """The batch behind the last of those that are not skipped, of so many."""
        return self._skips.number(index - 1) + 1 if index else 0

    def _release(self, stream: int, position: int) -> None:
        """Let go of the windows of a stream before a position."""
        if self._reader.release(stream, position):
            self._open = {
                address: one
                for address, one in self._open.items()
                if address[0] != stream or address[1] >= position
            }
        self._stats.bytes_in_flight = self._reader.bytes_in_flight

    def _keep_refused(self, made: Made) -> None:
        """The rows that `net` has refused wait for the last batch of their window."""
        turn = made.turn
        self._refused.add(turn.windows, made.refused)
        is_last = turn.at_end and self.rotation.streams[turn.address.stream].is_last(turn.address)
        self._count_refused(() if is_last or self._numbers is not None else turn.numbers)

    def _end(self) -> None:
        """Count what no batch was made of, of all windows, or of those of the part that ends."""
        self._stats.skipped += self._rows_passed
        self._stats.rows_left -= self._rows_passed
        for stream in filter(self._is_read_here, self.rotation.streams):
            windows = stream.part_windows if self.rotation.counted else range(0)
            if self._crossing is not None:
                rows = self._crossing.rows_never_read(stream.number, windows)
                self._stats.rows_read += rows
                self._stats.dropped += rows
                self._count_filtered(self._crossing, stream, windows)
                if stream.is_cut:
                    self._count_inside_batches(self._crossing, stream, windows)
            elif not stream.has_batches(windows):
                for position in windows:
                    self._opened((stream.number, position), wait=True)
        self._count_windows()
        self._count_refused()
        if len(self.rotation.streams) == 1 and self._numbers is None:
            self._advance_behind_part(*self.rotation.streams)

    def _advance_behind_part(self, stream: Stream) -> None:
        """Note the place behind the last window of a part, which may have had no batch."""
        stop = stream.part_stop
        if stop is None:
            return
        if not self.rotation.counted:
            self.checkpoints = {stream.number: stream.checkpoint(stop - 1)}
        self.progress.at_window_end = True
        behind = self._behind(self._round)
        self.progress.position = Position(self._epoch, behind, self.checkpoints, self._world_size)

    def _count_filtered(self, crossing: Crossing, stream: Stream, windows: range) -> None:
        """Count the rows that `where` has left out of windows from which no batch takes rows."""
        for position in crossing.windows_without_rows(stream.number, windows):
            filtered = self.rotation.window((stream.number, position)).filtered
            self._stats.filtered += filtered
            self._stats.skipped += filtered

    def _count_inside_batches(self, crossing: Crossing, stream: Stream, windows: range) -> None:
        """Count the windows of a part that only a batch of an earlier part takes rows from: it has read them."""
        for position in windows:
            address = stream.number, position
            if address not in self._seen and crossing.gives_rows(address):
                window, dropped = self.rotation.window(address), crossing.dropped_of(address)
                rows, filtered = window.num_rows or 0, window.filtered
                self._stats.rows_read += rows
                self._stats.dropped += dropped
                self._stats.rows_left += rows - dropped
                self._stats.filtered += filtered
                self._stats.skipped += filtered

    def _is_read_here(self, stream: Stream) -> bool:
        """Whether this rank counts what of a stream is in no batch."""
        deal = self._deal
        return self._numbers is None and stream.number % deal.stride == deal.first(0) + deal.rank

    # Making ahead: which batch comes next, and in which window it lies

    def _make_ahead(self, *, wait: bool) -> None:
        """Let the workers make the next batches; with `wait` there is at least one, unless this is the end."""
        while len(self._ahead) <= self._workers.count:
            turns = self._next_turns(wait=wait and not self._ahead)
            if not turns:
                return
            self._is_first = False
            self._ahead.append(self._workers.submit(lambda turns=turns: self._maker.make(turns), urgent=True))  # type: ignore[misc]

    def _next_turns(self, *, wait: bool) -> list[Turn]:
        """The next batches to make in one task; none where that takes waiting, or there are no more."""
        turns: list[Turn] = []
        cells = 0
        most = 1 if self._is_first else _MOST_BATCHES  # nobody should wait for eight to see the first one
        while len(turns) < most and cells < _MOST_CELLS:
            try:
                turn = self._next_turn(wait=wait and not turns)
            except Waiting:
                break
            if turn is None:
                break
            turns.append(turn)
            cells += turn.size.cells
        return turns

    def _next_turn(self, *, wait: bool) -> Turn | None:
        """The rank's next batch; None behind the last."""
        if self._numbers is not None:
            return self._next_number(self._numbers, wait=wait)
        first = self._round
        number = first + self._deal.rank
        if self._has_skips:
            self._pass_over(first, wait=wait)
            number = self._skips.number(number)
        turn = self._turn(number, wait=wait)
        if self._deal.world_size > 1:
            turn = self._of_last_round(turn, first, wait=wait)
        if turn is not None:
            self._round += self._deal.stride
            if self._rows_passed:
                turn = turn._replace(passed=self._rows_passed)
                self._rows_passed = 0
        return turn

    def _pass_over(self, first: int, *, wait: bool) -> None:
        """Count the rows of the batches that are skipped before a round, or in it: one of all ranks counts each."""
        deal = self._deal
        stop = self._skips.number(first + deal.world_size - 1)
        for number in self._skips.between(self._passed_until, stop):
            if not self._exists(number, wait=wait):  # a span may be longer than any epoch
                break
            if number % deal.stride == deal.first(0) + deal.rank:
                turn = self._turn(number, wait=wait)
                self._rows_passed += 0 if turn is None else turn.size.begun
            self._passed_until = number + 1

    def _next_number(self, numbers: Iterator[int | None], *, wait: bool) -> Turn | None:
        if self._number is None:
            self._number = next(numbers, None)
        if self._number is None:
            return None
        turn = self._turn(self._number, wait=wait)
        if turn is not None:
            self._number = None
        return turn

    def _of_last_round(self, turn: Turn | None, first: int, *, wait: bool) -> Turn | None:
        """The same batch where its round is complete; else what the tail makes of it."""
        deal = self._deal
        number_of = self._skips.number
        if self._exists(number_of(first + deal.world_size - 1), wait=wait):
            return turn
        self._total = self.num_batches()
        kept = self._skips.kept_before(self._total)
        if deal.tail == "drop":
            self._drop_round(turn, first)
            return None
        if turn is not None or kept <= first:
            return turn
        own = number_of(first + deal.rank)
        if deal.tail == "pad":
            of_first = self._turn(number_of(first), wait=wait)
            assert of_first is not None
            return of_first._replace(batch=own, size=NO_ROWS, empty=True)
        repeated = self._turn_again(number_of((first + deal.rank) % kept), wait=wait)
        return repeated._replace(batch=own, repeated=True)

    def _drop_round(self, turn: Turn | None, first: int) -> None:
        """Count the rows of a batch that is in no complete round; BatchPlanError where there is no round at all."""
        if turn is not None and self._dropped_turn is None:
            self._dropped_turn = turn
            self._stats.dropped += turn.size.begun
            self._stats.rows_left -= turn.size.begun
            if self._skips_windows:
                self._open_without_batches(turn.address)
        if first == 0:
            raise BatchPlanError(
                f"Loader: an epoch has fewer batches than world_size = {self._deal.world_size}, and tail='drop' "
                "leaves none\n  use tail='pad' or 'repeat', or smaller batches"
            )

    def _turn_again(self, batch: int, *, wait: bool) -> Turn:
        """One of the epoch's first batches; where a resumed run has not counted them, they are planned again."""
        if all(stream.begins_at_start for stream in self.rotation.streams):
            turn = self._turn(batch, wait=wait)
        else:
            again = WindowsAgain(self._windows, self.rotation.from_its_start(), self._epoch)
            turn = (
                again.turn(batch) if self._steps is None else self._steps.again(again).turn(batch, wait=True)
            )
        assert turn is not None
        return turn

    def _turn(self, batch: int, *, wait: bool) -> Turn | None:
        if self._steps is not None:
            return self._steps.turn(batch, wait=wait)
        address = self._locate(batch, wait=wait)
        if address is None:
            return None
        own = self._opened(address.window, wait=wait)
        if self._crossing is None:
            return Turn(batch, address, (own,), own.batches, address.number, own.batches.size(address.number))
        windows = own, *[self._opened(one, wait=wait) for one in self._crossing.following(address)]
        batches, number = self._batches_across(self._crossing, address, windows)
        return Turn(batch, address, windows, batches, number, batches.size(number))

    def planned(self, stream: Stream, number: int, stop: int, *, wait: bool) -> PlannedBatches | None:
        """Batch `number` of a stream, and those before batch `stop` in the same window; None behind the last."""
        address = self._located(stream, number, wait=wait)
        if address is None:
            return None
        own = self._opened(address.window, wait=wait)
        if self._crossing is None:
            last = min(len(own.batches), address.number + stop - number)
            return PlannedBatches(address, (own,), Span(own.batches, address.number, last))
        windows = own, *[self._opened(one, wait=wait) for one in self._crossing.following(address)]
        batches, at = self._batches_across(self._crossing, address, windows)
        return PlannedBatches(address, windows, Span(batches, at, at + 1))

    def following(self, address: BatchAddress) -> list[WindowAddress]:
        """The windows behind its own from which a batch takes rows."""
        return [] if self._crossing is None else self._crossing.following(address)

    def window_of(self, stream: Stream, number: int, *, wait: bool) -> range | None:
        """The batches of a stream that are in the window of one of them; None behind the last."""
        address = self._located(stream, number, wait=wait)
        if address is None:
            return None
        at = stream.checkpoint(address.position)
        return range(at.first, at.first + at.batches)

    def _located(self, stream: Stream, number: int, *, wait: bool) -> BatchAddress | None:
        """The address of a batch of a stream; windows whose batches nobody has counted are planned first."""
        while True:
            found = stream.locate(number)
            if found is None or isinstance(found, BatchAddress):
                return found
            opened = self._opened((stream.number, found), wait=wait)
            stream.count(found, len(opened.batches))

    def _batches_across(
        self, crossing: Crossing, address: BatchAddress, windows: tuple[OpenWindow, ...]
    ) -> tuple[WindowBatches, int]:
        """Planned batches of `Rows` that run across windows, and which of them is the one of an address."""
        own, n, lead = windows[0], crossing.plan.n, crossing.lead(address.window)
        full = (own.rows.num_rows - lead) // n

        def planned(rows: WindowRows) -> WindowBatches:
            return crossing.plan.of_window(rows, own.lengths, 0, own.window.number)

        if address.number < full:
            if not lead:
                return own.batches, address.number
            found = self._inside.get(address.stream)
            if found is None or found[0] is not own:
                found = self._inside[address.stream] = own, planned(own.rows.part(lead, lead + full * n))
            return found[1], address.number
        rows = own.rows.part(lead + full * n, own.rows.num_rows)
        for window in windows[1:]:
            rows = rows.joined(window.rows.part(0, min(n - rows.num_rows, window.rows.num_rows)))
        return planned(rows), 0

    def _exists(self, batch: int, *, wait: bool) -> bool:
        """Whether the epoch has a batch; nothing is planned where the number of batches is known."""
        total = self.rotation.total
        return batch < total if total is not None else self._locate(batch, wait=wait) is not None

    def _locate(self, batch: int, *, wait: bool) -> BatchAddress | None:
        """The address of a batch; windows whose batches nobody has counted are planned first."""
        while True:
            found = self.rotation.locate(batch)
            if found is None or isinstance(found, BatchAddress):
                return found
            opened = self._opened(found, wait=wait)
            self.rotation.streams[found[0]].count(found[1], len(opened.batches))

    # Windows: opened when a batch needs them, counted when its first batch is handed out

    def _open_without_batches(self, address: BatchAddress) -> None:
        """Open the windows without batches, as a lengths index knows, that are read with this one."""
        for position in self.rotation.streams[address.stream].without_batches(address):
            self._opened((address.stream, position), wait=True)

    def _opened(self, address: WindowAddress, *, wait: bool) -> OpenWindow:
        opened = self._open.get(address)
        if opened is not None:
            return opened
        if not wait and not self._reader.ready(address):
            raise Waiting
        started = perf_counter()
        stream, position = address
        if not self._reader.has(address):  # all batches before it were handed out, or nobody would wait
            first = position if self._steps is None else self._steps.first_needed(stream, position)
            self._release(stream, min([first, *(at for of, at in self._uncounted if of == stream)]))
        opened = self._open[address] = self._reader.get(address)
        self._stats.seconds_waiting += perf_counter() - started
        if address not in self._seen:
            self._seen.add(address)
            if self._crossing is None:
                self.rotation.streams[stream].check(position, len(opened.batches))
            if self._numbers is None:
                self._uncounted[address] = opened
            else:  # the iteration of a mix may end anywhere
                self._count(address, opened)
            self._stats.bytes_in_flight = self._reader.bytes_in_flight
        return opened

    def _count_windows(self, address: BatchAddress | None = None) -> None:
        """Count the windows up to that of a batch, and those without batches that are skipped behind it; else all.

        So at the end of a window all that is counted belongs to the batches handed out, whatever was read ahead.
        """
        streams = self.rotation.streams
        if address is None:
            stops = [stream.part_stop for stream in streams]
            windows = [(of, at) for of, at in self._uncounted if (stop := stops[of]) is None or at < stop]
        else:
            behind = streams[address.stream].next_window(address)
            windows = [(of, at) for of, at in self._uncounted if of == address.stream and at < behind]
        for one in sorted(windows):
            self._count(one, self._uncounted.pop(one))

    def _count(self, address: WindowAddress, opened: OpenWindow) -> None:
        """The rows of a window count, and its bad rows are kept."""
        stats = self._stats
        for one in self._reader.slices(address):
            stats.rows_read += one.num_rows
            if self._crossing is None or self._crossing.gives_rows(address):
                stats.filtered += one.filtered
                stats.skipped += one.filtered
            stats.seconds_reading += one.seconds_reading
            stats.seconds_preparing += one.seconds_preparing
            for rejected in one.rejected:
                self._handler.add(rejected)
        for rejected in opened.rejected:
            self._handler.add(rejected)
        dropped = opened.batches.dropped.begun
        if self._crossing is not None:
            dropped = self._crossing.dropped_of(address)
        stats.dropped += dropped
        stats.skipped += opened.batches.skipped
        bad = sum(rejected.count for rejected in opened.rejected)
        stats.rows_left += opened.rows.num_rows - bad - dropped - opened.batches.skipped
        stats.seconds_planning += opened.seconds_planning
        stats.bad_rows = self._handler.count

    def _count_refused(self, but: Collection[int] = ()) -> None:
        """The rows that `net` has refused are bad rows, those of some windows later: these have more batches."""
        self._stats.rows -= self._refused.report(but)
        self._stats.bad_rows = self._handler.count
