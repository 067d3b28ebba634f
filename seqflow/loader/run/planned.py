"""Rows of the table of an epoch as batches that their windows have planned."""

from __future__ import annotations

from typing import NamedTuple

from seqflow.loader.epoch.table import Missing, Row, RowStream, Table
from seqflow.loader.plans.dealing import Span
from seqflow.loader.plans.plan import WindowBatches
from seqflow.loader.plans.row_plans import Rows
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.opened import Windows
from seqflow.loader.run.windows import OpenWindow


class PlannedBatches(NamedTuple):
    """Consecutive rows of a stream, as one window has planned them, or one that runs across windows."""

    row: Row
    """The first of them."""
    windows: tuple[OpenWindow, ...]
    """Those that their data rows come from."""
    span: Span

    @property
    def num_batches(self) -> int:
        return self.span.stop - self.span.start


class PlannedRows:
    """The rows of a table as their windows plan them; windows are opened when they are needed."""

    def __init__(self, table: Table, windows: Windows) -> None:
        self.table, self._windows = table, windows
        self._across = [Rows(one.n) if isinstance(one, RowStream) else None for one in table.streams]
        """For each stream the plan of batches that run across its windows."""
        self._inside: dict[int, tuple[OpenWindow, WindowBatches]] = {}
        """For each stream the batches inside a window, where its first rows belong to a batch of an earlier one."""

    def plan(self, window: Missing, *, wait: bool) -> bool:
        """Plan a window that the table misses; False where that takes waiting."""
        address = window.stream, window.position
        if not self._windows.exists(address):
            self.table.end(window)
            return True
        opened = self._windows.get(address, wait=wait)
        if opened is None:
            return False
        self.table.add(window, len(opened.batches))
        return True

    def batches_of(self, row: Row, *, wait: bool) -> tuple[tuple[OpenWindow, ...], WindowBatches, int] | None:
        """The windows of a row, planned batches, and which of them it is; None where that takes waiting."""
        if len(row.pieces) == 1:
            own = self._windows.get((row.stream, row.window), wait=wait)
            if own is None:
                return None
            opened: tuple[OpenWindow, ...] = (own,)
        else:
            opened = ()
            for position, *_ in row.pieces:
                window = self._windows.get((row.stream, position), wait=wait)
                if window is None:
                    return None
                opened = (*opened, window)
        across = self._across[row.stream]
        if across is None:
            return opened, opened[0].batches, row.inside
        return opened, *self._batches_across(across, row, opened)

    def planned(self, row: Row, stop: int, *, wait: bool) -> PlannedBatches | None:
        """A row, and those before place `stop` of its stream that the same window plans; None: that takes waiting."""
        found = self.batches_of(row, wait=wait)
        if found is None:
            return None
        opened, batches, at = found
        last = at + 1
        if not self.table.streams[row.stream].crosses:
            last = min(len(batches), at + stop - row.place)
        return PlannedBatches(row, opened, Span(batches, at, last))

    def _batches_across(
        self, plan: Rows, row: Row, opened: tuple[OpenWindow, ...]
    ) -> tuple[WindowBatches, int]:
        """Planned batches of `Rows` that run across windows, and which of them is the one of a row."""
        own, n = opened[0], plan.n
        _, start, stop = row.pieces[0]

        def batches_of(rows: WindowRows) -> WindowBatches:
            return plan.of_window(rows, own.lengths, 0, own.window.number)

        if stop - start == n:
            lead = start % n
            if not lead:
                return own.batches, start // n
            found = self._inside.get(row.stream)
            if found is None or found[0] is not own:
                full = (own.rows.num_rows - lead) // n
                found = self._inside[row.stream] = own, batches_of(own.rows.part(lead, lead + full * n))
            return found[1], start // n
        rows = own.rows.part(start, stop)
        for window, (_, first, end) in zip(opened[1:], row.pieces[1:], strict=True):
            rows = rows.joined(window.rows.part(first, end))
        return batches_of(rows), 0
