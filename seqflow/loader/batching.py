"""Rows and TokenBudget: batches of rows in the order of the source, planned on lengths alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqflow.errors import BatchPlanError, LodError, OpError
from seqflow.record import Record, concat_records, split_rows

Lengths = np.ndarray[Any, Any]


@dataclass(slots=True)
class OpenBatch:
    """The size of the batch that is being filled."""

    rows: int = 0
    tokens: int = 0
    longest: int = 0


@dataclass(frozen=True, slots=True)
class Rows:
    """Batches of `n` rows. A last short batch is kept unless `drop_last`."""

    n: int
    drop_last: bool = False
    lengths: str | None = None
    """The lengths tensor whose fill is reported; the only list column of numbers by default."""

    def __post_init__(self) -> None:
        at_least_one("Rows", n=self.n)

    def stops(self, num_rows: int, lengths: Lengths | None, open_batch: OpenBatch) -> list[int]:
        """The rows at which a batch ends, counted from the first of these `num_rows`."""
        return list(range(self.n - open_batch.rows, num_rows + 1, self.n))


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Batches of at most `max_tokens` tokens, as many rows as fit, and at most `max_rows` of them.

    With `padded` the tokens are those of the padded batch: rows times the longest. A row that is longer than
    the budget is an error: truncate or split it in `prepare`.
    """

    max_tokens: int
    padded: bool = False
    max_rows: int | None = None
    drop_last: bool = False
    lengths: str | None = None
    """The lengths tensor to plan on; the only list column of numbers by default."""

    def __post_init__(self) -> None:
        at_least_one("TokenBudget", max_tokens=self.max_tokens, max_rows=self.max_rows)

    def stops(self, num_rows: int, lengths: Lengths | None, open_batch: OpenBatch) -> list[int]:
        """The rows at which a batch ends, counted from the first of these rows.

        A batch ends before the row that would not fit any more, so the last one stays open.
        """
        assert lengths is not None  # planned_lengths sees to that
        self._check_longest(lengths)
        found: list[int] = []
        start = 0
        while True:
            count = self._fitting(lengths[start:], open_batch)
            if start + count == num_rows:
                return found
            found.append(start + count)
            start += count
            open_batch = OpenBatch()

    def _check_longest(self, lengths: Lengths) -> None:
        over = np.flatnonzero(lengths > self.max_tokens)
        if len(over):
            raise LodError(
                f"row {over[0]} has {lengths[over[0]]} tokens, expected at most max_tokens = {self.max_tokens}\n"
                "  truncate or split long rows in prepare"
            )

    def _fitting(self, lengths: Lengths, open_batch: OpenBatch) -> int:
        """The number of first rows that still fit. The rows examined grow from 64 until one does not fit."""
        window = 64
        while True:
            head = lengths[:window].astype(np.int64)
            if self.padded:
                rows = np.arange(open_batch.rows + 1, open_batch.rows + len(head) + 1)
                tokens = np.maximum(np.maximum.accumulate(head), open_batch.longest) * rows
            else:
                tokens = np.cumsum(head) + open_batch.tokens
            count = int(np.searchsorted(tokens, self.max_tokens, side="right"))
            if self.max_rows is not None:
                count = min(count, self.max_rows - open_batch.rows)
            if count < len(head) or len(head) == len(lengths):
                return count
            window *= 4


def batches(
    records: Iterable[Record], plan: Rows | TokenBudget, lengths_name: str | None
) -> Iterator[Record]:
    """Batches of the records' rows, in order; a batch may have rows of several records."""
    parts: list[Record] = []
    open_batch = OpenBatch()
    for record in records:
        lengths = record[lengths_name] if lengths_name is not None else None
        stops = plan.stops(record.num_rows, lengths, open_batch)
        for i, part in enumerate(split_rows(record, stops)):
            if part.num_rows:
                parts.append(part)
            if i < len(stops):
                if parts:
                    yield parts[0] if len(parts) == 1 else concat_records(parts)
                parts, open_batch = [], OpenBatch()
        last = lengths[stops[-1] if stops else 0 :] if lengths is not None else None
        _extend(open_batch, record.num_rows - (stops[-1] if stops else 0), last)
    if parts and not plan.drop_last:
        yield parts[0] if len(parts) == 1 else concat_records(parts)


def _extend(open_batch: OpenBatch, rows: int, lengths: Lengths | None) -> None:
    open_batch.rows += rows
    if lengths is not None and len(lengths):
        open_batch.tokens += int(lengths.sum())
        open_batch.longest = max(open_batch.longest, int(lengths.max()))


def at_least_one(plan: str, **counts: int | None) -> None:
    """OpError unless each count is an int, 1 or more, or left out."""
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise OpError(f"{plan}: {name} is {count!r}, expected an integer, 1 or more")


def planned_lengths(record: Record, name: str | None, needed_by: str | None = None) -> str | None:
    """The lengths tensor to plan on: `name`, or the one that describes the only list column of numbers.

    None where there is none or more than one. BatchPlanError where a plan cannot do without, or
    where `name` is not the lengths of a list column.
    """
    of_rows = [
        parent for tensor, parent in record.parents.items()
        if parent is not None and record.parents.get(parent) is None and record[tensor].dtype.kind in "biuf"
    ]  # fmt: skip
    candidates = list(dict.fromkeys(of_rows))
    if name is None:
        if len(candidates) != 1 and needed_by is not None:
            raise BatchPlanError(
                f"{needed_by}: there is not just one list column of numbers; name its lengths with lengths=\n"
                f"  the records have {', '.join(record)}"
            )
        return candidates[0] if len(candidates) == 1 else None
    if f"{name}.lengths" in candidates:
        return f"{name}.lengths"
    if name not in candidates:
        raise BatchPlanError(
            f"lengths = {name!r} are not the lengths of a list column of numbers\n"
            f"  there are {', '.join(candidates) or 'none'}"
        )
    return name
