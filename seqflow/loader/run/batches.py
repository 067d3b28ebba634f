"""Run: the batches of one rank in one epoch, made ahead of whoever takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

from seqflow.errors import BatchPlanError, SeqflowError
from seqflow.loader.plans.plan import BatchSize, WindowBatches
from seqflow.loader.plans.window_batches import NO_ROWS
from seqflow.loader.run.bad_rows import BadRowHandler
from seqflow.loader.run.provenance import blames_rows, describe_rows
from seqflow.loader.run.reading import Spot, WindowReader
from seqflow.loader.run.recipe import OpenWindow, Recipe
from seqflow.loader.run.refused_rows import FailedBatch, RefusedRows
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.workers import Task, Workers
from seqflow.loader.schedule.crossing import Crossing
from seqflow.loader.schedule.dealing import Deal, Rotation
from seqflow.loader.schedule.streams import Place, Stream
from seqflow.net import Net
from seqflow.printable import printable
from seqflow.record import BadRow, Record, slice_rows
from seqflow.record.batch_memory import BatchMemory

_MOST_BATCHES = 8
_MOST_CELLS = 1 << 19
"""A task makes several small batches: at most so many, of so many cells together."""


class Turn(NamedTuple):
    """A batch that is to be made: the window that owns it, and those that its last rows come from."""

    batch: int
    """Its number in the epoch."""
    place: Place
    windows: tuple[OpenWindow, ...]
    batches: WindowBatches
    """The planned batches of which it is number `number`."""
    number: int
    size: BatchSize
    empty: bool = False
    """It only fills the last round of the ranks, without rows."""
    repeated: bool = False
    """It only fills the last round of the ranks, with one of the epoch's first batches."""


class Made(NamedTuple):
    """A batch, or the error that making it gave."""

    turn: Turn
    batch: Record | None
    error: BaseException | None = None
    memory: BatchMemory | None = None
    """Where the batch lies, to be used again after it."""
    refused: tuple[BadRow, ...] = ()
    """The rows of the window that `net` cannot take, which are not in it."""


class Waiting(Exception):
    """A window is still being read."""


