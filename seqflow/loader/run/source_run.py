"""One pass over one source: its windows in memory, and what makes, hands out and counts its batches."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from seqflow.loader.epoch.deal import upcoming
from seqflow.loader.epoch.state import Checkpoint, Position, Progress
from seqflow.loader.epoch.table import Stream, Table
from seqflow.loader.run.ledger import Ledger, add_columns, move, places_in
from seqflow.loader.run.making import BatchMaker, Made, Turn, finished_batch
from seqflow.loader.run.opened import WindowReader, WindowsInUse
from seqflow.loader.run.turns import Consumer, EpochPlan, RowTurns, TurnsOfRank
from seqflow.loader.run.windows import OpenWindow, WindowMaker
from seqflow.record import BadRow, Record
from seqflow.record.batch_memory import BatchMemory


class SourceRun:
    """One pass over one source."""

    def __init__(
        self, epoch: EpochPlan, maker: WindowMaker, consumer: Consumer, *, reuse: bool = False
    ) -> None:
        self.epoch, self.consumer = epoch, consumer
        self.start, self.deal, self.skips = epoch.start, epoch.chosen.deal, epoch.chosen.skips
        self._stats = consumer.stats
        self.checkpoint = None if epoch.table.counted else epoch.start.window
        """Where batches are counted while they are read, the window of the last batch handed out."""
        chosen, stats = epoch.chosen, self._stats
        first = chosen.deal.first(epoch.first_index)
        # parts cut pools: those of a later part are not known yet
        reach = None if epoch.steps is None or chosen.parts is not None else self._reach
        ahead = upcoming(epoch.table, first, chosen.deal, chosen.skips, reach)
        self.reader = WindowReader(maker, epoch.start.epoch, consumer.workers, epoch.layout, ahead)
        self._windows = WindowsInUse(
            self.reader, epoch.table.streams, stats, self._add, at_once=consumer.at_once
        )
        self.turns = RowTurns(epoch, maker, self._windows, epoch.table, stats)
        self._windows.first_needed = self.turns.first_needed
        self._windows.closed_before = epoch.closed_before
        self.maker = BatchMaker(maker, epoch.start.epoch, stats, reuse=reuse, numbered=chosen.parts is None)
        self.progress, self._part = Progress(epoch.start), 0
        self._refused: dict[int, Ledger] = {}
        """The ledgers of windows, by number, with rows that `net` has refused, and with more batches to hand out."""
        self._needed = (0, 0)
        """The stream of the last batch, and the first of its windows that was still needed."""

    @property
    def table(self) -> Table:
        return self.turns.table

    def close(self) -> None:
        """Let go of what is in memory."""
        self._windows.close()

    def begin_part(self, number: int) -> None:
        """Give the batches of one part of the only stream from now on."""
        parts, (stream,) = self.epoch.chosen.parts, self.table.streams
        assert parts is not None
        self._part = number
        stream.cut(parts.start(number), parts.stop(number))
        self.turns.look_up(Table([stream]))

    def fill(self) -> None:
        self.reader.fill()

    def sum_counts(self) -> None:
        """Its counts are always up to date."""

    def make(self, turns: list[Turn]) -> list[Made]:
        return self.maker.make(turns)

    def free(self, memory: BatchMemory) -> None:
        self.maker.free.append(memory)

    # Handing out

    def hand_out(self, made: Made) -> tuple[Record, BatchMemory | None]:
        made = self.maker.finish(made)
        is_last = self.count(made)
        self._note_place(made.turn.next, at_window_end=is_last)
        return finished_batch(made), made.memory

    def end(self, turns: TurnsOfRank) -> None:
        self.count_rest(turns)
        if self._note_end_of_part():
            # not the row after the last that is kept: those that are skipped before the end are counted
            self._note_place(self.table.streams[0].planned, at_window_end=True)

    def _note_place(self, following: int, *, at_window_end: bool) -> None:
        """Note the place after a batch: a run goes on at row `following`."""
        self.progress.at_window_end = at_window_end
        self.progress.position = Position(self.start.epoch, following, self.checkpoint, self.deal.world_size)

    def count(self, made: Made) -> bool:
        """Count a batch, and let go of what it was the last to need; whether it is the last one of its window."""
        turn, stats, row = made.turn, self._stats, made.turn.row
        size = turn.size
        stats.batches += 1
        stats.tokens += size.tokens
        stats.cells += size.cells
        if turn.passed:
            move(stats, turn.passed, "rows_left", "skipped")
        if turn.fill == "repeat":  # an earlier batch: it neither counts nor moves the place in its stream
            stats.repeated += size.begun
            return False
        stream = self.turns.table.streams[row.stream]
        if not turn.fill:
            stats.rows += size.begun
            stats.rows_left -= size.begun
            if passed_over := stream.without_batches(row):
                self._windows.pass_over(row.stream, passed_over)
        first, last = (row.window, row.window) if turn.pool is None else (turn.pool.first, turn.pool.last)
        if self._windows.unclosed:
            self._windows.close_until(row.stream, stream.next_window(last))
        if self._needed != (row.stream, first):
            self._needed = row.stream, first
            self._windows.release(row.stream, first)
            self.epoch.layout.release(first)
        is_last = turn.at_end and stream.is_last(row)
        if made.refused:
            self._refuse(turn.windows, made.refused)
        if self._refused:
            self._close_refused(() if is_last or self.consumer.at_once else turn.numbers)
        if not stream.counted:
            self._note_window(stream, row.window if turn.at_end else first)
        return is_last

    def _add(self, ledger: Ledger) -> None:
        """Add the ledger of a window to the counts, and keep its bad rows."""
        add_columns(self._stats, ledger)
        self._stats.bad_rows += ledger.bad_rows
        for rejected in ledger.rejected:
            self.consumer.handlers[0].add(rejected)

    def _refuse(self, windows: Sequence[OpenWindow], refused: Sequence[BadRow]) -> None:
        """Note rows that `net` refuses, counted over windows in turn. One that is cut into pieces counts once."""
        sizes = [one.rows.source.num_rows for one in windows]
        found, rows = places_in(sizes, [bad.row for bad in refused])
        for bad, at, row in zip(refused, found.tolist(), rows.tolist(), strict=True):
            ledger = self._refused[windows[at].window.number] = windows[at].ledger
            ledger.refused.setdefault(row, bad._replace(row=row))

    def _close_refused(self, but: Collection[int] = ()) -> None:
        """Count rows that `net` has refused, which were handed out, as bad rows: of all windows but some.

        A window's rows are counted together, since their blocks are read again.
        """
        for number in [number for number in self._refused if number not in but]:
            ledger = self._refused.pop(number)
            bad = [ledger.refused.pop(row) for row in sorted(ledger.refused)]
            for rejected in self.reader.maker.rejected(bad, ledger.ranges):
                move(self._stats, rejected.count, "rows", "bad_rows")
                self.consumer.handlers[0].add(rejected)

    def _note_window(self, stream: Stream, position: int) -> None:
        """Note the first window that is still needed, whose batches are not counted before they are read."""
        if self.checkpoint is None or self.checkpoint.position != position:
            first, end = stream.span(position)
            self.checkpoint = Checkpoint(position, first, end - first)

    def _reach(self, k: int) -> tuple[int, int, int]:
        assert self.turns.steps is not None
        return self.turns.steps.reach(k)

    # The end: what no batch was made of

    def count_rest(self, of_rank: TurnsOfRank | None) -> None:
        """Count what no batch was made of, of all windows, or of those of the part that ends."""
        streams, deal = self.table.streams, self.epoch.chosen.deal
        if of_rank is not None:
            dropped = of_rank.dropped()
            move(self._stats, of_rank.rows_passed, "rows_left", "skipped")
            of_rank.rows_passed = 0
            if dropped is not None:
                move(self._stats, dropped.size.begun, "rows_left", "dropped")
                row = dropped.row
                self._windows.pass_over(row.stream, streams[row.stream].without_batches(row))
            for number in range(deal.first(0) + deal.rank, len(streams), deal.stride):
                self._windows.pass_over(number, streams[number].without_batches(None))
        for number, stream in enumerate(streams):
            self._windows.close_until(number, stream.stop)
        self._close_refused()

    def _note_end_of_part(self) -> bool:
        """Note the last window of a part, which may have no batch; whether the part has reached its size."""
        parts = self.epoch.chosen.parts
        stop = None if parts is None else parts.stop(self._part)
        if stop is None:
            return False
        (stream,) = self.table.streams
        if not stream.counted:
            self._note_window(stream, stop - 1)
        return True
