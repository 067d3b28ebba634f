"""Selection of rows to plan: their lengths, columns that are cut together, and the rows, or pieces of them,
that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.arguments import are_distinct, at_least_one
from seqflow.errors import BatchPlanError, OpError, nearest
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.window_rows import Pieces, WindowRows
from seqflow.record import BadRow, Record
from seqflow.record.arrow_types import TEXTS, is_any


def planned_lengths(record: Record, name: str | None, needed_by: str | None = None) -> str | None:
    """Return the lengths tensor to plan on.

    `name` is a lengths tensor of any level, a column with an integer a row, or a list column, which stands for its
    innermost level: a nested document is planned on its words. Without a name it is the only list column of numbers;
    None if there is none or more than one. Raise BatchPlanError when a plan requires lengths and there are none, or
    the name does not exist.
    """
    candidates = _innermost(record)
    if name is None:
        if len(candidates) != 1 and needed_by is not None:
            raise BatchPlanError(
                f"{needed_by}: there is not just one list column of numbers; name its lengths with lengths=\n"
                f"  the records have {', '.join(record)}"
            )
        return candidates[0] if len(candidates) == 1 else None
    is_number = name in record and record.parents[name] is None and record[name].dtype.kind in "iu"
    if name in record.parents.values() or (is_number and record[name].ndim == 1):
        return name
    of_column = [lengths for lengths in candidates if lengths.startswith(f"{name}.")]
    if name in record and record.parents[name] is not None:
        of_column = [lengths for lengths in (record.parents[name],) if lengths is not None]
    if len(of_column) != 1:
        raise BatchPlanError(
            f"lengths = {name!r} are not the lengths of a list column of numbers\n"
            f"  there are {', '.join(of_column or candidates) or 'none'}"
        )
    return of_column[0]


def is_text(record: Record, lengths: str) -> bool:
    """Return whether these are the lengths of a column of text or bytes, which counts as one value for each row."""
    column = lengths.removesuffix(".lengths")
    if record.schema is None or column == lengths:
        return False
    # not `in schema.names`: this list of all columns would be built again for each column
    index = record.schema.get_field_index(column)
    return index >= 0 and is_any(record.schema.field(index).type, TEXTS)


def _innermost(record: Record) -> list[str]:
    """Return the lengths that describe numbers, without those of text."""
    above = set(record.parents.values())
    of_numbers = [
        parent
        for tensor, parent in record.parents.items()
        if parent is not None and tensor not in above and record[tensor].dtype.kind in "biuf"
    ]
    return [lengths for lengths in dict.fromkeys(of_numbers) if not is_text(record, lengths)]


def checked_columns(
    columns: Sequence[str] | None,
    plan: str,
    option: str = "columns",
    expected: str = "one list column or more",
) -> tuple[str, ...] | None:
    """Return the names of the columns that are cut together, as a tuple; raise OpError when there are none."""
    if columns is None:
        return None
    names = tuple(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else ()
    if not names or not are_distinct(names) or not all(isinstance(name, str) for name in names):
        raise OpError.of(f"{plan}.{option}", f"is {columns!r}, expected the names of {expected}")
    return names


def cut_tensors(
    record: Record, lengths: str, columns: Sequence[str] | None, plan: str, left_whole: Collection[str] = ()
) -> Mapping[str, str]:
    """Return the tensors that are cut, each with its lengths: those of `columns`, or all under `lengths`.

    Raise BatchPlanError for a column of several levels, or a list column that is neither cut nor one of `left_whole`.
    Text counts as one value for each row.
    """
    if columns is None:
        found = {name: lengths for name, parent in record.parents.items() if parent == lengths}
    else:
        found = {name: of for column in columns for name, of in _tensors_of(record, column, plan).items()}
    if lengths not in found.values():
        raise BatchPlanError(
            f"{plan}: lengths are {lengths}, expected those of a column that is cut, "
            f"{' or '.join(dict.fromkeys(found.values()))}"
        )
    above = set(record.parents.values())
    for name, of in found.items():
        if name in above or record.parents[of] is not None:
            raise BatchPlanError(
                f"{plan}: {_column(of)!r} has several levels, expected one level of values to cut"
            )
    for name, parent in record.parents.items():
        is_list = parent is None and name in above and not is_text(record, name)
        if is_list and name not in found.values() and _column(name) not in left_whole:
            raise BatchPlanError(
                f"{plan}: the list column {_column(name)!r} is neither cut nor left out\n"
                f"  name it in columns= to cut it like {_column(lengths)!r}, in along= to let it travel with its "
                "row, or do not read or return it"
            )
    return found


def usable_sizes(rows: WindowRows, lengths: str, columns: Sequence[str] | None, plan: str) -> Array:
    """Return the size of each row; UNUSABLE if `columns` that are cut together have different lengths."""
    sizes = rows.sizes(lengths)
    if lengths not in rows.source.offsets:  # integers of a column, which may be anything
        return np.maximum(sizes, UNUSABLE)
    if columns is None:
        return sizes
    unequal = np.zeros(len(sizes), bool)
    first, *others = lengths_of(rows.records[0], columns, plan)
    for other in others:
        unequal |= rows.tensor(other) != rows.tensor(first)
    return np.where(unequal, UNUSABLE, sizes)


def unusable_rows(
    rows: WindowRows, sizes: Array, selection: RowSelection, lengths: str, columns: Sequence[str] | None
) -> list[BadRow]:
    """Return the numbers of rows that cannot be used: their columns have different lengths, or they are too long."""
    found, unequal = [], np.flatnonzero(sizes == UNUSABLE)
    if lengths not in rows.source.offsets and len(unequal):
        expected = "expected 0 or more, a number of elements"
        found += [
            BadRow(number, lengths, f"{value}, {expected}", expected)
            for number, value in zip(
                rows.numbers(unequal).tolist(), rows.tensor(lengths)[unequal].tolist(), strict=True
            )
        ]
    if columns is not None and len(unequal):
        first, *others = lengths_of(rows.records[0], columns, "columns")
        tensors = {name: rows.tensor(name) for name in (first, *others)}
        for place, number in zip(unequal.tolist(), rows.numbers(unequal).tolist(), strict=True):
            expected = tensors[first][place]
            found += [
                BadRow(
                    number,
                    _column(other),
                    f"{tensors[other][place]} elements, but {expected} in {_column(first)!r}: they are cut together",
                    f"not as many elements as {_column(first)!r}: they are cut together",
                )
                for other in others
                if tensors[other][place] != expected
            ]
    too_long, expected = selection.too_long, f"expected at most {selection.limit}"
    return found + [
        BadRow(number, _column(lengths), f"{size} elements, {expected}", expected)
        for number, size in zip(rows.numbers(too_long).tolist(), sizes[too_long].tolist(), strict=True)
    ]


def lengths_of(
    record: Record, columns: Sequence[str], plan: str, explain: Callable[[str], str] | None = None
) -> list[str]:
    """Return the lengths of columns that are cut together; raise BatchPlanError when one is not a list column.

    `explain` returns advice on a column that the records do not have.
    """
    found = [of for column in columns for of in _tensors_of(record, column, plan, explain).values()]
    return list(dict.fromkeys(found))


def _tensors_of(
    record: Record, column: str, plan: str, explain: Callable[[str], str] | None = None
) -> dict[str, str]:
    """Return the tensors of a list column: itself, or all under its lengths."""
    parent = record.parents.get(column)
    if parent is not None:
        return {column: parent}
    lengths = f"{column}.lengths"
    found = {name: lengths for name, of in record.parents.items() if of == lengths}
    if not found:
        pairs = [(name, of) for name, of in record.parents.items() if of is not None]
        known = list(
            dict.fromkeys(_column(of) if name == f"{_column(of)}.values" else name for name, of in pairs)
        )
        if column in record:
            advice = "leave it out: it has one value a row, and comes along by itself; there are"
        else:
            advice = "" if explain is None else explain(column)
        raise BatchPlanError(
            f"{plan}: columns has {column!r}, which is not a list column{nearest(column, known)}\n"
            f"  {advice or 'there are'} {', '.join(known) or 'none'}"
        )
    return found


def _column(lengths: str) -> str:
    return lengths.removesuffix(".lengths")


Oversize = Literal["bad_rows", "truncate", "split", "skip"]
"""Treatment of a row above the budget: "bad_rows" makes it a bad row, which is an error unless the loader's
`bad_rows` say otherwise; "truncate" keeps its head; "split" makes several rows from it; "skip" omits it."""
UNUSABLE = -1
"""Size of a row that cannot be used, in place of its length."""


@dataclass(frozen=True, slots=True, eq=False)
class RowSelection:
    """Rows or pieces of rows that batches are made from, in order, and the rows that were omitted."""

    pieces: Pieces
    whole: bool = True
    """Whether these are all rows of the window."""
    cut: bool = False
    """Whether some row is not whole."""
    skipped: int = 0
    """Number of rows that filters, or "skip", omitted."""
    too_long: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """Rows that are omitted because they are above the limit."""
    limit: str = ""
    """The limit, as the plan names it."""

    @staticmethod
    def of(sizes: Array) -> RowSelection:
        """Return all rows that can be used, by their sizes."""
        everything = Pieces(np.arange(len(sizes)), np.zeros(len(sizes), np.int64), sizes)
        return RowSelection(everything)._keep(sizes != UNUSABLE)

    def between(self, min_length: int | None, max_length: int | None) -> RowSelection:
        """Return the selection without rows shorter or longer than the limits."""
        sizes = self.pieces.sizes
        kept = np.ones(len(sizes), bool)
        if min_length is not None:
            kept &= sizes >= min_length
        if max_length is not None:
            kept &= sizes <= max_length
        return self._skip(kept)

    def at_most(self, limit: int, oversize: Oversize, name: str) -> RowSelection:
        """Return the selection without pieces above a limit; `name` is the limit's name in errors."""
        rows, starts, sizes = self.pieces.rows, self.pieces.starts, self.pieces.sizes
        over = sizes > limit
        if not over.any():
            return self
        if oversize == "skip":
            return self._skip(~over)
        if oversize == "bad_rows":
            return replace(self._keep(~over), too_long=rows[over], limit=name)
        if oversize == "truncate":
            return replace(self, pieces=Pieces(rows, starts, np.minimum(sizes, limit)), whole=False, cut=True)
        counts = np.maximum(-(-sizes // limit), 1)
        starts = kernels.lengths_to_positions(counts) * limit
        left = np.repeat(sizes, counts) - starts
        pieces = Pieces(np.repeat(rows, counts), starts, np.minimum(left, limit))
        return replace(self, pieces=pieces, whole=False, cut=True)

    def filled(self) -> RowSelection:
        """Return the selection without empty rows."""
        return self._skip(self.pieces.sizes > 0)

    def _skip(self, kept: Array) -> RowSelection:
        return replace(self._keep(kept), skipped=self.skipped + len(kept) - int(np.count_nonzero(kept)))

    def _keep(self, kept: Array) -> RowSelection:
        if kept.all():
            return self
        return replace(self, pieces=self.pieces.take(kept), whole=False)


def check_lengths_between(plan: str, min_length: int | None, max_length: int | None) -> None:
    """Raise OpError when no row can pass the filters."""
    at_least_one(plan, min_length=min_length, max_length=max_length)
    if min_length is not None and max_length is not None and min_length > max_length:
        raise OpError.of(f"{plan}.min_length", f"is {min_length}, expected at most max_length = {max_length}")
