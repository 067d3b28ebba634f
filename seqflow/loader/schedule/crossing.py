"""Crossing: batches of n rows that run across the ends of windows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from seqflow.loader.plans.plan import WindowBatches
from seqflow.loader.plans.rows import Rows
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.reading import Spot
from seqflow.loader.run.recipe import OpenWindow
from seqflow.loader.schedule.streams import Place


class Crossing:
    """Batches of `Rows` across windows, the rows of which are known before anything is read.

    So no batch but the last of a stream is short. A batch belongs to the window that has its first row, as its last.
    """

    def __init__(self, plan: Rows, rows: Sequence[Sequence[int]]) -> None:
        self._plan = Rows(plan.n, lengths=plan.lengths)
        self._ends = [[0, *accumulate(of_stream)] for of_stream in rows]
        """For each stream the first row of each window, and its number of rows."""
        self.counts: list[list[int]] = []
        """For each stream the number of batches of each window."""
        for ends in self._ends:
            most = ends[-1] // plan.n if plan.drop_last else -(-ends[-1] // plan.n)
            begun = [min(-(-end // plan.n), most) for end in ends]
            self.counts.append([stop - start for start, stop in pairwise(begun)])
        self._rows = rows
        self._kept = [plan.n * sum(counts) if plan.drop_last else ends[-1]
                      for counts, ends in zip(self.counts, self._ends, strict=True)]  # fmt: skip
        """For each stream the rows that batches are made of; those behind them are dropped."""
        self._inside: dict[Spot, tuple[OpenWindow, WindowBatches]] = {}

    def following(self, place: Place) -> list[Spot]:
        """The windows after its own from which a batch takes rows."""
        ends = self._ends[place.stream]
        stop = min(self._start(place) + self._plan.n, ends[-1])
        last = place.position
        while ends[last + 1] < stop:
            last += 1
        return [(place.stream, position) for position in range(place.position + 1, last + 1)]

    def dropped_of(self, spot: Spot) -> int:
        """The rows of a window that no batch is made of."""
        stream, position = spot
        start, stop = self._ends[stream][position : position + 2]
        return stop - max(start, min(stop, self._kept[stream]))

    def rows_never_read(self, stream: int) -> int:
        """The rows of windows that no batch takes rows from."""
        pairs = zip(self._ends[stream], self._rows[stream], strict=False)
        return sum(rows for start, rows in pairs if start >= self._kept[stream])

    def batches(self, place: Place, windows: Sequence[OpenWindow]) -> tuple[WindowBatches, int]:
        """Planned batches, and which of them is the one at a place."""
        ends, n = self._ends[place.stream], self._plan.n
        own = windows[0]
        lead = -ends[place.position] % n
        full = (own.rows.num_rows - lead) // n
        if place.number < full:
            if not lead:
                return own.batches, place.number
            spot = (place.stream, place.position)
            found = self._inside.get(spot)
            if found is None or found[0] is not own:
                self._inside = {at: one for at, one in self._inside.items() if at[0] != place.stream}
                found = own, self._planned(own.rows.part(lead, lead + full * n), own)
                self._inside[spot] = found
            return found[1], place.number
        rows = own.rows.part(lead + full * n, own.rows.num_rows)
        for window in windows[1:]:
            rows = rows.joined(window.rows.part(0, min(n - rows.num_rows, window.rows.num_rows)))
        return self._planned(rows, own), 0

    def _planned(self, rows: WindowRows, window: OpenWindow) -> WindowBatches:
        return self._plan.of_window(rows, window.lengths, 0, False, window.window.number)

    def _start(self, place: Place) -> int:
        """The first row of a batch, counted over its stream."""
        return (-(-self._ends[place.stream][place.position] // self._plan.n) + place.number) * self._plan.n