class Run:
    """One iteration: the batches of a rank, in order.

    Windows are read ahead and batches are made ahead by the workers; the thread that iterates only hands out.
    """

    def __init__(
        self,
        recipe: Recipe,
        epoch: int,
        rotation: Rotation,
        deal: Deal,
        start: int,
        reader: WindowReader,
        workers: Workers,
        stats: Stats,
        handler: BadRowHandler,
        crossing: Crossing | None,
        handed_out: Callable[[Run, Turn], None],
        reuse: bool,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self.recipe, self.epoch, self.rotation, self.deal = recipe, epoch, rotation, deal
        self._reader, self._workers, self._stats, self._handler = reader, workers, stats, handler
        self._crossing, self._handed_out = crossing, handed_out
        self._round = deal.first(start)
        """The first batch of the round that comes next."""
        self._to_next_round = deal.stride - deal.rank - deal.first(0)
        self._limit = workers.count + 1
        self._ahead: deque[Task[list[Made]]] = deque()
        self._open: dict[Spot, OpenWindow] = {}
        """Windows in use."""
        self._uncounted: dict[Spot, OpenWindow] = {}
        """Windows that are open, of which no batch was handed out yet."""
        self._refused = RefusedRows(recipe, handler)
        self._seen: set[Spot] = set()
        self._first = True
        self._dropped_turn: Turn | None = None
        """The batch of the last, incomplete round, which is dropped."""
        self._reuse = reuse
        self._free: list[BatchMemory] = []
        self._numbers = numbers
        """The batches to make, where they are not those of a rank."""
        self._number: int | None = None
        self.next_round = start

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
                made = self._finish(made)
                self._hand_out(made)
                batch, memory = made.batch, made.memory
                assert batch is not None
                del made
                yield batch
                del batch  # the consumer may drop it before the next one is made
                if memory is not None:
                    self._free.append(memory)
                self._workers.check_process()
                self._make_ahead(wait=False)

    def _end(self) -> None:
        """Count what no batch was made of."""
        if self.rotation.counted and self._crossing is None:
            for stream in self.rotation.streams:
                if not stream.num_batches and self._is_read_here(stream):
                    self._open_all(stream.number, stream.num_windows)
        if self._crossing is not None:
            for stream in filter(self._is_read_here, self.rotation.streams):
                rows = self._crossing.rows_never_read(stream.number)
                self._stats.rows_read += rows
                self._stats.dropped += rows
        self.count_windows()
        self._count_refused()

    def _is_read_here(self, stream: Stream) -> bool:
        """Whether this rank counts what of a stream is in no batch."""
        deal = self.deal
        return self._numbers is None and stream.number % deal.stride == deal.first(0) + deal.rank

    def _open_all(self, stream: int, windows: int) -> None:
        for position in range(windows):
            self._opened((stream, position), wait=True)

    def _finish(self, made: Made) -> Made:
        """The batch that is handed out: users' functions run in their own thread."""
        if self.recipe.net is None or isinstance(self.recipe.net, Net):
            return made
        return self._run_net(made)

    def _hand_out(self, made: Made) -> None:
        turn, stats = made.turn, self._stats
        stats.batches += 1
        stats.tokens += turn.size.tokens
        stats.cells += turn.size.cells
        if turn.repeated:
            stats.repeated += turn.size.begun
        elif not turn.empty:
            stats.rows += turn.size.begun
            stats.rows_left -= turn.size.begun
            self._open_without_batches(turn.place)
        if self._uncounted:
            self.count_windows(turn.place)
        self._release(turn.place.stream, turn.place.position)
        if (made.refused or self._refused) and not turn.repeated:
            self._keep_refused(made)
        self.next_round = turn.batch + self._to_next_round
        self._handed_out(self, turn)

    def _open_without_batches(self, place: Place) -> None:
        """Open the windows without batches, as a lengths index knows, that are read with this one."""
        if self._crossing is None:
            for position in self.rotation.streams[place.stream].without_batches(place):
                self._opened((place.stream, position), wait=True)

    def _release(self, stream: int, position: int) -> None:
        """Let go of the windows of a stream before a position."""
        if any(at < position for of, at in self._open if of == stream):
            self._open = {
                spot: one for spot, one in self._open.items() if spot[0] != stream or spot[1] >= position
            }
        self._reader.release(stream, position)
        self._stats.bytes_in_flight = self._reader.bytes_in_flight

    def _make_ahead(self, *, wait: bool) -> None:
        """Let the workers make the next batches; with `wait` there is at least one, unless this is the end."""
        while len(self._ahead) < self._limit:
            turns = self._next_turns(wait=wait and not self._ahead)
            if not turns:
                return
            self._first = False
            self._ahead.append(self._workers.submit(lambda turns=turns: self._make_all(turns), urgent=True))  # type: ignore[misc]

    def _next_turns(self, *, wait: bool) -> list[Turn]:
        """The next batches to make in one task; none where that takes waiting, or there are no more."""
        turns: list[Turn] = []
        cells = 0
        most = 1 if self._first else _MOST_BATCHES
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
        turn = self._turn(first + self.deal.rank, wait=wait)
        if self.deal.world_size > 1:
            turn = self._of_last_round(turn, first, wait=wait)
        if turn is not None:
            self._round += self.deal.stride
        return turn

    def _next_number(self, numbers: Iterator[int], *, wait: bool) -> Turn | None:
        if self._number is None:
            self._number = next(numbers, None)
        if self._number is None:
            return None
        turn = self._turn(self._number, wait=wait)
        if turn is not None:
            self._number = None
        return turn

    def has(self, batch: int) -> bool:
        """Whether the epoch has this batch; windows before it are planned where nobody has counted their batches."""
        return self._locate(batch, wait=True) is not None

    def num_batches(self) -> int:
        """The batches of the epoch, once its end was seen."""
        total = self.rotation.total
        return sum(stream.last for stream in self.rotation.streams) if total is None else total

    def _of_last_round(self, turn: Turn | None, first: int, *, wait: bool) -> Turn | None:
        """The same batch where its round is complete; else what the tail makes of it."""
        last = first + self.deal.world_size - 1
        if self._locate(last, wait=wait) is not None:
            return turn
        if self.deal.tail == "drop" and turn is not None:
            self._drop(turn)
        if self.deal.tail == "drop" or self._locate(first, wait=wait) is None:
            if self.deal.tail == "drop" and first == 0:
                raise BatchPlanError(
                    f"Loader: an epoch has fewer batches than world_size = {self.deal.world_size}, and tail='drop' "
                    "leaves none\n  use tail='pad' or 'repeat', or smaller batches"
                )
            return None
        if turn is not None:
            return turn
        if self.deal.tail == "pad":
            of_first = self._turn(first, wait=wait)
            assert of_first is not None
            return of_first._replace(batch=first + self.deal.rank, size=NO_ROWS, empty=True)
        count = first
        while self._locate(count, wait=wait) is not None:
            count += 1
        repeated = self._turn_again((first + self.deal.rank - count) % count, wait=wait)
        return repeated._replace(batch=first + self.deal.rank, repeated=True)

    def _drop(self, turn: Turn) -> None:
        """Count the rows of a batch that is in no complete round."""
        if self._dropped_turn is None:
            self._dropped_turn = turn
            self._stats.dropped += turn.size.begun
            self._stats.rows_left -= turn.size.begun
            self._open_without_batches(turn.place)

    def _turn_again(self, batch: int, *, wait: bool) -> Turn:
        """One of the epoch's first batches; where a resumed run has not counted them, they are planned again."""
        if all(stream.begins_at_start for stream in self.rotation.streams):
            turn = self._turn(batch, wait=wait)
            assert turn is not None
            return turn
        rotation = self.rotation.from_its_start()
        opened: dict[Spot, OpenWindow] = {}
        while not isinstance(place := rotation.locate(batch), Place):
            assert place is not None
            stream, position = place
            opened[place] = self._made_window(rotation, place)
            rotation.streams[stream].count(position, len(opened[place].batches))
        window = opened[place.stream, place.position]
        return Turn(batch, place, (window,), window.batches, place.number, window.batches.size(place.number))

    def _made_window(self, rotation: Rotation, spot: Spot) -> OpenWindow:
        window = rotation.streams[spot[0]].window(spot[1])
        assert window is not None
        return self.recipe.make_window(window, self.epoch)

    def _locate(self, batch: int, *, wait: bool) -> Place | None:
        """The place of a batch; windows whose batches nobody has counted are planned first."""
        while True:
            place = self.rotation.locate(batch)
            if place is None or isinstance(place, Place):
                return place
            stream, position = place
            opened = self._opened((stream, position), wait=wait)
            self.rotation.streams[stream].count(position, len(opened.batches))

    def _turn(self, batch: int, *, wait: bool) -> Turn | None:
        place = self._locate(batch, wait=wait)
        if place is None:
            return None
        windows: tuple[OpenWindow, ...] = (self._opened((place.stream, place.position), wait=wait),)
        batches, number = windows[0].batches, place.number
        if self._crossing is not None:
            windows += tuple([self._opened(spot, wait=wait) for spot in self._crossing.following(place)])
            batches, number = self._crossing.batches(place, windows)
        return Turn(batch, place, windows, batches, number, batches.size(number))

    def _opened(self, spot: Spot, *, wait: bool) -> OpenWindow:
        opened = self._open.get(spot)
        if opened is not None:
            return opened
        if not wait and not self._reader.ready(spot):
            raise Waiting
        started = perf_counter()
        if not self._reader.has(spot):  # all batches before it were handed out, or nobody would wait
            stream, position = spot
            kept = [at for of, at in self._uncounted if of == stream]
            self._release(stream, min([position, *kept]))
        opened = self._open[spot] = self._reader.get(spot)
        self._stats.seconds_waiting += perf_counter() - started
        if spot not in self._seen:
            self._seen.add(spot)
            if self._crossing is None:
                self.rotation.streams[spot[0]].check(spot[1], len(opened.batches))
            if self._numbers is None:
                self._uncounted[spot] = opened
            else:  # the run of a mix may end anywhere
                self._count(spot, opened)
            self._stats.bytes_in_flight = self._reader.bytes_in_flight
        return opened

    def count_windows(self, place: Place | None = None) -> None:
        """Count the windows up to that of a place, and those without batches that are skipped behind it; else all.

        So at the end of a window all that is counted belongs to the batches handed out, whatever was read ahead.
        """
        spots = sorted(self._uncounted)
        if place is not None:
            stop = self.rotation.streams[place.stream].next_window(place)
            spots = [spot for spot in spots if spot[0] == place.stream and spot[1] < stop]
        for spot in spots:
            self._count(spot, self._uncounted.pop(spot))

    def _count(self, spot: Spot, opened: OpenWindow) -> None:
        """The rows of a window count, and its bad rows are kept."""
        stats = self._stats
        for part in self._reader.parts(spot):
            stats.rows_read += part.num_rows
            stats.seconds_reading += part.seconds_reading
            stats.seconds_preparing += part.seconds_preparing
            for rejected in part.rejected:
                self._handler.add(rejected)
        for rejected in opened.rejected:
            self._handler.add(rejected)
        dropped = opened.batches.dropped.begun
        if self._crossing is not None:
            dropped = self._crossing.dropped_of(spot)
        stats.dropped += dropped
        stats.skipped += opened.batches.skipped
        bad = sum(rejected.count for rejected in opened.rejected)
        stats.rows_left += opened.rows.num_rows - bad - dropped - opened.batches.skipped
        stats.seconds_planning += opened.seconds_planning
        stats.bad_rows = self._handler.count

    def _keep_refused(self, made: Made) -> None:
        """The rows that `net` has refused wait for the last batch of their window."""
        place = made.turn.place
        spot = place.stream, place.position
        self._refused.add(spot, made.turn.windows[0].ranges, made.refused)
        is_last = self.rotation.streams[place.stream].is_last(place)
        self._count_refused(None if is_last or self._numbers is not None else spot)

    def _count_refused(self, but: Spot | None = None) -> None:
        """The rows that `net` has refused are bad rows, those of the window at a spot later: it has more batches."""
        self._stats.rows -= self._refused.report(but)
        self._stats.bad_rows = self._handler.count

    def _make_all(self, turns: list[Turn]) -> list[Made]:
        """The batches, up to the first error."""
        started = perf_counter()
        memories = [self._memory() for _ in turns]
        together = self._make_together(turns, memories)
        made = []
        for turn, memory, batch in zip(turns, memories, together, strict=True):
            try:
                if batch is None:
                    batch = turn.batches.make(turn.number, memory)
                if turn.empty:
                    batch = slice_rows(batch, 0, 0)
                one = Made(turn, batch, None, memory)
                if isinstance(self.recipe.net, Net):
                    one = self._run_net(one)
            except BaseException as error:
                made.append(Made(turn, None, error))
                break
            made.append(one)
        self._stats.add_making(perf_counter() - started)
        return made

    def _make_together(
        self, turns: list[Turn], memories: list[BatchMemory | None]
    ) -> Sequence[Record | None]:
        """The batches where one window plans them all; None for each that is to be made alone."""
        batches = turns[0].batches
        if len(turns) > 1 and all(turn.batches is batches for turn in turns):
            try:
                return batches.make_all([turn.number for turn in turns], memories)
            except (SeqflowError, MemoryError):
                pass  # made one by one, the batches before the bad one are handed out first
        return [None] * len(turns)

    def _memory(self) -> BatchMemory | None:
        """Memory that no batch is in any more, where batches may share it."""
        if not self._reuse:
            return None
        try:
            return self._free.pop()
        except IndexError:
            return BatchMemory()

    def _run_net(self, made: Made) -> Made:
        """The result of `net` on a batch, without the rows that it cannot take where bad rows are left out.

        An error gets a note with the place of the row that causes it, or else of the batch.
        """
        assert made.batch is not None
        turn = made.turn
        net = self.recipe.net_of(turn.windows[0].window.number, turn.place.number, self.epoch)
        try:
            return made._replace(batch=net(made.batch))
        except Exception as error:
            count = 0 if turn.empty else len(turn.batches.numbers(turn.number))
            failed = FailedBatch(net, turn.batches, turn.number, count)
            searched, row = False, None
            if blames_rows(error) and self.recipe.keeps_going:
                accepted = failed.accepted(error, turn.windows[0].lengths)
                if accepted is not None:
                    size, batch, refused = accepted
                    return made._replace(turn=turn._replace(size=size), batch=batch, refused=refused)
                searched = True
            elif blames_rows(error) and isinstance(self.recipe.net, Net):
                searched, row = True, failed.first_failing()
            error.add_note(printable(self._place_of(turn, row, searched=searched)))
            raise

    def _place_of(self, turn: Turn, row: int | None, *, searched: bool) -> str:
        """The place of a batch, or of one of the rows that it is made of, as text."""
        ranges = [one for window in turn.windows for one in window.ranges]
        numbers = turn.batches.numbers(turn.number)
        if row is not None:
            return f"at {describe_rows(ranges, numbers[row : row + 1])}"
        place = f"in a batch of {describe_rows(ranges, numbers)}"
        return f"{place}: no row of it is the cause alone" if searched else place
