"""Text files with one row in each line, read in blocks of whole lines."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import IO, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.printable import without_values
from seqflow.providers.file_set import FileSet
from seqflow.providers.lines.decompressed import Decompressed, compression_of, reading
from seqflow.providers.lines.inflated_files import InflatedFiles
from seqflow.providers.lines.line_faults import Malformed
from seqflow.providers.lines.quotes import newline_finder, row_ends
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import unfit_rows
from seqflow.record import BadRow
from seqflow.record.buffers import INT32_MAX
from seqflow.record.record import Tensor
from seqflow.record.selection import Selection, Table
from seqflow.record.validation import kind_of_error

BLOCK_BYTES = 4 << 20
SAMPLE_BYTES = 64 << 10
_SAMPLED_FILES = 16
_CHUNK = 64 << 10
_NEWLINE = b"\n"
BOM = b"\xef\xbb\xbf"
"""Byte order mark, which a file may begin with; it does not belong to the first line."""


class LineFormat(Protocol):
    """Parser of a kind of line. Blank lines are skipped.

    It may have `header`, true if the first line of a file is not a row, and `newlines`, true if newlines in quotes do
    not end a row, and `reading`, which returns the parser for a selection of its columns.
    """

    @property
    def kind(self) -> str: ...

    @property
    def schema(self) -> pa.Schema: ...

    def parse(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        """Parse uint8 data that ends with a newline; return the rows, and the malformed lines in order.

        A malformed line also has a row: nulls or empty lists, and 0 for numbers.
        """
        ...


@dataclass(frozen=True, slots=True)
class LineVersion:
    """Parser of the lines of some files, and what to read of their columns."""

    format: LineFormat
    selection: Selection


@dataclass(frozen=True, slots=True)
class LineSource:
    """Files of lines: block i of a file holds the lines that start in its i-th range of `batch_bytes` bytes.

    In a compressed file, decompressed bytes are counted.
    """

    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    batch_bytes: int
    versions: dict[str, LineVersion]
    """The version of each file by path; files with the same header share one."""
    inflated: InflatedFiles = field(default_factory=InflatedFiles, compare=False)

    num_rows: ClassVar[None] = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about compressed files that were read, and can only be decompressed from their start."""
        return self.inflated.notes

    def of_files(self, paths: Collection[str]) -> "LineSource":
        sizes = dict(zip(self.paths, self.sizes, strict=True))
        chosen = tuple(path for path in paths if path in sizes)
        versions = {path: self.versions[path] for path in chosen}
        return replace(self, paths=chosen, sizes=tuple(sizes[path] for path in chosen), versions=versions)

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        for path, stored in zip(self.paths, self.sizes, strict=True):
            size = self.inflated.size(path) if stored and compression_of(path) else stored
            for index, start in enumerate(range(0, size, self.batch_bytes)):
                yield Block(path, index, None, min(self.batch_bytes, size - start))

    def read(self, block: Block, schema: pa.Schema, bad_rows: list[BadRow] | None) -> Table:
        path, start = block.origin, block.index * self.batch_bytes
        version = self.versions[path]
        lines_before, newlines = None, getattr(version.format, "newlines", False)
        if compression_of(path):
            content, start, lines_before = self.inflated.block(path, block.index, self.batch_bytes, newlines)
            data = np.frombuffer(content, np.uint8)
        elif newlines:
            with reading(path):
                stamp = os.stat(path).st_mtime_ns
            start, stop = _row_starts(path, stamp, self.batch_bytes)[block.index :][:2]
            data = np.frombuffer(_ended(path, _read(path, start, stop)), np.uint8)
        else:
            data, start = _read_lines(path, start, start + self.batch_bytes)
        if start == 0:
            start = len(BOM) if data[: len(BOM)].tobytes() == BOM else 0
            if len(data) > start and getattr(version.format, "header", False):
                start, lines_before = int(np.argmax(data == _NEWLINE[0])) + 1, 1
            data = data[start:]
        selection = version.selection.to(schema)
        parser_of = getattr(version.format, "reading", None)
        batch, malformed = (parser_of(selection) if parser_of else version.format).parse(data)
        # lines before the block are counted only for an error: that reads the file from its start
        first_line = None
        for row, position, column, reason in malformed:
            if first_line is None:
                first_line = 1 + (_newlines_before(path, start) if lines_before is None else lines_before)
                ends_of_lines, ends_of_rows = np.flatnonzero(data == _NEWLINE[0]), row_ends(data, newlines)
            line, line_start, _ = _around(position, ends_of_lines, len(data))
            place = f"{path}, line {first_line + line}, column {position - line_start + 1}"
            if bad_rows is None:
                raise ProviderError(f"{place}: {reason}")
            _, start_of_row, stop_of_row = _around(position, ends_of_rows, len(data))
            content_of_row = data[start_of_row:stop_of_row].tobytes()
            bad_rows.append(BadRow(row, column, f"{place}: {reason}", without_values(reason), content_of_row))
        return selection.apply(batch, unfit=unfit_rows(block, bad_rows))


def _around(position: int, ends: Tensor, stop: int) -> tuple[int, int, int]:
    """Return number, start and end of the line at a position; lines end at `ends`, the last one at `stop`."""
    line = int(np.searchsorted(ends, position))
    return line, int(ends[line - 1]) + 1 if line else 0, int(ends[line]) if line < len(ends) else stop


