"""Where the rows and elements of a batch come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from seqflow.errors import OpError, OpIndexError, nearest
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.packed import PackedBatches
from seqflow.loader.plans.padded_pieces import rounded
from seqflow.loader.plans.selection import Pieces
from seqflow.loader.run.making import Turn
from seqflow.providers import Provider


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a row, a piece of one, or an element of a batch comes from.

    >>> print(Trace("docs.parquet", 3, 17, "tokens", 402))
    docs.parquet, block 3, row 17, column tokens, element 402
    """

    file: str
    """The file; of data in memory what they are called in errors."""
    block: int
    """The number of the row group, record batch or group of lines in it."""
    row: int | None
    """The number of the row in the block; None where `prepare` made new rows, so that nobody knows."""
    column: str | None = None
    """The list column whose elements are counted, as `prepare` made it."""
    element: int | None = None
    """The element of the row's list, or the first one of a piece."""
    elements: int | None = None
    """How many elements a piece of a row has."""
    hidden_by: str | None = None
    """What made new rows, so that their numbers are not known."""
    source: str | None = None
    """The name of the source, in a Mix."""
    part: int | None = None
    """Which of the rows that `prepare` made of this row, from 0; None where it made one."""

    def __str__(self) -> str:
        of_row = f"row {self.row}" if self.hidden_by is None else f"a row that {self.hidden_by} made"
        parts = [self.file, f"block {self.block}", of_row]
        if self.part is not None:
            parts.append(f"part {self.part}")
        if self.column is not None:
            parts.append(f"column {self.column}")
        if self.elements is not None and self.element is not None:
            parts.append(f"elements {self.element} to {self.element + self.elements - 1}")
        elif self.element is not None:
            parts.append(f"element {self.element}")
        return ", ".join(parts)


class _Parts(NamedTuple):
    """The rows or pieces that a batch is made of."""

    numbers: Array
    """Their rows, counted over the records of the windows."""
    pieces: Pieces | None
    """Which elements of these they are; None where they are whole."""
    row_of: Array
    """The row of the batch that each is in."""
    num_rows: int


def trace_turn(
    turn: Turn, prepare: str | None, row: int | None, element: int | None, column: str | None
) -> list[Trace]:
    """Where the rows of a batch come from, the pieces of one of its rows, or one element."""
    if element is not None and row is None:
        raise OpError(f"trace: element is {element}, expected a row with it")
    parts = _parts_of(turn)
    if row is not None and not 0 <= row < parts.num_rows:
        raise OpIndexError(
            f"trace: row is {row}, expected 0 to {parts.num_rows - 1}, the rows of batch {turn.batch}"
        )
    chosen = np.arange(len(parts.numbers)) if row is None else np.flatnonzero(parts.row_of == row)
    if element is not None and row is not None:
        return [_of_element(turn, parts, chosen, row, element, column, prepare)]
    return [_of_part(turn, parts, int(at), prepare) for at in chosen]


def with_files(traces: Sequence[Trace], turn: Turn, provider: Provider) -> list[Trace]:
    """The traces, with the file of each row where the rows of a block are of several files."""
    paths_of = getattr(provider.source, "paths_of", None)
    if paths_of is None:
        return list(traces)
    blocks = {one.block.index: provider.unfiltered(one.block)[1] for of in turn.windows for one in of.ranges}
    return [
        one if one.row is None else replace(one, file=paths_of(blocks[one.block])[one.row]) for one in traces
    ]


def num_rows(turn: Turn) -> int:
    """The rows of a batch."""
    return _parts_of(turn).num_rows


def _parts_of(turn: Turn) -> _Parts:
    batches, number = turn.batches, turn.number
    span = slice(int(batches.bounds.starts[number]), int(batches.bounds.stops[number]))
    numbers = batches.numbers(number)
    if isinstance(batches, PackedBatches):
        packed_rows = batches.order[span]
        counts = batches.layout.pieces[packed_rows]
        row_of = np.repeat(np.arange(len(packed_rows)), counts)
        return _Parts(numbers, batches.pieces_of(packed_rows), row_of, len(packed_rows))
    pieces = None if batches.pieces is None or not batches.cut else batches.pieces.take(span)
    return _Parts(numbers, pieces, np.arange(len(numbers)), len(numbers))


