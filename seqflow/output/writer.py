"""OutputWriter writes batches to files, in threads of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa

from seqflow.errors import JobError, ProviderError, nearest
from seqflow.output.arranging import UNARRANGED, Arrangement, arrange
from seqflow.output.committed_files import check_sizes, committed_path, schema_of
from seqflow.output.durable_files import sync_folder
from seqflow.output.file_writer import (
    DEFAULT_SIZES,
    KIND_OF_SUFFIX,
    Compression,
    FileWriter,
    Format,
    Kind,
    Sizes,
)
from seqflow.output.output_file import Batches, OutputFile
from seqflow.output.partitions import check_values, type_names
from seqflow.output.row_groups import RowGroups, WriteGroup
from seqflow.output.sorted_runs import RUN, RUN_BYTES, write_run
from seqflow.output.target import Target
from seqflow.record import Record, to_arrow

PENDING_BYTES = 24 << 20
"""Arrow bytes that may wait for the writing threads; one row group is always let through."""
MAX_THREADS = 256
"""Threads that write; each has a file open."""


class OutputWriter:
    """A context manager that writes batches; `finish` gives the files their final names.

    `commit` finishes the parts that are open and notes them in the progress file, with what the caller needs to go
    on behind them: another process may `resume` there. Leaving the context without `finish` (an exception, Ctrl-C)
    removes what was not committed. Where no batch has rows, one empty file is written. Small batches are gathered
    to row groups, large ones are cut. With `threads` above 1, each thread writes a part file of its own, and row
    groups go to them in turn; the manifest has the numbers of the row groups in each part.

    With an `arrangement` what is committed are sorted runs, which `install` merges to the parts of the output.
    """

    def __init__(
        self,
        target: Target | None,
        columns: Sequence[str] | None = None,
        threads: int = 1,
        sizes: Sizes = DEFAULT_SIZES,
        arrangement: Arrangement = UNARRANGED,
    ) -> None:
        self.target = target
        self._columns = columns
        self.arrangement = arrangement
        self._sizes = sizes
        self._group_bytes = RUN_BYTES if arrangement else sizes.row_group_bytes
        pending = max(PENDING_BYTES, self._group_bytes * threads if arrangement else 0)
        self._num_threads = threads if target else 0
        self._groups = RowGroups(self._group_bytes, self._num_threads, pending, self._table, self._start)
        self._begun = False
        self._parts: list[OutputFile] = []
        """Those that are committed."""
        self._schema: pa.Schema | None = None
        self._earlier_schema: pa.Schema | None = None
        """That of committed parts, as a file gives it back: equal, but not to the last byte of its metadata."""
        self._names: list[str] = []
        self._partitions: dict[str, str] = {}
        """The types of the columns that become folders."""
        self._stale: list[str] = []
        """Parts of an earlier run, of which a progress file knows."""

    def __enter__(self) -> OutputWriter:
        if self.target is not None:
            self.target.prepare()
        return self

    def resume(self, record: Mapping[str, Any]) -> list[OutputFile]:
        """Continue after the parts of a progress file; returns the damaged ones, which have to be written again."""
        assert self.target is not None
        self._begun = True
        self._parts = self.target.files(record)
        self._groups.count = sum(len(part.groups) for part in self._parts)
        self._names, self._stale = record["columns"], record["stale"]
        self._partitions = record.get("partitions", {})
        self.target.keep_committed(self._parts)
        damaged = self.target.damaged_commits(record)
        hidden = [committed_path(part.path) for part in self._parts if part not in damaged]
        if there := next((path for path in hidden if path.exists()), None):
            self._earlier_schema = schema_of(there, RUN.kind if record["are_runs"] else self.target.kind)
        return damaged

    def write_again(self, span: Batches, batches: Iterable[Record]) -> None:
        """Replace some committed parts by writing their batches again."""
        before = [part for part in self._parts if part.batches != span]
        first = next(at for at, part in enumerate(self._parts) if part.batches == span)
        old, behind = self._parts[first : len(self._parts) - len(before) + first], before[first:]
        self._parts = before[:first]
        self._groups.count = sum(len(part.groups) for part in self._parts)
        for batch in batches:
            self.write(batch)
        if self._groups.is_empty:
            self._groups.write_group()  # an empty one
        self._commit(span)
        made = self._parts[first:]
        if [(one.num_rows, one.groups) for one in made] != [(one.num_rows, one.groups) for one in old]:
            raise JobError(
                f"output: {old[0].path.name!r} was damaged, and comes out with other rows now\n"
                "  --overwrite begins anew"
            )
        self._parts += behind
        self._groups.count = sum(len(part.groups) for part in self._parts)

    def reopen(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Turn a complete output with damaged parts into a sealed one, whose parts are installed again."""
        assert self.target is not None
        record = {**manifest, "bad_rows": None, "are_runs": False, "sealed": True, "stale": []}
        self.target.save_progress(record)
        return record

    def found(self, record: Mapping[str, Any]) -> list[OutputFile]:
        """The files of a complete output; removes what a killed run has left beside them."""
        assert self.target is not None
        self.target.keep_committed(())
        return self.target.files(record)

    def note(self, key: str, file: OutputFile) -> None:
        """Note a file in the progress file."""
        if self.target is not None:
            self.target.note(key, file.to_json(file.path.parent))

    @property
    def has_progress(self) -> bool:
        """Whether there is a progress file, from which another process can resume."""
        return self.target is not None and self.target.progress.exists()

    def begin(self) -> None:
        """Begin anew: remove what an unfinished run has left."""
        self._begun = True
        self._parts, self._groups.count, self._stale, self._earlier_schema = [], 0, [], None
        if self.target is not None:
            self.target.abandon()

    def check(self, schema: pa.Schema | None) -> None:
        """JobError where batches of this schema (None: not known) could not be written. Writes nothing."""
        if self.target is not None:
            self.target.check()
            if schema is not None:
                self._chosen(schema)

    def _chosen(self, schema: pa.Schema) -> list[str]:
        """The columns that are written of batches of this schema."""
        names = schema.names if self._columns is None else list(self._columns)
        missing = next((name for name in names if name not in schema.names), None)
        if missing is not None:
            raise JobError(
                f"output: the batches have no column {missing!r}{nearest(missing, schema.names)}\n"
                f"  they have {', '.join(schema.names)}"
            )
        self.arrangement.check(pa.schema([schema.field(name) for name in names]))
        return names

    def write(self, record: Record) -> None:
        """Add one batch. Errors of earlier batches are raised here, too; an OSError names the file."""
        if self.target is None:
            return
        if not self._begun:
            self.begin()
        batch = self._fitting(to_arrow(record))
        if not batch.num_rows:
            return
        groups = max(1, round(batch.nbytes / self._group_bytes))
        rows = -(-batch.num_rows // groups)
        for start in range(0, batch.num_rows, rows):
            self._groups.add(batch.slice(start, rows))

    @property
    def is_full(self) -> bool:
        """Whether the open parts are as large as parts should be."""
        groups, threads = self._groups, self._num_threads
        return threads > 0 and self._sizes.are_reached(groups.rows, groups.nbytes, threads)

    def commit(self, note: Mapping[str, Any], batches: Batches | None = None) -> None:
        """Finish the open parts, which hold these batches, and note them together with `note`."""
        if self.target is not None:
            self._commit(batches)
            self.target.save_progress({**note, **self._record(), "sealed": False, "stale": []})

    def seal(self, note: Mapping[str, Any], batches: Batches | None = None) -> None:
        """Write the remaining rows; from now on nothing but `install` is left to do, in this process or another."""
        if self.target is None:
            return
        if not self._begun:
            self.begin()
        if self._schema is not None and not self._groups.count:
            self._groups.write_group()  # an empty one
        self._commit(batches)
        if not self._parts and self.target.is_file:
            raise ProviderError(f"there are no batches to write to {str(self.target.path)!r}")
        stale = sorted({*self._stale, *self.target.stale_parts()})
        self.target.save_progress({**note, **self._record(), "sealed": True, "stale": stale})

    def install(self) -> list[OutputFile]:
        """Give all files of a sealed output their final names, in place of those of an earlier run."""
        if self.target is None:
            return []
        record = self.target.read_progress()
        assert record is not None
        if record["are_runs"]:
            record = self._arrange(self.target, record)
        self.target.keep_committed(self.target.files(record))
        return self.target.install(record)

    def _arrange(self, target: Target, record: dict[str, Any]) -> dict[str, Any]:
        """Merge the sorted runs of a sealed output into parts; returns the new progress record."""
        runs = target.files(record)
        check_sizes(runs, [committed_path(run.path) for run in runs])
        parts = arrange(runs, target, self.arrangement, self._sizes)
        files = [part.to_json(target.folder) for part in parts]
        record = {**record, "files": files, "are_runs": False}
        target.save_progress(record)
        return record

    def finish(self) -> list[OutputFile]:
        """Write the remaining rows and give all files their final names."""
        self.seal({})
        return self.install()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._groups.discard()
        if self.target is not None:
            self.target.leave()

    def _record(self) -> dict[str, Any]:
        assert self.target is not None
        files = [part.to_json(self.target.folder) for part in self._parts]
        if self._schema is not None:
            self._partitions = type_names(self._schema, self.arrangement.partition_by)
        return {
            "columns": self._names,
            "files": files,
            "are_runs": bool(self.arrangement),
            **({"partitions": self._partitions} if self._partitions else {}),
        }

    def _commit(self, batches: Batches | None) -> None:
        assert self.target is not None

        def finish(writer: FileWriter) -> None:
            self._parts.append(writer.output_file(writer.piece, batches))
            writer.rename(committed_path(writer.piece))

        self._groups.close(finish)
        sync_folder(self.target.folder)

    def _fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The requested columns of the batch; JobError unless their types are those of the batches before."""
        if self._schema is None or self._columns is not None:
            batch = batch.select(self._chosen(batch.schema))
        expected = self._schema or self._earlier_schema
        if expected is not None and batch.schema != expected:
            raise JobError(_schema_change(expected, batch.schema))
        self._schema = self._schema or batch.schema
        self._names = self._schema.names
        return batch

    def _table(self, gathered: Sequence[pa.RecordBatch]) -> pa.Table:
        group = pa.Table.from_batches(gathered, self._schema)
        check_values(group, self.arrangement.partition_by)
        return group

    def _start(self, turn: int, files: list[FileWriter]) -> WriteGroup:
        """The function that writes a row group in thread `turn`: to its part file, or as a sorted run."""
        assert self.target is not None
        if self.arrangement:
            run = FileWriter(self.target.path, RUN, self.target.run(self._groups.count))
            files.append(run)
            return partial(write_run, run, self.arrangement.keys)
        if turn == len(files):
            files.append(self.target.new_part(len(self._parts) + turn))
        return files[turn].write


def open_output(
    path: str | Path | None,
    kind: Kind | Literal["none"] | None = None,
    columns: Sequence[str] | None = None,
    compression: Compression | None = None,
    threads: int = 1,
    sizes: Sizes = DEFAULT_SIZES,
    sort_by: Sequence[str] | str | None = None,
    partition_by: Sequence[str] | str | None = None,
) -> OutputWriter:
    """A writer for `path`: a folder of part files, or one file when the path ends in .parquet or .arrow.

    Where `kind` is None, the suffix decides, and a folder gets Parquet files; "none" drops the batches. The rows are
    sorted by `sort_by`, over all files; a column with a leading "-" counts down. `partition_by` puts them into
    folders by the values of columns, which the files don't have any more.
    JobError where the settings contradict each other.
    """
    if kind == "none":
        return OutputWriter(None)
    if not 1 <= threads <= MAX_THREADS:
        raise JobError(f"output: threads is {threads}, expected 1 to {MAX_THREADS}")
    if path is None:
        raise JobError('output: there is no path to write to; give one, or kind = "none" to write nothing')
    _check_path(str(path))
    path = Path(path).expanduser()
    of_suffix = None if path.is_dir() else KIND_OF_SUFFIX.get(path.suffix.lower())
    is_file = of_suffix is not None
    if is_file and kind not in (None, of_suffix):
        raise JobError(f"output: kind is {kind!r}, but the path {str(path)!r} ends in {path.suffix!r}")
    if is_file and threads > 1:
        raise JobError(f"output: threads is {threads}, but one file is written by one thread; give a folder")
    if is_file and partition_by:
        raise JobError(
            f"output: partition_by makes folders, but the path {str(path)!r} is one file; give a folder"
        )
    form = Format(kind or of_suffix or "parquet", compression)
    arrangement = Arrangement.of(sort_by, partition_by)
    return OutputWriter(Target(path, form, is_file), columns, threads, sizes, arrangement)


def _check_path(path: str) -> None:
    """JobError for a path that is neither a folder's nor that of a file whose format we write."""
    if "://" in path:
        raise JobError(
            f"output: the path is {path!r}, expected one of this machine\n"
            "  write to a folder and copy it, or mount the store as a folder"
        )
    suffix = os.path.splitext(path)[1]
    if suffix and suffix.lower() not in KIND_OF_SUFFIX and not os.path.isdir(os.path.expanduser(path)):
        known = " or ".join(KIND_OF_SUFFIX)
        raise JobError(
            f"output: the path {path!r} ends in {suffix!r}, expected {known}, or a folder\n"
            f"  a folder of such a name ends in {os.sep!r}, or is there already"
        )


def _schema_change(before: pa.Schema, now: pa.Schema) -> str:
    if before.names != now.names:
        return f"output: a batch has the columns {', '.join(now.names)}; before they were {', '.join(before.names)}"
    name = next((n for n in now.names if before.field(n) != now.field(n)), None)
    if name is None:
        return "output: a batch has another schema than the batches before it"
    return (
        f"output: column {name!r} is {now.field(name).type} in one batch and {before.field(name).type} before\n"
        "  all batches of a file have one type: pad to a fixed max_length, or write values and lengths"
    )
