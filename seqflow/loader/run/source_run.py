"""One pass over one source: its windows in memory, and what makes, hands out and counts its batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from seqflow.loader.epoch.deal import upcoming
from seqflow.loader.epoch.table import Row, RowStream, Stream, Table
from seqflow.loader.run.bad_rows import BadRowHandler
from seqflow.loader.run.making import BatchMaker, Made, RefusedRows
from seqflow.loader.run.opened import WindowsInUse
from seqflow.loader.run.reading import WindowReader
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.turns import EpochPlan, RowTurns, TurnsOfRank
from seqflow.loader.run.windows import WindowMaker
from seqflow.loader.run.workers import Workers
from seqflow.loader.schedule.ranks import Deal
from seqflow.loader.schedule.state import Checkpoint


class SourceRun:
    """One pass over one source.

    Windows count with the first batch that is handed out of them; `at_once` when they are opened, for iterations that
    may end anywhere.
    """

    def __init__(
        self,
        epoch: EpochPlan,
        maker: WindowMaker,
        workers: Workers,
        handler: BadRowHandler,
        stats: Stats,
        *,
        reuse: bool = False,
        at_once: bool = False,
        counted: int = 0,
    ) -> None:
        self.epoch, self._handler, self._stats, self._at_once = epoch, handler, stats, at_once
        self.checkpoint = None if epoch.table.counted else epoch.start.window
        """Where batches are counted while they are read, the window of the last batch handed out."""
        first = epoch.deal.first(epoch.first_index)
        # parts cut pools: those of a later part are not known yet
        reach = None if epoch.steps is None or epoch.parts is not None else self._reach
        ahead = upcoming(epoch.table, first, epoch.deal, epoch.skips, reach)
        self.reader = WindowReader(maker, epoch.start.epoch, workers, epoch.layout, ahead)
        self._windows = WindowsInUse(
            self.reader, epoch.table.streams, handler, stats, at_once=at_once, counted=counted
        )
        self.turns = RowTurns(epoch, maker, self._windows, epoch.table, stats)
        self._windows.first_needed = self.turns.first_needed
        self.maker = BatchMaker(maker, epoch.start.epoch, stats, reuse=reuse, numbered=epoch.parts is None)
        self._refused = RefusedRows(maker, handler)
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
        parts, (stream,) = self.epoch.parts, self.table.streams
        assert parts is not None
        stream.cut(parts.start(number), parts.stop(number))
        self.turns.look_up(Table([stream]))

    # Handing out

    def hand_out(self, made: Made) -> bool:
        """Count a batch, and let go of what it was the last to need; whether it is the last one of its window."""
        turn, stats, row = made.turn, self._stats, made.turn.row
        size = turn.size
        stats.batches += 1
        stats.tokens += size.tokens
        stats.cells += size.cells
        if turn.passed:
            stats.skipped += turn.passed
            stats.rows_left -= turn.passed
        if turn.fill == "repeat":  # an earlier batch: it neither counts nor moves the place in its stream
            stats.repeated += size.begun
            return False
        stream = self.turns.table.streams[row.stream]
        if not turn.fill:
            stats.rows += size.begun
            stats.rows_left -= size.begun
            if stream.counted and not stream.crosses:
                self._open_without_batches(stream, row)
        first, last = (row.window, row.window) if turn.pool is None else (turn.pool.first, turn.pool.last)
        if self._windows.uncounted:
            self._windows.count_until(row.stream, stream.next_window(last))
        if self._needed != (row.stream, first):
            self._needed = row.stream, first
            self._windows.release(row.stream, first)
            self.epoch.layout.release(first)
        is_last = turn.at_end and stream.is_last(row)
        if made.refused or self._refused:
            self._refused.add(turn.windows, made.refused)
            self._count_refused(() if is_last or self._at_once else turn.numbers)
        if not stream.counted:
            self._note_window(stream, row.window if turn.at_end else first)
        return is_last

    def _note_window(self, stream: Stream, position: int) -> None:
        """Note the first window that is still needed, whose batches are not counted before they are read."""
        if self.checkpoint is None or self.checkpoint.position != position:
            first, end = stream.span(position)
            self.checkpoint = Checkpoint(position, first, end - first)

    def _open_without_batches(self, stream: Stream, row: Row) -> None:
        """Open the windows without batches, as a lengths index knows, that are read with this row."""
        if stream.counted and not stream.crosses and not self._at_once:
            for position in stream.read_with(row):
                if position != row.window:
                    self._windows.get((row.stream, position), wait=True)

    def _count_refused(self, but: Collection[int] = ()) -> None:
        """Count rows that `net` has refused as bad rows, those of windows with more batches later."""
        self._stats.rows -= self._refused.report(but)
        self._stats.bad_rows = self._handler.count

    def _reach(self, k: int) -> tuple[int, int, int]:
        assert self.turns.steps is not None
        return self.turns.steps.reach(k)

    # The end: what no batch was made of

    def count_rest(self, of_rank: TurnsOfRank | None) -> None:
        """Count what no batch was made of, of all windows, or of those of the part that ends."""
        streams = self.table.streams
        if of_rank is not None:
            self._count_passed(of_rank)
            for number in self._read_here(self.epoch.deal):
                self._count_windows(number, streams[number])
        for number, stream in enumerate(streams):
            self._windows.count_until(number, stream.stop)
        self._count_refused()

    def note_end_of_part(self, number: int) -> bool:
        """Note the last window of a part, which may have no batch; whether the part has reached its size."""
        parts = self.epoch.parts
        stop = None if parts is None else parts.stop(number)
        if stop is None:
            return False
        (stream,) = self.table.streams
        if not stream.counted:
            self._note_window(stream, stop - 1)
        return True

    def _read_here(self, deal: Deal) -> Iterator[int]:
        """The counted streams of which this rank counts what is in no batch: those of every stride."""
        for number in range(deal.first(0) + deal.rank, len(self.table.streams), deal.stride):
            if self.table.streams[number].counted:
                yield number

    def _count_passed(self, of_rank: TurnsOfRank) -> None:
        """Count the rows of what is skipped after the last batch, and of the last round that is dropped."""
        stats, dropped = self._stats, of_rank.dropped()
        stats.skipped += of_rank.rows_passed
        stats.rows_left -= of_rank.rows_passed
        of_rank.rows_passed = 0
        if dropped is not None:
            stats.dropped += dropped.size.begun
            stats.rows_left -= dropped.size.begun
            self._open_without_batches(self.table.streams[dropped.row.stream], dropped.row)

    def _count_windows(self, number: int, stream: Stream) -> None:
        """Count the windows of a stream, or of its part, that no batch of this run is read with."""
        windows = range(stream.start, stream.stop)
        if isinstance(stream, RowStream):
            for position in windows:
                self._count_across(number, stream, position)
        elif stream.planned == stream.start_batch:
            for position in windows:
                self._windows.get((number, position), wait=True)

    def _count_across(self, number: int, stream: RowStream, position: int) -> None:
        """Count a window that no batch takes rows from, or, in a part, only batches of an earlier part."""
        gives, rows = stream.gives_rows(position), stream.ends[position + 1] - stream.ends[position]
        if gives and (not stream.is_cut or self._windows.was_opened((number, position))):
            return
        stats, window = self._stats, self.epoch.layout.window((number, position))
        assert window is not None
        dropped = stream.dropped_of(position)
        if gives or stream.ends[position] >= stream.kept:
            stats.rows_read += rows
            stats.dropped += dropped
            stats.rows_left += rows - dropped
        stats.filtered += window.filtered
        stats.skipped += window.filtered
