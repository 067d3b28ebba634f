"""Arrow IPC files, Feather files and stream files, memory-mapped: a block is a record batch."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import pyarrow as pa

from seqflow.errors import DamagedFileError
from seqflow.files.ahead import split_spans
from seqflow.files.interface import Files, Range
from seqflow.files.uris import is_uri
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.arrow_footers import MAGIC, StoredArrow, read_stored, tail_of
from seqflow.providers.formats.options import Format, file_format
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Wanted, unfit_rows
from seqflow.record import BadRow
from seqflow.record.decoded_sizes import decoded_nbytes
from seqflow.record.selection import Selection, Table, readable
from seqflow.record.validation import opening, reading, validated


@dataclass(frozen=True, slots=True)
class ArrowFile:
    """One file: the rows of each batch, the columns to read, and how to read them.

    `stream` has the batches of a file in stream format. A file that is `mapped` is mapped whole, which costs nothing:
    Arrow would copy single columns. From other files (compressed, or not mapped) single columns are read.
    """

    rows: tuple[int, ...]
    selection: Selection
    stream: tuple[pa.RecordBatch, ...] | None
    mapped: bool
    stored: StoredArrow | None = None
    """Where its batches lie if the file is in a store."""


@dataclass(frozen=True, slots=True)
class ArrowSource(Source):
    """Arrow files, by path. Batches are views of the mapped file, unless it is compressed."""

    files: dict[str, ArrowFile]
    memory_map: bool
    slicing = "forward"

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self.files)

    @property
    def num_rows(self) -> int:
        return sum(sum(file.rows) for file in self.files.values())

    def of_files(self, paths: Collection[str]) -> Self:
        files = {path: self.files[path] for path in paths if path in self.files}
        return self.reduced(paths, files=files)

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        for path, file in self.files.items():
            if file.stored is not None:
                sizes = zip(file.rows, file.stored.nbytes, strict=True)
                yield from (Block(path, index, *size) for index, size in enumerate(sizes))
                continue
            for index, rows in enumerate(file.rows):
                batch = self._batch(path, index, schema)
                with reading(f"{_place(path, index)} can't be read"):
                    batch.validate()
                yield Block(path, index, rows, decoded_nbytes(batch))

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema = wanted.block, wanted.schema
        yield validated(self._batch(block.origin, block.index, schema), self.place(block))

    def finish(self, block: Block, schema: pa.Schema, table: Table, bad_rows: list[BadRow] | None) -> Table:
        selection = self.files[block.origin].selection.to(schema)
        return selection.apply(table, selection.present, unfit_rows(block, bad_rows))

    def place(self, block: Block) -> str:
        return _place(block.origin, block.index)

    def ranges(self, block: Block, schema: pa.Schema) -> Sequence[Range]:
        stored = self.files[block.origin].stored
        spans = () if stored is None else split_spans([stored.spans[block.index]])
        return [(block.origin, *one) for one in spans]

    def rows_of(self, block: Block) -> int:
        """Return the number of rows of a block, from the file's metadata."""
        return self.files[block.origin].rows[block.index]

    def _batch(self, path: str, index: int, schema: pa.Schema) -> pa.RecordBatch:
        """Return one batch of the columns that are read; its buffers are not checked."""
        file, present = self.files[path], self.files[path].selection.to(schema).present
        if file.stream is not None:
            return file.stream[index].select(present)
        with reading(f"{_place(path, index)} can't be read"):
            if file.stored is not None:
                options = pa.ipc.IpcReadOptions(included_fields=present or None)
                message = self.store.read(path, *file.stored.spans[index])
                return file.stored.reader(message, options).read_next_batch()
            batch = _open_file(path, self.memory_map, None if file.mapped else present).get_batch(index)
        return batch.select(present) if file.mapped else batch


def _place(path: str, index: int) -> str:
    return f"{path}, batch {index}"


