"""Where the rows and elements of a batch come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from seqflow.errors import OpError, OpIndexError, nearest
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.selection import Pieces
from seqflow.loader.run.making import Turn


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

    def __str__(self) -> str:
        of_row = f"row {self.row}" if self.hidden_by is None else f"a row that {self.hidden_by} made"
        parts = [self.file, f"block {self.block}", of_row]
        if self.column is not None:
            parts.append(f"column {self.column}")
        if self.elements is not None and self.element is not None:
            parts.append(f"elements {self.element} to {self.element + self.elements - 1}")
        elif self.element is not None:
            parts.append(f"element {self.element}")
        return ", ".join(parts)


class _Parts(NamedTuple):
    """The pieces of rows that a batch is made of."""

    numbers: Array
    """Their rows, counted over the records of the windows."""
    pieces: Pieces
    row_of: Array
    """The row of the batch that each is in."""


def trace_turn(
    turn: Turn, prepare: str | None, row: int | None, element: int | None, column: str | None
) -> list[Trace]:
    """Where the rows of a batch come from, the pieces of one of its rows, or one element."""
    if element is not None and row is None:
        raise OpError(f"trace: element is {element}, expected a row with it")
    parts = _parts_of(turn)
    rows = num_rows(turn)
    if row is not None and not 0 <= row < rows:
        raise OpIndexError(f"trace: row is {row}, expected 0 to {rows - 1}, the rows of batch {turn.batch}")
    chosen = np.arange(len(parts.numbers)) if row is None else np.flatnonzero(parts.row_of == row)
    if element is not None and row is not None:
        return [_of_element(turn, parts, chosen, row, element, column, prepare)]
    return [_of_part(turn, parts, int(at), prepare) for at in chosen]


def num_rows(turn: Turn) -> int:
    """The rows of a batch."""
    return turn.batches.size(turn.number).rows


def _parts_of(turn: Turn) -> _Parts:
    batches, number = turn.batches, turn.number
    return _Parts(batches.numbers(number), batches.pieces_of(number), batches.row_of_pieces(number))


def _of_part(turn: Turn, parts: _Parts, at: int, prepare: str | None) -> Trace:
    found = _of_row(turn, int(parts.numbers[at]), prepare)
    if not turn.batches.cut:
        return found
    element, elements = int(parts.pieces.starts[at]), int(parts.pieces.sizes[at])
    return replace(found, column=_planned_column(turn), element=element, elements=elements)


def _of_row(turn: Turn, number: int, prepare: str | None) -> Trace:
    for window in turn.windows:
        for one in window.ranges:
            if number < one.rows:
                row = None if one.numbers is None else int(one.numbers[number])
                return Trace(
                    one.block.origin, one.block.index, row, hidden_by=prepare if row is None else None
                )
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
    if name is None or lengths not in source.offsets:
        columns = [_column_of(turn, one) for one in source.offsets if source.parents[one] is None]
        what = "column is None" if name is None else f"column is {name!r}{nearest(name, columns)}"
        raise OpError(
            f"trace: {what}, expected one of {', '.join(columns) or 'no list columns: there are none'}"
        )
    if lengths in batches.cut:
        starts, sizes = parts.pieces.starts[chosen], parts.pieces.sizes[chosen]
    else:
        bounds = source.offsets[lengths][parts.numbers[chosen[:1, None]] + np.arange(2)]
        starts, sizes = np.zeros(1, np.int64), np.diff(bounds)[:, 0]
    at, inside = _place_in_row(turn, sizes, row, element, name)
    found = _of_row(turn, int(parts.numbers[chosen[at]]), prepare)
    return replace(found, column=name, element=int(starts[at]) + inside)


def _place_in_row(turn: Turn, sizes: Array, row: int, element: int, name: str) -> tuple[int, int]:
    """The piece of a row of the batch that an element is in, and its place in the piece."""
    plan = turn.batches.plan
    capacity, multiple = plan.packed_capacity, plan.multiple_of
    ends = np.cumsum(sizes if capacity is None else -(-sizes // multiple) * multiple)
    at = int(np.searchsorted(ends, element, side="right"))
    if element >= 0 and at < len(sizes):
        inside = element - (int(ends[at - 1]) if at else 0)
        if inside < sizes[at]:
            return at, inside
    if capacity is None:
        raise OpIndexError(
            f"trace: element is {element}, expected less than {sizes[0]}, the elements of {name} in row {row}"
        )
    if 0 <= element < capacity:
        raise OpIndexError(f"trace: element {element} of row {row} is padding")
    raise OpIndexError(f"trace: element is {element}, expected less than the capacity, {capacity}")


def _planned_column(turn: Turn) -> str | None:
    lengths = turn.windows[0].lengths
    return None if lengths is None else _column_of(turn, lengths)


def _column_of(turn: Turn, lengths: str) -> str:
    """`c` of `c.lengths`; of lengths with another name the first values under them."""
    under = (name for name, above in turn.batches.rows.source.parents.items() if above == lengths)
    return lengths.removesuffix(".lengths") if lengths.endswith(".lengths") else next(under, lengths)
