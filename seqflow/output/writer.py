"""OutputWriter: writes the batches of an output, or adopts parts that other processes have written, and commits
them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa

from seqflow.errors import JobError, ProviderError
from seqflow.files.uris import CLOUDS, is_uri
from seqflow.hidden import shown
from seqflow.output.arranging import Arrangement, arrange
from seqflow.output.file_writer import (
    DEFAULT_SIZES,
    KIND_OF_SUFFIX,
    Compression,
    FileEncoding,
    FileSizes,
    FileWriter,
    Kind,
)
from seqflow.output.local_target import LocalTarget
from seqflow.output.output_file import Batches, OutputFile
from seqflow.output.output_names import OutputNames, check_intact, damaged_progress, names_in
from seqflow.output.part_writer import FileLayout, PartWriter
from seqflow.output.partitions import type_names
from seqflow.output.progress_file import Note
from seqflow.output.sorted_runs import RUN
from seqflow.output.stores.store_target import StoreTarget
from seqflow.output.target import Target
from seqflow.record import Record

MAX_THREADS = 256
"""Most threads that write; each has an open file."""
SECONDS_BETWEEN_NOTES = 1.0
"""Shortest time between two notes in the progress file: each note is synchronised to the disk."""


class OutputWriter:
    """A context manager that writes batches; `finish` gives the files their final names.

    `commit` finishes the open part; `adopt` takes a part that another process has written. `note_soon` notes both in
    the progress file, with the facts that the caller needs to continue after them: another process can `resume`
    there. Leaving the context without `finish` (an exception, Ctrl-C) removes everything uncommitted. If no batch has
    rows, one empty file is written. With `threads` above 1, each thread writes a file of the part, and row groups go
    to the files in turn; the manifest has the numbers of the row groups in each file.

    With an `arrangement`, sorted runs are committed, and `install` merges them into the parts of the output.
    """

    def __init__(self, target: Target | None, layout: FileLayout = FileLayout()) -> None:  # noqa: B008 (it is frozen)
        self.target, self.layout = target, layout
        self.takes_over = False
        """Whether a run that was killed, or is writing to a store, is ended: with `--resume` and `--overwrite`."""
        self._part = None if target is None else PartWriter(layout, self)
        self._begun = False
        self._former: list[OutputFile] = []
        """Files of the complete output that this run adds to."""
        self._files: list[OutputFile] = []
        """Committed files of this run."""
        self._names: list[str] = []
        self._partitions: dict[str, str] = {}
        """Types of the columns that become folders."""
        self._stale: list[str] = []
        """Files of an earlier run that a progress file lists."""
        self._adopted_schema: bytes | None = None
        """Schema of the parts from other processes, serialized."""
        self._note: Note | None = None
        self._num_due = 0
        """Number of files that were committed with the pending note."""
        self._noted_at = -SECONDS_BETWEEN_NOTES
        self._num_noted: int | None = None
        """Number of committed files in the progress file; None if this process has not written it."""

    def __enter__(self) -> OutputWriter:
        if self.target is not None:
            self.target.prepare(takes_over=self.takes_over)
        return self

    @property
    def arrangement(self) -> Arrangement:
        return self.layout.arrangement

    # Where the files of the open part go

    def new_part(self, turn: int) -> FileWriter:
        """Return a writer of file `turn` of the open part."""
        return self._open_target.names.new_part(self.num_files + turn)

    def new_run(self, group: int) -> FileWriter:
        """Return a writer of the sorted run of a row group."""
        return self._open_target.names.new_run(group)

    @property
    def _open_target(self) -> Target:
        assert self.target is not None
        return self.target

    @property
    def _writer(self) -> PartWriter:
        assert self._part is not None
        return self._part

    # Continuing an earlier run

    def resume(self, record: Mapping[str, Any]) -> None:
        """Continue after the parts of a progress file; raise JobError when some of them are damaged."""
        target, self._begun = self._open_target, True
        names = target.names
        self._former, self._files = names.files(record["former"]), names.files(record["files"])
        self._count_groups()
        self._names, self._stale = record["columns"], record["stale"]
        self._partitions = record.get("partitions", {})
        target.keep_committed(self._files)
        check_intact(target.shown, target.damaged_commits(record))
        schema = target.schema_of(self._files, RUN.kind if record["are_runs"] else names.kind)
        if schema is None and self._former and not self.arrangement:
            schema = target.schema_of_final(self._former[0])
        self._writer.earlier_schema = schema

    def _count_groups(self) -> None:
        self._writer.groups.count = sum(len(file.groups) for file in (*self._former, *self._files))

    def found(self, record: Mapping[str, Any]) -> list[OutputFile]:
        """Return the files of a complete output; remove the files that a killed run has left next to them."""
        self._open_target.keep_committed(())
        return self._open_target.names.files(record["files"])

    def begin(self) -> None:
        """Start again: remove the files of an unfinished run."""
        self._begun = True
        self._former, self._files, self._stale = [], [], []
        if self.target is not None:
            self._writer.earlier_schema = None
            self._count_groups()
            self.target.abandon()

    def check(self, schema: pa.Schema | None) -> None:
        """Raise JobError when batches of this schema (None: unknown) could not be written. Writes nothing."""
        if self.target is not None:
            self.target.check()
            if schema is not None:
                self.layout.chosen(schema)

    def place(self, file: OutputFile) -> Path | str:
        """Return the final path or URI of a file."""
        return file.path if self.target is None else self.target.place(file)

    # Parts

    def write(self, record: Record) -> None:
        """Add one batch to the open part. Also raises the errors of earlier batches; an OSError names the file."""
        if self.target is None:
            return
        if not self._begun:
            self.begin()
        self._writer.write(record)

    def commit(self, batches: Batches | None = None) -> None:
        """Finish the open part, which holds these batches."""
        if self.target is not None:
            self._close_part(batches)

    def adopt(self, files: Sequence[OutputFile], schema: bytes | None, batches: Batches) -> None:
        """Take over the finished files of a part that another process has written.

        Their row groups, numbered in the part, get their numbers in the whole output. `schema` is the serialized
        schema of its batches; JobError is raised when it differs from that of earlier parts.
        """
        if self.target is not None:
            if schema is not None and schema != self._adopted_schema:
                self._writer.check_schema(pa.ipc.read_schema(pa.py_buffer(schema)))
                self._adopted_schema = schema
            groups = self._writer.groups
            for file in files:
                numbers = tuple(groups.count + number for number in file.groups)
                names = self.target.names
                path = names.run(numbers[0]) if self.arrangement else names.file(self.num_files)
                adopted = self.target.adopt(replace(file, groups=numbers, batches=batches), path)
                self._files.append(adopted)
            groups.count += sum(len(file.groups) for file in files)

    @property
    def num_files(self) -> int:
        """Number of committed files, with those of the output that this run adds to."""
        return len(self._former) + len(self._files)

    def _close_part(self, batches: Batches | None) -> None:
        def finish(writer: FileWriter) -> None:
            self._files.append(self._open_target.commit(writer, writer.piece, batches))

        self._writer.close(finish)

    # Notes

    @property
    def has_progress(self) -> bool:
        """Whether there is a progress file, from which another process can resume."""
        return self.target is not None and self.target.has_progress

    def note_soon(self, note: Note) -> None:
        """Note the committed parts, together with `note`; later if there was a note a moment ago."""
        self._note, self._num_due = note, len(self._files)
        if monotonic() - self._noted_at >= SECONDS_BETWEEN_NOTES:
            self.note_now()

    def note_now(self) -> None:
        """Note committed parts that are not noted yet."""
        if self._note is None or self.target is None or not self._num_due:
            return
        note, self._note = self._note, None
        # committed files last before they are noted: a progress file must not list a file that a crash removes
        self.target.sync()
        files = self._files[self._num_noted or 0 : self._num_due]
        if self._num_noted is None:
            self.target.save_progress({**note.whole(), **self._record(files), "sealed": False, "stale": []})
        else:
            change = note.change()
            change = replace(change, set={**change.set, **self._fixed()})
            self.target.append_progress(change, files)
        self._num_noted, self._noted_at = self._num_due, monotonic()

    def note(self, key: str, file: OutputFile) -> None:
        """Note a file in the progress file of a sealed output."""
        if self.target is not None:
            self.target.note(key, file.to_json(file.path.parent))

    def _record(self, files: Sequence[OutputFile]) -> dict[str, Any]:
        names = self._open_target.names
        former, entries = names.entries(self._former), names.entries(files)
        return {**self._fixed(), "former": former, "files": entries, "are_runs": bool(self.arrangement)}

    def _fixed(self) -> dict[str, Any]:
        """Return the entries of a record that concern all files."""
        schema = self._writer.schema
        if schema is not None:
            self._names = schema.names
            self._partitions = type_names(schema, self.arrangement.partition_by)
        return {"columns": self._names, **({"partitions": self._partitions} if self._partitions else {})}

    # The end

    def seal(self, note: Mapping[str, Any], batches: Batches | None = None, min_rows: int = 0) -> None:
        """Write the remaining rows; from now on only `install` remains, for this process or another.

        Raise JobError, and seal nothing, when this run has written fewer rows than `min_rows`.
        """
        if self.target is None:
            return
        if not self._begun:
            self.begin()
        if (rows := self._writer.groups.rows + sum(file.num_rows for file in self._files)) < min_rows:
            raise JobError(
                f"output: {rows:,} rows were made, expected at least {min_rows:,} (min_rows)\n"
                "  `seqflow report JOB` counts the rows that are left out; or give a lower min_rows"
            )
        if self._writer.schema is not None and not self._writer.groups.count:
            self._writer.groups.write_group()  # an empty one
        self._close_part(batches)
        self.target.sync()
        if not self._files and self.target.names.is_file:
            raise ProviderError(f"there are no batches to write to {self.target.shown!r}")
        former = set() if self.target.names.is_file else names_in(self.target.read_manifest())
        stale = sorted({*self._stale, *former})
        self.target.save_progress({**note, **self._record(self._files), "sealed": True, "stale": stale})
        self._note = None

    def install(self) -> list[OutputFile]:
        """Give all files of a sealed output their final names, and remove the files of an earlier run."""
        if self.target is None:
            return []
        record = self.target.read_progress()
        if record is None or not record["sealed"]:  # something else has changed it meanwhile
            raise damaged_progress(self.target.progress)
        if record["are_runs"]:
            record = self._arrange(self.target, record)
        self.target.keep_committed(self.target.names.files(record["files"]))
        return self.target.install(record)

    def _arrange(self, target: Target, record: dict[str, Any]) -> dict[str, Any]:
        """Merge the sorted runs of a sealed output into parts; return the new progress record."""
        parts = arrange(
            target.names.files(record["files"]), target, self.arrangement, self.layout.sizes, self._former
        )
        record = {**record, "former": [], "files": target.names.entries(parts), "are_runs": False}
        # the runs are removed only after the parts are noted: a crash before that repeats the merge
        target.save_progress(record)
        return record

    def finish(self) -> list[OutputFile]:
        """Write the remaining rows and give all files their final names."""
        self.seal({})
        return self.install()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._part is not None:
            self._part.groups.discard()
        if self.target is not None:
            self.target.leave()


def open_output(
    path: str | Path | None,
    kind: Kind | Literal["none"] | None = None,
    columns: Sequence[str] | None = None,
    compression: Compression | None = None,
    threads: int = 1,
    sizes: FileSizes = DEFAULT_SIZES,
    sort_by: Sequence[str] | str | None = None,
    partition_by: Sequence[str] | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    single_writer: bool = False,
) -> OutputWriter:
    """Return a writer for `path`: a folder of part files, or one file if the path ends in .parquet or .arrow.

    The path may be a URI of a store, with `storage_options` for it. A store that cannot refuse a second writer is
    refused unless `single_writer` promises that there is none.

    If `kind` is None, the suffix decides, and a folder gets Parquet files; "none" drops the batches. Rows are sorted
    by `sort_by` over all files; a leading "-" means descending order. `partition_by` puts rows into folders by the
    values of columns, which the files then omit. Raises JobError when the settings contradict each other.
    """
    if kind == "none":
        return OutputWriter(None)
    if not 1 <= threads <= MAX_THREADS:
        raise JobError(f"output: threads is {threads}, expected 1 to {MAX_THREADS}")
    if path is None:
        raise JobError('output: there is no path to write to; give one, or kind = "none" to write nothing')
    _check_path(str(path))
    text = os.path.expanduser(path)
    suffix = Path(text).suffix
    of_suffix = None if os.path.isdir(text) else KIND_OF_SUFFIX.get(suffix.lower())
    is_file = of_suffix is not None
    if is_file and kind not in (None, of_suffix):
        raise JobError(f"output: kind is {kind!r}, but the path {text!r} ends in {suffix!r}")
    if is_file and threads > 1:
        raise JobError(f"output: threads is {threads}, but one file is written by one thread; give a folder")
    if is_file and partition_by:
        raise JobError(
            f"output: partition_by makes folders, but the path {text!r} is one file; give a folder"
        )
    encoding = FileEncoding(kind or of_suffix or "parquet", compression)
    arrangement = Arrangement.of(sort_by, partition_by)
    layout = FileLayout(columns, threads, sizes, arrangement)
    if is_uri(text):
        return OutputWriter(
            StoreTarget(text, encoding, is_file, storage_options, is_single=single_writer), layout
        )
    return OutputWriter(LocalTarget(OutputNames(Path(text), encoding, is_file)), layout)


def _check_path(path: str) -> None:
    """Raise JobError for a path that is neither a folder nor a file of a known format."""
    if found := re.search(r"\{\w*\}", path):
        raise JobError(
            f"output.path: {found[0]} in {shown(path)!r} stands for nothing\n"
            '  give the path when you start the run: --output "out/$(date +%F)"'
        )
    if is_uri(path):
        if "?" in path:
            raise JobError(f"output: the path {shown(path)!r} has a query, expected a URI without one")
    elif "://" in path:
        raise JobError(
            f"output: the path is {shown(path)!r}, whose scheme cannot be written\n"
            f"  write to a path, or to a store: {', '.join(CLOUDS)}"
        )
    suffix = os.path.splitext(path)[1]
    if suffix and suffix.lower() not in KIND_OF_SUFFIX and not os.path.isdir(os.path.expanduser(path)):
        known = " or ".join(KIND_OF_SUFFIX)
        raise JobError(
            f"output: the path {path!r} ends in {suffix!r}, expected {known}, or a folder\n"
            f"  for a folder of this name, add {os.sep!r} at the end or create it first"
        )