@file_format("arrow")
class Arrow(Format):
    """Options of Arrow IPC files and Feather files."""

    memory_map: bool = True
    """False reads files, and constants of a job, instead of mapping them; use it for files that may shrink."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of Arrow IPC files (file or stream format) and Feather files; unifies their schemas."""
        files.plan(tail_of)
        found = files.each(partial(_inspect, memory_map=self.memory_map, store=files.store))
        selections = files.selections({path: schema for path, (schema, *_) in found.items()})
        opened = {
            path: ArrowFile(rows, selections[path], stream, mapped, stored)
            for path, (_, rows, stream, mapped, stored) in found.items()
        }
        source = ArrowSource(opened, self.memory_map, store=files.store)
        return files.provider("arrow", source)


_Inspected = tuple[pa.Schema, tuple[int, ...], tuple[pa.RecordBatch, ...] | None, bool, StoredArrow | None]


def _inspect(path: str, memory_map: bool, store: Files) -> _Inspected:
    """Return the schema, the rows of each batch, a stream's batches (it has no index), whether it is mapped, and the
    places of the batches in a store.
    """
    with opening(path, "an Arrow IPC file"):
        entry = store.entry(path) if is_uri(path) else None
        if entry is not None and (stored := read_stored(store, entry)) is not None:
            schema = stored.reader(pa.py_buffer(b"")).schema
            readable(schema)
            return schema, stored.rows, None, False, stored
        path = store.local_copy(path)  # a stream has no index
        with pa.OSFile(path) as file:
            is_file = file.read(len(MAGIC)) == MAGIC
        found = _inspect_file(path, memory_map) if is_file else _inspect_stream(path, memory_map)
        readable(found[0])
        return found


def _inspect_file(path: str, memory_map: bool) -> _Inspected:
    mapped = memory_map and not _is_compressed(path)
    reader = _open_file(path, memory_map, None)
    schema, count = reader.schema, reader.num_record_batches
    if not mapped:  # then each batch is read, so only one column is
        reader = _open_file(path, memory_map, _smallest(schema))
    return schema, tuple(reader.get_batch(index).num_rows for index in range(count)), None, mapped, None


def _inspect_stream(path: str, memory_map: bool) -> _Inspected:
    file = _file(path, memory_map)
    reader = pa.ipc.open_stream(file)
    batches = tuple(reader)
    # pyarrow stops at the end of the first stream: rows of a second one would be lost silently
    if file.read().strip(b"\0"):
        raise DamagedFileError(f"{path} has more after the end of its stream\nwrite one stream to a file")
    return reader.schema, tuple(batch.num_rows for batch in batches), batches, memory_map, None


def _is_compressed(path: str) -> bool:
    """Return whether the first batch of a file is a copy, not a view of the file."""
    with pa.memory_map(path) as file:
        memory = file.read_buffer()
        reader = pa.ipc.open_file(file)
        return reader.num_record_batches > 0 and not _is_within(reader.get_batch(0), memory)


def _is_within(batch: pa.RecordBatch, memory: pa.Buffer) -> bool:
    """Return whether the batch is a view of this memory."""
    buffers = (buffer for column in batch.columns for buffer in column.buffers() if buffer)
    return all(memory.address <= buffer.address <= memory.address + memory.size for buffer in buffers)


def _open_file(path: str, memory_map: bool, positions: list[int] | None) -> Any:
    options = pa.ipc.IpcReadOptions(included_fields=positions or None)
    return pa.ipc.open_file(_file(path, memory_map), options=options)


def _file(path: str, memory_map: bool) -> Any:
    return pa.memory_map(path) if memory_map else pa.OSFile(path)


def _smallest(schema: pa.Schema) -> list[int]:
    """Return the column to read if only the number of rows matters."""
    flat = [position for position, field in enumerate(schema) if pa.types.is_primitive(field.type)]
    return flat[:1] or [0]
