"""Provenance of rows: the blocks that those of a batch come from, and which of them make a net fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from seqflow.errors import LodError, NetError, OpError, OpMemoryError, OpResultError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.providers import Block

T = TypeVar("T")
RowNumbers = range | np.ndarray[Any, np.dtype[np.int64]]

ROW_ERRORS = (LodError, OpError, ShapeError)
"""Errors that the data of a row can cause."""
NET_ERRORS: tuple[type[Exception], ...] = (NetError, OpTypeError, OpMemoryError, OpResultError)
"""Errors of the net itself, or of the machine, whatever the rows."""
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class RowRange:
    """Consecutive rows from one block."""

    block: Block
    rows: int
    numbers: RowNumbers | None
    """Their row numbers in the block; None where `prepare` made new rows."""

    def row(self, number: int) -> str:
        """The place of row `number` of the range, as text."""
        place = f"{self.block.origin}, block {self.block.index}"
        return place if self.numbers is None else f"{place}, row {self.numbers[number]}"

    def part(self, start: int, stop: int) -> str:
        """The place of rows start … stop - 1 of the range, as text."""
        if self.numbers is None or stop - start == 1:
            return self.row(start)
        first, last = self.numbers[start], self.numbers[stop - 1]
        return f"{self.block.origin}, block {self.block.index}, rows {first} to {last}"


def describe_rows(ranges: Sequence[RowRange], rows: Array) -> str:
    """The places of rows that are counted over the ranges in turn, as text: runs of a block together."""
    ends = np.cumsum([one.rows for one in ranges])
    numbers = np.unique(rows)
    found: list[str] = []
    for at in np.unique(np.searchsorted(ends, numbers, side="right")).tolist():
        start = int(ends[at]) - ranges[at].rows
        inside = numbers[(numbers >= start) & (numbers < ends[at])] - start
        together = len(inside) == inside[-1] - inside[0] + 1
        pieces = [(inside[0], inside[-1] + 1)] if together else [(row, row + 1) for row in inside]
        found += [ranges[at].part(int(low), int(high)) for low, high in pieces]
        if len(found) > _SHOWN and ranges[at].numbers is not None and not together:
            break
    found = list(dict.fromkeys(found))
    more = len(found) - _SHOWN
    return "; ".join(found[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def blames_rows(error: Exception) -> bool:
    """Whether the data of a row may have caused the error."""
    return isinstance(error, ROW_ERRORS) and not isinstance(error, NET_ERRORS)


def by_halves(
    run: Callable[[int, int], T],
    start: int,
    stop: int,
    is_caught: Callable[[Exception], bool] = lambda error: True,
    failed: Exception | None = None,
) -> Iterator[tuple[slice, T | Exception]]:
    """The results of `run(start, stop)` on rows; where they fail together, on each half of them, and so on.

    A row that fails alone has its error for a result. Errors that are not caught are raised. `failed` is the error of
    all rows together, where it is known.
    """
    found: T | Exception
    try:
        found = failed or run(start, stop)
    except Exception as error:
        if start == stop or not is_caught(error):
            raise
        found = error
    if not isinstance(found, Exception) or stop - start == 1:
        yield slice(start, stop), found
        return
    middle = (start + stop) // 2
    yield from by_halves(run, start, middle, is_caught)
    yield from by_halves(run, middle, stop, is_caught)


def first_failing(run: Callable[[int, int], object], count: int, error: Exception) -> int | None:
    """The first of `count` rows, failing together, that fails alone; None where none does, or no rows fail, too."""
    if not count:
        return None
    try:
        run(0, 0)
    except Exception:  # the net fails whatever the rows
        return None
    found = by_halves(run, 0, count, failed=error)
    return next((rows.start for rows, result in found if isinstance(result, Exception)), None)
