"""Rows and TokenBudget: batches of rows in their order, planned on lengths alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seqflow import kernels
from seqflow.errors import BatchPlanError, LodError, OpError
from seqflow.loader.row_sizes import row_sizes
from seqflow.loader.window_batches import BatchSize, RowBatches, Spans, padded_sizes
from seqflow.record import Record, concat_records, split_rows

if TYPE_CHECKING:
    from seqflow.loader.window_rows import WindowRows

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

    def of_window(
        self, rows: WindowRows, lengths: str | None, key: int, shuffled: bool, window: int
    ) -> RowBatches:
        """The batches of a window, in the order of its rows."""
        sizes = None if lengths is None else row_sizes(rows, lengths)
        return batches_in_order(rows, self.spans(rows.num_rows, sizes), sizes, self.drop_last)

    def spans(self, num_rows: int, sizes: Lengths | None) -> Spans:
        """Which of these consecutive rows make a batch."""
        full = np.arange(self.n, num_rows + 1, self.n, dtype=np.int64)
        left = num_rows % self.n
        return Spans.until(np.append(full, num_rows) if left else full, left > 0)


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

    def of_window(
        self, rows: WindowRows, lengths: str | None, key: int, shuffled: bool, window: int
    ) -> RowBatches:
        """The batches of a window, in the order of its rows; LodError for a row longer than the budget."""
        assert lengths is not None  # planned_lengths sees to that
        sizes = row_sizes(rows, lengths)
        return batches_in_order(rows, self.spans(rows.num_rows, sizes), sizes, self.drop_last)

    def spans(self, num_rows: int, sizes: Lengths | None) -> Spans:
        """Which of these consecutive rows make a batch; the last is short unless it is exactly full."""
        assert sizes is not None
        self._check_longest(sizes)
        stops = padded_stops(self, sizes) if self.padded else token_stops(self, sizes)
        if not len(stops):
            return Spans.until(stops, False)
        last = sizes[stops[-2] if len(stops) > 1 else 0 :]
        tokens = len(last) * int(last.max()) if self.padded else int(last.sum())
        return Spans.until(stops, tokens < self.max_tokens and len(last) != self.max_rows)

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


def batches_in_order(
    rows: WindowRows, spans: Spans, sizes: Lengths | None, drop_last: bool, order: Lengths | None = None
) -> RowBatches:
    """Batches of these spans of rows. `sizes` and `order` are those of the rows from batch to batch."""
    of_spans = padded_sizes(spans, sizes)
    kept = np.flatnonzero(~spans.short) if drop_last else np.arange(len(spans))
    dropped = of_spans.total(spans.short) if drop_last else BatchSize(0, 0, 0)
    return RowBatches(rows, spans.take(kept), of_spans.take(kept), dropped, order)


def token_stops(plan: TokenBudget, sizes: Lengths) -> Lengths:
    """The row after each batch: as many rows as fit into the budget."""
    ends = kernels.lengths_to_offsets(sizes)
    # for each row that may start a batch, the first that does not fit any more
    beyond = np.searchsorted(ends, ends[:-1] + plan.max_tokens, side="right") - 1
    if plan.max_rows is not None:
        beyond = np.minimum(beyond, np.arange(len(sizes)) + plan.max_rows)
    following, stops, row = beyond.tolist(), [], 0
    while row < len(following):
        row = following[row]
        stops.append(row)
    return np.array(stops, np.int64)


def padded_stops(plan: TokenBudget, sizes: Lengths) -> Lengths:
    """The row after each batch: as many rows as fit into the budget when padded to the longest."""
    most = plan.max_rows or len(sizes)
    stops, rows, longest = [], 0, 0
    for row, size in enumerate(sizes.tolist()):
        longest = max(longest, size)
        rows += 1
        if rows * longest > plan.max_tokens or rows > most:
            stops.append(row)
            rows, longest = 1, size
    if rows:
        stops.append(len(sizes))
    return np.array(stops, np.int64)


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
