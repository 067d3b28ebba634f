"""A record as a table of its tensors: each name below the lengths that describe its rows, dtypes, shapes and first
values.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from seqflow.drawing.tables import html_table
from seqflow.kernels.arrays import Array
from seqflow.printable import printable_line

_SHOWN = 40
"""Largest number of tensors that are all shown; of more, the first and the last are shown."""
_VALUES = 4


class RecordLike(Protocol):
    """Protocol: the part of a Record that display uses."""

    @property
    def tensors(self) -> Mapping[str, Array]: ...
    @property
    def num_rows(self) -> int: ...
    def depth(self, name: str, /) -> int: ...


class TensorRow(NamedTuple):
    """TensorRow of the table, for one tensor."""

    level: int
    name: str
    dtype: str
    shape: str
    values: str


def as_text(record: RecordLike) -> str:
    """Return a title, and a line for each tensor, in columns."""
    rows = _rows(record)
    shown = [row for row in rows if row is not None]
    names = max((2 * row.level + len(row.name) for row in shown), default=0)
    dtypes = max((len(row.dtype) for row in shown), default=0)
    shapes = max((len(row.shape) for row in shown), default=0)
    lines = [_title(record)]
    for row in rows:
        if row is None:
            lines.append(f"  … {len(record.tensors) - len(shown)} more tensors")
        else:
            name = "  " * row.level + row.name
            line = f"  {name:{names}}  {row.dtype:{dtypes}}  {row.shape:{shapes}}  {row.values}"
            lines.append(line.rstrip())
    return "\n".join(lines)


def as_html(record: RecordLike) -> str:
    """Return the table as HTML, in the page's own colours, without scripts."""
    rows = _rows(record)
    more = f"… {len(record.tensors) - sum(row is not None for row in rows)} more tensors"
    shown = [(more, "", "", "") if row is None else ("· " * row.level + row.name, *row[2:]) for row in rows]
    return html_table(_title(record), ("tensor", "dtype", "shape", "first values"), shown)


def _title(record: RecordLike) -> str:
    return f"Record of {record.num_rows} row{'s' * (record.num_rows != 1)}"


def _rows(record: RecordLike) -> list[TensorRow | None]:
    """Return a row for each tensor; None in place of the tensors between the first and the last of many."""
    names = list(record.tensors)
    if len(names) > _SHOWN:
        first, last = names[: _SHOWN // 2], names[-_SHOWN // 2 + 1 :]
        return [*(_row(record, name) for name in first), None, *(_row(record, name) for name in last)]
    return [_row(record, name) for name in names]


def _row(record: RecordLike, name: str) -> TensorRow:
    tensor = record.tensors[name]
    shape = f"[{', '.join(map(str, tensor.shape))}]"
    return TensorRow(record.depth(name), printable_line(name), str(tensor.dtype), shape, _first(tensor))


def _first(tensor: Array) -> str:
    """Return the first values of a tensor of one axis."""
    if tensor.ndim != 1 or not len(tensor):
        return ""
    values = ", ".join(printable_line(str(value)) for value in tensor[:_VALUES])
    return f"{values}{', …' if len(tensor) > _VALUES else ''}"
