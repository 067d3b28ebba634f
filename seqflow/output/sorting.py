"""Sort tables by columns, and split sorted rows at a rank."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types

from seqflow.errors import JobError, nearest


class SortKey(NamedTuple):
    """A column to sort by."""

    column: str
    descending: bool = False

    @staticmethod
    def parse(text: str) -> "SortKey":
        """The key for `column`, or `-column` for descending order.

        >>> SortKey.parse("-score")
        SortKey(column='score', descending=True)
        """
        return SortKey(text.removeprefix("-"), text.startswith("-"))

    def __str__(self) -> str:
        return "-" * self.descending + self.column


def check_keys(setting: str, columns: Sequence[str], schema: pa.Schema) -> None:
    """Raise JobError when one of these columns is not in the schema, or does not have one comparable value a row."""
    for name in columns:
        if name not in schema.names:
            raise JobError(
                f"output: {setting} has {name!r}, which is not a column of the output{nearest(name, schema.names)}\n"
                f"  it has {', '.join(schema.names)}"
            )
        kind = schema.field(name).type
        if types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            raise JobError(
                f"output: {setting} has {name!r}, which is {kind}, expected a column of one value a row\n"
                "  make one in net, such as its length"
            )


def sort_table(table: pa.Table, keys: Sequence[SortKey]) -> pa.Table:
    """Sort a table, stably. NaN comes after all numbers, null after everything."""
    import pyarrow.compute as pc

    columns = {str(at): comparable(table.column(key.column)) for at, key in enumerate(keys)}
    order = [(str(at), "descending" if key.descending else "ascending") for at, key in enumerate(keys)]
    found = pc.sort_indices(pa.table(columns), sort_keys=order)
    return table.unify_dictionaries().take(found)


def comparable(column: Any) -> Any:
    """Convert a column to numbers or texts that compare in the same way."""
    kind = column.type
    if types.is_dictionary(kind):
        return comparable(column.cast(kind.value_type))
    if types.is_temporal(kind):
        return column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column.cast(pa.float32()) if types.is_float16(kind) else column


Rank = tuple[int, Any]
"""Key that orders values: numbers and text (0), then NaN (1), then null (2)."""


class SortedRows:
    """A sorted batch of a run, from whose start rows are taken until none is left."""

    def __init__(self, rows: pa.RecordBatch, keys: Sequence[SortKey]) -> None:
        self._rows = rows
        self._columns = [_SortColumn(comparable(rows.column(key.column)), key.descending) for key in keys]
        self._start = 0
        self.last = tuple(column.rank(rows.num_rows - 1) for column in self._columns)
        """Ranks of the last row."""

    def take_before(self, ranks: tuple[Rank, ...], *, equal: bool) -> pa.RecordBatch:
        """Take the rows before the row of these ranks; with `equal` also the rows equal to it."""
        low, high = self._start, self._rows.num_rows
        for column, rank in zip(self._columns, ranks, strict=True):
            low, high = column.equal_to(rank, low, high)
        return self._take(high if equal else low)

    def take_all(self) -> pa.RecordBatch:
        """Take the remaining rows."""
        return self._take(self._rows.num_rows)

    def _take(self, stop: int) -> pa.RecordBatch:
        start, self._start = self._start, stop
        return self._rows.slice(start, stop - start)


@dataclass(frozen=True, slots=True)
class _SortColumn:
    values: Any
    descending: bool

    def rank(self, row: int) -> Rank:
        value = self.values[row].as_py()
        if value is None:
            return 2, 0
        # not `value is NaN`: NaN is the only value that differs from itself
        if value != value:
            return 1, 0
        return 0, _Descending(value) if self.descending else value

    def equal_to(self, rank: Rank, low: int, high: int) -> tuple[int, int]:
        """Return start and end of the rows of this rank among the sorted rows low … high - 1."""
        rows = range(len(self.values))
        low = bisect_left(rows, rank, low, high, key=self.rank)
        return low, bisect_right(rows, rank, low, high, key=self.rank)


@total_ordering
@dataclass(frozen=True, slots=True)
class _Descending:
    """A value with reversed order."""

    value: Any

    def __lt__(self, other: "_Descending") -> bool:
        return bool(other.value < self.value)
