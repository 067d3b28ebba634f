"""Batches of n rows that run across the ends of windows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from seqflow.loader.plans.rows import Rows
from seqflow.loader.schedule.streams import BatchAddress, WindowAddress


class Crossing:
    """Which rows of which windows make each batch of `Rows`, where the rows are known before anything is read.

    So no batch but the last of a stream is short. A batch belongs to the window of its first row, as that one's last:
    whoever makes it reads the next window, too, and a resumed run begins with the window that owns the next batch.
    """

    def __init__(self, plan: Rows, rows: Sequence[Sequence[int]]) -> None:
        self.plan = Rows(plan.n, lengths=plan.lengths)
        self._ends = [[0, *accumulate(of_stream)] for of_stream in rows]
        """For each stream the first row of each window, and its number of rows."""
        self.counts: list[list[int]] = []
        """For each stream the number of batches of each window."""
        for ends in self._ends:
            most = ends[-1] // plan.n if plan.drop_last else -(-ends[-1] // plan.n)
            begun = [min(-(-end // plan.n), most) for end in ends]
            self.counts.append([stop - start for start, stop in pairwise(begun)])
        self._kept = [plan.n * sum(counts) if plan.drop_last else ends[-1]
                      for counts, ends in zip(self.counts, self._ends, strict=True)]  # fmt: skip
        """For each stream the rows that batches are made of; those behind them are dropped."""

    def following(self, address: BatchAddress) -> list[WindowAddress]:
        """The windows after its own from which a batch takes rows."""
        ends, n = self._ends[address.stream], self.plan.n
        first = (-(-ends[address.position] // n) + address.number) * n
        stop = min(first + n, ends[-1])
        last = address.position
        while ends[last + 1] < stop:
            last += 1
        return [(address.stream, position) for position in range(address.position + 1, last + 1)]

    def lead(self, window: WindowAddress) -> int:
        """How many rows of a window belong to the last batch of an earlier one."""
        stream, position = window
        return -self._ends[stream][position] % self.plan.n

    def dropped_of(self, window: WindowAddress) -> int:
        """The rows of a window that no batch is made of."""
        stream, position = window
        start, stop = self._ends[stream][position : position + 2]
        return stop - max(start, min(stop, self._kept[stream]))

    def rows_never_read(self, stream: int) -> int:
        """The rows of windows that no batch takes rows from."""
        pairs = pairwise(self._ends[stream])
        return sum(stop - start for start, stop in pairs if start >= self._kept[stream])
