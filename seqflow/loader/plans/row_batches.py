"""RowBatches: the batches of a window that hold its rows one after another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from seqflow.kernels.arrays import Array
from seqflow.loader.plans.pieces import Pieces
from seqflow.loader.plans.selection import RowSelection
from seqflow.loader.plans.window_batches import BatchSize, Spans, SpanSizes, kept_spans, make_each
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import BadRow, Record
from seqflow.record.batch_memory import BatchMemory


@dataclass(frozen=True, slots=True, eq=False)
class RowBatches:
    """Batches of rows, or of pieces of rows, of a window."""

    rows: WindowRows
    spans: Spans
    sizes: SpanSizes
    dropped: BatchSize
    skipped: int = 0
    bad: Sequence[BadRow] = ()
    pieces: Pieces | None = None
    """The rows batch after batch; None where these are all rows in their order."""
    cut: Collection[str] = ()
    """The lengths of the columns that are cut, where some rows are not whole."""

    def __len__(self) -> int:
        return len(self.spans)

    def size(self, number: int) -> BatchSize:
        return self.sizes[number]

    def make(self, number: int, memory: BatchMemory | None = None) -> Record:
        return self._take(self._span(number), memory)

    def make_all(self, numbers: Sequence[int], memories: Sequence[BatchMemory | None]) -> list[Record]:
        if self.cut:
            return make_each(self, numbers, memories)
        spans = map(self._span, numbers)
        rows = list(spans) if self.pieces is None else [self.pieces.rows[span] for span in spans]
        return self.rows.take_all(rows, memories)

    def part(self, number: int, chosen: Array) -> Record:
        return self._take(int(self.spans.starts[number]) + chosen)

    def empty(self) -> Record:
        return self._take(slice(0, 0))

    def numbers(self, number: int) -> Array:
        chosen = self._span(number)
        return self.rows.numbers(chosen if self.pieces is None else self.pieces.rows[chosen])

    def _span(self, number: int) -> slice:
        return slice(int(self.spans.starts[number]), int(self.spans.stops[number]))

    def _take(self, chosen: slice | Array, memory: BatchMemory | None = None) -> Record:
        if self.pieces is None:
            return self.rows.take(chosen, memory)
        pieces = self.pieces.take(chosen)
        if self.cut:
            return self.rows.take_pieces(pieces, self.cut, memory)
        return self.rows.take(pieces.rows, memory)


def row_batches(
    rows: WindowRows,
    selection: RowSelection,
    spans: Spans,
    sizes: SpanSizes,
    drop_last: bool,
    bad: Sequence[BadRow] = (),
    cut: Collection[str] = (),
) -> RowBatches:
    """Batches of these spans of a selection. `cut` are the lengths of what is cut where a row is not whole."""
    pieces = None if selection.whole else selection.pieces
    lengths = cut if selection.cut else ()
    if selection.cut:
        sizes = replace(sizes, begun=selection.pieces.begun(spans.starts, spans.stops))
    return RowBatches(rows, *kept_spans(spans, sizes, drop_last), selection.skipped, bad, pieces, lengths)
