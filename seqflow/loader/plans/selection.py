"""What batches are planned on: the lengths, and which rows, or pieces of them, pass."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import BatchPlanError, OpError
from seqflow.kernels.arrays import Array
from seqflow.record import Record


def planned_lengths(record: Record, name: str | None, needed_by: str | None = None) -> str | None:
    """The lengths tensor to plan on.

    `name` is a lengths tensor of any level, or a list column, which stands for its innermost level: a nested
    document is planned on its words. Without a name it is the only list column of numbers, and None where
    there is none or more than one. BatchPlanError where a plan cannot do without, or there is no such name.
    """
    candidates = _innermost(record)
    if name is None:
        if len(candidates) != 1 and needed_by is not None:
            raise BatchPlanError(
                f"{needed_by}: there is not just one list column of numbers; name its lengths with lengths=\n"
                f"  the records have {', '.join(record)}"
            )
        return candidates[0] if len(candidates) == 1 else None
    if name in record.parents.values():
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
    """Whether these are the lengths of a column of text or bytes, which counts as one value a row."""
    import pyarrow.types as types

    column = lengths.removesuffix(".lengths")
    if record.schema is None or column not in record.schema.names or column == lengths:
        return False
    found = record.schema.field(column).type
    tests = (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
    return any(test(found) for test in (*tests, types.is_string_view, types.is_binary_view))


def _innermost(record: Record) -> list[str]:
    """The lengths that describe numbers, without those of text."""
    above = set(record.parents.values())
    of_numbers = [
        parent
        for tensor, parent in record.parents.items()
        if parent is not None and tensor not in above and record[tensor].dtype.kind in "biuf"
    ]
    return [lengths for lengths in dict.fromkeys(of_numbers) if not is_text(record, lengths)]


Oversize = Literal["bad_rows", "truncate", "split", "skip"]
"""What becomes of a row above the budget: "bad_rows" makes it a bad row, which is an error unless the loader's
`bad_rows` say otherwise; "truncate" keeps its head; "split" makes several rows of it; "skip" leaves it out."""
OVERSIZE = ("bad_rows", "truncate", "split", "skip")
UNUSABLE = -1
"""Stands for the size of a row that cannot be used whatever its size."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of the rows of a window, in order: of each its row, first element, and number of elements."""

    rows: Array
    """The rows' places in the order of the window."""
    starts: Array
    sizes: Array

    @property
    def begun(self) -> Array:
        """int64[P + 1]: how many rows begin before each piece: they are first pieces."""
        return kernels.lengths_to_offsets((self.starts == 0).astype(np.int64))

    def take(self, chosen: Array | slice) -> Pieces:
        return Pieces(self.rows[chosen], self.starts[chosen], self.sizes[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class RowSelection:
    """The rows or pieces of rows that batches are made of, in order, and what was left out."""

    pieces: Pieces
    whole: bool = True
    """Whether these are all rows of the window."""
    cut: bool = False
    """Whether some row is not whole."""
    skipped: int = 0
    """Rows that filters, or "skip", left out."""
    too_long: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """The rows that are left out because they are above the limit."""
    limit: str = ""
    """The limit, as the plan names it."""

    @staticmethod
    def of(sizes: Array) -> RowSelection:
        """All rows that can be used, by their sizes."""
        everything = Pieces(np.arange(len(sizes)), np.zeros(len(sizes), np.int64), sizes)
        return RowSelection(everything)._keep(sizes != UNUSABLE)

    def between(self, min_length: int | None, max_length: int | None) -> RowSelection:
        """Without the rows that are shorter or longer than that."""
        sizes = self.pieces.sizes
        kept = np.ones(len(sizes), bool)
        if min_length is not None:
            kept &= sizes >= min_length
        if max_length is not None:
            kept &= sizes <= max_length
        return self._skip(kept)

    def at_most(self, limit: int, oversize: Oversize, name: str) -> RowSelection:
        """With no piece above a limit; `name` says it in errors."""
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
        """Without empty rows."""
        return self._skip(self.pieces.sizes > 0)

    def _skip(self, kept: Array) -> RowSelection:
        return replace(self._keep(kept), skipped=self.skipped + len(kept) - int(np.count_nonzero(kept)))

    def _keep(self, kept: Array) -> RowSelection:
        if kept.all():
            return self
        return replace(self, pieces=self.pieces.take(kept), whole=False)


def check_oversize(plan: str, oversize: str) -> None:
    if oversize not in OVERSIZE:
        raise OpError.of(f"{plan}.oversize", f"is {oversize!r}, expected {', '.join(map(repr, OVERSIZE))}")


def at_least_one(plan: str, **counts: int | None) -> None:
    """OpError unless each count is an int, 1 or more, or left out."""
    for name, count in counts.items():
        if count is not None and (
            not isinstance(count, int) or isinstance(count, bool) or not 1 <= count < 2**63
        ):
            raise OpError.of(f"{plan}.{name}", f"is {count!r}, expected an integer, 1 or more, of 64 bits")


def check_lengths_between(plan: str, min_length: int | None, max_length: int | None) -> None:
    """OpError for filters that no row passes."""
    at_least_one(plan, min_length=min_length, max_length=max_length)
    if min_length is not None and max_length is not None and min_length > max_length:
        raise OpError.of(f"{plan}.min_length", f"is {min_length}, expected at most max_length = {max_length}")
