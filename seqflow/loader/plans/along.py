"""Along: list columns that travel with their row, such as its images; rows are cut only outside their items."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.arguments import are_distinct, checked
from seqflow.errors import BatchPlanError, OpError, nearest
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.selection import UNUSABLE, RowSelection
from seqflow.loader.plans.window_rows import Pieces, WindowRows
from seqflow.record import BadRow
from seqflow.record.row_source import ChildRanges


@checked()
@dataclass(frozen=True, slots=True)
class Along:
    """Places of the items of a column among the elements of their row, so that the row may be cut between them.

        sf.Packed(4096, columns=["tokens"], along={"images": sf.Along("start", "extent")})

    Both are integer fields of the items: `images` is a list of structs with `start` and `extent`.
    """

    start: str
    """Field with the place of the first element that belongs to the item, such as its first placeholder."""
    extent: str
    """Field with the number of elements up to its last one, breaks between them included."""


AlongColumns = tuple[str, ...] | Mapping[str, Along]


def checked_along(given: Any, plan: str) -> AlongColumns:
    """Return columns that travel with their row, or their items' places; raise OpError for anything else."""
    if isinstance(given, Mapping):
        places = {
            name: Along(**of) if isinstance(of, Mapping) and {*of} == {"start", "extent"} else of
            for name, of in given.items()
        }
        wrong = next((of for of in places.values() if not isinstance(of, Along)), None)
        if wrong is not None:
            raise OpError.of(f"{plan}.along", f"has {wrong!r}, expected Along(start, extent)")
        return places
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    if not are_distinct(names) or not all(isinstance(name, str) for name in names):
        raise OpError.of(
            f"{plan}.along", f"is {given!r}, expected names of list columns, or a mapping to Along"
        )
    return names


def check_uncut(plan: str, along: AlongColumns, option: str, value: str) -> None:
    """Raise OpError if a setting would cut rows whose items have no places."""
    if along and not isinstance(along, Mapping):
        raise OpError.of(
            f"{plan}.{option}",
            f"is {value!r}, which cuts rows, and along = {along[0]!r} does not say where its items are",
            advice='oversize="bad_rows" or "skip" leaves rows whole, '
            f'along={{"{along[0]}": sf.Along("start", "extent")}} cuts them between items',
        )


def check_carried(record: Any, along: AlongColumns, cut: Collection[str], plan: str) -> None:
    """Raise BatchPlanError if a column that travels with its row is not a list column of records, or is cut."""
    known = [name.removesuffix(".lengths") for name in dict.fromkeys(record.parents.values()) if name]
    for name in along:
        lengths = f"{name}.lengths"
        if lengths not in record or record.parents[lengths] is not None:
            raise BatchPlanError(
                f"{plan}: along has {name!r}, which is not a list column{nearest(name, known)}\n"
                f"  there are {', '.join(known) or 'none'}"
            )
        if lengths in cut or name in cut:
            raise BatchPlanError(
                f"{plan}: along has {name!r}, which is cut with its row, expected one of the two"
            )
        for field in (along[name].start, along[name].extent) if isinstance(along, Mapping) else ():
            tensor = f"{name}.values.{field}"
            if (
                tensor not in record
                or record.parents[tensor] != lengths
                or record[tensor].dtype.kind not in "iu"
            ):
                fields = [
                    one.rpartition(".")[2]
                    for one, of in record.parents.items()
                    if of == lengths and record[one].dtype.kind in "iu"
                ]
                raise BatchPlanError(
                    f"{plan}: {name!r} has no field {field!r} of one integer an item{nearest(field, fields)}\n"
                    f"  it has {', '.join(fields) or 'none'}"
                )


class ItemSpans(NamedTuple):
    """Items of one column in the rows of a window, row after row: first element, and the one after the last."""

    column: str
    offsets: Array
    """int64[rows + 1]: the first item of each row."""
    starts: Array
    stops: Array

    def of_row(self, row: int) -> tuple[Array, Array]:
        """Return the starts and stops of the items of a row."""
        chosen = slice(self.offsets[row], self.offsets[row + 1])
        return self.starts[chosen], self.stops[chosen]

    def of_rows(self, usable: Array) -> "ItemSpans":
        """Return the spans with those of rows that are not usable at their beginning, so that places ascend."""
        kept = np.repeat(usable, np.diff(self.offsets))
        return self._replace(starts=self.starts * kept, stops=self.stops * kept)


def item_spans(rows: WindowRows, along: AlongColumns) -> list[ItemSpans]:
    """Return the spans of the items of each column whose places are known."""
    found = []
    for name, of in along.items() if isinstance(along, Mapping) else ():
        lengths = f"{name}.lengths"
        counts = rows.tensor(lengths).astype(np.int64)
        every = rows.ranges(lengths, Pieces(np.arange(len(counts)), np.zeros_like(counts), counts))
        starts, extents = (
            kernels.gather_slices(rows.source.chunks[f"{name}.values.{field}"], *every).astype(np.int64)
            for field in (of.start, of.extent)
        )
        found.append(ItemSpans(name, kernels.lengths_to_offsets(counts), starts, starts + extents))
    return found