@dataclass(frozen=True, slots=True)
class LineFiles:
    """Files of lines that are there and, if damaged ones are left out, can be decompressed to their end."""

    files: FileSet
    sizes: dict[str, int]
    """Stored bytes of each file."""
    inflated: InflatedFiles

    @classmethod
    def of(cls, files: FileSet) -> "LineFiles":
        """Check the files; raise DamagedFileError if there is none."""
        inflated = InflatedFiles()

        def check(path: str) -> int:
            size = _size(path)
            # what a cut file gives before its end depends on the steps of the decoder: it counts as a whole
            if size and files.bad_files.leaves_out and compression_of(path):
                inflated.size(path)
            return size

        return cls(files, files.each(check), inflated)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    def provider(
        self,
        line_format: LineFormat,
        batch_bytes: int,
        inferred: str = "",
        others: Sequence[tuple[LineFormat, Sequence[str]]] = (),
    ) -> Provider:
        """Return a provider of the lines, in blocks of about `batch_bytes`; `others` are formats of some."""
        groups = [(line_format, self.paths), *others]
        schemas: dict[str, pa.Schema] = {}
        for one, paths in groups:
            schemas |= dict.fromkeys(paths, one.schema)
        selections = self.files.selections(schemas)
        versions: dict[str, LineVersion] = {}
        for one, paths in groups:
            versions |= dict.fromkeys(paths, LineVersion(one, selections[paths[0]]))
        source = LineSource(self.paths, tuple(self.sizes.values()), batch_bytes, versions, self.inflated)
        schema = selections[self.paths[0]].schema
        return self.files.provider(line_format.kind, schema, source, inferred)


def samples(
    paths: Sequence[str], is_row: Callable[[bytes], object], header: bool = False
) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the first 16 files with rows, each with its first whole lines: 64 KiB, or more if they have no row.

    The line of a header is not a row.
    """
    starts = ((path, first_lines(path, lambda lines: any(map(is_row, lines[header:])))) for path in paths)
    return islice((start for start in starts if any(map(is_row, start[1][header:]))), _SAMPLED_FILES)


def first_lines(path: str, are_enough: Callable[[list[bytes]], bool]) -> list[bytes]:
    """Return the first whole lines of a file: those of its first 64 KiB, and more until `are_enough` accepts them or
    the file ends.
    """
    content, size = b"", SAMPLE_BYTES
    with reading(path), closing(_open(path)) as file:
        while True:
            piece = file.read(size)
            content = content + piece if content else piece.removeprefix(BOM)
            lines = content.split(_NEWLINE)
            if len(piece) < size:
                return lines
            lines.pop()  # it may go on in the next piece
            if are_enough(lines):
                return lines
            size = len(content)  # doubled, so a long first line is not split again for each 64 KiB


def _read_lines(path: str, start: int, stop: int) -> tuple[Tensor, int]:
    """Return the lines that start in `start` … `stop - 1`, ended by a newline, and the start of the first one."""
    # The byte before `start` tells whether a line begins at `start`. The chunk at the end usually holds the rest of
    # the last line, so one read is enough.
    begin, first = max(start - 1, 0), 0
    content = _read(path, begin, stop + _CHUNK)
    if start:
        first = content.find(_NEWLINE, 0, stop - start) + 1
        if not first:
            return np.empty(0, np.uint8), start
    end = content.find(_NEWLINE, stop - 1 - begin) + 1
    if not end:
        content += _rest_of_line(path, content, begin + len(content))
        content = _ended(path, content)
        end = len(content)
    return np.frombuffer(content, np.uint8)[first:end], begin + first


def _ended(path: str, content: bytes) -> bytes:
    """Return lines of a file with a newline after the last one."""
    if content and not content.endswith(_NEWLINE):
        content += _NEWLINE
    if len(content) > INT32_MAX:
        raise ProviderError(
            f"{path}: a line has more than {INT32_MAX} bytes\nsplit it, or leave out the file"
        )
    return content


@lru_cache(maxsize=1024)
def _row_starts(path: str, stamp: int, batch_bytes: int) -> tuple[int, ...]:
    """Return where the first row starts in each range of `batch_bytes`, or after it, and the end of the file.

    A newline ends no row inside quotes, which all bytes before it tell: the file is read once, and the result for a
    large file is kept for later runs, as digests of large files are.
    """
    from seqflow.identity.content import cached_digest

    size = _size(path)
    part = f"rows in ranges of {batch_bytes}"
    found = cached_digest(path, part, size, lambda: _row_starts_text(path, size, batch_bytes))
    return tuple(map(int, found.split(",")))


def _row_starts_text(path: str, size: int, batch_bytes: int) -> str:
    starts, position, shown = [0], 0, newline_finder(True)
    while piece := _read(path, position, position + BLOCK_BYTES):
        piece_shown = shown(piece)
        while (at := piece_shown.find(_NEWLINE, max(0, len(starts) * batch_bytes - 1 - position))) >= 0:
            starts.append(position + at + 1)
        position += len(piece)
    blocks = -(-size // batch_bytes)
    return ",".join(map(str, [*starts[:blocks], *[size] * (blocks + 1 - len(starts[:blocks]))]))


def _rest_of_line(path: str, content: bytes, position: int) -> bytes:
    """Read from `position`, where `content` ends, to the end of its last line."""
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
    """Return the bytes `start` … `stop - 1` of a file; fewer if it ends earlier."""
    with reading(path), open(path, "rb", buffering=0) as file:
        file.seek(start)
        return file.read(stop - start)


def _open(path: str) -> IO[bytes] | Decompressed:
    return Decompressed(path) if compression_of(path) else open(path, "rb")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError as error:
        raise kind_of_error(error)(f"{path} can't be read: {error.strerror}") from error
