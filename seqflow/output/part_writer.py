"""PartWriter: writes the batches of each part to files, in its own threads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa

from seqflow.errors import JobError, nearest
from seqflow.output.arranging import UNARRANGED, Arrangement
from seqflow.output.file_writer import DEFAULT_SIZES, FileSizes, FileWriter
from seqflow.output.partitions import check_values
from seqflow.output.row_groups import RowGroups, WriteGroup
from seqflow.output.sorted_runs import RUN_BYTES, write_run
from seqflow.record import Record, to_arrow
from seqflow.record.to_arrow import plain_lists

PENDING_BYTES = 24 << 20
"""Arrow bytes that may wait for the writing threads; a single larger row group may wait alone."""


class PartFiles(Protocol):
    """Protocol: creates writers for the files of parts."""

    def new_part(self, turn: int) -> FileWriter:
        """Return a writer of file `turn` of the part."""
        ...

    def new_run(self, group: int) -> FileWriter:
        """Return a writer of the sorted run of a row group."""
        ...


@dataclass(frozen=True, slots=True)
class FileLayout:
    """FileLayout of files: the written columns, sizes, order, and the number of files in a part."""

    columns: Sequence[str] | None = None
    threads: int = 1
    """Number of threads; each writes its own file, and row groups go to them in turn."""
    sizes: FileSizes = DEFAULT_SIZES
    arrangement: Arrangement = UNARRANGED

    @property
    def group_bytes(self) -> int:
        return RUN_BYTES if self.arrangement else self.sizes.row_group_bytes

    def chosen(self, schema: pa.Schema) -> list[str]:
        """Return the names of the columns to write from batches of this schema; raise JobError when one is
        missing.
        """
        known = set(schema.names)
        names = schema.names if self.columns is None else list(self.columns)
        missing = next((name for name in names if name not in known), None)
        if missing is not None:
            raise JobError(
                f"output: the batches have no column {missing!r}{nearest(missing, schema.names)}\n"
                f"  they have {', '.join(schema.names)}"
            )
        self.arrangement.check(pa.schema([schema.field(name) for name in names]))
        return names


class PartWriter:
    """Gathers small batches and cuts large ones into row groups, and writes these to the files of a part.

    With an arrangement, each row group becomes a sorted run in its own file. With `inline`, the calling thread writes
    them.
    """

    def __init__(self, layout: FileLayout, files: PartFiles, *, inline: bool = False) -> None:
        self._layout, self._files = layout, files
        self.schema: pa.Schema | None = None
        self.earlier_schema: pa.Schema | None = None
        """Schema of committed parts, read from a file: equal, but its metadata may differ in bytes."""
        threads, group_bytes = layout.threads, layout.group_bytes
        # a sorted run alone may exceed PENDING_BYTES: with that bound, only one thread at a time would write
        pending = max(PENDING_BYTES, group_bytes * threads if layout.arrangement else 0)
        self.groups = RowGroups(group_bytes, threads, pending, self._table, self._start, inline=inline)

    def write(self, record: Record) -> None:
        """Add one batch. Also raises the errors of earlier batches; an OSError names the file."""
        batch = self._fitting(plain_lists(to_arrow(record)))
        if not batch.num_rows:
            return
        groups = max(1, round(batch.nbytes / self._layout.group_bytes))
        rows = -(-batch.num_rows // groups)
        for start in range(0, batch.num_rows, rows):
            self.groups.add(batch.slice(start, rows))

    def close(self, finish: Callable[[FileWriter], None]) -> None:
        """Write the remaining rows, close the files of the part, and then `finish` each."""
        self.groups.close(finish)

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise JobError when batches of this schema cannot follow the earlier ones."""
        expected = self.schema or self.earlier_schema
        if expected is not None and schema != expected:
            raise JobError(_schema_change(expected, schema))
        self.schema = self.schema or schema

    def _fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the requested columns of the batch; raise JobError when their types differ from those of earlier
        batches.
        """
        if self.schema is None or self._layout.columns is not None:
            batch = batch.select(self._layout.chosen(batch.schema))
        self.check_schema(batch.schema)
        return batch

    def _table(self, gathered: Sequence[pa.RecordBatch]) -> pa.Table:
        group = pa.Table.from_batches(gathered, self.schema)
        check_values(group, self._layout.arrangement.partition_by)
        return group

    def _start(self, turn: int, files: list[FileWriter]) -> WriteGroup:
        """Return the function that writes a row group in thread `turn`: to its part file, or as a sorted run."""
        if self._layout.arrangement:
            run = self._files.new_run(self.groups.count)
            files.append(run)
            return partial(write_run, run, self._layout.arrangement.keys)
        if turn == len(files):
            files.append(self._files.new_part(turn))
        return files[turn].write


def _schema_change(before: pa.Schema, now: pa.Schema) -> str:
    if before.names != now.names:
        return f"output: a batch has the columns {', '.join(now.names)}, earlier ones have {', '.join(before.names)}"
    name = next((n for n in now.names if before.field(n) != now.field(n)), None)
    if name is None:
        return "output: the schema of a batch differs from that of earlier batches"
    return (
        f"output: column {name!r} is {now.field(name).type} in one batch and {before.field(name).type} before\n"
        "  all batches of a file have one type: pad to a fixed max_length, or write values and lengths"
    )
