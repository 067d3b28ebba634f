"""FileWriter: writes one Parquet or Arrow file under a temporary name, as Format and Sizes describe."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from seqflow.errors import JobError
from seqflow.output import unfinished
from seqflow.output.durable_files import NewFile, sync_file, temporary_path, writing
from seqflow.output.encodings import choose_encodings
from seqflow.output.output_file import Batches, Checksums, OutputFile, checksum_of_ends

Kind = Literal["parquet", "arrow"]
FileKind = Kind | Literal["run"]
"""Kind of a file; a run is an Arrow stream, whose batches are read one by one."""
Compression = Literal["none", "snappy", "gzip", "brotli", "lz4", "zstd"]

KIND_OF_SUFFIX: Mapping[str, Kind] = {".parquet": "parquet", ".arrow": "arrow"}
_ARROW_CODECS = ("none", "lz4", "zstd")


RUN_BATCH_BYTES = 512 << 10
"""Approximate Arrow bytes of a batch in a run."""


@dataclass(frozen=True, slots=True)
class FileEncoding:
    """The kind and the compression of files."""

    kind: FileKind
    compression: Compression | None = None

    def __post_init__(self) -> None:
        if self.kind == "arrow" and self.compression not in (None, *_ARROW_CODECS):
            raise JobError(
                f"output: compression is {self.compression!r}, Arrow files know {', '.join(_ARROW_CODECS)}"
            )


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Approximate sizes of row groups and part files."""

    row_group_bytes: int = 16 << 20
    """Arrow bytes of a row group."""
    part_bytes: int = 512 << 20
    """A part is closed when it has this many planned bytes of the source, or Arrow bytes of merged rows."""
    rows_per_file: int | None = None
    """A part is closed when it has this many rows of the source; a file of merged rows has at most as many."""

    def are_reached(self, rows: int, nbytes: int) -> bool:
        """Return whether a part of merged rows has reached its size."""
        return nbytes >= self.part_bytes or (self.rows_per_file is not None and rows >= self.rows_per_file)


DEFAULT_SIZES = FileSizes()


class FileWriter:
    """Writes tables of one schema, each as one row group, to a temporary file next to `path`.

    Errors name `path`; `piece` is the name of the written file if it is only a piece of `path`.
    """

    def __init__(self, path: Path, encoding: FileEncoding, piece: Path | None = None) -> None:
        self.path = path
        self.piece = piece or path
        self.temporary = temporary_path(self.piece)
        self.num_rows = 0
        self.groups: list[int] = []
        self._encoding = encoding
        self._file: NewFile | None = None
        self._writer: Any = None

    def write(self, table: pa.Table, group: int) -> None:
        """Append row group number `group`; raise WriteError when it cannot be written."""
        with writing(self.path):
            if self._writer is None:
                unfinished.add(self.temporary)
                self._file = NewFile(self.temporary)
                self._writer = _open_writer(self._file, table, self._encoding)
            if not table.num_rows:
                return  # the file gets a schema and no row group
            self._writer.write_table(table, self._group_rows(table))
        self.num_rows += table.num_rows
        self.groups.append(group)

    def _group_rows(self, table: pa.Table) -> int:
        if self._encoding.kind != "run":
            return int(table.num_rows)
        return max(1, int(table.num_rows * RUN_BATCH_BYTES / max(1, table.nbytes)))

    def close(self) -> None:
        """Finish the file. Can be called again."""
        with writing(self.path):
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            if self._file is not None:
                self._file.close()

    def output_file(self, path: Path, batches: Batches | None = None) -> OutputFile:
        """Describe the finished file under its final path, with the batches it was made from."""
        assert self._file is not None
        checksums = Checksums(self._file.checksum, checksum_of_ends(self.temporary))
        return OutputFile(path, self.num_rows, self._file.num_bytes, tuple(self.groups), checksums, batches)

    def finish(self, name: Path, path: Path | None = None, batches: Batches | None = None) -> OutputFile:
        """Close the file and give it a name; return its description under its final path, which is `piece` if None.

        The new name survives a crash only after the caller has synchronised the folder.
        """
        self.close()
        file = self.output_file(path or self.piece, batches)
        self.rename(name)
        return file

    def rename(self, name: Path) -> None:
        """Synchronise the closed file and rename it, replacing a file of that name."""
        with writing(self.path):
            sync_file(self.temporary)
            self.temporary.replace(name)
        unfinished.discard(self.temporary)

    def discard(self) -> None:
        """Remove the file, finished or not."""
        with suppress(OSError, pa.ArrowException):  # closing writes the footer, which may fail
            if self._writer is not None:
                self._writer.close()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self.temporary.unlink(missing_ok=True)
        unfinished.discard(self.temporary)


def _open_writer(file: NewFile, table: pa.Table, encoding: FileEncoding) -> Any:
    if encoding.kind in ("arrow", "run"):
        codec = None if encoding.compression in (None, "none") else encoding.compression
        new = pa.ipc.new_file if encoding.kind == "arrow" else pa.ipc.new_stream
        return new(file, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec))
    from pyarrow import parquet

    encodings = choose_encodings(table)
    delta = {path: encoding for path, encoding in encodings.items() if encoding != "RLE_DICTIONARY"}
    return parquet.ParquetWriter(
        file,
        table.schema,
        compression=encoding.compression or "snappy",
        use_dictionary=[path for path in encodings if path not in delta] if delta else True,
        column_encoding=delta or None,
        write_batch_size=1 << 16,
    )