def without_wrong(
    rows: WindowRows, spans: Sequence[ItemSpans], sizes: Array
) -> tuple[list[ItemSpans], Array, list[BadRow]]:
    """Return spans and sizes without the rows with an item outside of them, or inside another of its column.

    Such rows are unusable, and bad rows.
    """
    found: dict[int, BadRow] = {}
    for one in spans:
        row = np.repeat(np.arange(len(sizes)), np.diff(one.offsets))
        first = np.zeros(len(row), bool)
        first[one.offsets[:-1][np.diff(one.offsets) > 0]] = True
        before = np.where(first, 0, np.roll(one.stops, 1))
        wrong = (one.starts < before) | (one.stops < one.starts) | (one.stops > sizes[row])
        for at in np.flatnonzero(wrong & (sizes[row] >= 0)).tolist():
            place, item = int(row[at]), at - int(one.offsets[row[at]])
            if place in found:
                continue
            what = (
                f"begins at {one.starts[at]}, before {before[at]}, where the item before it ends"
                if 0 <= one.starts[at] < before[at]
                else f"has the elements {one.starts[at]} to {one.stops[at] - 1}, "
                f"expected places from 0 to {sizes[place] - 1}"
            )
            number = int(rows.numbers(np.array([place]))[0])
            found[place] = BadRow(
                number, one.column, f"item {item} {what}", "an item that is not where it can be"
            )
    usable = sizes.copy()
    usable[list(found)] = UNUSABLE
    kept = [one.of_rows(usable >= 0) for one in spans]
    return kept, usable, [found[place] for place in sorted(found)]


def cut_outside(
    selection: RowSelection,
    rows: WindowRows,
    spans: Sequence[ItemSpans],
    sizes: Array,
    limit: int,
    *,
    splits: bool,
) -> tuple[RowSelection, list[BadRow]]:
    """Return the selection with rows above the limit cut outside items, and the rows with an item above the limit.

    `splits` makes several pieces of a row; otherwise its head stays.
    """
    pieces, bad = selection.pieces, []
    over = np.unique(pieces.rows[sizes[pieces.rows] > limit])
    made: list[tuple[int, int, int]] = []
    for row in over.tolist():
        items_of_row = [one.of_row(row) for one in spans]
        ends = _ends(int(sizes[row]), limit, items_of_row, splits)
        if ends is not None:
            made += [(row, start, stop - start) for start, stop in pairwise([0, *ends])]
            continue
        longest = [int((stops - starts).max(initial=0)) for starts, stops in items_of_row]
        most, expected = max(longest), f"expected at most {limit}"
        number = int(rows.numbers(np.array([row]))[0])
        reason = f"an item of {most} elements, {expected}"
        bad.append(BadRow(number, spans[longest.index(most)].column, reason, expected))
    if len(over):
        kept = pieces.take(~np.isin(pieces.rows, over))
        cut = np.array(made, np.int64).reshape(-1, 3).T
        both = zip((kept.rows, kept.starts, kept.sizes), cut, strict=True)
        joined = Pieces(*map(np.concatenate, both))  # type: ignore[arg-type]
        pieces = joined.take(np.argsort(joined.rows, kind="stable"))
        selection = replace(selection, pieces=pieces, whole=False, cut=True)
    items = {f"{one.column}.lengths": _items_of(pieces, one, sizes) for one in spans}
    return replace(selection, pieces=replace(selection.pieces, items=items)), bad


def _ends(size: int, limit: int, items: Sequence[tuple[Array, Array]], splits: bool) -> list[int] | None:
    """Return the end of each piece of a row, or of its head alone; None if an item does not fit into a piece."""
    ends = [0]
    while ends[-1] < size and (splits or len(ends) == 1):
        stop = ends[-1] + limit
        ends.append(size if stop >= size else _outside(stop, items))
        if ends[-1] <= ends[-2]:
            return None
    return ends[1:]


def _outside(place: int, items: Sequence[tuple[Array, Array]]) -> int:
    """Return the last place up to this one that is inside no item; items of two columns may overlap."""
    before = None
    while before != place:
        before = place
        for starts, stops in items:
            inside = (starts < place) & (place < stops)
            place = int(starts[inside].min(initial=place))
    return place


def _items_of(pieces: Pieces, spans: ItemSpans, sizes: Array) -> ChildRanges:
    """Return the items that begin in each piece, counted in their row."""
    # places of all rows one after another, each with one more, for an item without elements at the end of its row
    first_place = kernels.lengths_to_offsets(np.maximum(sizes, 0) + 1)
    row = np.repeat(np.arange(len(sizes)), np.diff(spans.offsets))
    places = spans.starts + first_place[row]
    stops = pieces.starts + pieces.sizes
    begin = np.searchsorted(places, first_place[pieces.rows] + pieces.starts)
    end = np.searchsorted(places, first_place[pieces.rows] + stops + (stops == sizes[pieces.rows]))
    return ChildRanges(begin - spans.offsets[pieces.rows], end - begin)
