"""Where the rows and elements of a batch come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from seqflow.errors import OpError, OpIndexError, nearest
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.window_rows import Pieces
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


def trace_turn(
    turn: Turn, prepare: str | None, row: int | None, element: int | None, column: str | None
) -> list[Trace]:
    """Where the rows of a batch come from, the pieces of one of its rows, which it has, or one element."""
    if element is not None and row is None:
        raise OpError(f"trace: element is {element}, expected a row with it")
    batches = turn.batches
    numbers, pieces = batches.numbers(turn.number), batches.pieces_of(turn.number)
    if row is not None:
        chosen = np.flatnonzero(batches.row_of_pieces(turn.number) == row)
        numbers, pieces = numbers[chosen], pieces.take(chosen)
        if element is not None:
            name, lengths = _column_to_trace(turn, column)
            at, place = _element_of(turn, lengths, numbers, pieces, element, f"{name} in row {row}")
            return [replace(_of_row(turn, int(numbers[at]), prepare), column=name, element=place)]
    found = [_of_row(turn, number, prepare) for number in numbers.tolist()]
    if not batches.cut:
        return found
    planned = _planned_column(turn)
    parts = zip(found, pieces.starts.tolist(), pieces.sizes.tolist(), strict=True)
    return [replace(one, column=planned, element=start, elements=size) for one, start, size in parts]


def with_files(traces: Sequence[Trace], turn: Turn, provider: Provider) -> list[Trace]:
    """The traces, with the file of each row where the rows of a block are of several files."""
    paths_of = getattr(provider.source, "paths_of", None)
    if paths_of is None:
        return list(traces)
    ranges = [one for of in turn.windows for one in of.ledger.ranges]
    blocks = {one.block.index: provider.unfiltered(one.block)[1] for one in ranges}
    return [
        one if one.row is None else replace(one, file=paths_of(blocks[one.block])[one.row]) for one in traces
    ]


def _of_row(turn: Turn, number: int, prepare: str | None) -> Trace:
    for window in turn.windows:
        for one in window.ledger.ranges:
            if number < one.rows:
                if one.numbers is None:
                    return Trace(one.block.origin, one.block.index, None, hidden_by=prepare)
                row = int(one.numbers[number])
                alike = np.flatnonzero(np.asarray(one.numbers) == row)
                part = None if len(alike) == 1 else int(np.searchsorted(alike, number))
                return Trace(one.block.origin, one.block.index, row, part=part)
            number -= one.rows
    raise AssertionError("a batch has rows of its windows alone")


def _column_to_trace(turn: Turn, column: str | None) -> tuple[str, str]:
    """The list column whose elements are counted, and its lengths; OpError where there is none."""
    name = _planned_column(turn) if column is None else column
    source = turn.batches.rows.source
    lengths = f"{name}.lengths"
    if name is not None and lengths not in source.offsets:
        lengths = source.parents.get(name) or ""
    if name is not None and lengths in source.offsets:
        return name, lengths
    columns = [_column_of(turn, one) for one in source.offsets if source.parents[one] is None]
    what = "column is None" if name is None else f"column is {name!r}{nearest(name, columns)}"
    raise OpError(f"trace: {what}, expected one of {', '.join(columns) or 'no list columns: there are none'}")


def _element_of(
    turn: Turn, lengths: str, numbers: Array, pieces: Pieces, element: int, where: str
) -> tuple[int, int]:
    """Which of the pieces of a row of the batch an element is in, and its place in the row of the source."""
    plan, source = turn.batches.plan, turn.batches.rows.source
    capacity, starts, sizes = plan.packed_capacity, pieces.starts, pieces.sizes
    if lengths not in turn.batches.cut:
        starts, sizes = np.zeros(1, np.int64), np.diff(source.offsets[lengths])[numbers[:1]]
    ends = np.cumsum(sizes if capacity is None else -(-sizes // plan.multiple_of) * plan.multiple_of)
    at = int(np.searchsorted(ends, element, side="right"))
    if element >= 0 and at < len(sizes):
        inside = element - (int(ends[at - 1]) if at else 0)
        if inside < sizes[at]:
            return at, int(starts[at]) + inside
    if capacity is None:
        raise OpIndexError(
            f"trace: element is {element}, expected less than {sizes[0]}, the elements of {where}"
        )
    if 0 <= element < capacity:
        raise OpIndexError(f"trace: element {element} of {where.partition(' in ')[2]} is padding")
    raise OpIndexError(f"trace: element is {element}, expected less than the capacity, {capacity}")


def _planned_column(turn: Turn) -> str | None:
    lengths = turn.windows[0].lengths
    return None if lengths is None else _column_of(turn, lengths)


def _column_of(turn: Turn, lengths: str) -> str:
    """`c` of `c.lengths`; of lengths with another name the first values under them."""
    under = (name for name, above in turn.batches.rows.source.parents.items() if above == lengths)
    return lengths.removesuffix(".lengths") if lengths.endswith(".lengths") else next(under, lengths)
