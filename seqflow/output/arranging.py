"""Sorted and partitioned outputs, merged from sorted runs at the end of a job."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from seqflow.errors import JobError
from seqflow.output.committed_files import schema_of
from seqflow.output.file_writer import FileSizes, FileWriter
from seqflow.output.output_file import OutputFile
from seqflow.output.partitions import check_partitions, partitions_of
from seqflow.output.row_groups import RowGroups, WriteGroup
from seqflow.output.sorted_runs import merge_runs
from seqflow.output.sorting import SortKey, check_keys
from seqflow.output.target import Target


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The columns to sort by, and those to partition into folders by."""

    sort_by: tuple[SortKey, ...] = ()
    partition_by: tuple[str, ...] = ()

    @staticmethod
    def of(sort_by: Sequence[str] | str | None, partition_by: Sequence[str] | str | None) -> "Arrangement":
        """Return the arrangement by these columns; raise JobError when a column is named twice.

        >>> Arrangement.of("-score", None).sort_by
        (SortKey(column='score', descending=True),)
        """
        keys = tuple(SortKey.parse(text) for text in _listed(sort_by))
        folders = _listed(partition_by)
        seen: set[str] = set()
        for setting, name in [
            *(("partition_by", name) for name in folders),
            *(("sort_by", key.column) for key in keys),
        ]:
            if not name:
                raise JobError(f"output: {setting} has an empty name, expected a column")
            if name in seen:
                raise JobError(f"output: {setting} has {name!r}, which is already used to arrange rows")
            seen.add(name)
        return Arrangement(keys, folders)

    def __bool__(self) -> bool:
        return bool(self.sort_by or self.partition_by)

    @property
    def keys(self) -> tuple[SortKey, ...]:
        """The keys by which all rows are merged: partition folders first."""
        return (*(SortKey(name) for name in self.partition_by), *self.sort_by)

    def check(self, schema: pa.Schema) -> None:
        """Raise JobError when rows of this schema cannot be sorted or partitioned by these columns."""
        check_keys("sort_by", [key.column for key in self.sort_by], schema)
        if self.partition_by:
            check_partitions(self.partition_by, schema)


UNARRANGED = Arrangement()
"""Rows stay in the order in which they are written."""


def _listed(columns: Sequence[str] | str | None) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns or ())


def arrange(
    runs: Sequence[OutputFile],
    target: Target,
    arrangement: Arrangement,
    sizes: FileSizes,
    former: Sequence[OutputFile] = (),
) -> list[OutputFile]:
    """Merge committed sorted runs into parts under hidden names, after the `former` files of the output; return all.

    Can be repeated after a crash.
    """
    paths = target.committed(runs)
    # parts of an earlier attempt go first: nothing notes parts before all of them are complete
    target.keep_committed(runs)
    parts = _Parts(target, sizes, former)
    try:
        with closing(merge_runs(paths, arrangement.keys, target.names.run(len(runs)))) as tables:
            for table in tables:
                for folder, rows in partitions_of(table, arrangement.partition_by):
                    parts.write(folder, rows)
        return parts.finish(schema_of(paths[0], "run") if paths else None)
    finally:
        parts.discard()


class _Parts:
    """Writes sorted rows to parts, one after another; each part belongs to one partition folder.

    A thread writes a row group while the rows of the next one are merged.
    """

    def __init__(self, target: Target, sizes: FileSizes, former: Sequence[OutputFile]) -> None:
        self._target, self._sizes = target, sizes
        self._files = [*former]
        self._folder = ""
        self._groups = RowGroups(sizes.row_group_bytes, 1, 0, _joined, self._start)
        self._groups.count = sum(len(file.groups) for file in former)

    def write(self, folder: str, rows: pa.Table) -> None:
        if folder != self._folder:
            self._groups.close(self._finish)
        self._folder = folder
        for piece in self._cut(rows):
            self._groups.add(piece)
            if not self._target.names.is_file and self._sizes.are_reached(
                self._groups.rows, self._groups.nbytes
            ):
                self._groups.close(self._finish)

    def finish(self, schema: pa.Schema | None) -> list[OutputFile]:
        """Close the last part, and return all files; if there were no rows, write an empty file with this schema."""
        if self._groups.is_empty and not self._files and schema is not None:
            self._groups.add(schema.empty_table())
        self._groups.close(self._finish)
        self._target.sync()
        return self._files

    def discard(self) -> None:
        """Remove a part that is not finished."""
        self._groups.discard()

    def _cut(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows, cut where a row group or a part is full."""
        start, row_bytes = 0, max(1, rows.nbytes // max(1, rows.num_rows))
        while start < rows.num_rows:
            count = max(1, (self._sizes.row_group_bytes - self._groups.gathered_bytes) // row_bytes)
            if self._sizes.rows_per_file is not None and not self._target.names.is_file:
                count = min(count, self._sizes.rows_per_file - self._groups.rows)
            yield rows.slice(start, count)
            start += count

    def _start(self, turn: int, files: list[FileWriter]) -> WriteGroup:
        if not files:
            files.append(self._target.names.new_part(len(self._files)))
        return files[0].write

    def _finish(self, writer: FileWriter) -> None:
        path = writer.piece.parent / self._folder / writer.piece.name
        self._files.append(self._target.commit(writer, path))


def _joined(gathered: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(gathered).unify_dictionaries().combine_chunks()
