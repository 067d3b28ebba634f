"""Avro files: a block is some of the file's own blocks, read by Polars, or else by fastavro."""

import io
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from seqflow.errors import ProviderError, ProviderOptionError
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.avro_schemas import arrow_schema, polars_reads
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.formats.row_files import open_row_files
from seqflow.providers.provider import Provider
from seqflow.record.selection import Table

_MAGIC = b"Obj\x01"
_SYNC = 16
_LARGEST_HEADER = 16 << 20
_OF_POLARS = ("null", "deflate", "snappy")
"""Codecs that Polars can decompress."""
_INFLATED = 1100
"""Largest number of bytes from one compressed byte, about; a row takes at least one byte."""


@dataclass(frozen=True, slots=True)
class AvroFile:
    """The columns of a file, its header, and the place and rows of each block."""

    schema: pa.Schema
    codec: str
    is_for_polars: bool
    """Whether Polars can read its types and its codec."""
    header: bytes = field(repr=False)
    places: tuple[tuple[int, int], ...] = field(repr=False)
    rows: tuple[int, ...]

    @property
    def sizes(self) -> list[tuple[int, int]]:
        # compressed blocks do not tell their size in memory: four times is a guess, which only plans windows
        times = 1 if self.codec == "null" else 4
        return [
            (rows, (stop - start) * times) for (start, stop), rows in zip(self.places, self.rows, strict=True)
        ]

    def read(self, path: str, index: int, columns: Sequence[str]) -> Table:
        start, stop = self.places[index]
        with open(path, "rb") as file:
            file.seek(start)
            content = io.BytesIO(self.header + file.read(stop - start))
        schema = pa.schema([self.schema.field(name) for name in columns or self.schema.names[:1]])
        if self.is_for_polars and (table := _by_polars(content, schema)) is not None:
            return table
        return _by_fastavro(content, schema)


@file_format("avro")
class Avro(Format):
    """Options of Avro files."""

    batch_bytes: int | str = "8 MiB"
    """Bytes of a file that are read, and prepared, together."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of Avro files: a block is as many of the file's own as `batch_bytes` hold."""
        open_file = partial(_open_file, batch_bytes=byte_count(self.batch_bytes))
        return open_row_files("avro", files, open_file)


def _by_polars(content: io.BytesIO, schema: pa.Schema) -> pa.Table | None:
    """Return the rows as Polars reads them; None if it is not installed or cannot read them."""
    try:
        import polars
    except ImportError:
        return None
    try:
        table = polars.read_avro(content, columns=schema.names).to_arrow()
    except BaseException as error:
        # a panic of Rust is a BaseException, but only means that Polars cannot read this
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        # Polars reads neither aliases nor types that are defined in one place and used in another; fastavro does
        content.seek(0)
        return None
    return table.select(schema.names).cast(schema)


def _by_fastavro(content: io.BytesIO, schema: pa.Schema) -> pa.Table:
    """Return the rows as fastavro reads them, which makes a dict of each."""
    try:
        import fastavro
    except ImportError:
        raise ProviderOptionError(
            "Avro files are read by polars or fastavro, and this one, by its types or codec, by fastavro alone\n"
            "pip install fastavro"
        ) from None
    rows: list[Any] = list(fastavro.reader(content))
    return pa.table([pa.array([row[one.name] for row in rows], one.type) for one in schema], schema=schema)


def _open_file(path: str, *, batch_bytes: int) -> AvroFile:
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ProviderError("it does not begin as an Avro file does")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            metadata, at = _metadata(content)
            header = content[: at + _SYNC]
            places, rows = _blocks(content, at + _SYNC, header[-_SYNC:], batch_bytes)
    if len(header) > size or "avro.schema" not in metadata:
        raise ProviderError("its header has no schema")
    text, codec = metadata["avro.schema"].decode(), metadata.get("avro.codec", b"null").decode()
    schema = arrow_schema(text)
    is_for_polars = codec in _OF_POLARS and all(map(polars_reads, schema.types))
    return AvroFile(schema, codec, is_for_polars, header, tuple(places), tuple(rows))


def _metadata(content: mmap.mmap) -> tuple[dict[str, bytes], int]:
    """Return the pairs of a header, and the position after them."""
    found: dict[str, bytes] = {}
    at = len(_MAGIC)
    while True:
        count, at = _long(content, at)
        # a negative count is followed by the bytes of the block, for readers that skip it
        if count < 0:
            count, at = -count, _long(content, at)[1]
        if count == 0:
            return found, at
        for _ in range(count):
            key, at = _bytes(content, at)
            value, at = _bytes(content, at)
            found[key.decode()] = value


def _blocks(
    content: mmap.mmap, at: int, sync: bytes, batch_bytes: int
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return places and rows of blocks of about `batch_bytes`: each joins consecutive blocks of the file."""
    places: list[tuple[int, int]] = []
    rows: list[int] = []
    while at < len(content):
        start = at
        count, at = _long(content, at)
        size, at = _long(content, at)
        # the bound on `count` keeps a damaged block from asking for more rows than its bytes can hold
        if (
            count < 0
            or size < 0
            or count > _INFLATED * (size + 1)
            or content[at + size : at + size + _SYNC] != sync
        ):
            raise ProviderError(f"its block at byte {start} is damaged, or cut")
        at += size + _SYNC
        if places and at - places[-1][0] <= batch_bytes:
            places[-1] = places[-1][0], at
            rows[-1] += count
        else:
            places.append((start, at))
            rows.append(count)
    return places, rows


def _long(content: mmap.mmap, at: int) -> tuple[int, int]:
    """Return a zigzag-encoded number of variable length, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):  # 64 bits take at most ten bytes of seven bits
        if at >= len(content):
            break
        value |= (content[at] & 127) << shift
        at += 1
        if content[at - 1] < 128:
            return value >> 1 ^ -(value & 1), at
    raise ProviderError("it ends in a number")


def _bytes(content: mmap.mmap, at: int) -> tuple[bytes, int]:
    size, at = _long(content, at)
    if not 0 <= size <= min(_LARGEST_HEADER, len(content) - at):
        raise ProviderError(f"its header says that it has a text of {size:,} bytes")
    return content[at : at + size], at + size
