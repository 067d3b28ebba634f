"""Parts: consecutive windows of an epoch, whose batches are written together, by whoever runs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from seqflow.errors import OpError
from seqflow.loader.order.recipe import Stamps
from seqflow.loader.order.windows import Layout, Window, Windows


class Parts:
    """Where parts end: each behind the window with which its planned bytes, or rows of the source, are reached.

    So they depend on the plan alone, never on what the batches turn out to be. They are found with the windows.
    Without a number of bytes there is one part, which does not end.
    """

    def __init__(self, nbytes: int | None, rows: int | None = None) -> None:
        self._most_bytes, self._most_rows = nbytes, rows
        self._ends: list[int] = []
        """For each part that is known to end the position behind its last window."""
        self._windows = self._bytes = self._rows = 0
        """Windows so far; bytes and rows of those behind the last end."""

    @classmethod
    def of_one(cls, windows: int) -> Parts:
        """A single part, of so many windows."""
        parts = cls(None)
        parts._ends = [windows]
        return parts

    def of(self, layout: Layout) -> None:
        """Cut the windows of the only stream: all of them where they are in columns, else each when it is found.

        OpError where rows are to be counted, and a window does not know its own.
        """
        if self._most_bytes is None:
            return
        windows = layout.columns
        if windows is None:
            layout.on_found = self.add
            return
        rows = self._rows_of(windows)
        for nbytes, count in zip(windows.nbytes.tolist(), rows, strict=True):
            self._add(nbytes, count)

    def add(self, window: Window) -> None:
        """Take the next window; OpError where rows are to be counted, and it does not know its own."""
        self._add(window.nbytes, 0 if self._most_rows is None else _source_rows(window))

    def _add(self, nbytes: int, rows: int) -> None:
        self._windows += 1
        self._bytes += nbytes
        self._rows += rows
        assert self._most_bytes is not None
        if self._bytes >= self._most_bytes or (self._most_rows is not None and self._rows >= self._most_rows):
            self._ends.append(self._windows)
            self._bytes = self._rows = 0

    def _rows_of(self, windows: Windows) -> list[int]:
        """The rows of each window, with those that a filter leaves out; 0 where they are not counted."""
        if self._most_rows is None:
            return [0] * len(windows)
        rows = windows.source_rows
        # the first window that does not know its rows is named
        return [_source_rows(window) for window in windows] if rows is None else rows.tolist()

    def start(self, part: int) -> int:
        """The position of the first window of a part; all windows before it have to be known."""
        return self._ends[part - 1] if part else 0

    def stop(self, part: int) -> int | None:
        """The position behind the last window of a part; None where it is not known yet, or the last part goes on."""
        return self._ends[part] if part < len(self._ends) else None


def _source_rows(window: Window) -> int:
    """The rows of a window, those that a filter leaves out with them."""
    rows = window.source_rows
    if rows is None:
        block = window.slices[0].block
        raise OpError(
            f"output: rows_per_file cuts by rows of the source, but those of {block.origin} are not known before "
            "it is read\n  use part_bytes; or sort the output, whose files are then cut at exactly so many rows"
        )
    return rows


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part as whoever makes it needs it: nothing else passes from one part to the next."""

    number: int
    epoch: int
    windows: tuple[Window, ...]
    following: tuple[Window, ...]
    """The windows behind them from which their last batch takes rows."""
    first_row: int | None
    """Rows before its first window, where batches run across windows; else None."""
    is_full: bool
    """Whether it has reached its size: the last part may not."""
    stop: int
    """The position behind its last window."""
    counts_batches: bool
    """Whether batches of each window were counted before anything was read."""
    first_batch: int
    """Batches before its first window, where they were counted; else 0."""
    stamps: Stamps
    """The files that it reads, as they were when they were listed."""


def origins_of(windows: Iterable[Window]) -> tuple[str, ...]:
    """The files that windows are of, in order."""
    return tuple(dict.fromkeys(one.block.origin for window in windows for one in window.slices))


def joined(parts: Sequence[PlannedPart]) -> PlannedPart:
    """Consecutive parts as one, with the number of the first."""
    windows = {one.number: one for part in parts for one in (*part.windows, *part.following)}
    in_order = tuple(windows[number] for number in sorted(windows))
    own = sum(len(part.windows) for part in parts)
    return replace(
        parts[0],
        windows=in_order[:own],
        following=in_order[own:],
        is_full=parts[-1].is_full,
        stop=parts[-1].stop,
        stamps=Stamps({path: stamp for part in parts for path, stamp in part.stamps.found.items()}),
    )
