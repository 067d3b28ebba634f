"""Text files with one row a line, read in blocks of whole lines."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.providers.inflated import InflatedFiles, compression_of
from seqflow.providers.line_faults import Malformed
from seqflow.providers.provider import Block, Provider, origin_of
from seqflow.record import BadRow
from seqflow.record.buffers import INT32_MAX
from seqflow.record.record import Tensor
from seqflow.record.selection import Rename, Selection, Table, selection

BLOCK_BYTES = 4 << 20
SAMPLE_BYTES = 64 << 10
_CHUNK = 64 << 10
_NEWLINE = b"\n"


class LineFormat(Protocol):
    """The parser of a kind of line. Blank lines are no rows.

    It may have `skip(content)`: how many bytes at the start of a file are no rows, such as those of a header.
    """

    @property
    def kind(self) -> str: ...

    @property
    def schema(self) -> pa.Schema: ...

    def parse(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        """Parse whole lines, uint8 data that ends with a newline: the rows, and the malformed lines in order.

        A malformed line has a row, too: its lists are null or empty, its numbers 0.
        """
        ...


@dataclass(frozen=True, slots=True)
class LineSource:
    """Block i of a file holds the lines that start in its bytes `i * batch_bytes` … `(i + 1) * batch_bytes - 1`.

    Of a compressed file the decompressed bytes count.
    """

    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    batch_bytes: int
    format: LineFormat
    selection: Selection
    inflated: InflatedFiles = field(default_factory=InflatedFiles, compare=False)

    num_rows: ClassVar[None] = None

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        for path, stored in zip(self.paths, self.sizes, strict=True):
            size = self.inflated.size(path, stored) if stored and compression_of(path) else stored
            for index, start in enumerate(range(0, size, self.batch_bytes)):
                yield Block(path, index, None, min(self.batch_bytes, size - start))

    def read(self, block: Block, schema: pa.Schema, bad_rows: list[BadRow] | None) -> Table:
        path, start = block.origin, block.index * self.batch_bytes
        lines_before = None
        if compression_of(path):
            content, start, lines_before = self.inflated.block(path, block.index, self.batch_bytes)
        else:
            content, start = _read_lines(path, start, start + self.batch_bytes)
        if start == 0 and (skip := getattr(self.format, "skip", None)) is not None:
            start = skip(content)
            lines_before = content.count(_NEWLINE, 0, start)
            content = content[start:]
        data = np.frombuffer(content, np.uint8)
        batch, malformed = self.format.parse(data)
        first_line = None
        for row, position, column, reason in malformed:
            if first_line is None:
                first_line = 1 + (_newlines_before(path, start) if lines_before is None else lines_before)
                newlines = np.flatnonzero(data == _NEWLINE[0])
            line = int(np.searchsorted(newlines, position))
            line_start = newlines[line - 1] + 1 if line else 0
            place = f"{path}, line {first_line + line}, column {position - line_start + 1}"
            if bad_rows is None:
                raise ProviderError(f"{place}: {reason}")
            bad_rows.append(BadRow(row, column, f"{place}: {reason}"))
        return self.selection.to(schema).apply(batch)


def open_lines(
    paths: Sequence[str],
    line_format: LineFormat,
    columns: Sequence[str] | None,
    rename: Rename | None,
    batch_bytes: int | None,
    inferred: str = "",
) -> Provider:
    """A provider of the lines of files, in blocks of about `batch_bytes` (4 MiB)."""
    chosen = selection(line_format.schema, columns, rename)
    sizes = tuple(map(_size, paths))
    source = LineSource(tuple(paths), sizes, batch_bytes or BLOCK_BYTES, line_format, chosen)
    return Provider(line_format.kind, origin_of(paths), chosen.schema, source, inferred=inferred)


def first_lines(paths: Sequence[str]) -> list[bytes]:
    """The first whole lines of the first file that is not empty, of 64 KiB together."""
    return first_sample(paths)[1]


def first_sample(paths: Sequence[str]) -> tuple[str, list[bytes]]:
    """The first file that is not empty, and its first whole lines, of 64 KiB together; at least one."""
    for path in paths:
        if sample := _read(path, 0, SAMPLE_BYTES):
            lines = sample.split(_NEWLINE)
            if len(sample) < SAMPLE_BYTES:
                return path, lines
            return path, lines[:-1] or [first_line(path)]
    return paths[0], []


def first_line(path: str) -> bytes:
    """The first line of a file, however long, with its newline if it has one."""
    start = _read(path, 0, _CHUNK)
    end = start.find(_NEWLINE) + 1
    if end or len(start) < _CHUNK:
        return start[: end or None]
    return start + _rest_of_line(path, start, len(start))


def _read_lines(path: str, start: int, stop: int) -> tuple[bytes, int]:
    """The lines that start in `start` … `stop - 1`, with a newline at the end; and where the first one starts."""
    # one byte more at the start tells whether a line begins there, or has begun in the block before
    content, first = _read(path, max(start - 1, 0), stop), 0
    if start:
        first = content.find(_NEWLINE, 0, stop - start) + 1
        if not first:
            return b"", start
        start += first - 1
    content += _rest_of_line(path, content, stop)
    if len(content) > INT32_MAX:
        raise ProviderError(
            f"{path}: a line has more than {INT32_MAX} bytes\nsplit it, or leave out the file"
        )
    content = content[first:]
    return content if content.endswith(_NEWLINE) or not content else content + _NEWLINE, start


def _rest_of_line(path: str, content: bytes, position: int) -> bytes:
    """Read on to the end of the last line of `content`, which ends at `position` of the file."""
    pieces: list[bytes] = []
    last, size = content, len(content)
    while last and not last.endswith(_NEWLINE) and size <= INT32_MAX:
        last = _read(path, position, position + _CHUNK)
        position += len(last)
        end = last.find(_NEWLINE) + 1
        last = last[:end] if end else last
        pieces.append(last)
        size += len(last)
    return b"".join(pieces)


def _newlines_before(path: str, position: int) -> int:
    count = at = 0
    while at < position:
        piece = _read(path, at, min(position, at + BLOCK_BYTES))
        if not piece:
            break
        count += piece.count(_NEWLINE)
        at += len(piece)
    return count


def _read(path: str, start: int, stop: int) -> bytes:
    """The bytes `start` … `stop - 1` of a file, decompressed; fewer where it ends earlier."""
    try:
        with _open(path) as file:
            if start:
                file.seek(start)
            return bytes(file.read(stop - start))
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProviderError(f"{path} can't be read: {reason}") from error


def _open(path: str) -> IO[bytes] | Any:
    compression = compression_of(path)
    return pa.input_stream(path, compression=compression) if compression else open(path, "rb", buffering=0)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError as error:
        raise ProviderError(f"{path} can't be read: {error.strerror}") from error
