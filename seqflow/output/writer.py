"""OutputWriter: write batches to files, in threads of its own."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from seqflow.errors import JobError, ProviderError, nearest
from seqflow.output.files import KIND_OF_SUFFIX, Compression, FileWriter, Format, Kind
from seqflow.output.folder import OutputFile, Target
from seqflow.record import Record, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_BYTES = 16 << 20
"""Arrow bytes of a row group."""
PART_BYTES = 512 << 20
"""Arrow bytes of a part file, about."""
PENDING_BYTES = 24 << 20
"""Arrow bytes that may wait for the writing threads; one row group is always let through."""


class OutputWriter:
    """A context manager that writes batches; `finish` gives the files their final names.

    Leaving the context without `finish` (an exception, Ctrl-C) removes everything that was written. Where no batch
    has rows, one empty file is written. Row groups hold about 16 MiB of Arrow data: small batches are gathered,
    large ones are cut. With `threads` above 1, each thread writes a part file of its own, and row groups go to them
    in turn; the manifest has the numbers of the row groups in each part.
    """

    def __init__(
        self,
        target: Target | None,
        form: Format,
        columns: Sequence[str] | None = None,
        threads: int = 1,
    ) -> None:
        self._target = target
        self._columns = columns
        self._part_writers = [_PartWriter(i, threads, target, form) for i in range(threads)] if target else []
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._num_groups = 0
        self._pending: deque[tuple[Future[None], int]] = deque()
        self._pending_bytes = 0
        self._schema: pa.Schema | None = None

    def __enter__(self) -> OutputWriter:
        if self._target is not None:
            self._target.prepare()
        return self

    def check(self, columns: Sequence[str] | None) -> None:
        """JobError where batches with these columns (None: not known) could not be written. Writes nothing."""
        if self._target is not None:
            self._target.check()
            if columns is not None:
                self._check_columns(columns)

    def _check_columns(self, names: Sequence[str]) -> None:
        missing = next((name for name in self._columns or () if name not in names), None)
        if missing is not None:
            raise JobError(
                f"output: the batches have no column {missing!r}{nearest(missing, names)}\n"
                f"  they have {', '.join(names)}"
            )

    def write(self, record: Record) -> None:
        """Add one batch. Errors of earlier batches are raised here, too; an OSError names the file."""
        if self._target is None:
            return
        batch = self._fitting(to_arrow(record))
        if not batch.num_rows:
            return
        groups = max(1, round(batch.nbytes / GROUP_BYTES))
        rows = -(-batch.num_rows // groups)
        for start in range(0, batch.num_rows, rows):
            piece = batch.slice(start, rows)
            self._gathered.append(piece)
            self._gathered_bytes += piece.nbytes
            if self._gathered_bytes >= GROUP_BYTES * 2 // 3:
                self._write_group()

    def finish(self) -> list[OutputFile]:
        """Write the remaining rows and give all files their final names."""
        if self._target is None:
            return []
        if self._gathered or (self._schema is not None and not self._num_groups):
            self._write_group()
        while self._pending:
            self._await_oldest()
        writers = sorted(
            (w for part_writer in self._part_writers for w in part_writer.files),
            key=lambda writer: writer.path,
        )
        if self._schema is None and self._target.is_file:
            raise ProviderError(f"there are no batches to write to {str(self._target.path)!r}")
        return self._target.keep(writers, self._schema.names if self._schema else [])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part_writer in self._part_writers:
            part_writer.stop()
        for part_writer in self._part_writers:
            for writer in part_writer.files:
                writer.discard()
        if self._target is not None:
            self._target.leave()

    def _fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The requested columns of the batch; JobError unless their types are those of the batches before."""
        if self._columns is not None:
            self._check_columns(batch.schema.names)
            batch = batch.select(list(self._columns))
        self._schema = self._schema or batch.schema
        if batch.schema != self._schema:
            raise JobError(_schema_change(self._schema, batch.schema))
        return batch

    def _write_group(self) -> None:
        import pyarrow as pa

        group = pa.Table.from_batches(self._gathered, self._schema)
        size = self._gathered_bytes
        self._gathered, self._gathered_bytes = [], 0
        while self._pending and (self._pending_bytes + size > PENDING_BYTES or self._pending[0][0].done()):
            self._await_oldest()
        part_writer = self._part_writers[self._num_groups % len(self._part_writers)]
        self._pending.append((part_writer.submit(group, self._num_groups), size))
        self._pending_bytes += size
        self._num_groups += 1

    def _await_oldest(self) -> None:
        future, size = self._pending.popleft()
        self._pending_bytes -= size
        future.result()


class _PartWriter:
    """A thread that writes part files, one after another."""

    def __init__(self, number: int, count: int, target: Target, form: Format) -> None:
        self.files: list[FileWriter] = []
        self._numbers = iter(range(number, 1 << 62, count))
        self._target = target
        self._form = form
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="seqflow-write")

    def submit(self, group: pa.Table, number: int) -> Future[None]:
        return self._thread.submit(self._write, group, number)

    def stop(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _write(self, group: pa.Table, number: int) -> None:
        full = bool(self.files) and self.files[-1].arrow_bytes >= PART_BYTES and not self._target.is_file
        if not self.files or full:
            if full:
                self.files[-1].close()
            self.files.append(FileWriter(self._target.file(next(self._numbers)), self._form))
        self.files[-1].write(group, number)


def open_output(
    path: str | Path | None,
    kind: Kind | Literal["none"] | None = None,
    columns: Sequence[str] | None = None,
    compression: Compression | None = None,
    threads: int = 1,
) -> OutputWriter:
    """A writer for `path`: a folder of part files, or one file when the path ends in .parquet or .arrow.

    Where `kind` is None, the suffix decides, and a folder gets Parquet files; "none" drops the batches.
    JobError where the settings contradict each other.
    """
    if kind == "none":
        return OutputWriter(None, Format("parquet"))
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
    form = Format(kind or of_suffix or "parquet", compression)
    return OutputWriter(Target(path, form.kind, is_file), form, columns, threads)


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
