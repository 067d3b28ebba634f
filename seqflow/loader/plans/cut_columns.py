"""Which list columns are cut together, row by row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from seqflow.arguments import are_distinct
from seqflow.errors import BatchPlanError, OpError, nearest
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.selection import UNUSABLE, RowSelection, is_text
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import BadRow, Record


def checked_columns(columns: Sequence[str] | None, plan: str) -> tuple[str, ...] | None:
    """The names of the columns that are cut together, as a tuple; OpError where they are none."""
    if columns is None:
        return None
    names = tuple(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else ()
    if not names or not are_distinct(names) or not all(isinstance(name, str) for name in names):
        raise OpError.of(f"{plan}.columns", f"is {columns!r}, expected the names of one list column or more")
    return names


def check_list_columns(record: Record, columns: Sequence[str], plan: str) -> None:
    """BatchPlanError where one of the columns that are cut together is no list column."""
    _lengths_of(record, columns, plan)


def cut_tensors(
    record: Record, lengths: str, columns: Sequence[str] | None, plan: str, left_whole: Collection[str] = ()
) -> Mapping[str, str]:
    """The tensors that are cut, each with its lengths: those of `columns`, or all under `lengths`.

    BatchPlanError for a column of several levels, or a list column that is neither cut nor one of `left_whole`.
    Text counts as one value a row.
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
                f"  name it in columns= to cut it like {_column(lengths)!r}, or do not read or return it"
            )
    return found


def usable_sizes(rows: WindowRows, lengths: str, columns: Sequence[str] | None, plan: str) -> Array:
    """The size of each row; UNUSABLE where `columns` that are cut together have different lengths."""
    sizes = rows.sizes(lengths)
    if columns is None:
        return sizes
    unequal = np.zeros(len(sizes), bool)
    first, *others = _lengths_of(rows.records[0], columns, plan)
    for other in others:
        unequal |= rows.tensor(other) != rows.tensor(first)
    return np.where(unequal, UNUSABLE, sizes)


def unusable_rows(
    rows: WindowRows, sizes: Array, selection: RowSelection, lengths: str, columns: Sequence[str] | None
) -> list[BadRow]:
    """The rows that cannot be used, by their numbers: their columns are unequal, or they are too long."""
    found, unequal = [], np.flatnonzero(sizes == UNUSABLE)
    if columns is not None and len(unequal):
        first, *others = _lengths_of(rows.records[0], columns, "columns")
        tensors = {name: rows.tensor(name) for name in (first, *others)}
        for place, number in zip(unequal.tolist(), rows.numbers(unequal).tolist(), strict=True):
            expected = tensors[first][place]
            found += [
                BadRow(
                    number,
                    _column(other),
                    f"{tensors[other][place]} elements, but {expected} in {_column(first)!r}: they are cut together",
                )
                for other in others
                if tensors[other][place] != expected
            ]
    too_long = selection.too_long
    return found + [
        BadRow(number, _column(lengths), f"{size} elements, expected at most {selection.limit}")
        for number, size in zip(rows.numbers(too_long).tolist(), sizes[too_long].tolist(), strict=True)
    ]


def _lengths_of(record: Record, columns: Sequence[str], plan: str) -> list[str]:
    return list(dict.fromkeys(of for column in columns for of in _tensors_of(record, column, plan).values()))


def _tensors_of(record: Record, column: str, plan: str) -> dict[str, str]:
    """The tensors of a list column: itself, or all under its lengths."""
    parent = record.parents.get(column)
    if parent is not None:
        return {column: parent}
    lengths = f"{column}.lengths"
    found = {name: lengths for name, of in record.parents.items() if of == lengths}
    if not found:
        known = [_column(name) for name in dict.fromkeys(record.parents.values()) if name is not None]
        raise BatchPlanError(
            f"{plan}: columns has {column!r}, which is no list column{nearest(column, known)}\n"
            f"  there are {', '.join(known) or 'none'}"
        )
    return found


def _column(lengths: str) -> str:
    return lengths.removesuffix(".lengths")
