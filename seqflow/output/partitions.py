"""Split sorted rows into Hive partitions: folders such as `lang=python/` for the rows with that value."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from seqflow.errors import JobError
from seqflow.output.sorting import check_keys, comparable
from seqflow.record.partition_names import NULL, folder_name

_MOST_BYTES = 255
"""Longest name, in bytes, that a file system accepts."""


def check_partitions(columns: Sequence[str], schema: pa.Schema) -> None:
    """Raise JobError when folders cannot be named after values of these columns, or no columns are left for the
    files.
    """
    check_keys("partition_by", columns, schema)
    for name in columns:
        kind = schema.field(name).type
        of_values = kind.value_type if types.is_dictionary(kind) else kind
        tests = (types.is_integer, types.is_boolean, types.is_date, types.is_string, types.is_large_string)
        if not any(test(of_values) for test in tests):
            raise JobError(
                f"output: partition_by has {name!r}, which is {kind}, expected integers, bools, dates or text"
            )
        if "\0" in name:
            raise JobError(f"output: partition_by has {name!r}, expected a name without NUL characters")
    if set(schema.names) <= set(columns):
        raise JobError("output: partition_by has all columns, expected some that are left for the files")


def check_values(table: pa.Table, columns: Sequence[str]) -> None:
    """Raise JobError when a value equals the name of the null partition, or gives a folder name that is too long."""
    import pyarrow.compute as pc

    for name in columns:
        for value in pc.unique(table.column(name)).to_pylist():
            _folder(name, value)


def type_names(schema: pa.Schema, columns: Sequence[str]) -> dict[str, str]:
    """Return the types of these columns by name; readers use them to parse the names of folders."""
    found = {}
    for name in columns:
        kind = schema.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        found[name] = "string" if types.is_large_string(kind) else str(kind).partition("[")[0]
    return found


def partitions_of(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Split a table that is sorted by these columns into partitions: `lang=python/year=2024` and its rows."""
    if not columns:
        yield "", table
        return
    stops = sorted({stop for name in columns for stop in _run_ends(table.column(name))})
    for start, stop in zip([0, *stops], stops, strict=False):
        folders = [_folder(name, table.column(name)[start].as_py()) for name in columns]
        yield "/".join(folders), table.slice(start, stop - start).drop_columns(list(columns))


def _folder(column: str, value: Any) -> str:
    """Return the name of a folder; raise JobError when readers would take it for null, or it is too long."""
    if value == NULL:
        raise JobError(
            f"output: partition_by: {column} is the text {NULL!r}, which readers take for null\n"
            "  write another text in its place"
        )
    name = folder_name(column, value)
    if len(name.encode()) > _MOST_BYTES:
        raise JobError(
            f"output: partition_by: the folder for {column} = {str(value)[:40]!r}… has a name of "
            f"{len(name.encode())} bytes, expected at most {_MOST_BYTES}"
        )
    return name


def _run_ends(column: pa.ChunkedArray) -> list[int]:
    """Return the end of each run of equal values, exclusive."""
    import pyarrow.compute as pc

    array = comparable(column.combine_chunks())
    ends: list[int] = pc.run_end_encode(array, run_end_type=pa.int64()).run_ends.to_pylist()
    return ends
