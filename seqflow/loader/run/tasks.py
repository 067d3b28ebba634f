"""Batches to be made: the rows of their windows, alone or balanced with the other batches of a pool of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.assign_ranks import StepPool
from seqflow.loader.epoch.table import BatchEntry, SingleRows, StreamOrder
from seqflow.loader.plans.balanced_pools import Span
from seqflow.loader.plans.plan import BatchSize, WindowBatches
from seqflow.loader.run.windows import OpenWindow

PlannedBatches = tuple[BatchEntry, tuple[OpenWindow, ...], Span]
"""Consecutive rows of a stream: the first row, the windows of their data rows, and their planned batches."""


class BatchTask(NamedTuple):
    """A batch to be made: the row of the table, and the planned batches among which its number is `number`."""

    row: BatchEntry
    windows: tuple[OpenWindow, ...]
    """The window that owns it, and those that its last rows come from."""
    batches: WindowBatches
    number: int
    size: BatchSize
    next: int
    """Row of the table at which a run goes on after it."""
    fill: str = ""
    """"pad" or "repeat" if it only fills the last round of the ranks: without rows, or with an earlier batch."""
    passed: int = 0
    """Number of rows in the batches that are skipped before it."""
    pool: PoolBatches | None = None
    """The batches that it was balanced with."""
    step: int | None = None
    """Number of its step, if steps are known."""
    totals: Mapping[str, int | float] | None = None
    """Totals over all batches of its step."""
    seed: tuple[int, int] | None = None
    """Number of a window and of a batch in it, which seed the random ops of `net`; None is its own."""

    @property
    def batch(self) -> int | None:
        """Number in the epoch; that of the batch that it repeats; None if it is empty."""
        return None if self.fill == "pad" else self.row.number

    @property
    def numbers(self) -> frozenset[int]:
        """Numbers of the windows that rows of this batch, and of those balanced with it, come from."""
        if self.pool is not None:
            return self.pool.window_numbers
        return frozenset(one.window.number for one in self.windows)


class PoolBatches:
    """The batches of one stream in a pool of steps, as they are made."""

    def __init__(self, at: StepPool, found: Sequence[PlannedBatches], stream: StreamOrder) -> None:
        self.first, self.stop = at.first, at.stop
        self.found = found
        self.windows, self.spans = _joined(found)
        self.batches, counts = at.numbers, np.ones(len(at.numbers), np.int64)
        """The number in the epoch of each batch."""
        if isinstance(stream, SingleRows):
            # the rows of one batch of the mix are assigned as a batch
            self.batches, counts = np.unique(at.numbers, return_counts=True)
            (rows,) = self.spans
            self.spans = [Span(rows.batches.regrouped(np.arange(len(at.numbers)), counts), 0, len(counts))]
        self._ends = np.cumsum(counts)
        """For each batch, the place after the last one that it has in the stream, counted over the pool."""
        sizes = [len(counts)] if len(found) == 1 else [span.stop - span.start for _, _, span in found]
        self.starts = np.cumsum([0, *sizes])
        self.window_numbers = frozenset(one.window.number for one in self.windows)
        """Numbers of all windows that its rows come from."""
        self.first_window, self.last_window = found[0][0].pieces[0][0], found[-1][0].window
        """Positions of the first and the last window that plan its batches."""
        self.regrouped: WindowBatches | None = None
        """All its batches if rows were assigned; None if whole batches were."""
        self.items: Array = np.arange(len(self.batches))
        """Number of the planned batch that each batch is, if whole batches were assigned."""
        self.steps: Array = np.zeros(0, np.int64)
        """The step of each batch."""
        self.totals: dict[int, dict[str, int | float]] = {}
        """Totals of each step, by name."""

    def task(self, row: BatchEntry, following: int) -> BatchTask:
        """Return the batch of a row; a run goes on at row `following` after it."""
        place = int(np.searchsorted(self._ends, row.place - self.first, side="right"))
        if self.regrouped is not None:
            windows, batches, made = self.windows, self.regrouped, place
            (_, planned, _), _ = self._planned(place)
            seed = planned[0].window.number, row.inside
        else:
            (first, windows, own), at = self._planned(int(self.items[place]))
            batches, made = own.batches, own.start + at
            seed = windows[0].window.number, first.inside + at
        step = int(self.steps[place])
        return BatchTask(
            row, windows, batches, made, batches.size(made), following,
            pool=self, step=step, totals=self.totals.get(step), seed=seed,
        )  # fmt: skip

    def _planned(self, place: int) -> tuple[PlannedBatches, int]:
        at = int(np.searchsorted(self.starts, place, side="right")) - 1
        return self.found[at], place - int(self.starts[at])


def _joined(found: Sequence[PlannedBatches]) -> tuple[tuple[OpenWindow, ...], list[Span]]:
    """Return the windows of planned batches, and their spans; neighbouring spans in one window are joined."""
    windows: list[OpenWindow] = []
    spans: list[Span] = []
    for _, own, span in found:
        if spans and spans[-1].batches is span.batches and spans[-1].stop == span.start:
            spans[-1] = spans[-1]._replace(stop=span.stop)
        else:
            spans.append(span)
            windows += own
    return tuple(windows), spans
