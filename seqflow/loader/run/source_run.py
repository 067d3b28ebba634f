"""One pass over one source: its windows in memory, and making, handing out and counting its batches."""

from collections.abc import Collection, Sequence

from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.assign_ranks import upcoming
from seqflow.loader.epoch.state import Checkpoint, Position, Progress
from seqflow.loader.epoch.table import BatchEntry, Missing, RowStream, StreamOrder, Table
from seqflow.loader.run.iterator import EpochPlan, Iteration, Run, RunOptions
from seqflow.loader.run.ledger import Ledger, count_bad, move, places_in
from seqflow.loader.run.making import BatchMaker, BatchResult, finished_batch
from seqflow.loader.run.reading import PlannedRows, WindowReader
from seqflow.loader.run.steps import HandedOut, StepPlanner
from seqflow.loader.run.tasks import BatchTask
from seqflow.loader.run.windows import OpenWindow, WindowMaker
from seqflow.record import BadRow, Record
from seqflow.record.batch_memory import BatchMemory


class SourceRun:
    """One pass over one source."""

    def __init__(
        self, epoch: EpochPlan, maker: WindowMaker, run_options: RunOptions, *, reuse: bool = False
    ) -> None:
        self.epoch, self.run_options = epoch, run_options
        self.checkpoint = None if epoch.table.counted else epoch.start.window
        """Window of the last batch handed out, if batches are counted while they are read."""
        assignment, skips = run_options.assignment, run_options.skips
        first = skips.kept_before(epoch.start.batch)
        # parts cut pools: those of a later part are not known yet; of single rows there are too many
        cuts = run_options.parts is not None or maker.recipe.of_rows
        reach = None if epoch.steps is None or cuts else self._reach
        ahead = upcoming(epoch.table, assignment.first(first), assignment, skips, reach, run_options.stop)
        self._windows = WindowReader(epoch, maker, run_options, ahead)
        if damaged := maker.recipe.source.damaged:
            self._windows.add_damage(damaged)
        self.rows, self.steps = PlannedRows(epoch.table, self._windows), None
        number, stats = epoch.start.epoch, run_options.stats
        if epoch.steps is not None:
            handed = None if epoch.totals is None else HandedOut(epoch.totals, skips, first)
            self.steps = StepPlanner(epoch.steps, maker.recipe, number, stats, self.rows, handed)
            self._windows.first_needed = self.steps.first_needed
        self.maker = BatchMaker(maker, number, stats, reuse=reuse, numbered=run_options.parts is None)
        self.progress, self._part = Progress(epoch.start), 0
        self._refused: dict[int, Ledger] = {}
        """Ledgers of windows, by number, with rows that `net` has refused, and with more batches to hand out."""
        self._needed = (0, 0)
        """Stream of the last batch, and the first window of that stream that was still needed."""
        self._rounds = number, assignment.world_size
        """The epoch, and the number of ranks in its rounds."""
        self._first: Run | None = None
        self._passed_window: tuple[tuple[int, int], Array | None] = (-1, -1), None
        """The last window with a skipped batch, and the rows of its batches, if they are known without reading."""

    @property
    def table(self) -> Table:
        return self.rows.table

    def close(self) -> None:
        """Release what is in memory."""
        self._windows.close()
        if self._first is not None:
            self._first.close()

    def begin_part(self, number: int) -> None:
        """Hand out the batches of one part of the only stream from now on."""
        parts, (stream,) = self.run_options.parts, self.table.streams
        assert parts is not None
        self._part = number
        stream.cut(parts.start(number), parts.stop(number))
        self.rows.table = Table([stream])

    # Turns

    def plan(self, window: Missing, *, wait: bool) -> bool:
        return self.rows.plan(window, wait=wait)

    def of(self, row: BatchEntry, following: int, *, wait: bool) -> BatchTask | None:
        """Return the task of a row: as its window plans it, or balanced again in its steps."""
        if self.steps is not None:
            return self.steps.task(row, following, wait=wait)
        found = self.rows.batches_of(row, wait=wait)
        if found is None:
            return None
        windows, batches, number = found
        return BatchTask(row, windows, batches, number, batches.size(number), following)

    def rows_passed(self, number: int) -> int | None:
        """Return the rows of a skipped batch; None if its window must be read for that. Its windows are counted."""
        row = self.table.find(number)
        if not self.table.counted or self.steps is not None or not isinstance(row, BatchEntry):
            return None
        stream = self.table.streams[row.stream]
        if isinstance(stream, RowStream):
            rows = sum(stop - start for _, start, stop in row.pieces)
        else:
            address = row.stream, row.window
            if self._passed_window[0] != address:
                window = self.epoch.layout.window(address)
                assert window is not None
                self._passed_window = address, self._windows.maker.known_rows(window, self.epoch.start.epoch)
            known = self._passed_window[1]
            if known is None:
                return None
            rows = known.item(row.inside)
        self._windows.pass_over(row.stream, [piece[0] for piece in row.pieces])
        return rows

    def first(self) -> Run:
        """Return a run that gives the first rows; their windows are planned again if this run no longer has them."""
        if self.table.is_from_start and None not in self.epoch.layout.counts:
            return self
        if self._first is None:
            assert self.epoch.again is not None
            self._first = self.epoch.again()
        return self._first

    def _reach(self, k: int) -> tuple[int, int, int]:
        assert self.steps is not None
        return self.steps.reach(k)

    # Making and handing out

    def fill(self) -> None:
        self._windows.fill()

    def sum_counts(self) -> None:
        """Do nothing: the counts are always up to date."""

    def make(self, tasks: list[BatchTask]) -> list[BatchResult]:
        return self.maker.make(tasks)

    def free(self, memory: BatchMemory) -> None:
        self.maker.free.append(memory)

    def finished(self, made: BatchResult) -> Record:
        return finished_batch(self.maker.finish(made))

    def hand_out(self, made: BatchResult) -> tuple[Record, BatchMemory | None]:
        made = self.maker.finish(made)
        is_last = self.count(made)
        self._note_place(made.task.next, at_window_end=is_last)
        return finished_batch(made), made.memory

    def end(self, iteration: Iteration) -> None:
        self.count_rest(iteration)
        if self._note_end_of_part():
            # not the row after the last that is kept: those that are skipped before the end are counted
            self._note_place(self.table.streams[0].planned, at_window_end=True)

    def _note_place(self, following: int, *, at_window_end: bool) -> None:
        """Record the place after a batch: a run goes on at row `following`."""
        self.progress.at_window_end = at_window_end
        epoch, ranks = self._rounds
        self.progress.position = Position(epoch, following, self.checkpoint, ranks)

    def count(self, made: BatchResult) -> bool:
        """Count a batch, and release windows that are no longer needed; return whether it is the last of its
        window.
        """
        task, stats, row = made.task, self.run_options.stats, made.task.row
        size = task.size
        stats.batches += 1
        stats.tokens += size.tokens
        stats.cells += size.cells
        stats.shared += size.shared
        if task.passed:
            move(stats, task.passed, "rows_left", "skipped")
        if task.fill == "repeat":  # an earlier batch: it neither counts nor moves the place in its stream
            stats.repeated += size.begun
            return False
        stream, pool = self.rows.table.streams[row.stream], task.pool
        if not task.fill:
            stats.rows += size.begun
            stats.rows_left -= size.begun
            if passed_over := stream.without_batches(row):
                self._windows.pass_over(row.stream, passed_over)
        first, last = (row.window, row.window) if pool is None else (pool.first_window, pool.last_window)
        # after the last batch of a pool, only the last of its windows is needed
        at_end = pool is None or row.place == pool.stop - 1
        if self._windows.unclosed:
            self._windows.close_until(row.stream, stream.next_window(last))
        if self._needed != (row.stream, first):
            self._needed = row.stream, first
            self._windows.release(row.stream, first)
            self.epoch.layout.release(first)
        is_last = at_end and stream.is_last(row)
        if made.refused:
            self._refuse(task.windows, made.refused)
        if self._refused:
            self._close_refused(() if is_last or self.run_options.at_once else task.numbers)
        if not stream.counted:
            self._note_window(stream, row.window if at_end else first)
        return is_last

    def _refuse(self, windows: Sequence[OpenWindow], refused: Sequence[BadRow]) -> None:
        """Record rows that `net` refuses, counted over windows in turn. A row that is cut into pieces counts once."""
        sizes = [one.rows.source.num_rows for one in windows]
        found, rows = places_in(sizes, [bad.row for bad in refused])
        for bad, at, row in zip(refused, found.tolist(), rows.tolist(), strict=True):
            ledger = self._refused[windows[at].window.number] = windows[at].ledger
            ledger.refused.setdefault(row, bad._replace(row=row))

    def _close_refused(self, but: Collection[int] = ()) -> None:
        """Count rows that `net` has refused as bad rows, for all windows except some.

        A window's rows are counted together, because their blocks are read again.
        """
        for number in [number for number in self._refused if number not in but]:
            ledger = self._refused.pop(number)
            bad = [ledger.refused.pop(row) for row in sorted(ledger.refused)]
            for rejected in self._windows.maker.rejected(bad, ledger.ranges):
                count_bad(self.run_options.stats, rejected)
                self.run_options.stats.rows -= rejected.count
                self.run_options.handlers[0].add(rejected)

    def _note_window(self, stream: StreamOrder, position: int) -> None:
        """Record the first window that is still needed, if batches are not counted before they are read."""
        if self.checkpoint is None or self.checkpoint.position != position:
            first, end = stream.span(position)
            self.checkpoint = Checkpoint(position, first, end - first)

    # The end: what no batch was made of

    def count_rest(self, iteration: Iteration | None) -> None:
        """Count the rows in no batch, of all windows, or of those of the part that ends."""
        streams, assignment, stats = self.table.streams, self.run_options.assignment, self.run_options.stats
        if iteration is not None:
            dropped = iteration.dropped()
            move(stats, iteration.rows_passed, "rows_left", "skipped")
            iteration.rows_passed = 0
            if dropped is not None:
                move(stats, dropped.size.begun, "rows_left", "dropped")
                row = dropped.row
                self._windows.pass_over(row.stream, streams[row.stream].without_batches(row))
            for number in range(assignment.first(0) + assignment.rank, len(streams), assignment.stride):
                self._windows.pass_over(number, streams[number].without_batches(None))
        for number, stream in enumerate(streams):
            self._windows.close_until(number, stream.stop)
        self._close_refused()

    def _note_end_of_part(self) -> bool:
        """Record the last window of a part, which may have no batch; return whether the part has reached its size."""
        parts = self.run_options.parts
        stop = None if parts is None else parts.stop(self._part)
        if stop is None:
            return False
        (stream,) = self.table.streams
        if not stream.counted:
            self._note_window(stream, stop - 1)
        return True
