"""Which list columns are cut together, row by row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from seqflow.errors import BatchPlanError, nearest
from seqflow.kernels.arrays import Array
from seqflow.loader.planned_lengths import is_text
from seqflow.loader.window_rows import WindowRows
from seqflow.record import BadRow, Record


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


def unequal_rows(rows: WindowRows, tensors: Mapping[str, str]) -> tuple[Array, list[BadRow]]:
    """The rows whose columns have different lengths: a mask, and for each what is wrong with it."""
    first, *others = dict.fromkeys(tensors.values())
    expected, wrong = rows.tensor(first), np.zeros(rows.num_rows, bool)
    found = []
    for other in others:
        sizes = rows.tensor(other)
        unequal = np.flatnonzero((sizes != expected) & ~wrong)
        wrong[unequal] = True
        for row, number in zip(unequal.tolist(), rows.numbers(unequal).tolist(), strict=True):
            reason = (
                f"{sizes[row]} elements, but {expected[row]} in {_column(first)!r}: they are cut together"
            )
            found.append(BadRow(number, _column(other), reason))
    return wrong, found


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
