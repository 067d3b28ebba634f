"""Arrow IPC files, Feather files and stream files, memory-mapped: a block is a record batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.providers.provider import Block, Provider, origin_of
from seqflow.providers.schemas import agreeing
from seqflow.record import BadRow
from seqflow.record.selection import Rename, Selection, Table

_FILE_MAGIC = b"ARROW1"


@dataclass(frozen=True, slots=True)
class ArrowFile:
    """One file: rows of each batch, what is read from it, and how.

    `stream` has the batches of a file in stream format. Of a compressed file, single columns are read; all others
    are mapped whole, which costs nothing: Arrow would copy single columns.
    """

    rows: tuple[int, ...]
    selection: Selection
    stream: tuple[pa.RecordBatch, ...] | None
    compressed: bool


@dataclass(frozen=True, slots=True)
class ArrowSource:
    """Arrow files of one schema, by path. Batches are views of the mapped file, unless it is compressed."""

    files: dict[str, ArrowFile]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self.files)

    @property
    def num_rows(self) -> int:
        return sum(sum(file.rows) for file in self.files.values())

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        for path, file in self.files.items():
            for index, rows in enumerate(file.rows):
                yield Block(path, index, rows, self.read(Block(path, index, rows, None), schema, None).nbytes)

    def read(self, block: Block, schema: pa.Schema, bad_rows: list[BadRow] | None) -> Table:
        file = self.files[block.origin]
        selection = file.selection.to(schema)
        if file.stream is not None:
            return selection.apply(file.stream[block.index])
        positions = sorted(set(selection.positions)) if file.compressed else None
        try:
            batch = _open_file(block.origin, positions).get_batch(block.index)
        except (OSError, pa.ArrowException) as error:
            raise ProviderError(f"{block.origin}, batch {block.index} can't be read: {error}") from error
        return selection.apply(batch, positions)


def open_arrow(
    paths: Sequence[str], *, columns: Sequence[str] | None = None, rename: Rename | None = None
) -> Provider:
    """A provider of Arrow IPC files (file or stream format) and Feather files; checks that they agree."""
    opened = [_inspect(path) for path in paths]
    selections = agreeing(paths, [schema for schema, *_ in opened], columns, rename)
    files = {
        path: ArrowFile(rows, selection, stream, compressed)
        for path, (_, rows, stream, compressed), selection in zip(paths, opened, selections, strict=True)
    }
    return Provider("arrow", origin_of(paths), selections[0].schema, ArrowSource(files))


_Inspected = tuple[pa.Schema, tuple[int, ...], tuple[pa.RecordBatch, ...] | None, bool]


def _inspect(path: str) -> _Inspected:
    """Schema, rows of each batch, the batches of a stream (it has no index to find them by), whether compressed."""
    try:
        with pa.memory_map(path) as file:
            is_file = file.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        return _inspect_file(path) if is_file else _inspect_stream(path)
    except (OSError, pa.ArrowException) as error:
        raise ProviderError(f"{path} is not an Arrow IPC file, or damaged: {error}") from error


def _inspect_file(path: str) -> _Inspected:
    with pa.memory_map(path) as file:
        memory = file.read_buffer()
        reader = pa.ipc.open_file(file)
        schema, count = reader.schema, reader.num_record_batches
        compressed = count > 0 and not _is_within(reader.get_batch(0), memory)
    reader = _open_file(path, _smallest(schema) if compressed else None)
    return schema, tuple(reader.get_batch(index).num_rows for index in range(count)), None, compressed


def _inspect_stream(path: str) -> _Inspected:
    reader = pa.ipc.open_stream(pa.memory_map(path))
    batches = tuple(reader)
    return reader.schema, tuple(batch.num_rows for batch in batches), batches, False


def _is_within(batch: pa.RecordBatch, memory: pa.Buffer) -> bool:
    """Whether the batch is a view of this memory."""
    buffers = (buffer for column in batch.columns for buffer in column.buffers() if buffer)
    return all(memory.address <= buffer.address <= memory.address + memory.size for buffer in buffers)


def _open_file(path: str, positions: list[int] | None) -> Any:
    options = pa.ipc.IpcReadOptions(included_fields=positions or None)
    return pa.ipc.open_file(pa.memory_map(path), options=options)


def _smallest(schema: pa.Schema) -> list[int]:
    """The column to read where only the number of rows matters."""
    flat = [position for position, field in enumerate(schema) if pa.types.is_primitive(field.type)]
    return flat[:1] or [0]