def _of_part(turn: Turn, parts: _Parts, at: int, prepare: str | None) -> Trace:
    found = _of_row(turn, int(parts.numbers[at]), prepare)
    if parts.pieces is None:
        return found
    element, elements = int(parts.pieces.starts[at]), int(parts.pieces.sizes[at])
    return replace(found, column=_planned_column(turn), element=element, elements=elements)


def _of_row(turn: Turn, number: int, prepare: str | None) -> Trace:
    for window in turn.windows:
        for one in window.ranges:
            if number < one.rows:
                if one.numbers is None:
                    return Trace(one.block.origin, one.block.index, None, hidden_by=prepare)
                row = int(one.numbers[number])
                alike = np.flatnonzero(np.asarray(one.numbers) == row)
                part = None if len(alike) == 1 else int(np.searchsorted(alike, number))
                return Trace(one.block.origin, one.block.index, row, part=part)
            number -= one.rows
    raise AssertionError("a batch has rows of its windows alone")


def _of_element(
    turn: Turn, parts: _Parts, chosen: Array, row: int, element: int, column: str | None, prepare: str | None
) -> Trace:
    batches = turn.batches
    name = _planned_column(turn) if column is None else column
    source = batches.rows.source
    lengths = f"{name}.lengths"
    if name is not None and lengths not in source.offsets:
        lengths = source.parents.get(name) or ""
    packed = isinstance(batches, PackedBatches) and name in {one.name for one in batches.columns}
    if name is None or not (packed or lengths in source.offsets):
        columns = [_column_of(turn, one) for one in source.offsets if source.parents[one] is None]
        what = "column is None" if name is None else f"column is {name!r}{nearest(name, columns)}"
        raise OpError(
            f"trace: {what}, expected one of {', '.join(columns) or 'no list columns: there are none'}"
        )
    if packed:
        at, inside = _place_in_row(turn, parts, chosen, row, element)
        start = int(parts.pieces.starts[at]) if parts.pieces is not None else 0
    else:
        at, inside = int(chosen[0]), element
        is_cut = parts.pieces is not None and lengths in getattr(batches, "cut", ())
        number = int(parts.numbers[at])
        start = int(parts.pieces.starts[at]) if is_cut and parts.pieces is not None else 0
        whole = int(np.diff(source.offsets[lengths][number : number + 2])[0])
        size = int(parts.pieces.sizes[at]) if is_cut and parts.pieces is not None else whole
        if not 0 <= element < size:
            raise OpIndexError(
                f"trace: element is {element}, expected less than {size}, the elements of {name} in row {row}"
            )
    found = _of_row(turn, int(parts.numbers[at]), prepare)
    return replace(found, column=name, element=start + inside)


def _place_in_row(turn: Turn, parts: _Parts, chosen: Array, row: int, element: int) -> tuple[int, int]:
    """The piece of a packed row that an element is in, and its place in the piece."""
    batches = turn.batches
    assert isinstance(batches, PackedBatches)
    assert parts.pieces is not None
    sizes = parts.pieces.sizes[chosen]
    ends = np.cumsum(rounded(sizes, batches.multiple_of))
    at = int(np.searchsorted(ends, element, side="right"))
    if 0 <= element < batches.capacity and at < len(chosen):
        inside = element - (int(ends[at - 1]) if at else 0)
        if inside < sizes[at]:
            return int(chosen[at]), inside
    if 0 <= element < batches.capacity:
        raise OpIndexError(f"trace: element {element} of row {row} is padding")
    raise OpIndexError(f"trace: element is {element}, expected less than the capacity, {batches.capacity}")


def _planned_column(turn: Turn) -> str | None:
    lengths = turn.windows[0].lengths
    return None if lengths is None else _column_of(turn, lengths)


def _column_of(turn: Turn, lengths: str) -> str:
    """`c` of `c.lengths`; of lengths with another name the first values under them."""
    under = (name for name, above in turn.batches.rows.source.parents.items() if above == lengths)
    return lengths.removesuffix(".lengths") if lengths.endswith(".lengths") else next(under, lengths)
